"""IndexFile: the one throw-away SQLite file of a search index: opened, checked, begun anew when it is damaged.

What is in it can be made again from what is searched, so nothing here is ever repaired.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recto.errors import Busy, RectoError, StoreError
from recto.ids import new_id

VERSION = "2"
BUSY_S = 5.0

_TABLES = """
CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE shelves (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE lanes (
    n INTEGER PRIMARY KEY, passages INTEGER NOT NULL, words INTEGER NOT NULL, last INTEGER NOT NULL,
    branch INTEGER NOT NULL, at TEXT NOT NULL);
CREATE TABLE people (
    shelf INTEGER NOT NULL, who TEXT NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (shelf, who)) WITHOUT ROWID;
CREATE TABLE passages (
    n INTEGER PRIMARY KEY, item INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    place INTEGER NOT NULL, branch INTEGER NOT NULL, kind TEXT NOT NULL, who TEXT NOT NULL, at TEXT NOT NULL,
    words INTEGER NOT NULL, asks INTEGER NOT NULL, sha BLOB NOT NULL);
CREATE INDEX passages_item ON passages (item);
CREATE VIRTUAL TABLE words USING fts5(text, content='', detail='none', columnsize=0, tokenize='porter ascii');
-- in the order in which passages came: what an embedder has not seen lies behind its mark
CREATE TABLE queue (n INTEGER PRIMARY KEY, passage INTEGER NOT NULL);
CREATE TABLE embedders (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, done INTEGER NOT NULL DEFAULT 0);
CREATE TABLE vectors (
    embedder INTEGER NOT NULL, sha BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, sha)) WITHOUT ROWID;
"""
_DAMAGE = ("malformed", "not a database", "no such table", "no such column", "vtable constructor", "corrupt")


class IndexFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.was_renewed = ""
        """Why it had to be begun anew; empty when it had not."""
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._busy: dict[sqlite3.Connection, int] = {}
        """Those that a thread is using, and how often one within the other."""
        self._lock = threading.RLock()

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows. A file that turns out to be damaged is begun anew, and gives what it then has: nothing."""
        try:
            with self._using() as db:
                return db.execute(query, values).fetchall()
        except sqlite3.Error as why:
            self._mend(why)
        with self._told(), self._using() as db:
            return db.execute(query, values).fetchall()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection, which nobody closes meanwhile: that would take the whole process with it."""
        with self._lock:
            db = self._connection()
            self._busy[db] = self._busy.get(db, 0) + 1
        try:
            yield db
        finally:
            with self._lock:
                self._busy[db] -= 1
                if not self._busy[db]:
                    del self._busy[db]
                    if db not in self._open:  # the file was closed, or begun anew, while it was in use
                        with suppress(sqlite3.Error):
                            db.close()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing; StoreError also when the file turned out to be damaged, and was begun anew."""
        self._check()
        try:
            with self._using() as db:
                with self._told():
                    db.execute("BEGIN IMMEDIATE")
                try:
                    yield db
                    db.execute("INSERT OR REPLACE INTO marks VALUES ('changes', ?)", (new_id(),))
                    db.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        db.execute("ROLLBACK")
                    raise
        except sqlite3.Error as why:
            self._mend(why)
            raise self._error(why) from why

    def _check(self) -> None:
        """Begins a damaged file anew before it is written to."""
        try:
            with self._using() as db:
                db.execute("SELECT value FROM marks LIMIT 1").fetchone()
        except sqlite3.Error as why:
            self._mend(why)

    @property
    def changes(self) -> str:
        """Another word whenever something was written, by whatever thread or process."""
        rows = self.read("SELECT value FROM marks WHERE name = 'changes'")
        return str(rows[0][0]) if rows else ""

    def renew(self, because: str) -> None:
        """Begins anew, for a reason that the user is told."""
        with self._lock:
            self.close()
            for end in ("", "-wal", "-shm"):
                with self._told():
                    Path(f"{self.path}{end}").unlink(missing_ok=True)
            self.was_renewed = because

    def close(self) -> None:
        with self._lock:
            for connection in self._open:
                if connection not in self._busy:
                    with suppress(sqlite3.Error):
                        connection.close()
            self._open.clear()
            self._local = threading.local()

    def _mend(self, why: sqlite3.Error) -> None:
        if not any(sign in str(why) for sign in _DAMAGE):
            raise self._error(why) from why
        self.renew(f"the search index was damaged ({why}) and is made anew")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except RectoError:
            raise
        except (sqlite3.Error, OSError) as why:
            raise self._error(why) from why

    def _error(self, why: Exception) -> StoreError:
        if "locked" in str(why) or "busy" in str(why):
            return Busy(f"the search index {self.path.name} is busy: another process has been writing for too long")
        return StoreError(f"the search index {self.path.name} cannot be used: {why}")

    def _connection(self) -> sqlite3.Connection:
        known: sqlite3.Connection | None = getattr(self._local, "db", None)
        if known is None:
            with self._lock:
                known = self._local.db = self._opened()
        return known

    def _opened(self) -> sqlite3.Connection:
        with self._told():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        self._open.append(db)
        # a crash may cost the newest of what can be made again, never the file
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        if not self._is_ours(db):
            self._begin_anew(db)
        return db

    def _is_ours(self, db: sqlite3.Connection) -> bool:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone():
            return False
        found = db.execute("SELECT value FROM marks WHERE name = 'version'").fetchone()
        if found is None or found[0] != VERSION:
            self.was_renewed = "the search index was made by another version of Recto and is made anew"
            return False
        return True

    def _begin_anew(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        if not self._is_ours(db):  # another process may have been quicker
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'").fetchall():
                db.execute(f'DROP TABLE "{name}"')
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            for (name,) in db.execute(tables).fetchall():
                db.execute(f'DROP TABLE "{name}"')
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute("INSERT INTO marks VALUES ('version', ?)", (VERSION,))
        db.execute("COMMIT")
