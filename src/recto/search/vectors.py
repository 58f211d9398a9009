"""Vectors: kept as bytes by the hash of the text they belong to and by who made them; none is ever made twice."""

import sqlite3
from collections.abc import Mapping, Sequence

from recto.search.file import IndexFile
from recto.search.index import Passage, passages_of

# SQLite takes at most so many parameters in all of its builds.
_AT_ONCE = 500
_MANY = 2000


class Vectors:
    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def get(self, embedder: str, hashes: Sequence[bytes], *, whole: bool = False) -> dict[bytes, bytes]:
        """What there is of these; empty bytes for a text of which none could be made. `whole` where they may well be
        most of all there is: reading all is then faster than asking for each."""
        if whole and len(hashes) > _MANY and len(hashes) * 2 > self.counts().get(embedder, 0):
            query = "SELECT sha, vector FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?)"
            return dict(self._file.read(query, (embedder,)))
        found: dict[bytes, bytes] = {}
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            query = (
                "SELECT sha, vector FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?) "
                f"AND sha IN ({','.join('?' * len(some))})"
            )
            found.update(self._file.read(query, (embedder, *some)))
        return found

    def waiting(self, embedder: str, most: int) -> tuple[list[Passage], int]:
        """The oldest passages that this embedder has not seen, without those whose text has a vector already; and the
        mark to keep with their vectors, 0 when nothing waits."""
        done = self._file.read("SELECT done FROM embedders WHERE key = ?", (embedder,))
        query = "SELECT n, passage FROM queue WHERE n > ? ORDER BY n LIMIT ?"
        queued = self._file.read(query, (done[0][0] if done else 0, most))
        found = passages_of(self._file, [number for _, number in queued]).values()
        known = self.get(embedder, list({passage.sha for passage in found}))
        return [each for each in found if each.sha not in known], queued[-1][0] if queued else 0

    def keep(self, embedder: str, vectors: Mapping[bytes, bytes], done: int) -> None:
        """Keeps vectors by the hashes of their texts, and how far the embedder has come."""
        with self._file.write() as db:
            number = _number(db, embedder)
            rows = [(number, sha, vector) for sha, vector in vectors.items()]
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            db.execute("UPDATE embedders SET done = max(done, ?) WHERE n = ?", (done, number))

    def behind(self, embedder: str) -> int:
        """How many passages this embedder has not seen yet."""
        query = "SELECT coalesce(max(n), 0) - coalesce((SELECT done FROM embedders WHERE key = ?), 0) FROM queue"
        return max(0, int(self._file.read(query, (embedder,))[0][0]))

    def counts(self) -> dict[str, int]:
        """How many there are of each embedder."""
        query = "SELECT key, (SELECT count(*) FROM vectors WHERE embedder = embedders.n) FROM embedders"
        return dict(self._file.read(query))

    def forget(self, embedder: str) -> None:
        """Lets go of all that this embedder made: it makes other ones now."""
        with self._file.write() as db:
            db.execute("DELETE FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?)", (embedder,))
            db.execute("UPDATE embedders SET done = 0 WHERE key = ?", (embedder,))


def _number(db: sqlite3.Connection, key: str) -> int:
    db.execute("INSERT OR IGNORE INTO embedders (key) VALUES (?)", (key,))
    return int(db.execute("SELECT n FROM embedders WHERE key = ?", (key,)).fetchone()[0])
