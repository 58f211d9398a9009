"""CompactionWork: carries out a cut: excerpts, summary, one Compaction block, stored in one step or not at all."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from recto.base.concurrency import entered
from recto.base.text import clean
from recto.chat.blocks import Compaction, Text
from recto.compaction.condensed import condensed_texts
from recto.compaction.summary_ahead import SummariesAhead, SummaryAhead, find_ahead, summary_lease
from recto.compaction.summary_input import (
    UnreadMessages,
    as_sent,
    fitting_ledger,
    instructions_text,
    summary_input,
    unread_ranges,
    unsummarized,
)
from recto.compaction.summary_writer import SummaryWriter
from recto.errors import Invalid, ProviderError, RectoError, Unreachable
from recto.events import CompactionProposed, ContextCompacted, Noticed, Unanswered
from recto.providers.model import Done, Model, ReplyPart, TextPart
from recto.store.store import Store
from recto.summary.prompt import SummaryOptions
from recto.summary.truncation import cut_to_fit
from recto.summary.verification import recount_statements
from recto.summary.work_log import whole_log
from recto.turn.context import Summarizer, TurnContext
from recto.turn.emitting import Emit
from recto.turn.loaded_view import LoadedView, view_after_cut
from recto.turn.models import Models
from recto.turn.planned_request import PlannedRequest
from recto.turn.session import ChatSession, SessionChanges, moved
from recto.turn.turn import Turn
from recto.window.compaction_block import (
    PASSING,
    WrittenSummary,
    compaction_message,
    left_out_in_words,
    next_block,
    previous_summary,
)
from recto.window.count import SMALLEST_SUMMARY, SUMMARY, TokenCounter
from recto.window.plan import Cut, Plan
from recto.window.planner import LITTLE, plan_ahead, plan_window
from recto.window.request import Entry, Format, Purpose
from recto.window.window import too_large
from recto.wire import loads

Writers = tuple[list[TurnContext], list[str]]
"""Models in the order in which they are asked, and why others are not."""


class CallerSummarizer:
    """Takes summaries from the caller's function."""

    def __init__(self, summarizer: Summarizer, context: TurnContext) -> None:
        self.name, self.format = "caller", context.token_cache.format
        self._summarizer, self._provider = summarizer, context.provider

    format: Format

    async def model(self, name: str) -> Model:
        return await self._provider.model(name)

    async def counter(self, model: Model) -> TokenCounter:
        return await self._provider.counter(model)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart, None]:
        try:
            text = await self._summarizer(loads(body)["messages"])
        except ProviderError:
            raise
        except Exception as why:  # the caller's function may fail in any way: then sentences are chosen
            raise Unreachable(f"the summarizer failed: {type(why).__name__}: {why}") from why
        if not isinstance(text, str):
            raise Unreachable(f"the summarizer gave no text but {type(text).__name__}")
        yield TextPart(text)
        yield Done("stop")

    async def close(self) -> None:
        return None


MOST_PASSES = 3
OF_COVERED = 0.8
# A user who refused is asked again when the window has grown by this factor.
ASK_AGAIN = 1.1
NOBODY = "context.confirm is on and there is nobody to ask: nothing is compacted, requests leave out what does not fit"


