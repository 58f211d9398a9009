"""Message: a role and its blocks, with the model, usage and other facts about its origin."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from recto.chat.blocks import Block, Compaction, References, Text, ToolCall, ToolResult
from recto.chat.document_reference import DocumentReference

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["done", "unfinished", "stopped", "error", "pending"]
"""`pending`: complete, but the caller has not yet sent the results of some tool calls."""
ContextType = Literal["primary", "summary", "memory", "tool_output"]


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage that a provider reported. `input` counts all prompt tokens, cached ones included."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reported: bool = True


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one message: its own text, the text augmented for the model, its tools. None in old data."""

    own: int | None = None
    augmented: int | None = None
    tools: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    role: Role
    blocks: tuple[Block, ...]
    parent: str | None = None
    depth: int = 1
    said: int = 1
    """The message's number on its path, which people see as `#12`; Compactions are not counted."""
    created: str = ""
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
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

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
    def compaction(self) -> Compaction | None:
        return next((block for block in self.blocks if isinstance(block, Compaction)), None)


def now() -> str:
    """The time in UTC as text that sorts: 2026-01-31T12:00:00.000Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
