"""Intake: keeps a search index in step with a vault: reads the notes that have changed, forgets those that are gone.

Whatever a note has become since it was read, what is given of it is what it says now, or nothing.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence

from recto.errors import Invalid, NotFound, StoreError
from recto.search.index import Index, Passage, text_hash
from recto.text import clean
from recto.vault.contents import Contents
from recto.vault.document import Document
from recto.vault.pieces import Piece, pieces
from recto.vault.stock import Held, Note, Stock
from recto.vault.vault import Vault

# So many characters are taken in at once: what a crash may cost, and what memory holds.
MOST_AT_ONCE = 4_000_000
PATIENCE_S = 1.0


class Intake:
    def __init__(self, vault: Vault, index: Index) -> None:
        self._vault, self._index = vault, index
        self._stock, self._contents = Stock(index), Contents(vault)
        self._agreed: tuple[object, object] | None = None
        self._unreadable: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def held(self) -> Held:
        return self._stock.held()

    def counts(self) -> tuple[int, int]:
        """How many notes there are, and how many of them are not in the index as they are now."""
        changed, _ = self.pending()
        return len(self._contents.now()), len(changed)

    def pending(self) -> tuple[list[str], list[str]]:
        """Notes that are not in the index as they are now, and those that are in it and no longer there."""
        there, held = self._contents.now(), self._stock.held()
        if self._agreed and self._agreed[0] is there and self._agreed[1] is held:
            return [], []
        known, unreadable = held.versions, self._unreadable
        new = (path for path, sha in there.items() if path not in known or known[path].sha != sha)
        changed = [path for path in new if unreadable.get(path) != there[path]]
        gone = [path for path in known if path not in there]
        if not changed and not gone:
            self._agreed = there, held
        return changed, gone

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
        changed, gone = self.pending()
        if not changed and not gone:
            return 0
        some = changed[:most]
        notes = list(self._notes(some))
        self._stock.put(notes, gone)
        return len(changed) - len(notes) - sum(path in self._unreadable for path in some)

    def _notes(self, paths: Sequence[str]) -> Iterator[Note]:
        """As many of these as are bearable at once; the hash is the catalogue's, which will tell when it was late."""
        hashes, size = self._contents.now(), 0
        for path in paths:
            document = self.read(path) if path in hashes else None
            if document is None:
                self._unreadable[path] = hashes.get(path, b"")
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
            return Document(path, clean(self._vault.folder.read(path))[0])
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
