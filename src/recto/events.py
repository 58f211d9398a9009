"""Events: what a front end hears while a message walks through the rooms."""

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from recto.chat.blocks import Compaction, Made, ToolCall, ToolResult
from recto.chat.message import Message
from recto.sources.source import Tool
from recto.window.window import Window

T = TypeVar("T")

BRANCHED = "this conversation has gone on elsewhere meanwhile: your message starts a branch of its own"


@dataclass(frozen=True, slots=True)
class Appended:
    """The user's message is stored. `branched`: another writer was faster, and this one is now on a branch."""

    message: Message
    branched: bool = False


@dataclass(frozen=True, slots=True)
class Referenced:
    """The user's message, with the documents that it names."""

    message: Message


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
class SummaryRequested:
    """A summariser is asked: about `size` tokens, which is part `part` of `of`."""

    size: int
    limit: int
    model: str
    part: int = 1
    of: int = 1


@dataclass(frozen=True, slots=True)
class ContextCompacted:
    number: int
    archived: int
    before: int
    after: int
    summary: str
    made_by: str = "model"
    because: str = ""
    notes: tuple[str, ...] = ()
    made: Made | None = None
    """Which model wrote the summary, where one did."""
    excerpts: int = 0
    """How many messages or tool results are sent as excerpts."""
    checks: dict[str, int] = field(default_factory=dict)
    """How many facts were kept, lost and made up: see the block."""


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """The user is to be asked. Whoever hears it answers before taking the next event, or it counts as not answered."""

    _answer: Future[T] = field(default_factory=Future, compare=False, kw_only=True)

    def _give(self, answer: T) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    def settle(self) -> None:
        """Nobody has answered until now: nobody will."""
        if not self._answer.done():
            self._answer.cancel()

    async def settled(self) -> None:
        """Waits until it is answered, or nobody will."""
        with suppress(Unanswered):
            await self.answered()

    async def answered(self) -> T:
        """Unanswered when there was nobody to ask."""
        try:
            return await asyncio.wrap_future(self._answer)
        except asyncio.CancelledError:
            if self._answer.cancelled():
                raise Unanswered from None
            raise


@dataclass(frozen=True, slots=True)
class CompactionProposed(Question[str | None]):
    """The answer is the summary to use, or None when the user said no."""

    block: Compaction

    def accept(self, summary: str | None = None) -> None:
        """Go ahead, with this summary in place of the proposed one where one is given."""
        self._give(self.block.summary if summary is None else summary)

    def refuse(self) -> None:
        self._give(None)


Answer = Literal["allowed", "always", "denied"]


@dataclass(frozen=True, slots=True)
class ApprovalAsked(Question[Answer]):
    """A tool wants to run, and its server's settings say that the user is asked."""

    call: ToolCall
    tool: Tool

    def allow(self) -> None:
        """This once."""
        self._give("allowed")

    def allow_always(self) -> None:
        """From now on in this conversation, without being asked."""
        self._give("always")

    def deny(self) -> None:
        self._give("denied")


class Unanswered(Exception):
    """There was nobody to ask."""


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
    | Referenced
    | Noticed
    | ContextUsage
    | SummaryRequested
    | CompactionProposed
    | ApprovalAsked
    | ContextCompacted
    | Sent
    | Retrying
    | TextDelta
    | ThinkingDelta
    | ToolStarted
    | ToolFinished
    | Replied
)
