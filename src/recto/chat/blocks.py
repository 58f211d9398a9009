"""Blocks: the parts of a message. A block keeps verbatim what a provider needs back: ids, raw arguments, signatures.

DocumentReference: a document named by a message or used for a reply.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from msgspec import Struct, field

ReferenceType = Literal["direct", "search"]
UNREADABLE = "this document could not be read"
"""Shown in place of a summary."""
REFUSED = "refused: "
"""Begins a summary that says why a document, which may exist, was not read."""


class DocumentReference(Struct, frozen=True, forbid_unknown_fields=True):
    """A reference is `direct` if a person named the document, `search` if a tool read or found it."""

    wikilink: str
    relative_path: str | None
    """None if the link is broken or the document was refused."""
    reference_type: ReferenceType = "direct"
    summary: str | None = None
    """One line about the document as it was when referenced."""
    context_snippet: str | None = None

    @property
    def problem(self) -> str:
        """Why there is no document to read; empty if there is one."""
        if self.relative_path is None:
            return self.summary or "not found"
        return "could not be read" if self.summary == UNREADABLE else ""


class Quote(Struct, frozen=True, forbid_unknown_fields=True):
    """A note's statement about a message, verbatim except for Markdown."""

    wikilink: str
    relative_path: str
    heading: str
    """The nearest heading above it, if any."""
    line: int
    sentence: str
    """The sentence, list item or table row that answers."""
    more: str = ""
    """The rest of its paragraph."""


_NO_BRACKETS = str.maketrans("[]", "()")


def unique_references(references: Iterable[DocumentReference]) -> tuple[DocumentReference, ...]:
    """Keep one reference per document: the first, but direct ones before search. Broken links count by name."""
    found: dict[tuple[str, str], DocumentReference] = {}
    for reference in references:
        key = ("path", reference.relative_path) if reference.relative_path else ("broken", reference.wikilink)
        known = found.get(key)
        if known is None or (known.reference_type == "search" and reference.reference_type == "direct"):
            found[key] = reference
    return tuple(found.values())


def reference_list(references: Sequence[DocumentReference], reader: str) -> str:
    """The list that the model reads after the user's text; `reader` is the tool that reads a document."""
    if not references:
        return ""
    lines = ["[Documents this message refers to:", *map(_line, references)]
    # a document included by its path may be outside the tool's folder
    if any(reference.relative_path and not reference.wikilink.startswith("@") for reference in references):
        lines.append(f"{reader} reads them.")
    return "\n".join(lines) + "]"


def _line(reference: DocumentReference) -> str:
    if reference.relative_path is None:
        return f"- {reference.wikilink}: {reference.problem.translate(_NO_BRACKETS)}"
    # a closing bracket in a summary would end the list, and the rest would read as the user's text
    about = f": {reference.summary.translate(_NO_BRACKETS)}" if reference.summary else ""
    return f"- {reference.wikilink} ({reference.relative_path}){about}"


class Made(Struct, frozen=True, forbid_unknown_fields=True):
    provider: str
    model: str
    duration_s: float | None = None


class BlockBase(Struct, frozen=True, tag_field="type", forbid_unknown_fields=True):
    """In JSON, a block begins with the field `type`."""

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
    """`arguments` is the raw JSON text as written by the model, valid or not."""

    id: str
    name: str
    arguments: str
    made: Made | None = None


class ToolResult(BlockBase, tag="tool_result", frozen=True):
    call_id: str
    name: str
    text: str
    is_error: bool = False
    approval: str = ""
    """The user's answer if the tool needed approval: allowed, always, denied or unanswered; `changed` if nobody could
    be asked about a tool that differs from the one allowed, `forbidden` if a setting denies the tool."""
    whole: str = ""
    """The sha256 of the full text in the store, if `text` is only its beginning."""
    media: tuple[str, ...] = ()
    """Media of the result that the store holds, as `image/png SHA256`."""
    made: Made | None = None
    attachments: "tuple[Image | File, ...]" = ()
    """Images and files of the result as data, for wire formats that can send them."""


