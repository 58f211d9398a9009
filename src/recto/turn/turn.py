"""Turn: one message on its way, and what the pickers bring for it.

Everything that enters a window for a message comes from a picker, which works for one turn. It can act in two phases
and two places; each step is optional:

    stable      before the plan, in the preamble: counted, and part of the cached prefix
    annotate    before the plan: adds to the message itself, permanently
    volatile    before the plan, in front of the message: counted
    keep        before every plan, in front of the message: counted, and in every window however it is cut
    fill        after the plan, in front of the message: only in the remaining room

A new kind of source is one class like this and one line in `Engine._pickers`. `send` and `draft` take the same path
with a turn; only a sent one is stored.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.blocks import Image, References
from recto.chat.conversation import View
from recto.chat.message import Message
from recto.errors import DoesNotFit, Overflow
from recto.events import Event, NotesQuoted, Noticed, Referenced
from recto.providers.attachments import unsupported
from recto.settings.settings import ToolSettings
from recto.sources.overrides import SourceOverrides
from recto.sources.selection import OfferedTool, Selection, StablePicks, sources_text
from recto.sources.source import Insert, Pick
from recto.sources.tools import CallerTool
from recto.store.store import Store
from recto.tasks.plan import FOR_A_RUN, HOW_TO_WORK, plan_tool
from recto.tasks.run import TaskRun
from recto.turn.approvals import Approvals
from recto.turn.citations import Citations
from recto.turn.context import NO_OPTIONS, CallOptions, ResolvedModel, TurnContext, build_context
from recto.turn.loaded_view import LoadedView, extend_view, load_view
from recto.turn.messages import DRAFT
from recto.turn.planned_request import PlannedRequest, WindowNotes, count_current, plan_turn
from recto.turn.preamble import naming_largest
from recto.turn.session import ChatSession
from recto.window.compaction_block import PASSING
from recto.window.planner import squeezed
from recto.window.request import Entry

MOST_SQUEEZES = 3
NO_OVERRIDES = SourceOverrides()


class Room(Struct, frozen=True):
    """The room for a volatile pick, in tokens."""

    unused: int
    """Free now, or after the compaction that may come first, whichever is more."""
    free: int
    """Room for the message and everything in front of it without a compaction."""
    is_shared: bool = False
    inserts: tuple[Insert, ...] = ()
    """Other pickers' inserts in front of the message."""


class VolatilePicks(Struct, frozen=True):
    inserts: tuple[Insert, ...] = ()
    passed: tuple[Pick, ...] = ()
    """Picks that did not fit, with reasons."""


def selections_inserted(
    section: str, heading: str, included: Sequence[Selection], sizes: Sequence[int], passed: Sequence[Pick]
) -> VolatilePicks:
    if not included:
        return VolatilePicks(passed=tuple(passed))
    picks = tuple(replace(each.pick, tokens=size) for each, size in zip(included, sizes, strict=True))
    insert = Insert(section, sources_text(heading, included), picks, tuple(each.text for each in included))
    return VolatilePicks((insert,), tuple(passed))


