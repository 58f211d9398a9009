"""Models as data: facts and their origins, prices, a token counter. The parts of a reply; the Provider protocol.

OpenAI's own rule for counting chats: every message costs 3 tokens plus its role and content, the start of the reply
costs 3, and a name costs its tokens plus 1. How providers render anything but plain text is not public, so those counts
are estimates.
"""

import logging
import math
import unicodedata
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import cache, partial
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import clean, pieces_of
from recto.chat.message import Usage
from recto.window.count import ZERO, Count, TokenCounter, estimate_message, estimate_text
from recto.window.request import Contents, Format, Parameters, Piece, Purpose
from recto.wire import dumps

log = logging.getLogger(__name__)

ASSUMED_WINDOW = 8192
MILLION, THOUSAND = 1_000_000, 1_000


class Prices(Struct, frozen=True):
    """US dollars per million tokens. None for a cached or reasoning token means the normal price."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    requests: float | None = None
    """Per thousand requests, besides their tokens."""
    above: tuple[tuple[int, "Prices"], ...] = ()
    """(tokens, prices): for all tokens of a request with a larger input; smallest first."""

    @property
    def are_known(self) -> bool:
        return self.input is not None and self.output is not None

    @property
    def dearest_output(self) -> float:
        """Per million output tokens, whatever the length of the input; 0 if unknown."""
        return max(max(each.output or 0.0, each.reasoning or 0.0) for each in (self, *(at for _, at in self.above)))

    def cost(self, usage: Usage) -> float | None:
        """None if the prices are unknown."""
        at = self._at(usage.input)
        if at.input is None or at.output is None:
            return None
        reasoning = min(usage.reasoning, usage.output)
        tokens = (
            max(0, usage.input - usage.cache_read - usage.cache_write) * at.input
            + usage.cache_read * (at.input if at.cache_read is None else at.cache_read)
            + usage.cache_write * (at.input if at.cache_write is None else at.cache_write)
            + (usage.output - reasoning) * at.output
            + reasoning * (at.output if at.reasoning is None else at.reasoning)
        )
        return tokens / MILLION + (at.requests or 0) / THOUSAND

    def at_most(self, input: int, output: int) -> float | None:
        """The maximum cost of a call with this input and output length: nothing is read from a cache."""
        at = self._at(input)
        if at.input is None or at.output is None:
            return None
        dearest = max(at.input, at.cache_write or 0), max(at.output, at.reasoning or 0)
        return (input * dearest[0] + output * dearest[1]) / MILLION + (at.requests or 0) / THOUSAND

    def _at(self, input: int) -> "Prices":
        return next((prices for start, prices in reversed(self.above) if input > start), self)


class Model(Struct, frozen=True):
    name: str
    """`provider:id`, as the user writes it."""
    provider: str
    id: str
    window: int | None
    window_from: str
    """models.toml, genai-prices, the server, built in, unknown."""
    max_output: int | None = None
    max_output_from: str = "unknown"
    prices: Prices | None = None
    prices_from: str = "unknown"
    tokenizer: str = "o200k_base"
    """A vocabulary's name, or `server` if the model's own server counts."""
    factor: float = 1.0
    """For estimates: the factor for the vocabulary's count."""
    exact: bool = False
    """Rendering and tokenizer are known, so counts of text are exact."""
    tools: bool = True
    max_tokens: int | None = None
    """Sent with every request unless set otherwise."""
    temperature: float | None = None
    summarizes: bool = True
    """False if the model is too small to write summaries: sentences are extracted instead."""
    answers_from_notes: bool = True
    """False if the model is too small to be trusted with notes: they are quoted, and it says nothing itself."""
    system_prompt: str = ""
    """Instructions that a local model follows better than the default of the settings."""
    fixed_temperature: bool = False
    """Rejects any temperature but 1, so none is sent."""
    thinking_budget: int | None = None
    control: tuple[str, ...] = ()
    """Texts that the model's tokenizer would read as control tokens: defused before they are sent."""
    strategy: str | None = None
    """For a full window; None leaves it to the settings."""
    images: bool = False
    files: bool = False
    adaptive_thinking: bool = False
    """Decides how much to think, and rejects a budget."""
    effort: bool = False
    stop: bool = True
    json_schema: bool = True
    forced_tools: bool = True
    """Can be forced to call a tool."""
    one_slot: bool = False
    """Its server answers one request at a time."""


