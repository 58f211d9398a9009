"""VectorStore: vectors as bytes, by their embedder and the hash of their text; none is ever made twice.

Does not need numpy, which an installation without extras does not have.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from recto.search.index_file import IndexFile
from recto.search.index_item import HASH_BYTES
from recto.search.keyword_index import Passage, read_passages

# Every build of SQLite accepts this many parameters.
_MAX_PARAMETERS = 500
# From this many on, reading all vectors may be faster than reading one by one.
_MIN_FULL_READ = 2000
_READ_AT_ONCE = 4000
_PACKED_AT_ONCE = 2000


class PackedVectors(NamedTuple):
    """Vectors of the same length, one after the other, and their hashes in the same order."""

    size: int
    """In bytes, of one vector."""
    hashes: bytes
    vectors: bytes


class VectorStore:
    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def get(self, embedder: str, hashes: Sequence[bytes], *, prefer_full_read: bool = False) -> dict[bytes, bytes]:
        """The vectors of these hashes; empty bytes for a text that could not be embedded. `prefer_full_read` if they
        may be most of all there are."""
        batches = self.batches(embedder, hashes, prefer_full_read=prefer_full_read)
        return dict(chain.from_iterable(batch.items() for batch in batches))

    def batches(
        self, embedder: str, hashes: Sequence[bytes], *, prefer_full_read: bool = False
    ) -> Iterator[dict[bytes, bytes]]:
        """The same in parts: whoever stores the vectors in another form need not hold all of them twice."""
        if prefer_full_read and len(hashes) > _MIN_FULL_READ and len(hashes) * 2 > self.counts().get(embedder, 0):
            yield from self._all(embedder)
            return
        for start in range(0, len(hashes), _MAX_PARAMETERS):
            batch = hashes[start : start + _MAX_PARAMETERS]
            query = (
                "SELECT sha, vector FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?) "
                f"AND sha IN ({','.join('?' * len(batch))})"
            )
            yield dict(self._file.read(query, (embedder, *batch)))

    def _all(self, embedder: str) -> Iterator[dict[bytes, bytes]]:
        query = (
            "SELECT sha, vector FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?) "
            "AND sha > ? ORDER BY sha LIMIT ?"
        )
        last = b""
        while rows := self._file.read(query, (embedder, last, _READ_AT_ONCE)):
            yield dict(rows)
            last = rows[-1][0]

    def packed(self, embedder: str) -> Iterator[PackedVectors]:
        """All vectors that are as long as the first one: several times as fast as row by row."""
        own = "FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?)"
        first = self._file.read(f"SELECT length(vector) {own} AND vector <> x'' LIMIT 1", (embedder,))
        size, last = first[0][0] if first else 0, b"" if first else None
        # group_concat takes bytes as they are
        joined = "CAST(group_concat({0}, '') FILTER (WHERE length(vector) = ?) AS BLOB)"
        query = (
            f"SELECT max(sha), {joined.format('sha')}, {joined.format('vector')} "
            f"FROM (SELECT sha, vector {own} AND sha > ? ORDER BY sha LIMIT ?)"
        )
        while last is not None:
            values = (size, size, embedder, last, _PACKED_AT_ONCE)
            last, hashes, vectors = self._file.read(query, values)[0]
            if vectors and len(hashes) * size == len(vectors) * HASH_BYTES:
                yield PackedVectors(size, hashes, vectors)

    def has_at_least(self, embedder: str, count: int) -> bool:
        """Whether there are so many vectors."""
        query = "SELECT 1 FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?) LIMIT 1 OFFSET ?"
        return count <= 0 or bool(self._file.read(query, (embedder, count - 1)))

    def waiting(self, embedder: str, limit: int) -> tuple[list[Passage], int]:
        """The oldest passages that an embedder has not seen, without those that have a vector already; and the queue
        number to pass to `put`, 0 if nothing is waiting."""
        done = self._file.read("SELECT done FROM embedders WHERE key = ?", (embedder,))
        query = "SELECT n, passage FROM queue WHERE n > ? ORDER BY n LIMIT ?"
        queued = self._file.read(query, (done[0][0] if done else 0, limit))
        found = read_passages(self._file, [number for _, number in queued]).values()
        known = self.get(embedder, list({passage.sha for passage in found}))
        return [each for each in found if each.sha not in known], queued[-1][0] if queued else 0

    def put(self, embedder: str, vectors: Mapping[bytes, bytes], done: int) -> None:
        """Stores vectors by the hashes of their texts, and the queue number up to which the embedder is done."""

        def write(db: sqlite3.Connection) -> None:
            number = _embedder_number(db, embedder)
            rows = [(number, sha, vector) for sha, vector in vectors.items()]
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            db.execute("UPDATE embedders SET done = max(done, ?) WHERE n = ?", (done, number))

        self._file.write(write)

    def waiting_count(self, embedder: str) -> int:
        """How many passages an embedder has not seen yet."""
        query = "SELECT coalesce(max(n), 0) - coalesce((SELECT done FROM embedders WHERE key = ?), 0) FROM queue"
        return max(0, int(self._file.read(query, (embedder,))[0][0]))

    def counts(self) -> dict[str, int]:
        """How many vectors each embedder has made."""
        query = "SELECT key, (SELECT count(*) FROM vectors WHERE embedder = embedders.n) FROM embedders"
        return dict(self._file.read(query))

    def forget(self, embedder: str) -> None:
        """Deletes all vectors of an embedder."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?)", (embedder,))
            db.execute("UPDATE embedders SET done = 0 WHERE key = ?", (embedder,))

        self._file.write(write)


def _embedder_number(db: sqlite3.Connection, key: str) -> int:
    db.execute("INSERT OR IGNORE INTO embedders (key) VALUES (?)", (key,))
    return int(db.execute("SELECT n FROM embedders WHERE key = ?", (key,)).fetchone()[0])
