"""Pickers: whatever enters a window for a message comes from one of them.

A picker works for one turn. It can act in two phases and two places; each step is optional:

    stable      before the plan, in the preamble: counted, and part of the cached prefix
    annotate    before the plan: adds to the message itself, for good
    volatile    before the plan, in front of the message: counted
    keep        before every plan, in front of the message: counted, and in every window however it is cut
    fill        after the plan, in front of the message: only in the room that is left

A new kind of source is one class like this and one line in `Engine._pickers`.
"""

import asyncio
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.conversation import View
from recto.chat.message import Message
from recto.memory.memory_files import FoundMemory, MemoryScope
from recto.settings.settings import ToolSettings
from recto.sources.overrides import SourceOverrides
from recto.sources.selection import OfferedTool, Selection, StablePicks
from recto.sources.source import Insert, Pick
from recto.sources.tools import CallerTool
from recto.turn.assembly import Turn
from recto.turn.context import NO_OPTIONS, CallOptions, ResolvedModel, TurnContext
from recto.turn.session import ChatSession


class TurnInput(Struct, frozen=True):
    """What every picker of a turn may know."""

    session: ChatSession
    resolved: ResolvedModel
    message: Message | None = None
    """None where somebody looks at the context before there is a message."""
    overrides: SourceOverrides = SourceOverrides()
    compaction: int | None = None
    """The number of the Compaction in force."""
    options: CallOptions = NO_OPTIONS
    is_draft: bool = False
    """Nothing is stored or sent: somebody looks at the window that would be."""
    notes: tuple[str, ...] = ()
    memory: "asyncio.Future[Mapping[MemoryScope, FoundMemory]] | None" = None
    """The memory files, which are being read since the turn began."""
    has_facts: asyncio.Future[bool] | None = None
    """Whether anything is remembered."""


class Room(Struct, frozen=True):
    """What is left for a volatile pick, in tokens."""

    unused: int
    """Free now, or after the compaction that may come first, whichever is more."""
    free: int
    """What the message and everything in front of it may take together without a compaction."""
    is_shared: bool = False
    """A later picker wants some of it too."""
    inserts: tuple[Insert, ...] = ()
    """What other pickers have put in front of the message already."""


class VolatilePicks(Struct, frozen=True):
    inserts: tuple[Insert, ...] = ()
    passed: tuple[Pick, ...] = ()
    """What was picked and does not fit, with the reason."""


class Picker:
    """The base of all pickers: picks nothing."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        """What the user should know about this message: shown every time."""
        self.fill_note = ""
        """What went wrong in `fill`: shown once."""

    async def stable(self) -> StablePicks:
        return StablePicks()

    async def annotate(self, message: Message, context: TurnContext) -> Message:
        return message

    @property
    def wants_room(self) -> bool:
        """Whether `volatile` has anything to pick, known after `annotate`."""
        return False

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        return VolatilePicks()

    def keep(self, view: View) -> Insert | None:
        """What a window with this view must hold. The same in all rounds of a turn, until a compaction comes: the
        prefix must stay."""
        return None

    async def fill(self, turn: Turn) -> Turn:
        return turn

    def give_way(self) -> None:
        """The provider says that the window is too long: `fill` must bring nothing more in this turn."""


SERVER = "caller"
"""The server name of tools that a caller brings."""


class CallerTools(Picker):
    """The tools that a caller brings with one call and runs itself. They come last in the preamble."""

    def __init__(self, turn: TurnInput, settings: ToolSettings) -> None:
        super().__init__()
        self._turn, self._settings = turn, settings

    async def stable(self) -> StablePicks:
        tools = self._turn.options.tools
        if tools and not (self._turn.resolved.model.tools and self._settings.enabled):
            return StablePicks(notes=(f"{self._turn.resolved.model.name} cannot call tools: yours are not offered",))
        given = [replace(tool, server=SERVER) for tool in {tool.name: tool for tool in tools}.values()]
        offered = [OfferedTool(CallerTool(tool), Selection(tool, "always", "given with this call")) for tool in given]
        return StablePicks(tools=tuple(offered))
