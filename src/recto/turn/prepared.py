"""PreparedTurn: one message on its way, with everything that stays the same through all of its requests.

`Engine.send` and `Engine.draft` prepare a turn the same way; only a sent one is stored and goes out.
"""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.blocks import File, Image, References
from recto.chat.message import Message
from recto.errors import DoesNotFit, Overflow
from recto.events import Event, NotesQuoted, Noticed, Referenced
from recto.providers.attachments import unsupported
from recto.sources.source import Insert, Pick
from recto.store.store import Store
from recto.turn.assembly import Turn, WindowNotes, count_current, plan_turn
from recto.turn.builder import TurnBuilder
from recto.turn.context import NO_OPTIONS, CallOptions, TurnContext, tightened
from recto.turn.document_picker import Citations
from recto.turn.loaded_view import LoadedView, extend_view, load_view
from recto.turn.messages import DRAFT
from recto.turn.pickers import Picker, Room, TurnInput
from recto.turn.preamble import naming_largest
from recto.turn.session import ChatSession, DraftedView
from recto.window.planner import squeezed
from recto.window.request import Entry

MOST_SQUEEZES = 3


class PreparedTurn(Struct):
    store: Store
    session: ChatSession
    message: Message
    context: TurnContext
    pickers: Sequence[Picker]
    citations: Citations
    builder: TurnBuilder
    current: str | None
    """The id of the message that is answered; None where a compaction is made without one."""
    options: CallOptions = NO_OPTIONS
    inserts: tuple[Insert, ...] = ()
    passed: tuple[Pick, ...] = ()
    _overflow: Overflow | None = field(default=None)
    _uncalibrated: str = ""
    """Why the counts of this turn are not calibrated."""

    @property
    def is_squeezed(self) -> bool:
        """Whether the next request must be smaller than the last, which the provider found too long."""
        return self._overflow is not None

    @property
    def notes(self) -> list[str]:
        """What the user should know about this message."""
        model = self.context.model
        left_out = unsupported(Entry("user", self.message.blocks), model)
        return [
            *(f"{model.name} takes no {_kind(each)}s: {each.name or 'yours'} is not sent" for each in left_out),
            *(note for picker in self.pickers for note in picker.notes),
        ]

    @property
    def count_notes(self) -> list[str]:
        """What the user should know about the counts so far: a tokenizer may fail at any text."""
        return [note for note in (self.context.token_cache.counter.note, self._uncalibrated) if note]

    @property
    def late_notes(self) -> list[str]:
        """The same, and what pickers noted while they filled the room that was left."""
        return [*self.count_notes, *(picker.fill_note for picker in self.pickers if picker.fill_note)]

    def is_for(self, turn: TurnInput) -> bool:
        """Whether a turn with this input goes on with the same picks."""
        return self.options == turn.options and turn.message is not None and self.message.id == turn.message.id

    def events(self, *, is_new: bool) -> list[Event]:
        """What the user hears before the request leaves: the documents of the message, notes, and quotes where they
        come before the words of the model."""
        referenced = [Referenced(self.message)] if is_new and self.message.references else []
        notes = self.session.new_notes((*self.context.notes, *self.notes), always=self.notes)
        cited, model = self.citations, self.context.model
        # the words of a tiny model are marked as such also where there is nothing to quote
        is_first = cited.are_notes_asked and not cited.are_quotes_told and not model.summarizes
        quoted = [NotesQuoted(cited.quotes, cited.root, "" if cited.instead else model.name)] if is_first else []
        return [*referenced, *map(Noticed, notes), *quoted]

    async def annotate(self, message: Message | None) -> Message:
        """The message with what is said about it for good, such as the documents that it names. None where that was
        done before: the pickers find the same again, and the message stays as it is."""
        plain = tuple(block for block in self.message.blocks if not isinstance(block, References))
        annotated = message or replace(self.message, blocks=plain)
        for picker in self.pickers:
            annotated = await picker.annotate(annotated, self.context)
        if message is not None:
            self.message = annotated
        return self.message

    async def pick(self) -> None:
        """What goes in front of the message, picked before the plan and counted in it."""
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

    async def load(self) -> LoadedView:
        """The view at the session's head: what was loaded before and has grown, or loaded anew."""
        session, cache, room = self.session, self.context.token_cache, self.context.budget.room
        drafted = session.drafted if self.current == DRAFT else None
        if drafted and (drafted.head, drafted.token_cache, drafted.room) == (session.head, cache.root, room):
            return drafted.loaded.rescaled(cache.factor)
        head = session.head
        at = (self.store, cache, head, self.current)
        loaded = await extend_view(*at, session.loaded.get(cache.root)) or await load_view(*at, room)
        # messages of a turn that is going on may still change
        if self.current == DRAFT and not session.is_answering and loaded.is_finished:
            session.apply(drafted=DraftedView(head, cache.root, room, loaded))
        return loaded

    async def next_plan(self) -> Turn:
        """The plan of the next request; a smaller one after the provider found the last too long."""
        try:
            turn = await self.plan(await self.load())
        except DoesNotFit:
            if not await self.uncalibrate():
                raise
            turn = await self.plan(await self.load())
        loaded, overflow = turn.loaded, self._overflow
        if overflow is None:
            return turn
        plan = squeezed(turn.context.strategy, loaded.view, turn.budget, loaded.counts)
        if plan.cut is None:
            raise overflow
        return replace(turn, plan=plan)

    async def plan(self, loaded: LoadedView, context: TurnContext | None = None, *, promised: int = 0) -> Turn:
        """Budget, plan and window for a view. `promised` is the room of a summary that is still to be written."""
        context = (context or self.context).at(loaded.view)
        kept = [insert for picker in self.pickers if (insert := picker.keep(loaded.view))]
        inserts = (*kept, *self.inserts)
        current = await count_current(context.token_cache, self.message, inserts, loaded.view.compaction)
        notes = WindowNotes(
            self.session.conversation,
            (*context.notes, *self.count_notes, *self.notes),
            promised,
            (*context.stable.passed, *self.passed),
        )
        try:
            return plan_turn(context, loaded, current, notes)
        except DoesNotFit as why:
            raise naming_largest(why, context.preamble) from None

    async def uncalibrate(self) -> bool:
        """Counts this turn without what earlier reports taught, where that has raised the counts: no report of a
        provider may keep a message from being sent."""
        context, known = self.context, self.context.token_cache.calibration
        if known.factor <= 1.0:
            return False
        resolved = replace(context.resolved, token_cache=context.token_cache.root)
        self.context = await self.builder.build(resolved, context.stable, context.compaction)
        for _ in range(context.tightened):
            self.context = tightened(self.context)
        self._uncalibrated = (
            f"the usage that {context.model.name} reported raises our counts by {known.factor - 1:.0%}, and with that "
            "nothing would fit: this message is counted without it"
        )
        return True

    async def fill(self, turn: Turn) -> Turn:
        """The turn with what the pickers bring in the room that the plan has left."""
        for picker in self.pickers:
            turn = await picker.fill(turn)
        return turn

    def shrink(self, why: Overflow) -> None:
        """The provider counted more than we did: the next request of this turn is smaller, or `why` is raised."""
        self._overflow, self.context = why, tightened(self.context)
        if why.partial or self.context.tightened > MOST_SQUEEZES:
            raise why
        for picker in self.pickers:
            picker.give_way()

    async def shrunk(self, turn: Turn) -> str:
        """What is told where the provider counts more than its window holds: the next request is smaller."""
        counts = self.builder.provider_counts
        why = await counts.overflow(turn, self.session.conversation, self.message) if self.options.may_send else None
        if why is None:
            return ""
        self.shrink(why)
        return f"{why.message.rstrip('.')}: making the window smaller"

    def next_round(self, *, may_call: bool) -> None:
        """A request went through and its tools ran: the next one carries their results."""
        self._overflow = None
        if not may_call:
            self.context = self.context.without_tool_calls()


def _kind(block: Image | File) -> str:
    return "image" if isinstance(block, Image) else "file"
