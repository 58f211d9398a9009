"""IndexFile: the SQLite file of a search index, with connections for several threads.

All of its content can be rebuilt, so nothing is ever repaired: see DisposableFile.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from recto.base.ids import new_id
from recto.search.disposable_file import DisposableFile, close_quietly

T = TypeVar("T")

VERSION = "5"
# A turn, a search and the background use the file at the same time; rarely more.
MAX_IDLE = 3

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
-- in the order in which passages were added: an embedder has seen everything up to its `done` number
CREATE TABLE queue (n INTEGER PRIMARY KEY, passage INTEGER NOT NULL);
-- words in lower case, compressed, and only of an index that looks at them again
CREATE TABLE texts (n INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE TABLE embedders (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, done INTEGER NOT NULL DEFAULT 0);
CREATE TABLE vectors (
    embedder INTEGER NOT NULL, sha BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, sha)) WITHOUT ROWID;
"""


class _Use(NamedTuple):
    generation: int
    db: sqlite3.Connection


class IndexFile(DisposableFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path, "the search index", self._prepare_tables)
        self._local = threading.local()
        """The connection this thread is using, unless the file was closed since, and whether it is inside `run`."""
        self._idle: list[sqlite3.Connection] = []
        self._generation = 0
        """Incremented when the file is closed, so that older connections are not reused."""
        self._lock = threading.RLock()

    def run(self, work: Callable[[], T]) -> T:
        """Run work on this file and return its result. If the file turns out to be damaged, in this thread or one that
        helps it, the file is emptied and the work repeated. Raises StoreError; inside another `run`, SQLite's
        error."""
        if getattr(self._local, "is_running", False):
            return work()
        self._local.is_running, before = True, self.rebuilds
        try:
            try:
                result = work()
                if self.rebuilds == before:
                    return result
            except Exception as why:
                with self._lock:
                    if self.rebuilds == before:
                        self._close_idle()
                        self.recover(why)
            return work()
        except (sqlite3.Error, OSError) as why:
            raise self.error(why) from why
        finally:
            self._local.is_running = False

    def reading(self, work: Callable[[], T]) -> T:
        """Run work that only reads this file; any failure means that the file is damaged."""

        def interpreted() -> T:
            with self.in_use(), self.interpreting():
                return work()

        return self.run(interpreted)

    def read(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return all rows; none if the file was damaged."""

        def rows() -> list[Any]:
            with self.in_use() as db, self.interpreting():
                return db.execute(query, values).fetchall()

        return self.run(rows)

    @contextmanager
    def in_use(self) -> Iterator[sqlite3.Connection]:
        """A connection for this thread, shared by all nested uses. It belongs to a use, because threads come and go.
        Nothing closes it meanwhile: closing it in use would crash the process."""
        outer: _Use | None = getattr(self._local, "use", None)
        if outer and outer.generation == self._generation:
            yield outer.db
            return
        with self._lock:
            use = _Use(self._generation, self._idle.pop() if self._idle else self.connect())
        self._local.use = use
        try:
            yield use.db
        finally:
            self._local.use = outer
            with self._lock:
                if use.generation == self._generation and len(self._idle) < MAX_IDLE:
                    self._idle.append(use.db)
                else:
                    close_quietly(use.db)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work in one transaction, which all readers notice."""

        def transaction() -> T:
            with self.interpreting(), self.in_use() as db:
                db.execute("BEGIN IMMEDIATE")
                try:
                    result = work(db)
                    db.execute("INSERT OR REPLACE INTO marks VALUES ('changes', ?)", (new_id(),))
                    db.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        db.execute("ROLLBACK")
                    raise
                return result

        return self.run(transaction)

    def optimize(self) -> None:
        """Merge all full-text segments; words are then found in two thirds of the time."""
        self.write(lambda db: db.execute("INSERT INTO words (words) VALUES ('optimize')").close())

    @property
    def change_id(self) -> str:
        """A value that changes with every write by any thread or process."""
        rows = self.read("SELECT value FROM marks WHERE name = 'changes'")
        return str(rows[0][0]) if rows else ""

    def rebuild(self, reason: str) -> None:
        with self._lock:
            self._close_idle()
            self.empty(reason)

    def close(self) -> None:
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            self._generation += 1
            while self._idle:
                close_quietly(self._idle.pop())

    def _prepare_tables(self, db: sqlite3.Connection) -> None:
        if not self._is_current(db):
            db.execute("BEGIN IMMEDIATE")
            if not self._is_current(db):  # another process may have been quicker
                _create_tables(db)
            db.execute("COMMIT")

    def _is_current(self, db: sqlite3.Connection) -> bool:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone():
            return False
        if db.execute("SELECT value FROM marks WHERE name = 'version'").fetchone() == (VERSION,):
            return True
        self.rebuild_reason = "the search index was made by another version of Recto and is being rebuilt"
        return False


def _create_tables(db: sqlite3.Connection) -> None:
    """Replace all tables. Those of a virtual table are dropped with it."""
    for condition in ("sql LIKE 'CREATE VIRTUAL%'", "type = 'table' AND name NOT LIKE 'sqlite_%'"):
        for (name,) in db.execute(f"SELECT name FROM sqlite_master WHERE {condition}").fetchall():
            db.execute(f'DROP TABLE "{name}"')
    for statement in _TABLES.split(";"):
        db.execute(statement)
    # `removed` tells processes that hold passages in memory to drop them
    marks = [("version", VERSION), ("removed", new_id()), ("changes", new_id())]
    db.executemany("INSERT INTO marks VALUES (?, ?)", marks)
