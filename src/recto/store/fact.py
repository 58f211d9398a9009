"""MemoryFact: one statement remembered between conversations, with its origin and what it replaces."""

import hashlib
from typing import Literal, get_args

from msgspec import Struct

from recto.base.text import clean
from recto.errors import Invalid

FactKind = Literal["preference", "person", "project", "decision", "reference", "other"]
FACT_KINDS: tuple[FactKind, ...] = get_args(FactKind)
MAX_CHARS = 2000
"""A longer text belongs in a note or a memory file."""
USER, ASSISTANT, MCP_CLIENT = "user", "assistant", "mcp"
"""Who learned a fact: the user told Recto to remember it, a model wrote it without a source, or a client added it."""
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


class NoteReference(Struct, frozen=True):
    vault: str
    """The folder that the path is relative to."""
    path: str
    link: str
    summary: str = ""

    @property
    def text(self) -> str:
        return f"{self.link} ({self.path}){f': {self.summary}' if self.summary else ''}"

    @property
    def key(self) -> str:
        return note_key(self.vault, self.path)


def note_key(vault: str, path: str) -> str:
    """Identifies a note without containing its name."""
    return hashlib.sha256(f"{vault}\0{path}".encode("utf-8", "surrogatepass")).hexdigest()


class MemoryFact(Struct, frozen=True):
    number: int
    """Shown to people."""
    text: str
    kind: FactKind = "other"
    created: str = ""
    learned_by: str = USER
    """`user`, the model that wrote down the user's words, or the file it was imported from. Facts from elsewhere name
    their source: `note PATH`, `tool NAME`, `attachment NAME`; the model's own words are `assistant MODEL`."""
    conversation: str | None = None
    message: str | None = None
    """The message it came from."""
    last_used: str | None = None
    uses: int = 0
    confidence: float = 1.0
    replaced_by: int | None = None
    """The newer fact that replaces it: this one is kept, but no longer sent."""
    topic: int | None = None
    """Shared by facts about the same thing, where a newer one may contradict an older: the number of the first."""
    history: tuple[EarlierText, ...] = ()
    """Earlier texts, oldest first."""
    note: NoteReference | None = None
    """The note that it points to: `uses` and `last_used` are those of the note."""

    @property
    def day(self) -> str:
        return self.created[:10]

    @property
    def said_by(self) -> SaidBy:
        """Whose words it has. Only those of a document or the user count as confirmed."""
        return "document" if self.note else said_by(self.learned_by)

    @property
    def is_confirmed(self) -> bool:
        return self.said_by != "assistant"

    @property
    def marked_text(self) -> str:
        """The text, with its speaker unless that is the user."""
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
    """One line, without control characters. Raises Invalid if it is empty or too long."""
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
    raise Invalid(f"unknown kind of fact {kind!r}; use {', '.join(FACT_KINDS)}", kind=kind)
