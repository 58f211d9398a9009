"""Tables: the throw-away SQLite file under a catalogue. Knows how it is kept, not what the rows mean.

A damaged file, or one of another version, is begun anew; where none can be kept the rows live in memory.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recto.errors import StoreError

VERSION = "1"
BUSY_S = 5.0

_TABLES = """
CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (
    n INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, sha BLOB,
    title TEXT NOT NULL, aliases TEXT NOT NULL, tags TEXT NOT NULL, headings TEXT NOT NULL, problem TEXT);
CREATE TABLE links (
    note INTEGER NOT NULL, key TEXT NOT NULL, wikilink TEXT NOT NULL, target TEXT NOT NULL, heading TEXT, block TEXT,
    caption TEXT, embed INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, line INTEGER NOT NULL,
    kind TEXT NOT NULL, context TEXT NOT NULL);
CREATE INDEX links_key ON links (key);
CREATE INDEX links_note ON links (note)
"""
_DAMAGE = ("malformed", "not a database", "no such table", "no such column", "has no column", "corrupt")


class Emptied(StoreError):
    """The rows are gone, for a reason that `note` tells: they must be made again."""


class Tables:
    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.note = ""
        """Why it was begun anew or is kept in memory only; empty when all is well."""
        self._db: sqlite3.Connection | None = None

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows. Emptied when there turn out to be none left."""
        try:
            return self._connection().execute(query, values).fetchall()
        except sqlite3.Error as why:
            raise self._emptied(why) from why

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing; Emptied when it was nothing, and so is the rest."""
        try:
            db = self._connection()
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        except BaseException as why:
            if self._db is not None:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
            if isinstance(why, sqlite3.Error):
                raise self._emptied(why) from why
            raise

    @property
    def version(self) -> int:
        """Another number whenever another process has written."""
        return int(self.read("PRAGMA data_version")[0][0])

    @property
    def stamp(self) -> object:
        """Another value whenever somebody has written, we or another process, or it was begun anew."""
        return self.version, self.read("SELECT total_changes()")[0][0], self._db

    def close(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    def _emptied(self, why: sqlite3.Error) -> Emptied:
        self.close()
        if self.path is not None and any(sign in str(why) for sign in _DAMAGE):
            self.note = f"the catalogue of the vault was damaged ({why}) and is made anew"
            self._unlink()
        else:
            self._keep_in_memory(why)
        return Emptied(self.note)

    def _unlink(self) -> None:
        try:
            for end in ("", "-wal", "-shm"):
                Path(f"{self.path}{end}").unlink(missing_ok=True)
        except OSError as why:
            self._keep_in_memory(why)

    def _keep_in_memory(self, why: Exception) -> None:
        self.note = f"the catalogue of the vault cannot be kept in {self.path} ({why}); it is made anew every time"
        self.path = None

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            try:
                if self.path is not None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as why:
                self._keep_in_memory(why)
            self._db = sqlite3.connect(
                self.path or ":memory:", timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            _prepare(self._db)
        return self._db


def _prepare(db: sqlite3.Connection) -> None:
    # a crash may cost the newest of what can be made again, never the file
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    if _is_ours(db):
        return
    db.execute("BEGIN IMMEDIATE")
    if not _is_ours(db):  # another process may have been quicker
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (name,) in db.execute(tables).fetchall():
            db.execute(f'DROP TABLE "{name}"')
        for statement in _TABLES.split(";"):
            db.execute(statement)
        db.execute("INSERT INTO marks VALUES ('version', ?)", (VERSION,))
    db.execute("COMMIT")


def _is_ours(db: sqlite3.Connection) -> bool:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone():
        return False
    found = db.execute("SELECT value FROM marks WHERE name = 'version'").fetchone()
    return found is not None and found[0] == VERSION
