"""Request: the exact bytes to send, as pieces, and the account of them. The body is the pieces joined, with marks.

A mark asks the provider to cache everything before it. Marks move from turn to turn, so pieces are compared without
them.

Defuses text that a tokenizer would read as control tokens. Pure; knows no model.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from recto.chat.blocks import Block, ToolCall, ToolResult
from recto.chat.message import Role
from recto.sources.source import Tool
from recto.window.account import NO_ACCOUNT, RequestAccount

PieceKind = Literal["head", "tool", "system", "message", "join", "tail"]
Purpose = Literal["reply", "summary", "ahead", "gist", "facts"]
"""`ahead`: a summary written before it is due; `gist`: a line about a document; `facts`: statements of a message worth
remembering."""
ResponseType = Literal["text", "json_object", "json_schema"]
ToolChoice = Literal["auto", "none", "required"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
ThinkingMode = Literal["adaptive", "between_tools", "disabled"]
MAX_MARKS = 4  # Anthropic, the only provider with marks, rejects a fifth


class Piece(Struct, frozen=True):
    """A slice of the body. Only tools, system and messages cost tokens."""

    kind: PieceKind
    data: bytes
    """Without the mark: hashed, counted, compared and stored like this."""
    mark: int | None = None
    """The offset in `data` at which the format's mark is inserted into the body."""

    @property
    def sha256(self) -> bytes:
        return hashlib.sha256(self.data).digest()

    def sent(self, mark: bytes) -> bytes:
        return self.data if self.mark is None else with_mark(self.data, self.mark, mark)


def with_mark(data: bytes, place: int, mark: bytes) -> bytes:
    return data[:place] + mark + data[place:]


class Entry(Struct, frozen=True):
    """One message of a window as the model reads it. `message` is None if it is made for this window alone."""

    role: Role
    blocks: tuple[Block, ...]
    message: str | None = None
    call_ids: Mapping[str, str] = field(default_factory=dict)
    """Ids for tool calls and their results, replacing those that are not unique in the window."""

    @property
    def with_sent_ids(self) -> "Entry":
        ids = self.call_ids
        return replace(self, blocks=tuple(_renamed(block, ids) for block in self.blocks)) if ids else self


def _renamed(block: Block, ids: Mapping[str, str]) -> Block:
    if isinstance(block, ToolCall):
        return replace(block, id=ids.get(block.id, block.id))
    if isinstance(block, ToolResult):
        return replace(block, call_id=ids.get(block.call_id, block.call_id))
    return block


class ResponseFormat(Struct, frozen=True):
    """The requested format of the reply. `schema` and the fields after it apply to `json_schema` only."""

    type: ResponseType
    schema: Mapping[str, Any] | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


class NamedTool(Struct, frozen=True):
    name: str


class Parameters(Struct, frozen=True):
    """Parameters of the reply. None leaves the choice to the provider."""

    max_tokens: int | None = None
    temperature: float | None = None
    thinking_budget: int | None = None
    tool_choice: ToolChoice | NamedTool | None = None
    """`none` keeps the tools in the window, so that the prefix stays the same, and forbids calls. Needs tools."""
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    response_format: ResponseFormat | None = None
    reasoning_effort: Effort | None = None
    thinking: ThinkingMode | None = None
    """How the model thinks without a budget; `adaptive` leaves the amount to the model."""
    parallel_tool_calls: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a client's request that are unknown here; they are sent unchanged."""

    def given(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: _plain(value) for name, value in values.items() if value is not None and value not in ((), {})}


def _plain(value: Any) -> Any:
    if isinstance(value, ResponseFormat | NamedTool):
        return {name: item for name, item in asdict(value).items() if item is not None and item != ""}
    return list(value) if isinstance(value, tuple) else value


class Contents(Struct, frozen=True):
    texts: tuple[str, ...] = ()
    role: str = ""
    flat: int = 0
    """Tokens besides the texts: images, files, additions by the provider."""
    is_plain: bool = True
    """True for a role and a text alone, which a known tokenizer counts exactly; all else is an estimate."""