@dataclass(slots=True)
class Turn:
    store: Store
    session: ChatSession
    resolved: ResolvedModel
    asked: Message | None = None
    """The message as it came in; None if there is none yet."""
    overrides: SourceOverrides = NO_OVERRIDES
    compaction: int | None = None
    """The number of the Compaction in force."""
    options: CallOptions = NO_OPTIONS
    is_draft: bool = False
    source_notes: tuple[str, ...] = ()

    message: Message = field(init=False)
    """The message with the pickers' additions."""
    current: str | None = field(init=False)
    """The id of the message to answer; None for a compaction without one."""
    context: TurnContext = field(init=False)
    pickers: Sequence["Picker"] = field(init=False)
    citations: Citations = field(init=False)
    approvals: Approvals = field(init=False)
    """Only set if the turn is sent."""
    inserts: tuple[Insert, ...] = ()
    passed: tuple[Pick, ...] = ()
    _overflow: Overflow | None = None
    _uncalibrated: str = ""

    async def begin(self, pickers: Sequence["Picker"], citations: Citations) -> None:
        self.pickers, self.citations = pickers, citations
        self.message, self.current = self.asked or Message(DRAFT, "user", ()), self.asked.id if self.asked else None
        brought = {tool.name for tool in self.options.tools}
        *picks, last = [await picker.stable() for picker in pickers]
        ours = sum(picks, StablePicks())
        # a caller's tool replaces ours of the same name
        stable = (ours.without_tools(brought) if brought else ours) + last
        self.context = await build_context(self.resolved, stable, self.compaction)

    def beside(self, session: ChatSession) -> Self:
        """The same turn in another place of the conversation."""
        turn = copy.copy(self)
        turn.session = session
        return turn

    def is_for(self, other: "Turn") -> bool:
        """True if another turn continues with the same picks."""
        return self.options == other.options and other.asked is not None and self.message.id == other.asked.id

    @property
    def is_squeezed(self) -> bool:
        """True if the provider rejected the last request as too long."""
        return self._overflow is not None

    # -- what the user should know

    @property
    def notes(self) -> list[str]:
        model = self.context.model
        left_out = unsupported(Entry("user", self.message.blocks), model)
        kinds = [("image" if isinstance(each, Image) else "file", each.name or "yours") for each in left_out]
        told = [f"{model.name} does not accept {kind}s: {name} is not sent" for kind, name in kinds]
        return told + [note for picker in self.pickers for note in picker.notes]

    @property
    def count_notes(self) -> list[str]:
        """Notes about counts: a tokenizer may fail at any text."""
        return [note for note in (self.context.token_cache.counter.note, self._uncalibrated) if note]

    @property
    def late_notes(self) -> list[str]:
        """Includes notes of pickers from `fill`."""
        return [*self.count_notes, *(picker.fill_note for picker in self.pickers if picker.fill_note)]

    def events(self, *, is_new: bool) -> list[Event]:
        """Before the request is sent: the documents of the message, notes, and quotes if they come before the model's
        words."""
        referenced = [Referenced(self.message)] if is_new and self.message.references else []
        notes = self.session.new_notes((*self.context.notes, *self.notes), always=self.notes)
        cited, model = self.citations, self.context.model
        # a tiny model's words are marked as such even if there is nothing to quote
        is_first = cited.are_notes_asked and not cited.are_quotes_told and not model.summarizes
        quoted = [NotesQuoted(cited.quotes, cited.root, "" if cited.instead else model.name)] if is_first else []
        return [*referenced, *map(Noticed, notes), *quoted]

    # -- what goes in with the message

    async def annotate(self, message: Message | None) -> Message:
        """The message with its permanent additions, such as the documents it names. If `message` is None, the turn's
        own has them already: the pickers only find the same again."""
        plain = tuple(block for block in self.message.blocks if not isinstance(block, References))
        annotated = message or replace(self.message, blocks=plain)
        for picker in self.pickers:
            annotated = await picker.annotate(annotated, self.context)
        if message is not None:
            self.message = annotated
        return self.message

    async def pick(self) -> None:
        wanting = [picker for picker in self.pickers if picker.wants_room]
        if not wanting:
            return
        context, history = self.context, sum(entry.count.tokens for entry in (await self.load()).before)
        own = (await count_current(context.token_cache, self.message, ())).own.tokens
        free = context.free - history
        # a compaction may come first, and makes at least this much room
        unused = max(free - own, context.budget.room - context.budget.low_water - own, 0)
        for place, picker in enumerate(wanting, 1):
            taken = sum(pick.tokens for insert in self.inserts for pick in insert.picks)
            room = Room(max(0, unused - taken), free, place < len(wanting), self.inserts)
            picks = await picker.volatile(self.message, context, room)
            self.inserts, self.passed = (*self.inserts, *picks.inserts), (*self.passed, *picks.passed)

    async def fill(self, planned: PlannedRequest) -> PlannedRequest:
        for picker in self.pickers:
            planned = await picker.fill(planned)
        return planned

    # -- the plan

    async def load(self) -> LoadedView:
        """The view at the session's head, extended from the loaded one if possible."""
        session, cache = self.session, self.context.token_cache
        at = (self.store, cache, session.head, self.current)
        return await extend_view(*at, session.loaded.get(cache.root)) or await load_view(*at, self.context.budget.room)

    async def next_plan(self) -> PlannedRequest:
        """Smaller after the provider found the last request too long."""
        try:
            planned = await self.plan(await self.load())
        except DoesNotFit:
            if not await self.uncalibrate():
                raise
            planned = await self.plan(await self.load())
        if self._overflow is None:
            return planned
        loaded = planned.loaded
        plan = squeezed(planned.context.strategy, loaded.view, planned.budget, loaded.counts)
        if plan.cut is None:
            raise self._overflow
        return replace(planned, plan=plan)

    async def plan(
        self, loaded: LoadedView, context: TurnContext | None = None, *, promised: int = 0
    ) -> PlannedRequest:
        """`promised`: the room of a summary yet to be written."""
        context = (context or self.context).at(loaded.view)
        kept = [insert for picker in self.pickers if (insert := picker.keep(loaded.view))]
        inserts = (*kept, *self.inserts)
        current = await count_current(context.token_cache, self.message, inserts, loaded.view.compaction)
        notes = (*context.notes, *self.count_notes, *self.notes)
        passed = (*context.stable.passed, *self.passed)
        try:
            return plan_turn(context, loaded, current, WindowNotes(self.session.conversation, notes, promised, passed))
        except DoesNotFit as why:
            raise naming_largest(why, context.preamble) from None

    async def uncalibrate(self) -> bool:
        """Drops the calibration for this turn if it has raised the counts: no provider's report may make a message
        unsendable."""
        before = self.context
        factor = before.token_cache.calibration.factor
        if factor <= 1.0:
            return False
        resolved = replace(self.resolved, token_cache=before.token_cache.root, parameters=before.parameters)
        self.context = await build_context(resolved, before.stable, before.compaction)
        for _ in range(before.tightened):
            self.context = self.context.tighter()
        self._uncalibrated = (
            f"the usage that {before.model.name} reported raises our counts by {factor - 1:.0%}, and with that "
            "nothing would fit: this message is counted without it"
        )
        return True

    def shrink(self, why: Overflow) -> None:
        """Makes the next request of this turn smaller, or raises `why`."""
        self._overflow, self.context = why, self.context.tighter()
        if why.partial or self.context.tightened > MOST_SQUEEZES:
            raise why
        for picker in self.pickers:
            picker.give_way()

    def next_round(self, *, may_call: bool) -> None:
        self._overflow = None
        if not may_call:
            self.context = self.context.without_tool_calls()


