"""Library: what a vault says, as it is searched: sections by words and meaning, in an index outside the notes.

The index can be thrown away: it is filled again from the notes, of which it holds no text. What has changed is taken
over before an answer when it is little, and behind it when it is much.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from recto.errors import Invalid, NotFound, RectoError
from recto.search.behind import Behind
from recto.search.finder import Found, Hit, Wanted
from recto.search.lookup import Lookup, Open
from recto.vault.catalog import Progress
from recto.vault.document import Document
from recto.vault.folder import is_note
from recto.vault.intake import Intake, by_hash, piece_of
from recto.vault.links import Link
from recto.vault.pieces import Piece, line_of
from recto.vault.stock import SHELF, Held
from recto.vault.vault import Vault
from recto.vault.wording import Wording, best_part, wording

# So many changed notes are taken over before an answer; so many at once behind it, and where nobody waits for one.
FEW, BATCH, MANY = 50, 64, 512
# So long an answer waits for the first look at the notes, and for another thread that is taking some over.
PATIENCE_S, BRIEFLY_S = 1.0, 0.2
# So many passages are looked at, at least, and so many for each that was asked for: a note that holds a word everywhere
# is one document.
PASSAGES, PER_HIT = 80, 4
LONGEST_EXCERPT, LONGEST_NAME = 600, 200
# That pieces of a note share their words with their neighbours finds more: of 57 questions 50 among the first three
# instead of 47, with meaning 55 instead of 52. Among many pieces it takes too long: at this size half as long again.
MOST_SHARED = 6_000
# What holds no word of a question must at least be this near: nonsense is as near as 0.18 to something, what answers a
# question in other words 0.24 and more.
LEAST_NEAR = 0.2
# What further pieces of a note add to its best one, each less than the one before.
MORE, FADING = 0.1, 0.7
LET_GO_S = 1.0
BEING_MADE = "the search index of the vault is being made"

T = TypeVar("T")


class Findings(NamedTuple, Generic[T]):
    hits: tuple[T, ...]
    note: str = ""
    """What was not as it should be: an index that is being made, no vectors, or not yet."""


@dataclass(frozen=True, slots=True)
class FoundDocument:
    path: str
    title: str
    score: float
    """Between 0 and 1."""
    because: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a note, verbatim: `text` stands from `start` to `end`."""

    path: str
    title: str
    heading: str
    """Of the section it is from; empty above the first one."""
    line: int
    start: int
    end: int
    text: str
    score: float
    because: str


@dataclass(frozen=True, slots=True)
class Status:
    documents: int
    indexed: int
    passages: int
    vectors: int
    waiting: int
    """Passages that the embedder has not seen yet."""
    embedder: str | None
    why: str = ""
    """Why there is no embedder, or what it could not do."""


