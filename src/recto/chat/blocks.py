"""Blocks: the parts of a message. A block keeps verbatim what a provider needs back: ids, raw arguments, signatures.

DocumentReference: a document that a message names or that a reply was made with.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from msgspec import Struct, field

ReferenceType = Literal["direct", "search"]
UNREADABLE = "this document could not be read"
"""Shown in place of a summary."""
REFUSED = "refused: "
"""How a summary begins that says why a document was not read, although it may be there."""


class DocumentReference(Struct, frozen=True, forbid_unknown_fields=True):
    """A reference is `direct` when a person named the document, `search` when a tool read or found it."""

    wikilink: str
    relative_path: str | None
    """None when the link is broken, or the document was refused."""
    reference_type: ReferenceType = "direct"
    summary: str | None = None
    """One line about the document as it was at the time of the reference."""
    context_snippet: str | None = None

    @property
    def problem(self) -> str:
        """Why there is no document to read; empty where there is one."""
        if self.relative_path is None:
            return self.summary or "not found"
        return "could not be read" if self.summary == UNREADABLE else ""


class Quote(Struct, frozen=True, forbid_unknown_fields=True):
    """What a note says about a message, word for word but for its Markdown."""

    wikilink: str
    relative_path: str
    heading: str
    """The nearest heading above it; empty above the first one."""
    line: int
    sentence: str
    """The sentence, list item or table row that answers."""
    more: str = ""
    """What follows it in its paragraph."""


_NO_BRACKETS = str.maketrans("[]", "()")


def unique_references(references: Iterable[DocumentReference]) -> tuple[DocumentReference, ...]:
    """Keeps one reference per document: the first, or a direct one before one by search. Broken links count by name."""
    found: dict[tuple[str, str], DocumentReference] = {}
    for reference in references:
        key = ("path", reference.relative_path) if reference.relative_path else ("broken", reference.wikilink)
        known = found.get(key)
        if known is None or (known.reference_type == "search" and reference.reference_type == "direct"):
            found[key] = reference
    return tuple(found.values())


def reference_list(references: Sequence[DocumentReference], reader: str) -> str:
    """The list that the model reads after the user's text; `reader` is the name of the tool that reads a document."""
    if not references:
        return ""
    lines = ["[Documents this message refers to:", *map(_line, references)]
    # a document included by its path may be outside the folder that the tool reads
    if any(reference.relative_path and not reference.wikilink.startswith("@") for reference in references):
        lines.append(f"{reader} reads them.")
    return "\n".join(lines) + "]"


def _line(reference: DocumentReference) -> str:
    if reference.relative_path is None:
        return f"- {reference.wikilink}: {reference.problem.translate(_NO_BRACKETS)}"
    # a summary with a closing bracket would end the list, and its rest would read as the user's text
    about = f": {reference.summary.translate(_NO_BRACKETS)}" if reference.summary else ""
    return f"- {reference.wikilink} ({reference.relative_path}){about}"


class Made(Struct, frozen=True, forbid_unknown_fields=True):
    """The provider and model that made a block, and how long it took."""

    provider: str
    model: str
    duration_s: float | None = None


class BlockBase(Struct, frozen=True, tag_field="type", forbid_unknown_fields=True):
    """A block in JSON has the field `type` first."""

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)


class Text(BlockBase, tag="text", frozen=True):
    text: str
    made: Made | None = None


class Thinking(BlockBase, tag="thinking", frozen=True):
    """A model's reasoning. `signature` proves its origin to the provider; `redacted` holds encrypted reasoning."""

    text: str
    signature: str | None = None
    redacted: str | None = None
    made: Made | None = None


