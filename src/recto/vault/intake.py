"""Intake: keeps a search index in step with a vault: reads the notes that have changed, forgets those that are gone.

Whatever a note has become since it was read, what is given of it is what it says now, or nothing.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from recto.errors import Invalid, NotFound, StoreError
from recto.search.index import Index, Passage, text_hash
from recto.vault.decoding import text_of
from recto.vault.document import Document
from recto.vault.pieces import Piece, pieces
from recto.vault.stock import Held, Note, Stock
from recto.vault.vault import Vault

# So many characters are taken in at once: what a crash may cost, and what memory holds.
MOST_AT_ONCE = 4_000_000
PATIENCE_S = 1.0


class _Left(NamedTuple):
    """What is still to be taken in, for as long as hashes and stock are these: to compare all of both takes longer
    than to take in a few."""

    there: Mapping[str, bytes]
    held: Held
    changed: list[str]
    gone: list[str]


class Intake:
    def __init__(self, vault: Vault, index: Index) -> None:
        self._vault, self._index = vault, index
        self._stock = Stock(index)
        self._left: _Left | None = None
        self._unreadable: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def held(self) -> Held:
        return self._stock.held()

    def counts(self) -> tuple[int, int]:
        """How many notes there are, and how many of them are not in the index as they are now."""
        changed, _ = self.pending()
        return len(self._vault.hashes()), len(changed)

    def pending(self) -> tuple[list[str], list[str]]:
        """Notes that are not in the index as they are now, and those that are in it and no longer there."""
        left = self._look()
        return left.changed, left.gone

    def _look(self) -> "_Left":
        there, held = self._vault.hashes(), self._stock.held()
        if self._left and self._left.there is there and self._left.held is held:
            return self._left
        known, unreadable = held.versions, self._unreadable
        new = (path for path, sha in there.items() if path not in known or known[path].sha != sha)
        changed = [path for path in new if unreadable.get(path) != there[path]]
        self._left = _Left(there, held, changed, [path for path in known if path not in there])
        return self._left

    def take(self, most: int, patience_s: float = PATIENCE_S) -> int:
        """Takes in up to so many notes, and says how many are left. Another thread or process may be doing the same:
        then what it does is enough."""
        if not self._lock.acquire(timeout=patience_s):
            return len(self.pending()[0])
        before = self._index.file.was_renewed
        try:
            return self._take(most)
        except StoreError:
            if self._index.file.was_renewed == before:
                raise
            return len(self.pending()[0])  # it was damaged: all is to be done again
        finally:
            self._lock.release()

    def _take(self, most: int) -> int:
        there, held, changed, gone = self._look()
        if not changed and not gone:
            return 0
        some = changed[:most]
        notes = list(self._notes(there, some))
        is_put = self._stock.put(held, notes, gone)
        done = {note.document.path for note in notes} | {
            path for path in some if self._unreadable.get(path) == there[path]
        }
        left = [path for path in changed if path not in done]
        if is_put:
            self._left = _Left(there, self._stock.held(), left, [])
        return len(left)

    def _notes(self, hashes: Mapping[str, bytes], paths: Sequence[str]) -> Iterator[Note]:
        """As many of these as are bearable at once; the hash is the catalogue's, which will tell when it was late."""
        size = 0
        for path in paths:
            document = self.read(path)
            if document is None:
                self._unreadable[path] = hashes[path]
                continue
            yield Note(document, hashes[path])
            size += len(document.text)
            if size > MOST_AT_ONCE:
                return

    def begin_anew_when_worn(self) -> None:
        """Not before an answer: until all is taken in again, little is found."""
        with self._lock:
            changed, gone = self.pending()
            if (changed or gone) and self._stock.is_worn((*changed, *gone)):
                self._stock.begin_anew()

    # -- reading

    def read(self, path: str) -> Document | None:
        """A note; None when it is there no longer, or cannot be read."""
        try:
            return Document(path, text_of(self._vault.folder.read(path), path))
        except (NotFound, Invalid):
            return None

    def texts(self, passages: Sequence[Passage]) -> Mapping[int, str]:
        """What is embedded of passages; nothing for what has changed since, which comes again."""
        paths, found = self._stock.held().paths, dict[int, str]()
        wanted: dict[str, list[Passage]] = {}
        for passage in passages:
            if passage.item in paths:
                wanted.setdefault(paths[passage.item], []).append(passage)
        for path, some in wanted.items():
            document = self.read(path)
            known = by_hash(document) if document else {}
            found.update({passage.n: known[passage.sha][0].said for passage in some if passage.sha in known})
        return found


def by_hash(document: Document) -> dict[bytes, list[Piece]]:
    """The pieces of a note, by what a passage made from them is known by."""
    found: dict[bytes, list[Piece]] = {}
    for piece in pieces(document):
        found.setdefault(text_hash(piece.said), []).append(piece)
    return found


def piece_of(known: Mapping[bytes, Sequence[Piece]], passage: Passage) -> Piece | None:
    """The piece that a passage was made from, wherever it stands by now; None when its text has changed."""
    same = known.get(passage.sha, ())
    return min(same, key=lambda piece: abs(piece.start - passage.place), default=None)
