"""Model: facts about a model, with the origin of each number; and which parameters the model accepts.

Provider: the interface to a model's API. It sends exact bytes and yields the parts of the reply.
"""

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.message import Usage
from recto.providers.prices import Prices
from recto.window.count import TokenCounter
from recto.window.request import Format, Parameters, Purpose
from recto.wire import dumps

ASSUMED_WINDOW = 8192


class Model(Struct, frozen=True):
    name: str
    """`provider:id`, as the user writes it."""
    provider: str
    id: str
    """As sent to the provider."""
    window: int | None
    window_from: str
    """models.toml, genai-prices, the server, built in, unknown."""
    max_output: int | None = None
    max_output_from: str = "unknown"
    prices: Prices | None = None
    prices_from: str = "unknown"
    tokenizer: str = "o200k_base"
    """A vocabulary's name, or `server` where the model's own server counts."""
    factor: float = 1.0
    """For estimates: the factor to multiply the vocabulary's count by."""
    exact: bool = False
    """Rendering and tokenizer are known, so counts of text are exact."""
    tools: bool = True
    max_tokens: int | None = None
    """Sent with every request unless the settings say otherwise."""
    temperature: float | None = None
    summarizes: bool = True
    """False for a model that is too small to write summaries: sentences are extracted instead."""
    answers_from_notes: bool = True
    """False for a model that is too small to be trusted with them: it quotes them and says nothing itself."""
    system_prompt: str = ""
    """Instructions that it follows better than those of the settings' default, for a model that runs here."""
    fixed_temperature: bool = False
    """The model refuses any temperature but 1, so none is sent."""
    thinking_budget: int | None = None
    control: tuple[str, ...] = ()
    """Texts that the model's tokenizer would read as control tokens: defused before they are sent."""
    strategy: str | None = None
    """The strategy for a full window; None leaves it to the settings."""
    images: bool = False
    """Accepts images."""
    files: bool = False
    """Accepts PDFs."""
    adaptive_thinking: bool = False
    """Decides itself how much to think, and refuses a budget."""
    effort: bool = False
    """Accepts a reasoning effort."""
    stop: bool = True
    """Accepts stop texts."""
    json_schema: bool = True
    """Accepts a schema for its reply."""
    forced_tools: bool = True
    """Can be forced to call a tool."""
    one_slot: bool = False
    """Its server answers one request at a time."""


def accepted(parameters: Parameters, model: Model) -> tuple[Parameters, tuple[str, ...]]:
    """The parameters that this model accepts, and the names of those that were left out."""
    refused = {
        "temperature": model.fixed_temperature,
        "top_p": model.fixed_temperature,
        "stop": not model.stop,
        "reasoning_effort": not model.effort,
        "response_format": not model.json_schema and _has_schema(parameters),
        "tool_choice": not model.forced_tools and parameters.tool_choice not in (None, "auto", "none"),
        "thinking": parameters.thinking == "adaptive" and not model.adaptive_thinking,
    }
    present = parameters.given()
    left_out = tuple(name for name, is_refused in refused.items() if is_refused and name in present)
    changes: dict[str, Any] = {name: () if name == "stop" else None for name in left_out}
    if model.adaptive_thinking and parameters.thinking_budget:
        changes |= {"thinking_budget": None, "thinking": "adaptive"}
    return replace(parameters, **changes), left_out


def _has_schema(parameters: Parameters) -> bool:
    return parameters.response_format is not None and parameters.response_format.type == "json_schema"


class TextPart(Struct, frozen=True):
    text: str
    usage: Usage | None = None
    """So far, from servers that tell it all along."""


class ThinkingPart(Struct, frozen=True):
    """Reasoning as it streams; signature and redacted data come once, at the end of their block."""

    text: str = ""
    signature: str | None = None
    redacted: str | None = None


class CallPart(Struct, frozen=True):
    """A part of a tool call. The first part of an index has id and name; arguments arrive as raw text."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


def says_something(part: "ReplyPart") -> bool:
    """Whether a part brings a reply any further: some servers send empty ones without end."""
    if isinstance(part, CallPart):
        return bool(part.id or part.name or part.arguments)
    return part not in (TextPart(""), ThinkingPart())


def call_text(value: Any) -> str:
    """An id, name or arguments of a call as text: some servers send numbers, objects or nothing."""
    return clean(value if isinstance(value, str) else "" if value is None else dumps(value))[0]


# A usage that was reported and cannot be read: nobody believes it, and the user is told.
UNREADABLE_USAGE = Usage(input=-1)


def reported_count(value: Any) -> int | None:
    """A number of tokens that a server reports; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 else None


class Attempt(Struct, frozen=True):
    """An attempt that failed before the first token, and is repeated after `wait_s`."""

    number: int
    error: str
    wait_s: float


class Done(Struct, frozen=True):
    """The reply is complete. `usage` is None when the provider reported none."""

    finish: str
    """stop, length, tool_calls, refusal, or the provider's own word."""
    usage: Usage | None = None
    note: str = ""
    """Why Recto stopped reading the reply (reply_limit.py); empty if the provider ended it."""


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
