"""MemoryFact: one statement that is remembered between conversations, with where it came from and what it replaces."""

import hashlib
from typing import Literal, get_args

from msgspec import Struct

from recto.base.text import clean
from recto.errors import Invalid

FactKind = Literal["preference", "person", "project", "decision", "reference", "other"]
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
MAX_CHARS = 2000
"""A longer text is no fact: a note, or a memory file, holds it better."""
USER, ASSISTANT, MCP_CLIENT = "user", "assistant", "mcp"
"""Who learned a fact: the user told Recto to remember it, a model wrote it that no source says, a client brought it."""
SaidBy = Literal["user", "document", "assistant"]
_WRITERS: dict[str, SaidBy] = {
    "note": "document",
    "tool": "document",
    "attachment": "document",
    ASSISTANT: "assistant",
    MCP_CLIENT: "assistant",
}


class EarlierText(Struct, frozen=True):
    text: str
    until: str
    """When another text took its place."""


class NoteReference(Struct, frozen=True):
    """A note that is used often."""

    vault: str
    """The folder that the path is relative to."""
    path: str
    link: str
    summary: str = ""
    """What it is about, in one line."""

    @property
    def text(self) -> str:
        """As a fact tells it."""
        return f"{self.link} ({self.path}){f': {self.summary}' if self.summary else ''}"

    @property
    def key(self) -> str:
        return note_key(self.vault, self.path)


def note_key(vault: str, path: str) -> str:
    """Tells notes apart without holding their names."""
    return hashlib.sha256(f"{vault}\0{path}".encode("utf-8", "surrogatepass")).hexdigest()


class MemoryFact(Struct, frozen=True):
    number: int
    """What people call it by."""
    text: str
    kind: FactKind = "other"
    created: str = ""
    learned_by: str = USER
    """`user`, the model that wrote down the user's words, or the file it was imported from. What a model took from
    elsewhere names that: `note PATH`, `tool NAME`, `attachment NAME`; its own words are `assistant MODEL`."""
    conversation: str | None = None
    message: str | None = None
    """The message it came from."""
    last_used: str | None = None
    uses: int = 0
    confidence: float = 1.0
    replaced_by: int | None = None
    """The newer fact that holds instead: this one is kept, and no longer sent."""
    topic: int | None = None
    """Shared by facts about the same thing, of which the newer may contradict the older: the number of the first."""
    history: tuple[EarlierText, ...] = ()
    """What it said before, the oldest first."""
    note: NoteReference | None = None
    """The note that it points to: `uses` and `last_used` are those of the note."""

    @property
    def day(self) -> str:
        return self.created[:10]

    @property
    def said_by(self) -> SaidBy:
        """Whose words it has. Only what a document or the user says is confirmed."""
        return "document" if self.note else said_by(self.learned_by)

    @property
    def is_confirmed(self) -> bool:
        return self.said_by != "assistant"

    @property
    def marked_text(self) -> str:
        """What it says, with whose words these are unless they are the user's."""
        return f"{self.text} ({mark})" if (mark := self.mark) else self.text

    @property
    def mark(self) -> str:
        if self.note or self.said_by == "user":
            return ""
        if self.is_confirmed:
            return f"from {self.learned_by}"
        by = "an MCP client" if self.learned_by == MCP_CLIENT else "the assistant"
        return f"noted by {by}, not confirmed by the user"


def said_by(learned_by: str) -> SaidBy:
    return _WRITERS.get(learned_by.partition(" ")[0], "user")


def checked_text(text: str) -> str:
    """One line, without control characters. Raises Invalid for nothing, and for more than a fact may be."""
    line = " ".join(clean(text)[0].split())
    line = "".join(char for char in line if char.isprintable())
    if not line:
        raise Invalid("a fact needs a text")
    if len(line) > MAX_CHARS:
        raise Invalid(
            f"a fact is a statement of at most {MAX_CHARS:,} characters, and this has {len(line):,}; "
            "keep it as a note, or split it",
            characters=len(line),
        )
    return line


def checked_kind(kind: str) -> FactKind:
    for known in FACT_KINDS:
        if kind == known:
            return known
    raise Invalid(f"there is no kind of fact {kind!r}; use {', '.join(FACT_KINDS)}", kind=kind)
