"""Compacting: carries out a plan's cut: excerpts, summary, one Compaction block, stored in one step or not at all."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from recto.chat.blocks import Compaction, Text
from recto.chat.message import Message
from recto.errors import DoesNotFit, Invalid, RectoError
from recto.events import CompactionProposed, ContextCompacted, Event, Noticed, Unanswered
from recto.sources.tools import RECALL
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.summary.check import former_of, recounted
from recto.summary.order import Wanted, told
from recto.summary.shorten import cut_to
from recto.text import clean
from recto.walk.checking import as_sent, fitting, instructions
from recto.walk.covering import Covering
from recto.walk.excerpting import excerpts
from recto.walk.loading import Loaded, behind_cut
from recto.walk.scale import Weighed
from recto.walk.setup import Ready, Setup
from recto.walk.standing import Standing
from recto.walk.summarising import Summarising
from recto.walk.turn import Turn
from recto.window.compact import PASSING, Written, compaction_message, next_block, written_before
from recto.window.fitting import SMALLEST_SUMMARY
from recto.window.measure import SUMMARY
from recto.window.plan import Cut
from recto.window.request import Entry
from recto.window.strategies import LITTLE

MOST_PASSES = 3
OF_COVERED = 0.8
# A user who said no is asked again when the window has grown by so much.
ASK_AGAIN = 1.1
NOBODY = "context.confirm is on and there is nobody to ask: nothing is compacted, requests leave out what does not fit"


class Replan(Protocol):
    """Plans the same turn for another view."""

    def __call__(self, ready: Ready, loaded: Loaded, *, promised: int = 0) -> Awaitable[Turn]: ...


@dataclass(slots=True)
class Compacting:
    store: Store
    clerk: Clerk
    setup: Setup
    standing: Standing
    ready: Ready
    turn: Turn
    """The turn to make room for; in the end the one to send."""
    replan: Replan
    reload: Callable[[], Awaitable[Loaded]]
    keep: str = ""
    """What the user wants in the summary above all."""
    asked: bool = False
    """The user asked for it: no need to ask back."""
    answers: bool = True
    """Somebody listens who can say yes or no."""
    block: Compaction | None = None
    """What was made last."""
    _is_kept: bool = False
    _is_stuck: bool = False

    async def run(self) -> AsyncGenerator[Event, None]:
        """Cuts and plans again until everything fits. What a plan cannot reach in a few passes it never will."""
        for _ in range(MOST_PASSES):
            if self.turn.plan.cut is not None and self._is_unwanted:
                await self._do_without()
                if not self.answers and self.standing.tell_once(NOBODY):
                    yield Noticed(NOBODY)
            if self.turn.plan.cut is None or self._is_stuck:
                break
            async with aclosing(self._pass()) as events:
                async for event in events:
                    yield event
            if self.asked:
                break
        if self.turn.window.free < 0 and self.ready.reaches:
            self.ready = self.ready.unreaching()
            self.turn = await self.replan(self.ready, self.turn.loaded)
        if self.turn.window.free < 0:
            raise self._too_large()

    @property
    def is_stored(self) -> bool:
        """Whether what is sent is what the store will give for the next turn."""
        return self.block is None or self._is_kept

    @property
    def _is_unwanted(self) -> bool:
        """The user wants to be asked first, and cannot be, or has just said no."""
        if not self.ready.context.confirm or self.asked or not self.ready.compacts:
            return False
        return not self.answers or self.turn.window.total < self.standing.declined * ASK_AGAIN

    async def _do_without(self) -> None:
        """The window stays as it is while it fits; else this request alone leaves out what does not."""
        self.ready = replace(self.ready, compacts=False, budget=replace(self.ready.budget, trigger=None))
        self.turn = await self.replan(self.ready, self.turn.loaded)

    async def _pass(self) -> AsyncGenerator[Event, None]:
        """One Compaction. Nothing is stored before all of it is there."""
        cut, before = self._cut, self.turn.loaded.view.compaction
        written = written_before(before) if cut.summary is None else Written()
        if cut.summary and self._stores:
            work = await self._summarising(cut.summary)
            async with aclosing(work.run()) as events:
                async for event in events:
                    yield event
            written = work.result
        block, loaded = await self._drafted(cut, before, written)
        if block.context_size_after >= block.context_size_before:
            if self.asked:
                sizes = f"{block.context_size_before} → {block.context_size_after} tokens"
                raise Invalid(f"there is too little to sum up: the window would not get smaller ({sizes})")
            if block.context_size_after > self.turn.budget.room:
                self._is_stuck = True
                return
        if self._stores and self.ready.context.confirm and not self.asked:
            proposed = CompactionProposed(block)
            yield proposed
            summary = await _answer(proposed)
            if summary is None:
                self.standing.declined = self.turn.window.total
                return
            if summary != block.summary:
                text = await self._edited(summary, cut)
                if text != summary.strip():
                    yield Noticed("your summary was too long for the window: its end was cut off")
                block, loaded = await self._drafted(cut, before, await self._by_user(text, block, cut))
        if self._stores and not await self.clerk.do(self._append, block, before):
            self.turn = await self.replan(self.ready, await self.reload())
            return
        self.block, self._is_kept = block, self._stores
        yield _told(block) if self._stores else _left_out(block, before)
        self.turn = await self.replan(self.ready, loaded)

    def _append(self, block: Compaction, before: Compaction | None) -> bool:
        """Stored and stood there in one step of the store's thread: a cancelled turn must not part the two. False when
        something was pinned, cleared or edited meanwhile, which this block does not know."""
        head = self.standing.head
        assert head is not None
        with self.store.database.write():
            newest = self.store.tree.compaction(head)
            if (newest.compaction if newest else None) != before:
                return False
            placed = self.store.tree.append(self.standing.conversation, compaction_message(block, head))
            self.standing.stands_at(placed.message.id, placed.moved)
            self.standing.declined = 0
            return True

    def _too_large(self) -> DoesNotFit:
        window = self.turn.window
        largest = max(window.sections, key=lambda section: section.tokens)
        return DoesNotFit(
            f"the window takes {window.total} tokens and has room for {window.limit - window.reserve}; most of it is "
            f"{largest.name} ({largest.tokens}): choose a model with a larger window, or ask for less at once",
            needed=window.total,
            room=window.limit - window.reserve,
            largest=largest.name,
        )

    async def preview(self) -> Turn:
        """What the turn would be behind its cut, as far as that is known before any model is asked."""
        cut, before = self._cut, self.turn.loaded.view.compaction
        written = written_before(before) if cut.summary is None else Written()
        _, loaded = await self._drafted(cut, before, written)
        return await self.replan(self.ready, loaded, promised=cut.summary or 0)

    @property
    def _cut(self) -> Cut:
        assert self.turn.plan.cut is not None
        return self.turn.plan.cut

    @property
    def _stores(self) -> bool:
        """Unless automatic compaction is off, or this cut is for the request alone."""
        return (self.ready.compacts or self.asked) and not self._cut.passing

    async def _drafted(self, cut: Cut, before: Compaction | None, written: Written) -> tuple[Compaction, Loaded]:
        """The block with its real sizes, and the view behind it."""
        loaded, turn = self.turn.loaded, self.turn
        block = next_block(
            before,
            written,
            last=cut.last,
            lifted=cut.lifted,
            excerpts=await excerpts(turn, cut),
            messages_archived=loaded.archived(cut.last, cut.lifted),
            context_size_before=turn.window.total,
            because=turn.plan.because,
            action="compact" if self._stores else PASSING,
        )
        behind = await behind_cut(turn.scale, loaded, block)
        after = await self._size(behind, block)
        freed = turn.window.total - after
        is_little = not self.asked and freed < turn.budget.room * LITTLE
        little = (before.little if before else 0) + 1 if is_little else 0
        return replace(block, context_size_after=after, little=little), behind

    async def _size(self, behind: Loaded, block: Compaction) -> int:
        rest = self.ready.at(behind.view).opening.count.tokens + self.turn.current.for_picks
        entries = (*behind.before, *behind.entries(behind.view.rounds))
        current = self.turn.current.own.tokens
        if (id := self.turn.current.message.id) in block.excerpts:
            current = await self._weigh(Entry("user", (Text(block.excerpts[id]),)))
        return rest + current + sum(entry.count.tokens for entry in entries)

    async def _weigh(self, entry: Entry) -> int:
        return (await self.turn.scale.weigh([entry]))[0].count.tokens

    # -- the summary

    async def _summarising(self, most: int) -> Summarising:
        covering, context = self._covering(), self.ready.context
        # ledger and all, never as long as what it stands for
        most = min(most, max(SMALLEST_SUMMARY, int(covering.tokens * OF_COVERED)))
        frame = await as_sent(covering.scale, ".", covering.archived)
        wanted = Wanted(max(16, most - frame), self.keep, context.summary_style)
        writers, notes = await self._writers()
        return Summarising(
            self.store,
            self.clerk,
            self.standing,
            covering,
            writers,
            most,
            wanted,
            self.turn.loaded.view.current,
            context.summary_timeout_s,
            _notes=notes,
        )

    async def _writers(self) -> tuple[list[Ready], list[str]]:
        """The summary model where one is set and can be had, then who answers the conversation, if it can write one."""
        name = self.ready.context.summary_model
        own = [self.ready] if self.ready.model.summarizes or name == self.ready.model.name else []
        notes = [] if own else [f"{self.ready.model.name} is too small to write summaries"]
        if not name or name == self.ready.model.name:
            return own, notes
        try:
            return [await self.setup.bare(name), *own], []
        except RectoError as why:
            return own, [f"{name} cannot write summaries: {why.message}", *notes]

    def _covering(self) -> Covering:
        cut, loaded = self._cut, self.turn.loaded
        view = loaded.view
        covered, _ = view.split(cut.last)
        counts = loaded.counts
        return Covering(
            self.store,
            self.clerk,
            self.turn.scale,
            before=former_of(view.compaction),
            messages=covered,
            older=view.tail[0].parent if view.older and view.tail else None,
            until=view.compaction.last if view.compaction else None,
            entries=None if view.older or any(map(_recalls, covered)) else self._prefix(covered),
            tokens=sum(counts[message.id] for message in covered) + counts.get(SUMMARY, 0),
            covered=loaded.covered(cut.last),
            archived=loaded.archived(cut.last, cut.lifted),
            beside=(instructions(self.turn.opening), *map(told, view.lifted)),
        )

    def _prefix(self, covered: Sequence[Message]) -> tuple[Weighed, ...]:
        """The covered part as the requests of this conversation begin, so that a provider's cache knows it."""
        loaded, current = self.turn.loaded, self.turn.current
        entries = [*loaded.ahead, *([current.weighed] if loaded.view.current_is_lifted else ())]
        for message in covered:
            is_current = message.id == loaded.view.current
            entries += [current.weighed] if is_current else loaded.weights.get(message.id, [])
        return tuple(entries)

    async def _by_user(self, text: str, block: Compaction, cut: Cut) -> Written:
        """The user's own words, with the ledger that was made beside the others as far as it fits."""
        archived = self.turn.loaded.archived(cut.last, cut.lifted)
        ledger = await fitting(self.turn.scale, text, block.ledger, archived, self._most(cut))
        checks = recounted(text, replace(block, ledger=ledger))
        return Written(text, "user", checks=checks, ledger=ledger, places=block.places)

    def _most(self, cut: Cut) -> int:
        return max(cut.summary or 0, self.ready.budget.summary)

    async def _edited(self, text: str, cut: Cut) -> str:
        """What the user wrote, as far as it fits in the room of a summary."""
        most = self._most(cut)
        text = clean(text)[0].strip()
        archived = self.turn.loaded.archived(cut.last, cut.lifted)
        while text and await as_sent(self.turn.scale, text, archived) > most:
            text = cut_to(text, len(text) * 9 // 10, len)
        return text


def _recalls(message: Message) -> bool:
    """It holds what was recalled, which is not to be summed up again: a transcript leaves that out."""
    return any(result.name == RECALL for result in message.results)


async def _answer(proposed: CompactionProposed) -> str | None:
    try:
        return await proposed.answered()
    except Unanswered:
        return None


def _told(block: Compaction) -> ContextCompacted:
    return ContextCompacted(
        block.compaction_number,
        block.messages_archived,
        block.context_size_before,
        block.context_size_after,
        block.summary,
        block.made_by,
        block.because,
        block.notes,
        block.made,
        len(block.excerpts),
        block.checks,
    )


def _left_out(block: Compaction, before: Compaction | None) -> Noticed:
    fewer = block.messages_archived - (before.messages_archived if before else 0)
    if fewer < 1:
        return Noticed(f"the window was cut for this request alone: {block.because}")
    messages = "1 older message was" if fewer == 1 else f"{fewer} older messages were"
    return Noticed(f"{messages} left out of this request: {block.because}")
