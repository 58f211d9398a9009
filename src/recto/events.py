"""Events: what a front end hears while a message walks through the rooms."""

from dataclasses import dataclass

from recto.chat.blocks import ToolCall, ToolResult
from recto.chat.message import Message
from recto.window.window import Window

BRANCHED = "this conversation has gone on elsewhere meanwhile: your message starts a branch of its own"


@dataclass(frozen=True, slots=True)
class Appended:
    """The user's message is stored. `branched`: another writer was faster, and this one is now on a branch."""

    message: Message
    branched: bool = False


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something the user should know: a degradation, an assumption, a repair of the text."""

    text: str


@dataclass(frozen=True, slots=True)
class ContextUsage:
    size: int
    limit: int

    @property
    def percent(self) -> float:
        return 100 * self.size / self.limit


@dataclass(frozen=True, slots=True)
class ContextCompacted:
    number: int
    archived: int
    before: int
    after: int
    summary: str


@dataclass(frozen=True, slots=True)
class Sent:
    """The request is recorded and leaves now."""

    request: str
    window: Window


@dataclass(frozen=True, slots=True)
class Retrying:
    number: int
    error: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply is complete and stored; the last one of a turn has no tool calls left to run."""

    message: Message
    window: Window
    request: str


Event = (
    Appended
    | Noticed
    | ContextUsage
    | ContextCompacted
    | Sent
    | Retrying
    | TextDelta
    | ThinkingDelta
    | ToolStarted
    | ToolFinished
    | Replied
)