class Library:
    def __init__(self, vault: Vault, index: Path, embedder: Open, *, timeout_s: float = 2.0) -> None:
        self._vault = vault
        self._lookup = Lookup(index, embedder, lambda passages: self._intake.texts(passages), timeout_s=timeout_s)
        self._index, self._finder = self._lookup.index, self._lookup.finder
        self._intake = Intake(vault, self._index)
        self._trouble = ""
        self._behind = Behind(self._some, "recto-library")
        self._looked = threading.Event()
        self._asking = threading.Lock()

    # -- finding

    def find_documents(self, text: str, most: int = 3) -> Findings[FoundDocument]:
        """Notes that bear on a text, the best first."""
        hits, note = self._find(text, most)
        return Findings(tuple(islice(self._documents(text, hits), max(0, most))), note)

    def find_excerpts(self, text: str, most: int = 8) -> Findings[Excerpt]:
        """Parts of notes that bear on a text, the best first."""
        hits, note = self._find(text, most)
        return Findings(tuple(islice(self._excerpts(text, hits), max(0, most))), note)

    def _documents(self, text: str, hits: Sequence[tuple[str, Hit]]) -> Iterator[FoundDocument]:
        of: dict[str, list[Hit]] = {}
        for path, hit in hits:
            of.setdefault(path, []).append(hit)
        scores = {path: _together(own) for path, own in of.items()}
        named = self._named(text)
        if named is not None:
            scores[named] = 1.0
        for path in sorted(scores, key=lambda each: (each == named, scores[each]), reverse=True):
            if document := self._intake.read(path):
                because = "has this name" if path == named else of[path][0].because
                yield FoundDocument(path, document.title, scores[path], because)

    def _named(self, text: str) -> str | None:
        """The note that is called what was asked for."""
        name = text.strip().strip("[]")
        if not self._looked.is_set() or not name or len(name) > LONGEST_NAME or "\n" in name:
            return None
        try:
            path = self._vault.resolve(Link(f"[[{name}]]", name))
        except RectoError:
            return None
        return path if path and is_note(path) else None

    def _excerpts(self, text: str, hits: Sequence[tuple[str, Hit]]) -> Iterator[Excerpt]:
        asked, known = wording(text), dict[str, tuple[Document, dict[bytes, list[Piece]]] | None]()
        for path, hit in hits:
            if path not in known:
                read = self._intake.read(path)
                known[path] = (read, by_hash(read)) if read else None
            if (of := known[path]) and (piece := piece_of(of[1], hit.passage)) and piece.text:
                yield _excerpt(of[0], piece, asked, hit)

    def _find(self, text: str, most: int) -> tuple[list[tuple[str, Hit]], str]:
        """Passages with the notes they are from."""
        with self._asking:
            note, before = self._ready(), self._index.file.was_renewed
            found, held = self._looked_up(text, most)
            if self._index.file.was_renewed != before:  # it turned out to be damaged while it was read
                note = self._ready()
                found, held = self._looked_up(text, most)
        hits = [
            (held.paths[hit.passage.item], hit) for hit in found.hits if hit.words or (hit.meaning or 0) >= LEAST_NEAR
        ]
        return hits, note or found.note

    def _looked_up(self, text: str, most: int) -> tuple[Found, Held]:
        held = self._intake.held()
        paths = held.paths
        wanted = Wanted(
            text,
            SHELF,
            accepts=lambda passage: passage.item in paths,
            spreads=held.passages <= MOST_SHARED,
            most=max(PASSAGES, PER_HIT * most),
        )
        return self._finder.find(wanted), held

    def _ready(self) -> str:
        """Takes over what has changed when it is little; what is more is left to the thread behind."""
        meaning = self._lookup.meaning
        if not self._looked.is_set():
            self.stir()  # looking through a large vault for the first time takes longer than an answer may
            if not self._looked.wait(PATIENCE_S):
                return BEING_MADE
        try:
            left = self._intake.take(FEW, BRIEFLY_S)
        except (Invalid, NotFound) as why:  # the folder is gone: what is known of it may still serve
            return why.message
        if left or (meaning and meaning.waiting):
            self.stir()
        if left:
            return f"{BEING_MADE}: {left} {'note is' if left == 1 else 'notes are'} not in it yet"
        return self._trouble or self._lookup.why

    # -- filling

    def stir(self) -> None:
        """Something may have changed: it is taken over, and its vectors are made, behind."""
        self._behind.stir()

    def fill(self, progress: Progress | None = None, *, vectors: bool = False) -> None:
        """Takes over everything, now; for commands that were asked to."""
        self._vault.refresh(progress)
        self._looked.set()
        self._intake.begin_anew_when_worn()
        total = len(self._intake.pending()[0])
        while left := self._intake.take(MANY):
            if progress:
                progress(total - left, total)
        if vectors:
            self._lookup.make_vectors(progress)

    @property
    def status(self) -> Status:
        total, left = self._intake.counts()
        counts, meaning = (total, total - left, self._intake.held().passages), self._lookup.meaning
        if meaning is None:
            return Status(*counts, 0, 0, None, self._trouble or self._lookup.why)
        return Status(*counts, meaning.made, meaning.waiting, meaning.name, meaning.why or self._trouble)

    @property
    def was_renewed(self) -> str:
        """Why the index had to be begun anew; empty when it had not."""
        return self._lookup.was_renewed

    def close(self) -> None:
        self._behind.close(timeout_s=0)
        self._lookup.stop()
        self._behind.close(LET_GO_S)
        self._lookup.close()

    def _some(self) -> bool:
        """A bit of what is to be done behind; never raises, for nobody would hear it: the next search tells it."""
        try:
            meaning = self._lookup.meaning
            self._intake.begin_anew_when_worn()
            is_left = self._intake.take(BATCH) > 0 or (meaning is not None and meaning.make_some() > 0)
            self._trouble = ""
            return is_left
        except RectoError as why:
            self._trouble = why.message
        except Exception as why:
            self._trouble = f"the search index could not be brought up to date ({type(why).__name__}: {why})"
        finally:
            self._looked.set()
        return False


def _excerpt(document: Document, piece: Piece, asked: Wording, hit: Hit) -> Excerpt:
    first, last = best_part(piece.text, asked, LONGEST_EXCERPT)
    start, end = piece.start + first, piece.start + last
    heading = piece.headings[-1] if piece.headings else ""
    where = (document.path, document.title, heading, line_of(document, start), start, end)
    return Excerpt(*where, document.text[start:end], hit.score, hit.because)


def _together(hits: Sequence[Hit]) -> float:
    """What a note is worth: its best piece, and a little for the others."""
    more = sum(MORE * FADING**at * hit.score for at, hit in enumerate(hits[1:6]))
    return round(min(1.0, hits[0].score + more), 4)
