"""Provider: who answers a request. It takes exact bytes and yields what comes back."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from recto.chat.message import Usage
from recto.providers.model import Model
from recto.window.count import Meter
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
    """A piece of a tool call. The first for an index carries id and name; arguments arrive as raw text."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try that failed before the first token and will be made again after `wait_s`."""

    number: int
    error: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class Done:
    """The reply is complete. `usage` is None when the provider reported none."""

    finish: str
    """stop, length, tool_calls, refusal, or the provider's own word."""
    usage: Usage | None = None


Part = TextPart | ThinkingPart | CallPart | Attempt | Done


class Provider(Protocol):
    name: str
    format: Format

    async def model(self, name: str) -> Model:
        """The facts about `provider:model`; may ask the server. NotFound for a name it does not know."""
        ...

    async def meter(self, model: Model) -> Meter: ...

    def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[Part, None]:
        """Sends the bytes as they are. Ends with Done, or raises a ProviderError (its `partial` set when some of
        the reply had come)."""
        ...

    async def close(self) -> None: ...
