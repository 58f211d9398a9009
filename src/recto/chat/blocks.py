"""What a message is made of. A block keeps verbatim what a provider needs back: ids, raw arguments, signatures."""

from dataclasses import dataclass, field
from typing import ClassVar

from recto.chat.references import DocumentReference


@dataclass(frozen=True, slots=True)
class Made:
    """Who made a block, and how long it took."""

    provider: str
    model: str
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Text:
    type: ClassVar[str] = "text"
    text: str
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning. `signature` proves it to its provider; `redacted` is what came only encrypted."""

    type: ClassVar[str] = "thinking"
    text: str
    signature: str | None = None
    redacted: str | None = None
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is the raw JSON text as the model wrote it, valid or not."""

    type: ClassVar[str] = "tool_call"
    id: str
    name: str
    arguments: str
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    type: ClassVar[str] = "tool_result"
    call_id: str
    name: str
    text: str
    """As the model reads it."""
    is_error: bool = False
    approval: str = ""
    """Who let it run, or did not, where somebody was to be asked: allowed, always, denied, unanswered; and `forbidden`
    where a setting denies it."""
    whole: str = ""
    """The sha256 of all of the text, which the store keeps, where `text` is only its beginning."""
    media: tuple[str, ...] = ()
    """What came besides text and is kept by the store: `image/png SHA256`."""
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file given with a message, as text."""

    type: ClassVar[str] = "file"
    name: str
    text: str
    media_type: str = "text/plain"
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class Image:
    type: ClassVar[str] = "image"
    media_type: str
    base64: str
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class References:
    """The documents of a message. What the model was told of them stays with the message in later windows, as it was
    told; the user's own text stays untouched."""

    type: ClassVar[str] = "document_references"
    references: tuple[DocumentReference, ...]
    told: str = ""
    vault: str = ""
    """The folder that the paths are relative to."""
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class Compaction:
    """Covers root..`last`; the only thing that changes the stable part of the window.

    `last` is None when it covers nothing (only pins or excerpts, or a compaction that was taken back). `lifted` are
    covered messages still sent verbatim, in order of time; `pinned` those that every later Compaction has to lift,
    covered yet or not; `excerpts` maps a message (or `message/call` for a tool result) to the shorter text sent in
    its place.
    """

    type: ClassVar[str] = "context_compaction"
    compaction_number: int
    timestamp: str
    last: str | None
    summary: str
    messages_archived: int
    context_size_before: int
    context_size_after: int
    made_by: str
    """Who wrote the summary: model, extractive, truncated, user; discard and clear write none."""
    because: str
    lifted: tuple[str, ...] = ()
    excerpts: dict[str, str] = field(default_factory=dict)
    checks: dict[str, int] = field(default_factory=dict)
    """What the summary was made of, and how many facts it kept, lost and made up."""
    pinned: tuple[str, ...] = ()
    action: str = "compact"
    """compact, clear, pin, unpin, edit or undo."""
    little: int = 0
    """How many automatic compactions in a row, this one included, have freed little."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way to the summary: attempts that failed, parts that no model read."""
    ledger: tuple[str, ...] = ()
    """Facts that the summary leaves out, a line for each message that said them: `#57 src/app.py:42; 3.5 ms`."""
    places: dict[str, int] = field(default_factory=dict)
    """Facts that the summary tells, and which message said each: a later summary may lose them."""
    cleared: str | None = None
    """The last message that a clear put out of reach: nothing up to it is recalled."""
    made: Made | None = None


Block = Text | Thinking | ToolCall | ToolResult | File | Image | References | Compaction
BLOCKS: dict[str, type[Block]] = {
    block.type: block for block in (Text, Thinking, ToolCall, ToolResult, File, Image, References, Compaction)
}