def accepted(parameters: Parameters, model: Model) -> tuple[Parameters, tuple[str, ...]]:
    """The parameters that this model accepts, and the names of those left out."""
    format, choice = parameters.response_format, parameters.tool_choice
    refused = {
        "temperature": model.fixed_temperature,
        "top_p": model.fixed_temperature,
        "stop": not model.stop,
        "reasoning_effort": not model.effort,
        "response_format": not model.json_schema and format is not None and format.type == "json_schema",
        "tool_choice": not model.forced_tools and choice not in (None, "auto", "none"),
        "thinking": parameters.thinking == "adaptive" and not model.adaptive_thinking,
    }
    present = parameters.given()
    left_out = tuple(name for name, is_refused in refused.items() if is_refused and name in present)
    changes: dict[str, Any] = {name: () if name == "stop" else None for name in left_out}
    if model.adaptive_thinking and parameters.thinking_budget:
        changes |= {"thinking_budget": None, "thinking": "adaptive"}
    return replace(parameters, **changes), left_out


# -- the parts of a reply


class TextPart(Struct, frozen=True):
    text: str


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


class Attempt(Struct, frozen=True):
    """An attempt that failed before the first token, and is repeated after `wait_s`."""

    number: int
    error: str
    wait_s: float


class Done(Struct, frozen=True):
    """The reply is complete. `usage` is None if the provider reported none."""

    finish: str
    """stop, length, tool_calls, refusal, or the provider's own word."""
    usage: Usage | None = None
    note: str = ""
    """Why Recto stopped reading the reply (ReplyLimit); empty if the provider ended it."""


ReplyPart = TextPart | ThinkingPart | CallPart | Attempt | Done


def says_something(part: ReplyPart) -> bool:
    """False for an empty part: some servers send them endlessly."""
    if isinstance(part, CallPart):
        return bool(part.id or part.name or part.arguments)
    return part not in (TextPart(""), ThinkingPart())


def call_text(value: Any) -> str:
    """An id, name or arguments of a call as text: some servers send numbers, objects or nothing."""
    return clean(value if isinstance(value, str) else "" if value is None else dumps(value))[0]


# An unreadable usage report: it is ignored, with a notice to the user.
UNREADABLE_USAGE = Usage(input=-1)


def reported_count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 else None


def positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


class Provider(Protocol):
    name: str
    format: Format

    async def model(self, name: str) -> Model:
        """The facts about `provider:model`; may ask the server. Raises NotFound for an unknown name."""
        ...

    async def counter(self, model: Model) -> TokenCounter: ...

    def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart, None]:
        """Sends the bytes unchanged. Ends with Done, or raises a ProviderError (with `partial` set if part of the reply
        had arrived)."""
        ...

    async def close(self) -> None: ...


# -- how much of a reply is read

# The longest token of the vocabularies that Recto counts with: a run of 128 spaces (o200k, Llama 3, Qwen 3) or dots.
CHARACTERS_PER_TOKEN = 128
FEWEST_TOKENS = 64  # some servers round up a smaller number
_CUT_OFF = "The reply was cut off here:"


class ReplyLimit(Struct, frozen=True):
    """The limits that do not depend on a request's own token limit."""

    characters: int = 4_000_000
    """For thinking, and for the rest of a reply without a token limit."""
    calls: int = 256


class ReplyMeter:
    """Counts one reply against its limit. `note` says why it was cut off.

    Counts characters, not tokens, because that costs nothing. No honest reply is cut: the limit is the most that the
    requested tokens can hold. Thinking, which some providers count separately, has its own limit.
    """

    def __init__(self, limit: ReplyLimit, max_tokens: int | None) -> None:
        most = max(max_tokens, FEWEST_TOKENS) * CHARACTERS_PER_TOKEN if max_tokens else limit.characters
        self._most_to_think = max(most, limit.characters)
        self._left, self._left_to_think, self._most_calls = most, self._most_to_think, limit.calls
        self._longest = f"{most:,} characters (reply.max_characters)"
        if max_tokens:
            self._longest = f"the {max_tokens:,} tokens that were asked for can be"
        self.note = ""

    def take(self, part: ReplyPart) -> ReplyPart | None:
        """As much of the part as is within the limit; None if that is nothing."""
        if self.note:
            return None
        if isinstance(part, Attempt | Done):
            return part
        if isinstance(part, ThinkingPart):
            return self._thinking(part)
        if isinstance(part, CallPart) and part.index >= self._most_calls:
            self.note = f"{_CUT_OFF} the model called more than {self._most_calls:,} tools (tools.call_limit)."
            return None
        before = 0 if isinstance(part, TextPart) else len(part.id) + len(part.name)
        text = part.text if isinstance(part, TextPart) else part.arguments
        size = before + len(text)
        # an empty part counts too: an endless stream of them is a reply without end
        self._left -= max(1, size)
        if self._left >= 0:
            return part
        self.note = f"{_CUT_OFF} it is longer than {self._longest}."
        kept = text[: max(0, size + self._left - before)]
        if not kept:
            return None
        # the call is not run, so a part of its arguments will do
        return replace(part, text=kept) if isinstance(part, TextPart) else replace(part, arguments=kept)

    def _thinking(self, part: ThinkingPart) -> ThinkingPart | None:
        hidden = len(part.signature or "") + len(part.redacted or "")
        self._left_to_think -= max(1, len(part.text) + hidden)
        if self._left_to_think >= 0:
            return part
        most = f"{self._most_to_think:,} characters (reply.max_characters)"
        self.note = f"{_CUT_OFF} the model thought for more than {most}."
        kept = part.text[: max(0, len(part.text) + hidden + self._left_to_think)]
        return ThinkingPart(kept) if kept and not hidden else None


