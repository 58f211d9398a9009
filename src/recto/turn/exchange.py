"""Exchange: one request and what comes back: the reply, stored as it streams, and the tool calls it asks for."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from recto.base.background import FOREGROUND
from recto.base.concurrency import run_to_completion
from recto.base.ids import new_id
from recto.chat.blocks import Block, Text, Thinking, ToolCall, ToolResult, written_text
from recto.chat.message import Message, Role, Status, Tokens, Usage
from recto.errors import ProviderError, RectoError, StoreError
from recto.events import (
    ContextUsage,
    Event,
    NotesQuoted,
    Noticed,
    Replied,
    Retrying,
    Sent,
    TextDelta,
    ThinkingDelta,
    ToolCallsPending,
)
from recto.providers.model import Attempt, CallPart, Done, ReplyPart, TextPart, ThinkingPart, limited
from recto.sources.tools import REMEMBER, ToolRun
from recto.sources.use_detection import UseEvidence
from recto.store.store import Store
from recto.turn.citations import Citations
from recto.turn.context import TurnContext
from recto.turn.emitting import Emit
from recto.turn.incoming_message import IncomingMessage, OpenStreams, delta_of
from recto.turn.planned_request import PlannedRequest, add_results, count_sent, message_tokens, reply_request
from recto.turn.session import ChatSession, SessionChanges
from recto.turn.source_uses import ReplyEvidence, UseTracker, evidence, record_sources, told_uses, tools_of
from recto.turn.spending import at_most, broken_off, check_limits, priced
from recto.turn.tool_round import Approvals, close_calls, run_calls
from recto.turn.turn import Turn
from recto.window.calibration import is_believable
from recto.window.request import Request

log = logging.getLogger(__name__)

# Characters that take some milliseconds to count and to compare with their sources.
LONG_REPLY = 8_000
NEARLY_FULL, NEARLY_DUE = 0.80, 0.94


async def record_request(store: Store, session: ChatSession, planned: PlannedRequest, message: Message) -> Request:
    """Stores what will be sent before it leaves, unless it would cost more than the user wants to spend."""
    request, cache = reply_request(planned, session.conversation, message), planned.token_cache
    if session.cap:  # without `max_tokens` a reply may be longer than the reserve
        most = at_most(planned.context.model, planned.window.total, planned.longest_reply)
        request = replace(request, at_most_usd=most)
    counted = await count_sent(planned, message)

    def write() -> tuple[None, SessionChanges]:
        check_limits(store, planned.context.resolved.spend, request, session.run, session.cap)
        cache.save()
        store.tree.count(counted)
        store.records.save(request, session.request or store.records.latest(session.conversation))
        hashes = record_sources(store, request.id, planned, session.stored_hashes)
        return None, {"request": request.id, "last_tools": tools_of(planned), "stored_hashes": hashes}

    await store.do(session.commit, store, write)
    return request


async def _said(text: str) -> AsyncGenerator[ReplyPart, None]:
    """A reply that no model writes."""
    yield TextPart(text)
    yield Done("stop")


@dataclass(slots=True)
class Exchange:
    turn: Turn
    planned: PlannedRequest
    request: Request
    approvals: Approvals
    use_tracker: UseTracker
    streams: OpenStreams
    calls: tuple[ToolCall, ...] = ()
    """What the reply asks for, once it is complete."""
    handed_back: tuple[ToolCall, ...] = ()
    """Of these, what the caller runs."""
    listener: Callable[[ReplyPart], None] | None = None
    """Hears the parts of the reply as they are stored."""
    also: Callable[[str, Sequence[Block]], None] | None = None
    """Writes more about the reply, which it is given by its id and its blocks, when that is stored whole."""
    finish: str = ""
    """Why the reply ended, as the provider says."""
    _attempts: list[dict[str, Any]] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)
    _reply: Message | None = None
    _evidence: ReplyEvidence | None = None
    _sent_ids: frozenset[str] | None = None
    """Of the calls that the request tells; None before they are asked for."""

    context: TurnContext = field(init=False)
    session: ChatSession = field(init=False)
    store: Store = field(init=False)
    citations: Citations = field(init=False)

    def __post_init__(self) -> None:
        turn, self.context = self.turn, self.planned.context
        self.session, self.citations = turn.session, turn.citations
        self.store = turn.store

    def sent(self) -> list[Event]:
        """The request leaves, with this much in its window."""
        planned = self.planned
        usage, due = ContextUsage(planned.window.total, planned.window.limit), planned.budget.due
        events: list[Event] = [usage, Sent(self.request.id, planned.window)]
        # in a small window the room ends before 80 % of it
        is_nearly_full = usage.size >= min(NEARLY_FULL * usage.limit, NEARLY_DUE * due)
        if self.session.becomes_nearly_full(is_nearly_full) and planned.budget.trigger:
            full = f"{usage.percent:.0f} % full ({usage.size:,} of {usage.limit:,} tokens; it is compacted at {due:,})"
            events.insert(1, Noticed(f"the context is {full}"))
        return events

    async def run(self, emit: Emit) -> None:
        """Streams the reply to the store and the listener. What arrived is kept, however the stream ends."""
        incoming = self._incoming("assistant", self.context.provider.name, self.context.model.name, self.request.id)
        done = Done("stop")
        try:
            told = self.citations.instead
            stream = _said(told) if told else self.context.provider.stream(self.request.body, self.request.purpose)
            async with aclosing(limited(stream, self.context.reply_limit, self.request.max_tokens)) as parts:
                async for part in parts:
                    if isinstance(part, Done):
                        done = part
                    elif event := await self._take(incoming, part):
                        await emit(event)
        except BaseException as why:
            await self._end_early(incoming, why)
            raise
        try:
            with FOREGROUND.begin():
                message = await (self._end_cut(incoming, done) if done.note else self._end(incoming, done))
        except BaseException as why:
            if not incoming.is_finished:
                await self._end_early(incoming, why)
            raise
        try:
            await self._tell(message, done, emit)
        except BaseException:
            await self._close_calls_unrun()
            raise

    async def _tell(self, message: Message, done: Done, emit: Emit) -> None:
        if self.citations.quotes and self.context.model.summarizes and not message.calls:
            await emit(NotesQuoted(self.citations.quotes, self.citations.root))
        await emit(Replied(message, self.planned.window, self.request.id))
        if branch := self.session.new_branch():
            await emit(branch)
        if not message.blocks:
            await emit(Noticed("the model's reply was empty"))
        if done.finish == "length":
            await emit(Noticed(done.note or "the reply was cut off at its length limit"))
        for note in self._notes:
            await emit(Noticed(note))

    async def _close_calls_unrun(self) -> None:
        """Whoever leaves at the reply leaves no call without its result."""
        if own := self._own_calls:
            closing = self._close_round(self._incoming("tool"), own, "stopped")
            await run_to_completion(asyncio.ensure_future(closing))

    @property
    def _own_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.calls if call not in self.handed_back)

    async def run_tools(self, emit: Emit, *, may_run: bool) -> None:
        """The calls of the reply, each with its one result in the end, whether or not they may run; those that the
        caller runs are handed back."""
        own = self._own_calls
        if not own:
            await emit(ToolCallsPending(self.handed_back))
            return
        incoming, calls = self._incoming("tool"), own if may_run else ()
        if self.finish == "length" and calls and calls[-1] == self.calls[-1]:
            calls = calls[:-1]  # it may have been cut off before its arguments
        status: Status = "stopped"
        try:
            await run_calls(incoming, self.context.toolbox, calls, self.approvals, self._keep, emit)
            status = "done"
        finally:
            # to its end, also when the turn is stopped right here: every call has its result
            await run_to_completion(asyncio.ensure_future(self._close_round(incoming, own, status)))
        if branch := self.session.new_branch():
            await emit(branch)
        if self.handed_back:
            await emit(ToolCallsPending(self.handed_back))

    async def _close_round(self, incoming: IncomingMessage, calls: Sequence[ToolCall], status: Status) -> None:
        run = self.session.run
        at = (incoming, calls, self.approvals, self._tokens, self._add_results, status)
        message = await close_calls(*at, remark=run.take if run else None)
        for call, result in zip(calls, message.results, strict=True):  # in the order of the calls
            self.citations.add_result(call, result)
        await self._note_calls()

    async def _keep(self, ran: ToolRun) -> ToolResult:
        """Stores what does not go into the window: the whole of a long result, and what is not text."""
        whole = [ran.whole.encode()] if ran.whole is not None else []
        if not whole and not ran.media:
            return ran.result
        kept = await self.store.do(self.store.blobs.put_all, [*whole, *(each.data for each in ran.media)])
        media = zip(ran.media, kept[len(whole) :], strict=True)
        told = tuple(f"{each.media_type} {sha256}" for each, sha256 in media)
        return replace(ran.result, whole=kept[0] if whole else "", media=told)

    def _incoming(
        self, role: Role, provider: str | None = None, model: str | None = None, request: str | None = None
    ) -> IncomingMessage:
        assert self.session.head is not None
        draft = Message(
            new_id(),
            role,
            (),
            parent=self.session.head,
            status="unfinished",
            context_type="tool_output" if role == "tool" else "primary",
            agent=self.session.agent,
            provider=provider,
            model=model,
            request=request,
            memory_references=self._facts if role == "assistant" else (),
            task_runs=self.session.task_runs(),
        )
        return IncomingMessage(self.streams, self.session, draft)

    @property
    def _facts(self) -> tuple[str, ...]:
        """The numbers of the facts that the request tells."""
        inserts = (item for item, _ in self.planned.current.inserts)
        return tuple(pick.name for item in inserts for pick in item.picks if pick.kind == "fact")

    async def _take(self, incoming: IncomingMessage, part: ReplyPart) -> Event | None:
        if isinstance(part, Attempt):
            self._attempts.append({"error": part.error, "wait_s": part.wait_s})
            return Retrying(part.number, part.error, part.wait_s)
        assert not isinstance(part, Done)
        if isinstance(part, CallPart) and part.id:
            part = self._with_own_id(part)
        if self.listener:
            self.listener(part)
        await incoming.add(delta_of(part))
        if isinstance(part, TextPart):
            return TextDelta(part.text)
        return ThinkingDelta(part.text) if isinstance(part, ThinkingPart) and part.text else None

    def _with_own_id(self, part: CallPart) -> CallPart:
        """Some servers begin anew with call_0 in every reply, and some providers accept an id only once."""
        if self._sent_ids is None:
            view = self.planned.loaded.view
            sent = (*view.lifted, *view.history, *view.rounds)
            self._sent_ids = frozenset(call.id for message in sent for call in message.calls)
        return replace(part, id=f"{part.id}_{self.request.id[-8:]}") if part.id in self._sent_ids else part

    async def _end(self, incoming: IncomingMessage, done: Done) -> Message:
        if incoming.message is None:
            await incoming.add(["text", ""])
        if self._ends_slowly(incoming.blocks):
            self.streams.flush_soon()
        self.finish = done.finish
        is_sent = not self.citations.instead
        usage, outcome = self._believed(done.usage), self._outcome(done.finish, not_sent=not is_sent)
        calls = [block for block in incoming.blocks if isinstance(block, ToolCall)]
        blocks = await self._with_references(incoming.blocks)
        tokens, uses = await self._tokens("assistant", blocks), await self._used(incoming.blocks)
        learn = self._learn(usage.input) if usage else None
        rounds = self.planned.loaded.view.rounds
        has_learned = not calls and any(call.name == REMEMBER for message in rounds for call in message.calls)
        counted = Usage(self.planned.window.total if is_sent else 0, tokens.own or 0, reported=False)
        spent = priced(self.context.model, usage or counted)

        def write_more() -> None:
            if self.also:
                self.also(incoming.id, blocks)
            if self._facts:
                self.store.facts.used(map(int, self._facts))
            if has_learned:
                learned = self.store.facts.learned_from(self.turn.message.id)
                self.store.tree.learn(self.turn.message.id, [str(number) for number in learned])
            if uses:
                self.store.source_uses.signs(self.request.id, {use.id: use.sign for use in uses})
            if learn:
                learn()

        message = await incoming.finish(
            "pending" if any(map(self.context.toolbox.is_callers, calls)) else "done",
            blocks=blocks,
            tokens=tokens,
            usage=spent,
            outcome=outcome | told_uses(uses) | {"cost_usd": spent.cost_usd},
            also=write_more,
        )
        assert message is not None
        if self._evidence:
            self.use_tracker.begin(self.request.id, self._evidence, uses)
        self.calls, self._reply = message.calls, message
        self.handed_back = tuple(filter(self.context.toolbox.is_callers, message.calls))
        if self.handed_back:
            self.session.apply(pending=message.id)
        return message

    async def _end_cut(self, incoming: IncomingMessage, done: Done) -> Message:
        """Keeps what came of a reply that was cut off. Its calls are neither run nor sent again: the last one may be
        incomplete, and there may be thousands."""
        if incoming.message is None:
            await incoming.add(["text", ""])
        self.finish, spent = done.finish, self._spent_on(incoming)
        outcome = self._outcome(done.finish, done.note) | {"cost_usd": spent.cost_usd}
        message = await incoming.finish("stopped", usage=spent, error=done.note, outcome=outcome)
        assert message is not None
        return message

    def _spent_on(self, incoming: IncomingMessage) -> Usage:
        text = "".join(map(written_text, incoming.blocks))
        return broken_off(self.context.model, self.planned.window.total, text, self.request.at_most_usd)

    def _ends_slowly(self, blocks: tuple[Block, ...]) -> bool:
        """Whether it takes more than a moment to count the reply and to look for its sources; else its last words are
        stored with its end, in one commit."""
        size = sum(len(block.text) for block in blocks if isinstance(block, Text | Thinking))
        return self.citations.has_found or not self.context.token_cache.counter.is_quick or size > LONG_REPLY

    def _believed(self, usage: Usage | None) -> Usage | None:
        if usage is None or is_believable(usage):
            return usage
        self._note_once("reported a usage that cannot be right", ": our own counts are kept")
        return None

    def _learn(self, reported: int) -> Callable[[], None] | None:
        """Writes down what a report teaches. What contradicts our counts is told once for each model."""
        window, cache = self.planned.window, self.context.token_cache
        report, total = window.report(reported, cache.counter.key), f"{window.total:,}"
        if report.differs and not cache.calibration.contradicted:
            self._note_once("reported other counts than our exact ones", f" ({reported:,} tokens, not {total})")
        if report.is_far_off and not cache.calibration.outliers:
            is_more = reported > window.total
            may = "count several calls or a search of its own" if is_more else "leave out what it had cached"
            why = f"it may {may}, so our estimates are not adjusted to it"
            self._note_once("reported a usage far from our estimate", f" ({reported:,} tokens, not {total}): {why}")
        if not report.estimated and not report.differs:
            return None
        return lambda: self.store.usage_reports.add(self.context.model.name, report)

    def _note_once(self, what: str, figures: str) -> None:
        said = f"{self.context.model.name} {what}"
        if self.session.is_new(said):
            self._notes.append(said + figures)

    async def _used(self, blocks: tuple[Block, ...]) -> list[UseEvidence]:
        """The sources that the last reply of a turn shows signs of using; a failure here costs only that."""
        if any(isinstance(block, ToolCall) for block in blocks):
            return []
        text = "".join(block.text for block in blocks if isinstance(block, Text))
        try:
            if (found := evidence(self.planned, text)) is None:
                return []
            uses = found.uses if found.is_short else await asyncio.to_thread(lambda: found.uses)
        except Exception:  # the reply is complete, whatever goes wrong here
            log.exception("the sources that a reply used could not be detected")
            return []
        self._evidence = found
        return uses

    def _add_results(self, results: Tokens) -> None:
        if self._reply:
            add_results(self.store, self._reply, results.own)

    async def _note_calls(self) -> None:
        """A tool that was called counts as used, even if no final reply follows."""
        called = [found.tool.id for call in self.calls if (found := self.context.toolbox.runnable(call.name))]
        offered = {tool.id for tool, _ in self.planned.preamble.tools}
        if signs := {id: "called" for id in called if id in offered}:
            with suppress(RectoError):
                await self.store.do(self.store.source_uses.signs, self.request.id, signs)

    async def _with_references(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """The last reply of a turn cites the documents that tools read or found."""
        if not self.citations.has_found or any(isinstance(block, ToolCall) for block in blocks):
            return blocks
        found = await asyncio.to_thread(self.citations.block)
        return (*blocks, found) if found else blocks

    async def _tokens(self, role: Role, blocks: tuple[Block, ...]) -> Tokens:
        """What a message will cost as history; empty when it cannot be counted now."""
        try:
            return await message_tokens(self.context.token_cache, role, blocks)
        except ProviderError:
            return Tokens()

    def _outcome(self, finish: str, error: str | None = None, *, not_sent: bool = False) -> dict[str, Any]:
        """What the record keeps that the reply itself does not say."""
        told = {"finish": finish, "attempts": self._attempts, "error": error, "not_sent": not_sent}
        return {name: value for name, value in told.items() if value}

    async def _end_early(self, incoming: IncomingMessage, why: BaseException) -> None:
        stopped = isinstance(why, asyncio.CancelledError)
        error = None if stopped else why.message if isinstance(why, RectoError) else repr(why)
        not_sent = isinstance(why, ProviderError) and not why.sent
        may_cost = stopped or incoming.message or (isinstance(why, ProviderError) and why.may_cost)
        # what broke off while it was answered is paid for, what was refused before that is not
        spent = self._spent_on(incoming) if may_cost else None
        cost = {"cost_usd": spent.cost_usd if spent else 0.0}
        outcome = self._outcome("stopped" if stopped else "error", error, not_sent=not_sent) | cost
        # a store that fails here has most likely failed before: the first error is the one to report
        with suppress(StoreError):
            found = self.citations.block() if incoming.blocks else None
            blocks = (*incoming.blocks, found) if found else None
            status: Status = "stopped" if stopped else "error"
            kept = await incoming.finish(status, blocks=blocks, usage=spent, error=error, outcome=outcome)
            if not kept:
                await self.store.do(self.store.records.outcome, self.request.id, **outcome)
