"""Gists: sentences that say what notes are about, kept by the hash of the note, so that an edit asks for a new one.

A throw-away file: damaged it is begun anew, and where none can be kept they live in memory.
"""

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from recto.vault.gist import shortened

# About fifty tokens: what a model is asked for.
LONGEST = 240
BUSY_S = 2.0


class Gists:
    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def get(self, sha: bytes) -> str | None:
        """What was kept for a note that says exactly this."""
        rows = self._run("SELECT text FROM gists WHERE sha = ?", (sha,))
        return str(rows[0][0]) if rows else None

    def put(self, sha: bytes, text: str) -> None:
        """Keeps a sentence, as one line; one that says nothing is not kept."""
        if line := shortened(" ".join(text.split()), LONGEST):
            self._run("INSERT OR REPLACE INTO gists VALUES (?, ?)", (sha, line))

    def close(self) -> None:
        with self._lock:
            self._close()

    def _run(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        """The rows; of a file that fails, those of a new one, and of one that cannot be, those of memory."""
        with self._lock:
            for _ in range(2):
                try:
                    return self._connection().execute(query, values).fetchall()
                except (sqlite3.Error, OSError) as why:
                    self._give_up(why)
            return self._connection().execute(query, values).fetchall()

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            place = ":memory:" if self._path is None else self._path
            self._db = sqlite3.connect(place, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS gists (sha BLOB PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
            )
        return self._db

    def _give_up(self, why: Exception) -> None:
        """A damaged file is taken away; one that is locked, or on a disk that cannot be written, is left alone."""
        self._close()
        if self._path is None or not _is_damage(why):
            self._path = None
            return
        try:
            for end in ("", "-wal", "-shm"):
                Path(f"{self._path}{end}").unlink(missing_ok=True)
        except OSError:
            self._path = None

    def _close(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None


def _is_damage(why: Exception) -> bool:
    return isinstance(why, sqlite3.DatabaseError) and any(
        sign in str(why) for sign in ("malformed", "not a database", "no such", "has no column", "columns but")
    )
