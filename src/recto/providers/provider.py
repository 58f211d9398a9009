"""Provider: the interface to a model's API. It sends exact bytes and yields the parts of the reply."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from recto.chat.message import Usage
from recto.providers.model import Model
from recto.window.count import TokenCounter
from recto.window.request import Format, Purpose


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """Reasoning as it streams; signature and redacted data come once, at the end of their block."""

    text: str = ""
    signature: str | None = None
    redacted: str | None = None


@dataclass(frozen=True, slots=True)
class CallPart:
    """A part of a tool call. The first part of an index has id and name; arguments arrive as raw text."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that failed before the first token, and is repeated after `wait_s`."""

    number: int
    error: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Done:
    """The reply is complete. `usage` is None when the provider reported none."""

    finish: str
    """stop, length, tool_calls, refusal, or the provider's own word."""
    usage: Usage | None = None


ReplyPart = TextPart | ThinkingPart | CallPart | Attempt | Done


class Provider(Protocol):
    name: str
    format: Format

    async def model(self, name: str) -> Model:
        """The facts about `provider:model`; may ask the server. NotFound for a name it does not know."""
        ...

    async def counter(self, model: Model) -> TokenCounter: ...

    def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart, None]:
        """Sends the bytes unchanged. Ends with Done, or raises a ProviderError (with `partial` set when part of the
        reply had arrived)."""
        ...

    async def close(self) -> None: ...
