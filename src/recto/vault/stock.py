"""Stock: which notes a search index holds, each in which version. Kept in the index's own marks, in one step with its
words.

Nothing is taken out one by one: a version that is no longer kept leads nowhere, until the index is begun anew.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recto.ids import new_id
from recto.search.index import Index, Item
from recto.vault.document import Document
from recto.vault.pieces import Piece, day_of, pieces

SHELF = "notes"
# With another way of cutting notes, or of telling what stands above a piece, goes another number.
_ANY_NOTE, _NOTE = "note ", "note 1 "
_STOCK, _LAST = "stock", "last"
# Fewer passages that lead nowhere are not worth beginning anew.
FEW_STALE = 500


class Version(NamedTuple):
    number: int
    passages: int
    sha: bytes
    """As the catalogue knows it."""


class Note(NamedTuple):
    """A note to be put in."""

    document: Document
    sha: bytes


class Held(NamedTuple):
    """What is in the index at a time."""

    versions: Mapping[str, Version]
    paths: Mapping[int, str]
    seen: str | None
    passages: int = 0


class Stock:
    def __init__(self, index: Index) -> None:
        self._index = index
        self._held = Held({}, {}, None)

    def held(self) -> Held:
        """The same value for as long as nobody puts anything in."""
        seen = self._index.mark(_STOCK)
        if seen != self._held.seen:
            versions = {path: _version(value) for path, value in self._index.marks(_NOTE).items()}
            self._held = _held(versions, seen)
        return self._held

    def put(self, held: Held, notes: Sequence[Note], gone: Iterable[str] = ()) -> bool:
        """New versions of notes, and which are there no longer; nothing of it, and False, where another process has put
        something in since these were held."""
        seen = new_id()
        first = int(self._index.mark(_LAST) or 0) + 1
        cut = [pieces(note.document) for note in notes]
        fresh = {
            note.document.path: Version(number, len(parts), note.sha)
            for number, (note, parts) in enumerate(zip(notes, cut, strict=True), first)
        }
        away = set(gone)
        marks = {f"{_NOTE}{path}": "" for path in away}
        marks |= {f"{_NOTE}{path}": _marked(version) for path, version in fresh.items()}
        marks |= {_STOCK: seen, _LAST: str(first + len(notes) - 1)}
        items = [item for note, parts in zip(notes, cut, strict=True) for item in _items(note, parts, fresh)]
        self._index.add({SHELF: items}, marks, expects={_STOCK: held.seen or ""})
        if self._index.mark(_STOCK) != seen:
            return False
        kept = {path: version for path, version in held.versions.items() if path not in away}
        self._held = _held(kept | fresh, seen)
        return True

    def is_worn(self, leaving: Iterable[str] = ()) -> bool:
        """Whether more than half leads nowhere, or soon will when some notes get a new version."""
        held = self.held()
        lives = held.passages - sum(held.versions[path].passages for path in leaving if path in held.versions)
        stale = self._index.extent(None).passages - lives
        return stale > max(lives, FEW_STALE)

    def begin_anew(self) -> None:
        """Takes out everything but the vectors of what is still there."""
        self._index.begin_anew(self.held().paths, {_STOCK: new_id()}, forgets=_ANY_NOTE)


def _items(note: Note, parts: Sequence[Piece], fresh: Mapping[str, Version]) -> Iterator[Item]:
    number = fresh[note.document.path].number
    day = day_of(note.document)
    for piece in parts:
        yield Item(number, piece.said, place=piece.start, branch=number, at=day)


def _held(versions: Mapping[str, Version], seen: str) -> Held:
    paths = {version.number: path for path, version in versions.items()}
    return Held(versions, paths, seen, sum(version.passages for version in versions.values()))


def _marked(version: Version) -> str:
    return f"{version.number} {version.passages} {version.sha.hex()}"


def _version(value: str) -> Version:
    number, passages, sha = value.split()
    return Version(int(number), int(passages), bytes.fromhex(sha))