class Picker:
    """The base of all pickers: picks nothing."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        """Notes for the user about this message, shown every time."""
        self.fill_note = ""
        """A problem in `fill`, shown once."""

    async def stable(self) -> StablePicks:
        return StablePicks()

    async def annotate(self, message: Message, context: TurnContext) -> Message:
        return message

    @property
    def wants_room(self) -> bool:
        """True if `volatile` has anything to pick; known after `annotate`."""
        return False

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        return VolatilePicks()

    def keep(self, view: View) -> Insert | None:
        """The insert of every window with this view. It stays the same until a compaction, to keep the prefix."""
        return None

    async def fill(self, planned: PlannedRequest) -> PlannedRequest:
        return planned

    def give_way(self) -> None:
        """Stops `fill` for this turn: the window is too long for the provider."""


SERVER = "caller"
"""The server name of tools that a caller brings."""


class CallerTools(Picker):
    """The caller's own tools, which it runs itself. They come last in the preamble."""

    def __init__(self, turn: Turn, settings: ToolSettings) -> None:
        super().__init__()
        self._turn, self._settings = turn, settings

    async def stable(self) -> StablePicks:
        tools = self._turn.options.tools
        if tools and not (self._turn.resolved.model.tools and self._settings.enabled):
            return StablePicks(notes=(f"{self._turn.resolved.model.name} cannot call tools: yours are not offered",))
        given = [replace(tool, server=SERVER) for tool in {tool.name: tool for tool in tools}.values()]
        offered = [OfferedTool(CallerTool(tool), Selection(tool, "always", "given with this call")) for tool in given]
        return StablePicks(tools=tuple(offered))


class PlanPicker(Picker):
    """Brings what every window of a run needs: how to work, and the tool that changes the plan.

    Before a compaction the model's own calls show the plan: a copy would cost twice, and a changing one would break the
    cached prefix each time. A compaction breaks it anyway, so that is when the plan and files are copied; later changes
    are in the calls after it."""

    def __init__(self, turn: Turn, run: TaskRun) -> None:
        super().__init__()
        self._turn, self._run = turn, run
        self._kept: Insert | None = None
        self._compaction: int | None = None

    async def stable(self) -> StablePicks:
        tool = plan_tool(self._run.rounds_left)
        return StablePicks(
            rules=(Selection(HOW_TO_WORK, "always", FOR_A_RUN),),
            tools=(OfferedTool(tool, Selection(tool.tool, "always", FOR_A_RUN)),),
        )

    def keep(self, view: View) -> Insert | None:
        block = view.compaction
        if block is None:
            return None
        if self._kept is None or block.action == PASSING or block.compaction_number != self._compaction:
            self._kept, self._compaction = self._insert(self._run), block.compaction_number
        return self._kept

    def _insert(self, run: TaskRun) -> Insert | None:
        message = self._turn.asked
        is_goal = message is not None and run.messages[:1] == [message.id]
        goal = "" if is_goal else f"The goal: {run.short_goal}"
        text = "\n\n".join(filter(None, (goal, run.text_within(self._turn.resolved.room))))
        if not text:
            return None
        because = f"as of step {run.steps}: a compaction covers the calls that told them"
        pick = Pick("plan", "plan and files of the run", because, 1)
        return Insert("memory", f"<plan>\n{text}\n</plan>", (pick,))