class Format(Protocol):
    """A wire format: turns entries into bytes. Pure; the same input gives the same bytes.

    body = preamble pieces + entry pieces (each but the first with a comma before it) + closing piece.
    """

    name: str
    mark_bytes: bytes
    """The bytes of a mark in this format; empty if it has none."""
    default_max_tokens: int | None
    """The default length of a reply; None if the format does not require a number."""

    def preamble(self, model: str, parameters: Parameters, system: str, tools: Sequence[Tool]) -> list[Piece]:
        """Everything before the first entry, including `system`; ends inside the list of messages."""
        ...

    def opened(self, system: str) -> bool:
        """True if the preamble already has the first item of the list, so that every entry needs a comma."""
        ...

    def entry(self, entry: Entry, provider: str) -> list[bytes]:
        """The wire messages of one entry, without commas; empty if nothing in it can be sent.

        `provider` is the provider's name: signatures of other providers are left out.
        """
        ...

    def closing(self, parameters: Parameters) -> Piece: ...

    def mark_place(self, piece: Piece) -> int | None:
        """The offset in this piece's data for a mark; None if it can have none."""
        ...

    def contents(self, piece: Piece, model: str) -> Contents:
        """The contents of a tool, system or message piece that cost tokens; the cost of images depends on `model`."""
        ...


def with_marks(pieces: Sequence[Piece], places: Sequence[int], format: Format) -> tuple[Piece, ...]:
    """The pieces with marks at these places only, if the format allows marks. Of too many, the last ones stay."""
    found: dict[int, int] = {}
    for place in sorted(set(places), reverse=True):
        if len(found) < MAX_MARKS and (mark := format.mark_place(pieces[place])) is not None:
            found[place] = mark
    marked = [piece if piece.mark is None else replace(piece, mark=None) for piece in pieces]
    for place, mark in found.items():
        marked[place] = replace(marked[place], mark=mark)
    return tuple(marked)


class Request(Struct, frozen=True):
    id: str
    conversation: str
    purpose: Purpose
    model: str
    format: str
    parameters: Mapping[str, Any]
    pieces: tuple[Piece, ...]
    account: RequestAccount = NO_ACCOUNT
    """Sections with picks, plan, counts, message ids; shown by `request show`."""
    message: str | None = None
    created: str = ""
    stable: int = 0
    """The number of pieces before those that change with every message."""
    mark_bytes: bytes = b""
    """The format's mark, inserted into marked pieces."""
    at_most_usd: float | None = None
    """The maximum cost; None if the price is unknown."""

    @property
    def body(self) -> bytes:
        return b"".join([piece.sent(self.mark_bytes) for piece in self.pieces])

    @property
    def max_tokens(self) -> int | None:
        return self.parameters.get("max_tokens")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()

    def beginning(self, count: int) -> bytes:
        """The sha256 of the first `count` pieces without marks; the lengths of the pieces are part of the hash."""
        return hashlib.sha256(b"".join([b"%d:%b" % (len(p.data), p.data) for p in self.pieces[:count]])).digest()


ZERO_WIDTH_SPACE = "\N{ZERO WIDTH SPACE}"

# Turn markers of common local models. <s> and </s> are left out on purpose: they are HTML too, and no turn can be
# forged with them alone; a llama.cpp server that has them as tokens reports them.
COMMON_CONTROL = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|start|>",
    "<|end|>",
    "<|channel|>",
    "<|message|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "[INST]",
    "[/INST]",
)


def defuse(text: str, control: tuple[str, ...]) -> str:
    """Inserts a zero width space after the first character of every control text, including overlapping ones.

    The result contains no control text, so a second pass changes nothing. Control texts of a single character cannot be
    split and are left alone.
    """
    if not any(word in text for word in control):
        return text
    pattern = _openings(control)
    return text if pattern is None else pattern.sub(lambda found: found[0] + ZERO_WIDTH_SPACE, text)


@lru_cache(maxsize=32)
def _openings(control: tuple[str, ...]) -> re.Pattern[str] | None:
    """Matches the first character of each occurrence; the rest is a lookahead, so that overlaps match as well."""
    words = [re.escape(word) for word in control if len(word) > 1]
    return re.compile(f"(?=(?:{'|'.join(words)})).", re.DOTALL) if words else None
