"""Message: a role and its blocks, with the model, usage and other facts about its origin.

MessageBuilder: builds the blocks of a message from a stream, and collects the deltas to store.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.blocks import (
    Block,
    Compaction,
    DocumentReference,
    Made,
    Quote,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["done", "unfinished", "stopped", "error", "pending"]
"""`pending`: complete, but the caller has not yet sent the results of some tool calls."""
ContextType = Literal["primary", "summary", "memory", "tool_output"]


class Usage(Struct, frozen=True):
    """`input` counts all prompt tokens, including cached ones."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reported: bool = True
    reasoning: int = 0
    """The part of the output that was hidden or shown reasoning."""
    cost_usd: float | None = None
    """At the prices of that day; None if unknown."""


class Tokens(Struct, frozen=True):
    """Token counts of one message; None if not counted."""

    own: int | None = None
    """As history."""
    augmented: int | None = None
    """A user's message with what was put in front of it for the model."""
    tools: int | None = None
    descriptions: int | None = None
    """The descriptions of the tools sent with a user's message."""
    blocks: tuple[int, ...] = ()
    """Each block's; left out if there is only one."""


class Message(Struct, frozen=True):
    id: str
    role: Role
    blocks: tuple[Block, ...]
    parent: str | None = None
    depth: int = 1
    said: int = 1
    """The message's number on its path, shown as `#12`; Compactions are not counted."""
    created: str = ""
    has_time: bool = True
    """False if `created` is only the time of storing: a file or a client's history had no time."""
    status: Status = "done"
    error: str | None = None
    context_type: ContextType = "primary"
    priority: int = 5
    agent: str = "default"
    model: str | None = None
    provider: str | None = None
    request: str | None = None
    usage: Usage | None = None
    tokens: Tokens = Tokens()
    memory_references: tuple[str, ...] = ()
    learning_points: tuple[str, ...] = ()
    task_runs: tuple[dict[str, object], ...] = field(default=())

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def time(self) -> str:
        return self.created if self.has_time else ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

    @property
    def block_tokens(self) -> tuple[int | None, ...]:
        if self.compaction:
            return (self.compaction.summary_tokens,) * len(self.blocks)
        if len(self.blocks) == 1:
            return (self.tokens.own,)
        known = self.tokens.blocks
        return known if len(known) == len(self.blocks) else (None,) * len(self.blocks)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolResult))

    @property
    def references(self) -> tuple[DocumentReference, ...]:
        """The documents that the message names or was made with."""
        return tuple(
            reference for block in self.blocks if isinstance(block, References) for reference in block.references
        )

    @property
    def quotes(self) -> tuple[Quote, ...]:
        """Statements of notes about the message that a reply answers."""
        return tuple(quote for block in self.blocks if isinstance(block, References) for quote in block.quotes)

    @property
    def compaction(self) -> Compaction | None:
        return next((block for block in self.blocks if isinstance(block, Compaction)), None)