class File(BlockBase, tag="file", frozen=True):
    """A file attached to a message: its text, or its bytes (`base64`) or `url` for models that read files."""

    name: str
    text: str
    media_type: str = "text/plain"
    made: Made | None = None
    base64: str = ""
    url: str = ""
    sha256: str = ""
    """The hash of the bytes in the store, which fill `base64` when the file is sent."""


class Image(BlockBase, tag="image", frozen=True):
    """An image: bytes in `base64`, bytes in the store by `sha256`, or a `url` for the provider to fetch."""

    media_type: str
    base64: str = ""
    made: Made | None = None
    url: str = ""
    name: str = ""
    sha256: str = ""


class References(BlockBase, tag="document_references", frozen=True):
    """The documents that a message refers to. `told` is the text about them that the model reads, repeated unchanged
    in later windows. The user's own text is never edited."""

    references: tuple[DocumentReference, ...] = ()
    told: str = ""
    vault: str = ""
    made: Made | None = None
    quotes: tuple[Quote, ...] = ()
    """In a reply: what the documents used for it say."""


class MessageRange(NamedTuple):
    """Consecutive messages of a path by number, both ends included; `[first, last]` in JSON."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1


class Compaction(BlockBase, tag="context_compaction", frozen=True):
    """A compaction of root..`last`. Nothing else changes the stable part of the window.

    `last` is None if nothing is covered (only pins or excerpts, or an undone compaction). `lifted` are covered messages
    still sent verbatim, in order of time. `pinned` are messages that every later Compaction must lift, covered yet or
    not. `excerpts` maps a message (or `message/call` for a tool result) to the shorter text sent in its place.
    """

    compaction_number: int
    timestamp: str
    last: str | None
    summary: str
    messages_archived: int
    context_size_before: int
    context_size_after: int
    made_by: str
    """The author of the summary: a model, extractive, truncated or user; discard and clear write none."""
    because: str
    lifted: tuple[str, ...] = ()
    excerpts: dict[str, str] = field(default_factory=dict)
    checks: dict[str, int] = field(default_factory=dict)
    """Counts of the checked summary: its input, and the facts kept, lost and invented."""
    pinned: tuple[str, ...] = ()
    action: str = "compact"
    little: int = 0
    """The number of consecutive automatic compactions, including this one, that freed little."""
    notes: tuple[str, ...] = ()
    """Problems while writing the summary: failed attempts, parts that no model read."""
    ledger: tuple[str, ...] = ()
    """Facts that the summary omits, one line per source message: `#57 src/app.py:42; 3.5 ms`."""
    places: dict[str, int] = field(default_factory=dict)
    """Facts in the summary, and the number of each one's message: a later summary may lose them."""
    cleared: str | None = None
    """The last message before a clear: it and earlier ones are not recalled."""
    unsummarized: tuple[str, ...] = ()
    """Lifted messages missing in every summary: each was being answered when it was covered."""
    made: Made | None = None
    summary_tokens: int | None = None
    """None without a summary."""
    read: tuple[MessageRange, ...] = ()
    """The messages that this summary was made from, besides the former summary; empty if it read all."""
    unread: tuple[MessageRange, ...] = ()
    """Covered messages that no summary has read: the next Compaction with a summary continues with them."""
    work_log: str = ""
    """The whole work log of an agent's run, if the summary has room for only a part of it."""
    restored_size: int = 0
    """The tokens of the window when the user undid a compaction: none is due until it has grown by a tenth."""
    takes_back: int = 0
    """The number of preceding Compactions on its path that it undoes: what they set aside returns."""
    set_aside: tuple[str, ...] = ()
    """Items of the former summary and ledger, or binding ones, that do not fit here, a line per message: `#57: one
    item · another`; `User: …` if the number is unknown. Later Compactions do not repeat it."""
    contents: tuple[str, ...] = ()
    """Topics of everything set aside so far, by ranges of messages: `#1–#340: boats, harbour`."""

    @property
    def unread_messages(self) -> int:
        return sum(each.length for each in self.unread)


Block = Text | Thinking | ToolCall | ToolResult | File | Image | References | Compaction
BLOCKS: dict[str, type[Block]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Block)}


def written_text(block: Block) -> str:
    """The text in a block that a model wrote, as charged by a provider."""
    if isinstance(block, ToolCall):
        return block.name + block.arguments
    return block.text if isinstance(block, Text | Thinking) else ""
