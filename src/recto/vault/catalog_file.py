"""CatalogFile: the SQLite file of a catalog. Knows how it is stored, not what the rows mean.

A damaged or outdated file is rebuilt. If no file can be written, the rows are in memory.
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


class CatalogEmptied(StoreError):
    """The rows are gone and must be made again; `CatalogFile.warning` says why."""


class CatalogFile:
    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.warning = ""
        """Why the file was rebuilt or is in memory only; empty if all is well."""
        self._db: sqlite3.Connection | None = None

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows. Raises CatalogEmptied if the file was damaged."""
        try:
            return self._connection().execute(query, values).fetchall()
        except sqlite3.Error as why:
            raise self._empty(why) from why

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction. Raises CatalogEmptied if the file was damaged."""
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
                raise self._empty(why) from why
            raise

    @property
    def version(self) -> int:
        """Changes when another process has written."""
        return int(self.read("PRAGMA data_version")[0][0])

    @property
    def change_stamp(self) -> object:
        """Changes with every write, by this process or another, and when the file is rebuilt."""
        return self.version, self.read("SELECT total_changes()")[0][0], self._db

    def close(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = None

    def _empty(self, why: sqlite3.Error) -> CatalogEmptied:
        self.close()
        if self.path is not None and any(text in str(why) for text in _DAMAGE):
            self.warning = f"the catalog of the vault was damaged ({why}) and is being rebuilt"
            self._unlink()
        else:
            self._move_to_memory(why)
        return CatalogEmptied(self.warning)

    def _unlink(self) -> None:
        try:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        except OSError as why:
            self._move_to_memory(why)

    def _move_to_memory(self, why: Exception) -> None:
        self.warning = f"the catalog of the vault cannot be stored in {self.path} ({why}); it is rebuilt every time"
        self.path = None

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            try:
                if self.path is not None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as why:
                self._move_to_memory(why)
            self._db = sqlite3.connect(
                self.path or ":memory:", timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            _prepare(self._db)
        return self._db


def _prepare(db: sqlite3.Connection) -> None:
    # a crash may lose the latest writes, which can be made again, but never the file
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    if _is_current(db):
        return
    db.execute("BEGIN IMMEDIATE")
    if not _is_current(db):  # another process may have been quicker
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (name,) in db.execute(tables).fetchall():
            db.execute(f'DROP TABLE "{name}"')
        for statement in _TABLES.split(";"):
            db.execute(statement)
        db.execute("INSERT INTO marks VALUES ('version', ?)", (VERSION,))
    db.execute("COMMIT")


def _is_current(db: sqlite3.Connection) -> bool:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone():
        return False
    found = db.execute("SELECT value FROM marks WHERE name = 'version'").fetchone()
    return found is not None and found[0] == VERSION
