"""Events that a front end receives while a message is processed.

They are also the log of a turn: one line per step, with ids and numbers. Message texts are logged at debug level only.
"""

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Literal, Self, TypeVar

import msgspec
from msgspec import Struct

from recto.chat.blocks import Compaction, Made, Quote, ToolCall, ToolResult
from recto.chat.message import Message
from recto.sources.source import Tool
from recto.sources.tool_definition import ToolChange
from recto.tasks.plan import TaskPlan
from recto.tasks.run import RunReport
from recto.window.window import Window

T = TypeVar("T")


class Appended(Struct, frozen=True):
    """The user's message is stored. `branched` is True if another writer was faster, so that it is on a branch."""

    message: Message
    branched: bool = False
    waited: int = 0
    """The number of messages in it that were sent during an earlier reply."""


class Branched(Struct, frozen=True):
    """Another client has continued the conversation: what this one has just stored starts a branch."""

    after: str | None
    """The message that the branch follows; None at the beginning of the conversation."""
    number: int
    """Its number, as in `#4`; 0 for None."""

    @property
    def text(self) -> str:
        where = f"after #{self.number}" if self.number else "at the beginning"
        return f"this conversation was continued elsewhere in the meantime; a new branch starts {where}"


class Referenced(Struct, frozen=True):
    """The user's message, with its document references."""

    message: Message


class NotesQuoted(Struct, frozen=True):
    """What notes say about the user's message. Comes before the reply of a model too small to be trusted with notes,
    and after that of any other."""

    quotes: tuple[Quote, ...]
    """Empty if the notes have no answer and the reply is by a tiny model."""
    vault: str
    """The folder that the paths are relative to."""
    tiny_model: str = ""
    """The name of the tiny model that replies next, if any."""


class Noticed(Struct, frozen=True):
    """A notice for the user: a degradation, an assumption, a repair of the text."""

    text: str


class ContextUsage(Struct, frozen=True):
    size: int
    limit: int

    @property
    def percent(self) -> float:
        return 100 * self.size / self.limit


class SummaryRequested(Struct, frozen=True):
    """A summary of `size` tokens is requested, as part `part` of `of`."""

    size: int
    limit: int
    model: str
    part: int = 1
    of: int = 1


class SummaryProgress(Struct, frozen=True):
    """Sent every half second while a summary is made: `read` of `of` messages are read so far."""

    read: int
    of: int


class ContextCompacted(Struct, frozen=True):
    """A Compaction was stored; the fields are those of its block."""

    compaction_number: int
    messages_archived: int
    context_size_before: int
    context_size_after: int
    summary: str
    made_by: str = "model"
    because: str = ""
    notes: tuple[str, ...] = ()
    made: Made | None = None
    """The model that wrote the summary, if one did."""
    excerpts: int = 0
    """The number of messages or tool results sent as excerpts."""
    checks: dict[str, int] = msgspec.field(default_factory=dict)
    """Counts of statements kept, lost and invented: see the block."""

    @classmethod
    def of(cls, block: Compaction) -> Self:
        told = {name: getattr(block, name) for name in cls.__struct_fields__}
        return cls(**told | {"excerpts": len(block.excerpts)})


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """A question to the user. Unanswered once the receiver takes the next event."""

    _answer: Future[T] = field(default_factory=Future, compare=False, kw_only=True)

    def _answer_with(self, answer: T) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    def settle(self) -> None:
        """Closes the question; without an answer by now it counts as unanswered."""
        if not self._answer.done():
            self._answer.cancel()

    async def settled(self) -> None:
        """Waits until the question is answered or closed."""
        with suppress(Unanswered):
            await self.answered()

    async def answered(self) -> T:
        """Waits for the answer. Raises Unanswered if the question is closed without one."""
        try:
            return await asyncio.wrap_future(self._answer)
        except asyncio.CancelledError:
            # cancelling the waiting task closes the question too; that must stay a cancellation
            task = asyncio.current_task()
            if self._answer.cancelled() and not (task and task.cancelling()):
                raise Unanswered from None
            raise


@dataclass(frozen=True, slots=True)
class CompactionProposed(Question[str | None]):
    """A proposed compaction. The answer is the summary to use, or None if the user declines."""

    block: Compaction

    def accept(self, summary: str | None = None) -> None:
        self._answer_with(self.block.summary if summary is None else summary)

    def refuse(self) -> None:
        self._answer_with(None)


@dataclass(frozen=True, slots=True)
class FactProposed(Question[bool]):
    """A statement of the user that could be remembered. Unanswered, it is not."""

    text: str

    def accept(self) -> None:
        self._answer_with(True)

    def refuse(self) -> None:
        self._answer_with(False)


@dataclass(frozen=True, slots=True)
class FactLearned:
    """A statement of the user that is remembered from now on."""

    number: int
    text: str


Answer = Literal["allowed", "always", "denied"]


@dataclass(frozen=True, slots=True)
class ApprovalAsked(Question[Answer]):
    """A tool call that needs the user's approval, as its server's settings require."""

    call: ToolCall
    tool: Tool
    change: ToolChange | None = None
    """How the tool differs from the allowed version, if that is the reason for asking."""

    def allow(self) -> None:
        self._answer_with("allowed")

    def allow_always(self) -> None:
        """Allows this and later calls of the tool in its current form: in this conversation, or wherever settings or
        options allowed it before it changed."""
        self._answer_with("always")

    def deny(self) -> None:
        self._answer_with("denied")


class Unanswered(Exception):
    """The question was closed without an answer."""


Stage = Literal["store", "model", "notes", "sources", "search"]


class Working(Struct, frozen=True):
    """A step before the request has taken half a second and continues: the store waits for other processes, the model
    is loaded, notes are indexed, sources are chosen, archived messages are searched."""

    stage: Stage
    model: str = ""
    """The model that is loaded."""
    notes: int = 0
    """The number of notes not indexed yet."""


class Sent(Struct, frozen=True):
    """The request is recorded and is being sent."""

    request: str
    window: Window


class Retrying(Struct, frozen=True):
    number: int
    error: str
    wait_s: float


class TextDelta(Struct, frozen=True):
    text: str


class ThinkingDelta(Struct, frozen=True):
    text: str


class ToolStarted(Struct, frozen=True):
    call: ToolCall


class ToolCallsPending(Struct, frozen=True):
    """The turn ends here: the caller runs these tools and sends their results with the next message."""

    calls: tuple[ToolCall, ...]


class ToolFinished(Struct, frozen=True):
    call: ToolCall
    result: ToolResult


class Replied(Struct, frozen=True):
    """A reply is complete and stored; the last reply of a turn has no tool calls left to run."""

    message: Message
    window: Window
    request: str


class PlanChanged(Struct, frozen=True):
    """A model working toward a goal has updated its plan, in step `step` of at most `max_steps`."""

    goal: str
    plan: TaskPlan
    step: int
    max_steps: int


class RunEnded(Struct, frozen=True):
    """The work toward a goal is over, or was stopped and can be continued later."""

    report: RunReport


Event = (
    Appended
    | Branched
    | Referenced
    | NotesQuoted
    | Noticed
    | ContextUsage
    | SummaryRequested
    | SummaryProgress
    | CompactionProposed
    | ApprovalAsked
    | ContextCompacted
    | Working
    | Sent
    | Retrying
    | TextDelta
    | ThinkingDelta
    | ToolStarted
    | ToolFinished
    | ToolCallsPending
    | Replied
    | FactProposed
    | FactLearned
    | PlanChanged
    | RunEnded
)
