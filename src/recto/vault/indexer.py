"""VaultIndexer: keeps a search index in step with a vault: adds changed notes, removes deleted ones."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from recto.base.ids import new_id
from recto.errors import Invalid, NotFound
from recto.search.keyword_index import IndexItem, KeywordIndex, Passage
from recto.vault.decoding import decode_text
from recto.vault.document import Document
from recto.vault.note_chunks import NoteChunk, chunks_by_hash, note_chunks, note_date
from recto.vault.vault import Vault

PARTITION = "notes"
# The number is the version of the chunks: it changes when notes are split differently.
_NOTE_MARKS, _NOTE_MARK = "note ", "note 1 "
_STATE_MARK, _LAST_MARK = "stock", "last"
# With fewer stale passages, clearing an index is not worth it.
MIN_STALE = 500
# Characters per transaction: bounds memory and what a crash loses.
MAX_BATCH_CHARS = 4_000_000
LOCK_TIMEOUT_S = 1.0
# Merge the index after this many added notes: with 10,000 notes that takes a third of a second.
MERGED_NOTES = 1000


class IndexedVersion(NamedTuple):
    number: int
    passages: int
    sha: bytes
    """As in the catalog."""


class IndexedState(NamedTuple):
    versions: Mapping[str, IndexedVersion]
    paths: Mapping[int, str]
    id: str | None
    passages: int = 0


class VaultIndexer:
    def __init__(self, vault: Vault, index: KeywordIndex) -> None:
        self._vault, self._index = vault, index
        self._state = IndexedState({}, {}, None)
        self._unreadable: dict[str, bytes] = {}
        self._unmerged = 0
        self._lock = threading.Lock()

    def state(self) -> IndexedState:
        """The same object until a process adds something."""
        self._state = self._index.file.run(self._read_state)
        return self._state

    def _read_state(self) -> IndexedState:
        id = self._index.mark(_STATE_MARK)
        if id == self._state.id:
            return self._state
        marks, versions = self._index.marks(_NOTE_MARK), dict[str, IndexedVersion]()
        with self._index.file.interpreting():
            for path, value in marks.items():
                number, passages, sha = value.split()
                versions[path] = IndexedVersion(int(number), int(passages), bytes.fromhex(sha))
            return _make_state(versions, id)

    def counts(self) -> tuple[int, int]:
        """The number of indexed notes, and of notes still to be read."""
        hashes, known = self._vault.hashes(), self.state().versions
        indexed = sum(path in known and known[path].sha == sha for path, sha in hashes.items())
        return indexed, len(self.pending()[0])

    def pending(self) -> tuple[list[str], list[str]]:
        """Notes that are new or outdated in the index, and notes in it that no longer exist."""
        hashes, known, unreadable = self._vault.hashes(), self.state().versions, self._unreadable
        new = (path for path, sha in hashes.items() if path not in known or known[path].sha != sha)
        changed = [path for path in new if unreadable.get(path) != hashes[path]]
        return changed, [path for path in known if path not in hashes]

    def update(self, limit: int, lock_timeout_s: float = LOCK_TIMEOUT_S) -> int:
        """Adds up to `limit` notes and returns how many are left. If another thread is adding notes, only counts."""
        if not self._lock.acquire(timeout=lock_timeout_s):
            return len(self.pending()[0])
        try:
            return self._index.file.run(lambda: self._update(limit))
        finally:
            self._lock.release()

    def _update(self, limit: int) -> int:
        hashes, state = self._vault.hashes(), self.state()
        changed, removed = self.pending()
        if not changed and not removed:
            return 0
        batch = changed[:limit]
        # the hash in the catalog: a note changed since then will differ again
        notes = {document: hashes[document.path] for document in self._read_notes(hashes, batch)}
        is_put = self._put(state, notes, removed)
        done = {document.path for document in notes}
        done |= {path for path in batch if self._unreadable.get(path) == hashes[path]}
        left = [path for path in changed if path not in done]
        if is_put:
            self._unmerged += len(notes)
        return len(left)

    def _read_notes(self, hashes: Mapping[str, bytes], paths: Sequence[str]) -> Iterator[Document]:
        size = 0
        for path in paths:
            document = self.read(path)
            if document is None:
                self._unreadable[path] = hashes[path]
                continue
            yield document
            size += len(document.text)
            if size > MAX_BATCH_CHARS:
                return

    def _put(self, state: IndexedState, notes: Mapping[Document, bytes], removed: Iterable[str]) -> bool:
        """Adds new versions of notes and removes others. Returns False, without a change, if another process has
        changed the index since `state`."""
        id, gone = new_id(), set(removed)
        first = self._index.parsed_mark(_LAST_MARK, int, 0) + 1
        fresh, items = dict[str, IndexedVersion](), list[IndexItem]()
        for number, (document, sha) in enumerate(notes.items(), first):
            chunks, day = note_chunks(document), note_date(document)
            fresh[document.path] = IndexedVersion(number, len(chunks), sha)
            items += [_item(chunk, number, day) for chunk in chunks]
        marks = {f"{_NOTE_MARK}{path}": "" for path in gone}
        marks |= {f"{_NOTE_MARK}{path}": f"{n} {passages} {sha.hex()}" for path, (n, passages, sha) in fresh.items()}
        marks |= {_STATE_MARK: id, _LAST_MARK: str(first + len(notes) - 1)}
        self._index.add({PARTITION: items}, marks, expected={_STATE_MARK: state.id or ""})
        if self._index.mark(_STATE_MARK) != id:
            return False
        remaining = {path: version for path, version in state.versions.items() if path not in gone}
        self._state = _make_state(remaining | fresh, id)
        return True

    def merge_if_many(self) -> None:
        """Slow: not right before a search."""
        with self._lock:
            if self._unmerged >= MERGED_NOTES:
                self._index.file.optimize()
                self._unmerged = 0

    def clear_if_stale(self) -> None:
        """If most passages are or will be stale, removes all but the vectors of current notes. Not right before a
        search: little is found until all notes are added again."""
        with self._lock:
            changed, removed = self.pending()
            if not changed and not removed:
                return
            state = self.state()
            outdated = (state.versions[path].passages for path in (*changed, *removed) if path in state.versions)
            live = state.passages - sum(outdated)
            if self._index.extent(None).passages - live > max(live, MIN_STALE):
                self._index.clear(state.paths, {_STATE_MARK: new_id()}, forgotten_prefix=_NOTE_MARKS)

    # -- reading

    def read(self, path: str) -> Document | None:
        with suppress(NotFound, Invalid):
            return Document(path, decode_text(self._vault.folder.read(path), path))
        return None

    def texts(self, passages: Sequence[Passage]) -> Mapping[int, str]:
        """The texts to embed, without changed passages, which are added again."""
        paths, found = self.state().paths, dict[int, str]()
        chunks: dict[str, dict[bytes, list[NoteChunk]]] = {}
        for passage in passages:
            if (path := paths.get(passage.item)) is None:
                continue
            if path not in chunks:
                document = self.read(path)
                chunks[path] = chunks_by_hash(document) if document else {}
            if same := chunks[path].get(passage.sha):
                found[passage.number] = same[0].indexed_text
        return found


def _item(chunk: NoteChunk, number: int, day: str) -> IndexItem:
    return IndexItem(number, chunk.indexed_text, position=chunk.start, branch=number, time=day)


def _make_state(versions: Mapping[str, IndexedVersion], id: str | None) -> IndexedState:
    paths = {version.number: path for path, version in versions.items()}
    return IndexedState(versions, paths, id, sum(version.passages for version in versions.values()))
