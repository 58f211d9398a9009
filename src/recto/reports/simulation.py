"""Simulation: the requests of a stored conversation planned again, with another strategy, window or model.

The engine's own pickers, planner and compaction decide, as for a draft; nothing is sent or stored. Messages and replies
are those of the stored conversation; sources, memory and notes are today's."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.blocks import Compaction
from recto.chat.conversation import View
from recto.chat.message import Message
from recto.compaction.compaction_work import CompactionWork
from recto.engine import Engine
from recto.errors import RectoError
from recto.events import CompactionProposed, Event
from recto.store.store import Store
from recto.tasks.run import TaskRun, read_run, run_entry
from recto.turn.context import CallOptions, ResolvedModel, TurnContext
from recto.turn.loaded_view import LoadedView, grown_view, load_view, view_after_cut
from recto.turn.planned_request import PlannedRequest
from recto.turn.session import ChatSession
from recto.turn.source_uses import tools_of
from recto.turn.turn import Turn
from recto.window.compaction_block import WrittenSummary, next_block, revised_block
from recto.window.plan import Plan


@dataclass(slots=True)
class SimulatedCompaction(CompactionWork):
    aside: tuple[str, ...] = ()
    """Text that earlier Compactions set aside."""
    writer: TurnContext | None = None
    """Would write the summary; None if none is needed, or no model can."""

    async def carry_out(self) -> None:
        """Like `run`, for a user who agrees to every compaction."""

        async def agree(event: Event) -> None:
            if isinstance(event, CompactionProposed):
                event.accept()

        await self.run(agree)

    @property
    def kept(self) -> Compaction | None:
        """The Compaction that would be stored; None if only this request leaves out what does not fit."""
        return self.block if self._is_kept else None

    def _store_block(self, block: Compaction, before: Compaction | None) -> bool:
        return True

    async def _writers(self) -> tuple[list[TurnContext], list[str]]:
        try:
            writers, notes = await CompactionWork._writers(self)
        except RectoError:
            return [], []
        self.writer = writers[0] if writers else None
        return [], notes

    async def _set_aside(self, head: str, before: Compaction | None) -> tuple[str, ...]:
        return self.aside if before else ()

    async def _plan_again(self) -> None:
        """Old tool results shrink first; summaries ahead of the stored conversation belong to other cuts."""
        if self._needs_summary:
            self.planned = replace(self.planned, plan=self._plan(None))


NOTHING_SAID = LoadedView(View(()), {})
CLEAR, PINS = "clear", ("pin", "unpin")
PAGE = 500


class SimulatedSummary(Struct, frozen=True):
    """Tokens that a model would read and write. It reads the beginning of the previous request."""

    writer: TurnContext
    input: int
    output: int


class SimulatedRequest(Struct, frozen=True):
    planned: PlannedRequest
    plan: Plan
    """Before its compaction was carried out."""
    block: Compaction | None = None
    summary: SimulatedSummary | None = None
    """The summary by a model; chosen sentences replace it here."""
    repeated: int = 0
    """Tokens at the beginning that the previous request had too."""
    stable: int = 0
    """Tokens before what changes with every message."""


class Simulation:
    """One pass through a conversation: each request is planned on the simulation's own state."""

    def __init__(self, engine: Engine, session: ChatSession, options: CallOptions) -> None:
        self._engine, self._options = engine, options
        self._session = ChatSession(
            session.conversation,
            model=session.model,
            vault=session.vault,
            agent=session.agent,
            project=session.project,
            chosen=session.chosen,
            is_guest=session.is_guest,
        )
        self._view, self._said, self._path = NOTHING_SAID, list[Message](), dict[str, Message]()
        self._current: Message | None = None
        self._prepared: Turn | None = None
        self._resolved: ResolvedModel | None = None
        self._aside: tuple[str, ...] = ()
        self._sent: tuple[bytes, ...] = ()

    @property
    def compaction(self) -> Compaction | None:
        """The Compaction in force."""
        return self._view.view.compaction

    async def _resolve(self) -> ResolvedModel:
        """Once for all turns: neither the agent's files nor the model's calibration changes meanwhile."""
        if self._resolved is None:
            self._resolved = await self._engine.turns.resolve(self._session, self._options)
        return self._resolved

    async def begin_at(self, message: Message) -> None:
        """Begins with the compactions that the stored conversation has before this user message."""
        resolved, store = await self._resolve(), self._engine.store
        at = (store, resolved.token_cache, message.parent, None, resolved.room)
        self._view = await load_view(*at)
        if message.parent and self.compaction:
            self._aside = await self._engine.store.do(store.tree.set_aside, message.parent, self.compaction)

    async def add(self, message: Message) -> None:
        """Adds the next message. Follows the user's clears and pins; other Compactions may not apply to this pass."""
        self._path[message.id] = message
        if block := message.compaction:
            if block.action in (CLEAR, *PINS) and (self._said or self._view.view.tail):
                await self._revise(block)
            return
        self._said.append(message)
        self._current = message if message.role == "user" else self._current

    @property
    def current(self) -> Message | None:
        """The user message to answer; None if there is no new one."""
        return self._current if self._said else None

    async def answer(self) -> SimulatedRequest:
        """Plans the next request. Raises DoesNotFit if nothing makes it fit."""
        turn = await self._prepare()
        first = planned = await turn.next_plan()
        kept, summary = None, None
        if planned.needs_compaction:
            run = SimulatedCompaction(self._engine.models, turn, planned, aside=self._aside)
            await run.carry_out()
            planned, kept = run.planned, run.kept
            summary = _summary(first, kept, run.writer) if kept else None
        if kept:
            self._view, self._aside = planned.loaded, tuple(dict.fromkeys((*self._aside, *kept.set_aside)))
        self._session.apply(last_tools=tools_of(planned))
        filled = await turn.fill(planned)
        plan = first.plan if first.plan.cut else filled.plan
        return self._repeating(SimulatedRequest(filled, plan, kept, summary))

    async def _prepare(self) -> Turn:
        session, engine, before, current = self._session, self._engine, self._prepared, self.current
        assert current is not None
        session.apply(head=self._said[-1].id, run=await self._run(current, self._said[-1].id))
        # a run changes its plan with every round
        again = before if before and before.message.id == current.id and not session.run else None
        resolved = await self._resolve()
        self._view = await self._grown(current.id)
        session.apply(loaded={resolved.token_cache.root: self._view})
        if again:
            again.next_round(may_call=True)
            return again
        number = self.compaction.compaction_number if self.compaction else None
        turn = await engine.turns.new(session, current, self._options, is_draft=True, resolved=resolved)
        turn.compaction = number
        self._prepared = await engine.turns.prepare(turn, is_continued=True)
        return self._prepared

    async def _grown(self, current: str | None) -> LoadedView:
        said, self._said = self._said, []
        engine, cache = self._engine, (await self._resolve()).token_cache
        return await grown_view(engine.store, cache, self._view, said, current)

    async def _run(self, current: Message, head: str) -> TaskRun | None:
        """The run in its state at the time of the message."""
        found = (
            await self._engine.store.do(read_run, self._engine.store.tree.page, head) if run_entry(current) else None
        )
        return found.run if found else None

    def _repeating(self, planned: SimulatedRequest) -> SimulatedRequest:
        """Adds the tokens that a provider's cache could serve, by the common prefix of bytes."""
        pieces, stable = planned.planned.pieces()
        sent = tuple(piece.data for piece in pieces)
        shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(self._sent, sent, strict=False))))
        total, size = planned.planned.window.total, sum(map(len, sent))
        self._sent = sent
        repeated, first = (round(total * sum(map(len, sent[:end])) / size) for end in (shared, stable))
        return replace(planned, repeated=repeated, stable=first)

    async def _revise(self, block: Compaction) -> None:
        grown, before, cache = await self._grown(None), self.compaction, (await self._resolve()).token_cache
        if block.action == CLEAR:
            last, self._aside, told = grown.view.tail[-1], (), WrittenSummary(made_by=CLEAR)
            made = next_block(before, told, last=last.id, cleared=last.id, pinned=(), action=CLEAR)
            made = replace(made, messages_archived=last.said, because=block.because)
            self._view = await view_after_cut(cache, grown, made)
            return
        lifted = _lifted(before, block, self._path)
        made = revised_block(before, block.action, block.because, pinned=block.pinned, lifted=lifted)
        self._view = replace(grown, view=replace(grown.view, compaction=made))
        self._view = await self._grown(None)  # reads what is lifted now