class ToolCall(BlockBase, tag="tool_call", frozen=True):
    """`arguments` is the raw JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str
    made: Made | None = None


class ToolResult(BlockBase, tag="tool_result", frozen=True):
    call_id: str
    name: str
    text: str
    """The text that the model reads."""
    is_error: bool = False
    approval: str = ""
    """The user's answer where the tool needed approval: allowed, always, denied or unanswered; `changed` where nobody
    could be asked about a tool that is not what was allowed, `forbidden` where a setting denies the tool."""
    whole: str = ""
    """The sha256 of the full text in the store, where `text` is only its beginning."""
    media: tuple[str, ...] = ()
    """Media of the result that the store holds, as `image/png SHA256`."""
    made: Made | None = None
    attachments: "tuple[Image | File, ...]" = ()
    """Images and files of the result as data, which a wire format can send."""


class File(BlockBase, tag="file", frozen=True):
    """A file attached to a message: its text, or its bytes (`base64`) or `url` where the model reads files itself."""

    name: str
    text: str
    media_type: str = "text/plain"
    made: Made | None = None
    base64: str = ""
    url: str = ""
    sha256: str = ""
    """The hash of the bytes in the store; `base64` is then filled in when the file is sent."""


class Image(BlockBase, tag="image", frozen=True):
    """An image: bytes in `base64`, bytes in the store by `sha256`, or a `url` that the provider fetches."""

    media_type: str
    base64: str = ""
    made: Made | None = None
    url: str = ""
    name: str = ""
    sha256: str = ""


class References(BlockBase, tag="document_references", frozen=True):
    """The documents that a message refers to. `told` is the text about them that the model reads; later windows repeat
    it unchanged. The user's own text is never edited."""

    references: tuple[DocumentReference, ...] = ()
    told: str = ""
    vault: str = ""
    """The folder that the paths are relative to."""
    made: Made | None = None
    quotes: tuple[Quote, ...] = ()
    """Of a reply: what the documents say that it was made with."""


class MessageRange(NamedTuple):
    """Consecutive messages of a path by their numbers, both ends included. JSON writes it as `[first, last]`."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1


class Compaction(BlockBase, tag="context_compaction", frozen=True):
    """A compaction of root..`last`. Nothing else changes the stable part of the window.

    `last` is None when nothing is covered (only pins or excerpts, or a compaction that was undone). `lifted` are
    covered messages that are still sent verbatim, in order of time. `pinned` are messages that every later Compaction
    has to lift, whether they are covered yet or not. `excerpts` maps a message (or `message/call` for a tool result)
    to the shorter text that is sent in its place.
    """

    compaction_number: int
    timestamp: str
    last: str | None
    summary: str
    messages_archived: int
    context_size_before: int
    context_size_after: int
    made_by: str
    """How the summary was made: model, extractive, truncated, user; discard and clear write none."""
    because: str
    lifted: tuple[str, ...] = ()
    excerpts: dict[str, str] = field(default_factory=dict)
    checks: dict[str, int] = field(default_factory=dict)
    """Counts of the checked summary: its input, and the facts it kept, lost and invented."""
    pinned: tuple[str, ...] = ()
    action: str = "compact"
    """compact, clear, pin, unpin, edit or undo."""
    little: int = 0
    """How many automatic compactions in a row, this one included, have freed little."""
    notes: tuple[str, ...] = ()
    """Problems while the summary was written: failed attempts, parts that no model read."""
    ledger: tuple[str, ...] = ()
    """Facts that the summary leaves out, one line for each source message: `#57 src/app.py:42; 3.5 ms`."""
    places: dict[str, int] = field(default_factory=dict)
    """Facts in the summary, and the number of the message that each comes from: a later summary may lose them."""
    cleared: str | None = None
    """The last message before a clear: nothing up to it is recalled."""
    unsummarized: tuple[str, ...] = ()
    """Lifted messages that no summary tells: each was being answered when it was covered."""
    made: Made | None = None
    summary_tokens: int | None = None
    """The tokens of the summary's text; None where there is none."""
    read: tuple[MessageRange, ...] = ()
    """The messages that this summary was made from, besides the one before it; empty if it read all that there were."""
    unread: tuple[MessageRange, ...] = ()
    """Covered messages that no summary has read: the next Compaction that writes one reads them, or more of them."""
    work_log: str = ""
    """The whole work log of an agent's run, where the summary has room for a part of it."""
    restored_size: int = 0
    """The tokens of the window when the user took a compaction back: none is due until it has grown by a tenth."""
    takes_back: int = 0
    """How many Compactions right before this one on its path it takes back: what they set aside comes back."""
    set_aside: tuple[str, ...] = ()
    """What the former summary and ledger told, or what binds, and has no room here, a line for each message:
    `#57: one item · another`; `User: …` where the number is not known. Later Compactions do not repeat it."""
    contents: tuple[str, ...] = ()
    """Topics of everything that was set aside so far, by ranges of messages: `#1–#340: boats, harbour`."""

    @property
    def unread_messages(self) -> int:
        return sum(each.length for each in self.unread)


Block = Text | Thinking | ToolCall | ToolResult | File | Image | References | Compaction
BLOCKS: dict[str, type[Block]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Block)}


def written_text(block: Block) -> str:
    """What a model wrote into a block, as a provider charges for it."""
    if isinstance(block, ToolCall):
        return block.name + block.arguments
    return block.text if isinstance(block, Text | Thinking) else ""