async def limited(
    parts: AsyncGenerator[ReplyPart], limit: ReplyLimit, max_tokens: int | None
) -> AsyncGenerator[ReplyPart]:
    """The parts of a reply. If it is too long, it ends with Done and a note, and its provider is no longer read."""
    meter = ReplyMeter(limit, max_tokens)
    async with aclosing(parts):
        async for part in parts:
            if taken := meter.take(part):
                yield taken
            if meter.note:
                yield Done("length", note=meter.note)
                return


# -- counting

FRAME, PRIMING = 3, 3
OTHER_FRAME = 4  # ChatML, Llama 3 and Mistral put four control tokens around a message
PIECE_LENGTH = 1 << 18


@cache
def vocabulary(name: str) -> Callable[[str], int]:
    """A function that counts the tokens of a text. Raises splintr's own error for an unknown name."""
    from splintr import Tokenizer  # loads vocabularies of many megabytes

    # splintr's other calls read texts such as <|think|> as control tokens
    encode = Tokenizer.from_pretrained(name).encode_ordinary
    if name.startswith("qwen"):  # Qwen's own tokenizer normalises first
        return lambda text: _length(encode, unicodedata.normalize("NFC", text))
    return partial(_length, encode)


def _length(encode: Callable[[str], list[int]], text: str) -> int:
    """Long texts are encoded piece by piece: a list of all their tokens would take ten times the text."""
    return sum(len(encode(piece)) for piece in pieces_of(text, PIECE_LENGTH))


class VocabularyCounter:
    is_quick = True

    def __init__(self, model: Model, format: Format) -> None:
        self.note: str | None = None
        self._model, self._format = model, format
        self._exact = model.exact and model.factor == 1.0
        self._frame = FRAME if self._exact else OTHER_FRAME
        self.priming = Count(PRIMING, self._exact)
        self.without_system = ZERO
        self.key = f"{model.tokenizer}/chat" if self._exact else f"{model.tokenizer}*{model.factor:g}/estimate"

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        return [self.count_piece(piece) for piece in pieces]

    def text(self, text: str) -> Count:
        """The tokens of a text alone, as for a reply."""
        return self._counted(Contents((text,)), 0, estimate_text)

    def count_piece(self, piece: Piece) -> Count:
        if piece.kind in ("head", "join", "tail"):
            return ZERO
        contents = self._format.contents(piece, self._model.id)
        if piece.kind == "tool":
            return self._counted(contents, 0, estimate_text)
        return self._counted(contents, self._frame, estimate_message)

    def _counted(self, contents: Contents, frame: int, fallback: Callable[[str], int]) -> Count:
        """The tokens of all contents; if the tokenizer fails, an estimate by `fallback`."""
        is_loaded = False
        try:
            count = vocabulary(self._model.tokenizer)
            is_loaded = True
            tokens = frame + count(contents.role) + sum(map(count, contents.texts))
            total = math.ceil(tokens * self._model.factor) + contents.flat
            return Count(total, self._exact and contents.is_plain)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as why:  # a panic in splintr is not an Exception
            self._note_failure(why)
        if not is_loaded:
            self.key = "estimate"
        return Count(fallback("".join(contents.texts)) + contents.flat, False)

    def _note_failure(self, why: BaseException) -> None:
        if self.note is None:  # once is enough: every piece of a window would fail
            log.error("the tokenizer of %s failed", self._model.name, exc_info=why)
        because = str(why).partition(". Supported:")[0] or type(why).__name__
        if self._model.tokenizer == "server":
            because = "its server does not offer one (llama.cpp's /props and /tokenize)"
        self.note = f"Tokens of {self._model.name} are estimated, because its tokenizer failed: {because}."