def _lifted(force: Compaction | None, block: Compaction, path: Mapping[str, Message]) -> tuple[str, ...]:
    """The pinned messages that are covered, after a pin or unpin; calls with their results."""
    if force is None or force.last is None:
        return ()
    end, before = path[force.last].depth, set(force.pinned)
    after = set(block.pinned) & path.keys()
    order = sorted(path.values(), key=lambda message: message.depth)
    follows = {one.id: other for one, other in pairwise(order)}
    units: dict[str, set[str]] = {}
    for id in before | after:
        message = path[id]
        call = path.get(message.parent or "", message) if message.role == "tool" else message
        result = follows.get(call.id)
        units[id] = {call.id, result.id} if call.calls and result and result.role == "tool" else {id}
    gone = set().union(*(units[id] for id in before - after)) - set(force.unsummarized)
    came = set().union(*(units[id] for id in after if path[id].depth <= end))
    lifted = (set(force.lifted) - gone) | came
    return tuple(message.id for message in order if message.id in lifted)


def _summary(planned: PlannedRequest, block: Compaction, writer: TurnContext | None) -> SimulatedSummary | None:
    """The tokens of a summary: a model reads the window up to the end of the covered part."""
    if writer is None or not block.summary:
        return None
    covered, loaded = planned.loaded.view.split(block.last)[0], planned.loaded
    entries = (*loaded.ahead, *loaded.entries(covered))
    read = planned.preamble.count.tokens + sum(entry.count.tokens for entry in entries)
    return SimulatedSummary(writer, read, block.summary_tokens or 0)


def whole_path(store: Store, head: str | None) -> list[Message]:
    """The path to a head, with Compactions."""
    found: list[Message] = []
    while head:
        page = store.tree.page(head, most=PAGE)
        found += page
        head = page[-1].parent if len(page) == PAGE else None
    return found[::-1]