def now(*, days_ago: int = 0) -> str:
    """The time in UTC as sortable text: 2026-01-31T12:00:00.000Z."""
    return (datetime.now(UTC) - timedelta(days_ago)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def stored_time(text: str) -> str:
    """A date or time in the form of messages; local time if it has no zone. Raises ValueError if it is neither."""
    moment = datetime.fromisoformat(text).astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


NOTHING_MORE: Mapping[str, Any] = {}
Delta = list[Any]
"""["text", text], ["thinking", text, signature, redacted], ["call", index, id, name, arguments] or ["result", call id,
name, text, is_error, further fields]. Plain JSON, as stored."""


class MessageBuilder(Struct):
    """Turns deltas into blocks; equal deltas give equal blocks. `take` returns the deltas not yet stored."""

    made: Made | None = None
    _blocks: list[Block] = field(default_factory=list)
    _calls: dict[int, int] = field(default_factory=dict)
    _steps: list[Delta] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    """Texts of the latest steps, stored as one delta."""
    _pieces: dict[int, list[str]] = field(default_factory=dict)
    """Additions to the blocks at these indexes, not yet joined: joining every delta would take quadratic time."""

    def add(self, step: Delta) -> None:
        self._apply(step)
        if step[0] == "text":
            self._texts.append(step[1])
        else:
            self._end_text()
            self._steps.append(step)

    def take(self) -> list[Delta]:
        self._end_text()
        steps, self._steps = self._steps, []
        return steps

    def put_back(self, steps: list[Delta]) -> None:
        """Put back deltas that were taken and could not be stored."""
        self._steps = steps + self._steps

    def _end_text(self) -> None:
        if self._texts:
            self._steps.append(["text", "".join(self._texts)])
            self._texts = []

    @property
    def blocks(self) -> tuple[Block, ...]:
        for place in [*self._pieces]:
            self._join(place)
        return tuple(block for block in self._blocks if not isinstance(block, Text) or block.text)

    def _apply(self, step: Delta) -> None:
        kind, *rest = step
        if kind == "text":
            self._text(rest[0])
        elif kind == "thinking":
            self._thinking(*rest)
        elif kind == "call":
            self._call(*rest)
        else:
            self._result(*rest)

    def _text(self, text: str) -> None:
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, Text):
            self._add_to(len(self._blocks) - 1, text)
        else:
            self._blocks.append(Text(text, self.made))

    def _thinking(self, text: str, signature: str | None, redacted: str | None) -> None:
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, Thinking) and last.signature is None and redacted is None:
            self._blocks[-1] = Thinking(last.text, signature, last.redacted, self.made)
            self._add_to(len(self._blocks) - 1, text)
        else:
            self._blocks.append(Thinking(text, signature, redacted, self.made))

    def _call(self, index: int, call_id: str, name: str, arguments: str) -> None:
        if index not in self._calls:
            self._calls[index] = len(self._blocks)
            self._blocks.append(ToolCall(self._unique(call_id), name, arguments, self.made))
            return
        place = self._calls[index]
        call = self._blocks[place]
        assert isinstance(call, ToolCall)
        if not (call.id and call.name):
            id = call.id or self._unique(call_id)
            self._blocks[place] = ToolCall(id, call.name or name, call.arguments, self.made)
        self._add_to(place, arguments)

    def _add_to(self, place: int, text: str) -> None:
        self._pieces.setdefault(place, []).append(text)

    def _join(self, place: int) -> None:
        block, added = self._blocks[place], "".join(self._pieces.pop(place))
        if isinstance(block, ToolCall):
            self._blocks[place] = replace(block, arguments=block.arguments + added)
        elif isinstance(block, Text | Thinking):
            self._blocks[place] = replace(block, text=block.text + added)

    def _unique(self, call_id: str) -> str:
        """Rename a repeated id: the user's approval of one call must not apply to another."""
        known = {block.id for block in self._blocks if isinstance(block, ToolCall)}
        if not call_id or call_id not in known:
            return call_id
        return next(name for number in range(2, len(known) + 3) if (name := f"{call_id}_{number}") not in known)

    def _result(
        self, call_id: str, name: str, text: str, is_error: bool, more: Mapping[str, Any] = NOTHING_MORE
    ) -> None:
        known = {**more, "media": tuple(more.get("media", ()))}
        self._blocks.append(ToolResult(call_id, name, text, is_error, **known))


def result_delta(result: ToolResult) -> Delta:
    optional = {"approval": result.approval, "whole": result.whole, "media": list(result.media)}
    more = {name: value for name, value in optional.items() if value}
    return ["result", result.call_id, result.name, result.text, result.is_error, *([more] if more else ())]


def blocks_from(steps: list[Delta], made: Made | None = None) -> tuple[Block, ...]:
    builder = MessageBuilder(made)
    for step in steps:
        builder.add(step)
    return builder.blocks