@dataclass(slots=True)
class CompactionWork:
    builder: Models
    turn: Turn
    planned: PlannedRequest
    """The turn to make room for; after `run`, the one to send."""
    keep: str = ""
    """The user's wish for the contents of the summary."""
    is_requested: bool = False
    """The user requested the compaction: no need to confirm it."""
    can_ask: bool = True
    ahead: SummariesAhead | None = None
    """Those in the background: one that is still being written is stopped."""
    block: Compaction | None = None
    context: TurnContext = field(init=False)
    _is_kept: bool = False
    _is_stuck: bool = False
    _written_ahead: SummaryAhead | None = None

    def __post_init__(self) -> None:
        self.context = self.planned.context

    @property
    def store(self) -> Store:
        return self.turn.store

    @property
    def session(self) -> ChatSession:
        return self.turn.session

    async def run(self, emit: Emit) -> None:
        """Cuts and plans again until everything fits, in a few passes at most. On a database server only one process at
        a time summarises a conversation."""
        id = self.session.conversation
        if self._needs_summary and self.ahead:
            await self.ahead.stop(id)
        cut = self.planned.plan.cut
        wait_s = self.context.settings.summary_timeout_s if cut and cut.summary and self._stores else 0.0
        async with entered(self.store.database.hold(summary_lease(id), wait_s)):
            await self._passes(emit)

    async def _passes(self, emit: Emit) -> None:
        await self._plan_again()
        for _ in range(MOST_PASSES):
            if self.planned.plan.cut is not None and self._is_unwanted:
                await self._do_without()
                if not self.can_ask and self.session.is_new(NOBODY):
                    await emit(Noticed(NOBODY))
            if self.planned.plan.cut is None or self._is_stuck:
                break
            await self._pass(emit)
            if self.is_requested:
                break
        if self.planned.window.free < 0 and self.context.may_offer_recall:
            self.context = self.context.without_recall_tool()
            self.planned = await self.turn.plan(self.planned.loaded, self.context)
        if self.planned.window.free < 0 and await self.turn.uncalibrate():
            self.context = self.turn.context
            loaded = self.planned.loaded.rescaled(self.context.token_cache.factor)
            self.planned = await self.turn.plan(loaded, self.context)
        if self.planned.window.free < 0:
            raise too_large(self.planned.window)

    @property
    def is_stored(self) -> bool:
        """True if the view that is sent is the stored one."""
        return self.block is None or self._is_kept

    @property
    def _is_unwanted(self) -> bool:
        """True if a user who confirms compactions cannot be asked or has just refused."""
        if not self.context.settings.confirm or self.is_requested or not self.context.compacts:
            return False
        return not self.can_ask or self.planned.window.total < self.session.declined * ASK_AGAIN

    async def _do_without(self) -> None:
        """Lets this request alone leave out what does not fit."""
        self.context = replace(self.context, compacts=False, budget=replace(self.context.budget, trigger=None))
        self.planned = await self.turn.plan(self.planned.loaded, self.context)

    async def _pass(self, emit: Emit) -> None:
        """Nothing is stored before the Compaction is complete."""
        cut, before = self._cut, self.planned.loaded.view.compaction
        written = previous_summary(before) if cut.summary is None else WrittenSummary()
        if cut.summary and self._stores:
            work = await self._summary_writer(cut.summary)
            ahead = self._written_ahead
            work.ready = ahead.answer if ahead and ahead.last == cut.last else None
            written = await work.run(emit)
        block, loaded = await self._draft(cut, before, written)
        if block.context_size_after >= block.context_size_before:
            if self.is_requested:
                sizes = f"{block.context_size_before} → {block.context_size_after} tokens"
                raise Invalid(f"there is too little to sum up: the window would not get smaller ({sizes})")
            if block.context_size_after > self.planned.budget.room:
                self._is_stuck = True
                return
        if self._stores and self.context.settings.confirm and not self.is_requested:
            proposed = CompactionProposed(block)
            await emit(proposed)
            summary = None
            with suppress(Unanswered):
                summary = await proposed.answered()
            if summary is None:
                self.session.apply(declined=self.planned.window.total)
                return
            if summary != block.summary:
                text = await self._edited(summary, cut)
                if text != summary.strip():
                    await emit(Noticed("your summary was too long for the window: its end was cut off"))
                block, loaded = await self._draft(cut, before, await self._by_user(text, block, cut))
        if self._stores and not await self.turn.store.do(self._store_block, block, before):
            self.planned = await self.turn.plan(await self.turn.load(), self.context)
            return
        self.block, self._is_kept = block, self._stores
        made = ContextCompacted.of(block) if self._stores else Noticed(left_out_in_words(block, before))
        await emit(made)
        self.planned = await self.turn.plan(loaded, self.context)

    def _store_block(self, block: Compaction, before: Compaction | None) -> bool:
        """False if another process has stored a Compaction meanwhile."""
        return self.session.commit(self.store, lambda: self._append(block, before))

    def _append(self, block: Compaction, before: Compaction | None) -> tuple[bool, SessionChanges]:
        head, tree = self.session.head, self.store.tree
        assert head is not None
        newest = tree.compaction(head)
        if (newest.compaction if newest else None) != before:
            return False, {}
        placed = tree.append(self.session.conversation, compaction_message(block, head))
        return True, {**moved(placed), "declined": 0}

    async def preview(self) -> PlannedRequest:
        """The turn after its cut, as far as it is known without a model."""
        await self._plan_again()
        cut, before = self._cut, self.planned.loaded.view.compaction
        written = previous_summary(before) if cut.summary is None else WrittenSummary()
        _, loaded = await self._draft(cut, before, written)
        return await self.turn.plan(loaded, self.context, promised=cut.summary or 0)

    @property
    def _cut(self) -> Cut:
        assert self.planned.plan.cut is not None
        return self.planned.plan.cut

    @property
    def _stores(self) -> bool:
        """False if automatic compaction is off, or if this cut is for one request only."""
        return (self.context.compacts or self.is_requested) and not self._cut.passing

    async def _draft(
        self, cut: Cut, before: Compaction | None, written: WrittenSummary
    ) -> tuple[Compaction, LoadedView]:
        """The block with its real sizes, and the view after it."""
        loaded, planned = self.planned.loaded, self.planned
        excerpts, notes = await condensed_texts(planned, cut, can_recall=self._stores and self.context.may_offer_recall)
        block = next_block(
            before,
            written,
            last=cut.last,
            lifted=cut.lifted,
            unsummarized=unsummarized(planned.loaded.view, cut),
            excerpts=excerpts,
            messages_archived=loaded.archived(cut.last, cut.lifted),
            context_size_before=planned.window.total,
            because=planned.plan.because,
            action="compact" if self._stores else PASSING,
        )
        block = replace(block, notes=tuple(dict.fromkeys((*block.notes, *notes))))
        if block.summary and block.summary_tokens is None:
            block = replace(block, summary_tokens=await self._count(Entry("user", (Text(block.summary),))))
        behind = await view_after_cut(planned.token_cache, loaded, block)
        after = await self._size(behind, block)
        freed = planned.window.total - after
        is_little = not self.is_requested and freed < planned.budget.room * LITTLE
        little = (before.little if before else 0) + 1 if is_little else 0
        block = replace(block, context_size_after=after, little=little)
        return block, replace(behind, view=replace(behind.view, compaction=block))

    async def _size(self, behind: LoadedView, block: Compaction) -> int:
        rest = self.context.at(behind.view).preamble.count.tokens + self.planned.current.for_inserts
        entries = (*behind.before, *behind.entries(behind.view.rounds))
        current = self.planned.current.own.tokens
        if (id := self.planned.current.message.id) in block.excerpts:
            current = await self._count(Entry("user", (Text(block.excerpts[id]),)))
        return rest + current + sum(entry.count.tokens for entry in entries)

    async def _count(self, entry: Entry) -> int:
        return (await self.planned.token_cache.count([entry]))[0].count.tokens

    # -- the summary that was written ahead

    @property
    def _needs_summary(self) -> bool:
        cut = self.planned.plan.cut
        return cut is not None and bool(cut.summary) and not self.is_requested and self._stores

    async def _plan_again(self) -> None:
        """Old tool results shrink first, and a summary ahead may serve."""
        if not self._needs_summary or self.turn.is_squeezed:
            return
        ahead = await self.store.do(find_ahead, self.store, self.session.conversation, self._number)
        ahead = ahead if ahead and ahead.answer else None
        plan = self._plan(ahead.last if ahead else None)
        self.planned, self._written_ahead = replace(self.planned, plan=plan), ahead

    def _plan(self, ahead: str | None) -> Plan:
        loaded = self.planned.loaded
        at = (self.context.strategy, loaded.view, self.planned.budget, loaded.counts)
        return plan_window(*at, results=loaded.all_results, ahead=ahead)

    @property
    def _number(self) -> int | None:
        before = self.planned.loaded.view.compaction
        return before.compaction_number if before else None

    async def write_ahead(self) -> None:
        """Requests the next summary on the prefix of the last request. The answer is stored with its request; no block
        is made."""
        planned = self.planned
        at = (self.context.strategy, planned.loaded.view, planned.budget, planned.loaded.counts)
        plan = plan_ahead(*at, results=planned.loaded.all_results)
        if plan.cut is None or not plan.cut.summary or not plan.cut.last:
            return
        self.planned = replace(planned, plan=plan)
        writer = await self._summary_writer(plan.cut.summary)
        await writer.write_ahead(plan.cut.last, self._number)

    # -- the summary

    async def _summary_writer(self, most: int) -> SummaryWriter:
        planned, head, before = self.planned, self.session.head, self.planned.loaded.view.compaction
        assert head is not None
        unread = UnreadMessages(self.store, head, unread_ranges(planned.loaded))
        aside = await self._set_aside(head, before)
        source = summary_input(planned, self._cut, unread, instructions_text(planned.preamble), aside)
        # summary, ledger and recall tool stay shorter than what they replace; the former ones already are
        former, after = planned.loaded.counts.get(SUMMARY, 0), self.context.after_compaction
        tool = max(0, (after.with_recall or after.plain).count.tokens - self.context.preamble.count.tokens)
        most = min(most, max(SMALLEST_SUMMARY, former + int((source.tokens - former - tool) * OF_COVERED)))
        writers, notes = await self._writers()
        settings, frame = self.context.settings, await as_sent(source.token_cache, ".", source.archived)
        return SummaryWriter(
            self.store,
            self.session,
            source,
            writers,
            most,
            SummaryOptions(max(16, most - frame), self.keep, settings.summary_style),
            planned.loaded.view.current,
            settings.summary_timeout_s,
            notes=notes,
        )

    async def _set_aside(self, head: str, before: Compaction | None) -> tuple[str, ...]:
        return await self.store.do(self.store.tree.set_aside, head, before) if before else ()

    async def _writers(self) -> Writers:
        """The summary model, if set and available, then the conversation's own, if it can summarise. If the caller
        sends the requests, only its function."""
        context, options, name = self.context, self.turn.options, self.context.settings.summary_model
        if options.summarizer is not None:
            provider = CallerSummarizer(options.summarizer, context)
            return [replace(context, provider=provider)], []
        if not options.may_send:
            return [], []
        own = [context] if context.model.summarizes or name == context.model.name else []
        notes = [] if own else [f"{context.model.name} is too small a model to write summaries"]
        if not name or name == context.model.name:
            return own, notes
        try:
            return [await self.builder.bare(name, self.session.chosen), *own], []
        except RectoError as why:
            return own, [f"{name} cannot write summaries: {why.message}", *notes]

    async def _by_user(self, text: str, block: Compaction, cut: Cut) -> WrittenSummary:
        """The user's summary with as much of the ledger as fits."""
        archived = self.planned.loaded.archived(cut.last, cut.lifted)
        ledger = await fitting_ledger(self.planned.token_cache, text, block.ledger, archived, self._most(cut))
        return WrittenSummary(
            text,
            "user",
            checks=recount_statements(text, replace(block, ledger=ledger)),
            ledger=ledger,
            places=block.places,
            read=block.read,
            unread=block.unread,
            work_log=whole_log(text, block.summary, block.work_log),
            set_aside=tuple(line for line in block.set_aside if line.partition(": ")[2] not in text),
            contents=block.contents,
        )

    def _most(self, cut: Cut) -> int:
        return max(cut.summary or 0, self.context.budget.summary)

    async def _edited(self, text: str, cut: Cut) -> str:
        """The user's summary, cut to its room."""
        most = self._most(cut)
        text = clean(text)[0].strip()
        archived = self.planned.loaded.archived(cut.last, cut.lifted)
        while text and await as_sent(self.planned.token_cache, text, archived) > most:
            text = cut_to_fit(text, len(text) * 9 // 10, len)
        return text
