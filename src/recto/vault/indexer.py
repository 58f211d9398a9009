"""VaultIndexer: keeps a search index in step with a vault: adds changed notes, removes deleted ones."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recto.base.ids import new_id
from recto.errors import Invalid, NotFound
from recto.search.index_item import IndexItem
from recto.search.keyword_index import KeywordIndex, Passage
from recto.vault.decoding import decode_text
from recto.vault.document import Document
from recto.vault.note_chunks import NoteChunk, chunks_by_hash, note_chunks, note_date
from recto.vault.vault import Vault

PARTITION = "notes"
# The number is the version of the chunks: it changes when notes are split in another way.
_NOTE_MARKS, _NOTE_MARK = "note ", "note 1 "
_STATE_MARK, _LAST_MARK = "stock", "last"
# An index with fewer stale passages is not worth clearing.
MIN_STALE = 500
# Characters per transaction: what a crash may lose, and what memory holds.
MAX_BATCH_CHARS = 4_000_000
LOCK_TIMEOUT_S = 1.0
# So many added notes make it worth to join the parts of the index: of 10,000 notes that takes a third of a second.
MERGED_NOTES = 1000


class IndexedVersion(NamedTuple):
    number: int
    passages: int
    sha: bytes
    """The hash in the catalog."""


class NewNote(NamedTuple):
    """A note to add."""

    document: Document
    sha: bytes


class IndexedState(NamedTuple):
    """The notes in the index at a certain time."""

    versions: Mapping[str, IndexedVersion]
    paths: Mapping[int, str]
    id: str | None
    passages: int = 0


class IndexedNotes:
    def __init__(self, index: KeywordIndex) -> None:
        self._index = index
        self._state = IndexedState({}, {}, None)

    def state(self) -> IndexedState:
        """The same object as long as no process adds anything."""
        self._state = self._index.file.run(self._read_state)
        return self._state

    def _read_state(self) -> IndexedState:
        id = self._index.mark(_STATE_MARK)
        if id == self._state.id:
            return self._state
        marks = self._index.marks(_NOTE_MARK)
        with self._index.file.interpreting():
            return _make_state({path: _parse_version(value) for path, value in marks.items()}, id)

    def put(self, state: IndexedState, notes: Sequence[NewNote], removed: Iterable[str] = ()) -> bool:
        """Adds new versions of notes, and removes others. Does nothing and returns False if another process has changed
        the index since `state`."""
        id, gone = new_id(), set(removed)
        first = self._index.parsed_mark(_LAST_MARK, int, 0) + 1
        chunks = [note_chunks(note.document) for note in notes]
        fresh = {
            note.document.path: IndexedVersion(number, len(parts), note.sha)
            for number, (note, parts) in enumerate(zip(notes, chunks, strict=True), first)
        }
        marks = {f"{_NOTE_MARK}{path}": "" for path in gone}
        marks |= {f"{_NOTE_MARK}{path}": _format_version(version) for path, version in fresh.items()}
        marks |= {_STATE_MARK: id, _LAST_MARK: str(first + len(notes) - 1)}
        items = [item for note, parts in zip(notes, chunks, strict=True) for item in _items(note, parts, fresh)]
        self._index.add({PARTITION: items}, marks, expected={_STATE_MARK: state.id or ""})
        if self._index.mark(_STATE_MARK) != id:
            return False
        remaining = {path: version for path, version in state.versions.items() if path not in gone}
        self._state = _make_state(remaining | fresh, id)
        return True

    def is_mostly_stale(self, outdated: Iterable[str] = ()) -> bool:
        """Whether most passages lead nowhere, or will when the outdated notes get a new version."""
        state = self.state()
        live = state.passages - sum(state.versions[path].passages for path in outdated if path in state.versions)
        stale = self._index.extent(None).passages - live
        return stale > max(live, MIN_STALE)

    def clear(self) -> None:
        """Removes everything except the vectors of current notes."""
        self._index.clear(self.state().paths, {_STATE_MARK: new_id()}, forgotten_prefix=_NOTE_MARKS)


def _items(note: NewNote, chunks: Sequence[NoteChunk], fresh: Mapping[str, IndexedVersion]) -> Iterator[IndexItem]:
    number = fresh[note.document.path].number
    date = note_date(note.document)
    for chunk in chunks:
        yield IndexItem(number, chunk.indexed_text, position=chunk.start, branch=number, time=date)


def _make_state(versions: Mapping[str, IndexedVersion], id: str) -> IndexedState:
    paths = {version.number: path for path, version in versions.items()}
    return IndexedState(versions, paths, id, sum(version.passages for version in versions.values()))


def _format_version(version: IndexedVersion) -> str:
    return f"{version.number} {version.passages} {version.sha.hex()}"


def _parse_version(value: str) -> IndexedVersion:
    number, passages, sha = value.split()
    return IndexedVersion(int(number), int(passages), bytes.fromhex(sha))


class _Pending(NamedTuple):
    """The difference between a vault and its index. Cached, as comparing all notes takes longer than adding a few."""

    hashes: Mapping[str, bytes]
    state: IndexedState
    changed: list[str]
    removed: list[str]


class VaultIndexer:
    def __init__(self, vault: Vault, index: KeywordIndex) -> None:
        self._vault, self._index = vault, index
        self._indexed = IndexedNotes(index)
        self._pending: _Pending | None = None
        self._unreadable: dict[str, bytes] = {}
        self._unmerged = 0
        self._lock = threading.Lock()

    def state(self) -> IndexedState:
        return self._indexed.state()

    def counts(self) -> tuple[int, int]:
        """How many notes the index has as they are, and how many it is still to read."""
        hashes, known = self._vault.hashes(), self._indexed.state().versions
        indexed = sum(path in known and known[path].sha == sha for path, sha in hashes.items())
        return indexed, len(self.pending()[0])

    def pending(self) -> tuple[list[str], list[str]]:
        """Notes that are not up to date in the index, and notes in the index that no longer exist."""
        pending = self._compare()
        return pending.changed, pending.removed

    def _compare(self) -> "_Pending":
        hashes, state = self._vault.hashes(), self._indexed.state()
        if self._pending and self._pending.hashes is hashes and self._pending.state is state:
            return self._pending
        known, unreadable = state.versions, self._unreadable
        new = (path for path, sha in hashes.items() if path not in known or known[path].sha != sha)
        changed = [path for path in new if unreadable.get(path) != hashes[path]]
        self._pending = _Pending(hashes, state, changed, [path for path in known if path not in hashes])
        return self._pending

    def update(self, limit: int, lock_timeout_s: float = LOCK_TIMEOUT_S) -> int:
        """Adds up to `limit` notes and returns how many are left. If another thread is doing that, it only counts."""
        if not self._lock.acquire(timeout=lock_timeout_s):
            return len(self.pending()[0])
        try:
            return self._index.file.run(lambda: self._update(limit))
        finally:
            self._lock.release()

    def _update(self, limit: int) -> int:
        hashes, state, changed, removed = self._compare()
        if not changed and not removed:
            return 0
        batch = changed[:limit]
        notes = list(self._read_notes(hashes, batch))
        is_put = self._indexed.put(state, notes, removed)
        done = {note.document.path for note in notes}
        done |= {path for path in batch if self._unreadable.get(path) == hashes[path]}
        left = [path for path in changed if path not in done]
        if is_put:
            self._unmerged += len(notes)
            self._pending = _Pending(hashes, self._indexed.state(), left, [])
        return len(left)

    def _read_notes(self, hashes: Mapping[str, bytes], paths: Sequence[str]) -> Iterator[NewNote]:
        """Notes up to MAX_BATCH_CHARS. Takes the hash from the catalog: a note that has changed since differs again."""
        size = 0
        for path in paths:
            document = self.read(path)
            if document is None:
                self._unreadable[path] = hashes[path]
                continue
            yield NewNote(document, hashes[path])
            size += len(document.text)
            if size > MAX_BATCH_CHARS:
                return

    def merge_if_many(self) -> None:
        """Not right before a search either."""
        with self._lock:
            if self._unmerged >= MERGED_NOTES:
                self._index.file.optimize()
                self._unmerged = 0

    def clear_if_stale(self) -> None:
        """Not right before a search: little is found until all notes are added again."""
        with self._lock:
            changed, removed = self.pending()
            if (changed or removed) and self._indexed.is_mostly_stale((*changed, *removed)):
                self._indexed.clear()

    # -- reading

    def read(self, path: str) -> Document | None:
        """A note; None if it is missing or unreadable."""
        try:
            return Document(path, decode_text(self._vault.folder.read(path), path))
        except (NotFound, Invalid):
            return None

    def texts(self, passages: Sequence[Passage]) -> Mapping[int, str]:
        """The texts to embed; without passages that have changed, which are added again."""
        paths, found = self._indexed.state().paths, dict[int, str]()
        by_path: dict[str, list[Passage]] = {}
        for passage in passages:
            if passage.item in paths:
                by_path.setdefault(paths[passage.item], []).append(passage)
        for path, some in by_path.items():
            document = self.read(path)
            chunks = chunks_by_hash(document) if document else {}
            found.update(
                {passage.number: chunks[passage.sha][0].indexed_text for passage in some if passage.sha in chunks}
            )
        return found
