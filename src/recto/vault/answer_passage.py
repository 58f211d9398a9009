"""AnswerPassage: a part of a note that answers a message, with its statements. Lookup: what is looked for."""

from msgspec import Struct

from recto.vault.answers import RatedStatement
from recto.vault.document import Document
from recto.vault.question import VaultQuestion


class AnswerPassage(Struct, frozen=True):
    document: Document
    heading: str
    line: int
    start: int
    end: int
    score: float
    """About 0 to 1.3: how well its best sentence answers."""
    because: str
    statements: tuple[RatedStatement, ...] = ()
    """Its sentences, items and rows, the best first."""

    @property
    def text(self) -> str:
        return self.document.text[self.start : self.end].strip()

    def overlaps(self, other: "AnswerPassage") -> bool:
        same = self.document.path == other.document.path
        return same and self.start < other.end and other.start < self.end


class FoundPassages(Struct, frozen=True):
    passages: tuple[AnswerPassage, ...] = ()
    """The best first."""
    far: tuple[AnswerPassage, ...] = ()
    """The best of those that are not near enough."""
    warning: str = ""
    question: VaultQuestion | None = None
    unread: str = ""
    """Where nothing was found: the notes that could not be searched."""
    overview: str = ""
    """What the vault holds, for a message about all of it."""


class Lookup(Struct, frozen=True):
    """What is looked for: a message, and where it leans on earlier ones, the last question and the notes in use."""

    text: str
    earlier: str = ""
    in_use: tuple[str, ...] = ()
    """Paths."""


def part_around(document: Document, start: int, end: int, most: int) -> tuple[int, int]:
    """The section around a place, or at most about so many characters of it."""
    starts = [heading.start for heading in document.parsed.headings]
    above = 0 if start < document.parsed.body_start else document.parsed.body_start
    first = max((each for each in starts if each <= start), default=above)
    last = min((each for each in starts if each > start), default=len(document.text))
    if last - first > most:
        first = max(first, document.text.rfind("\n", 0, max(first, start - most // 2)) + 1)
        last = min(last, max(end, first + most))
    return first, last
