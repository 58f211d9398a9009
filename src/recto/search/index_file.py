"""IndexFile: the SQLite file of a search index: opened, checked, and rebuilt when it is damaged.

Everything in it can be made again from what is searched, so nothing is ever repaired.
"""

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from recto.errors import Busy, RectoError, StoreError
from recto.home_files import keep_private, make_private_folder, use_write_ahead_log
from recto.ids import new_id

VERSION = "3"
# An index of these versions is filled again, but its vectors stay: they belong to texts, not to an index.
_VERSIONS_WITH_VECTORS, _VECTOR_TABLES = ("2",), ("embedders", "vectors")
# Of the labels of passages. In an index without it some are missing, and it need not be made again for them.
LABELS = "2"
BUSY_S = 5.0
# A turn, a search and the background use it at the same time, seldom more.
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
CREATE TABLE IF NOT EXISTS embedders (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, done INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS vectors (
    embedder INTEGER NOT NULL, sha BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, sha)) WITHOUT ROWID;
"""
# What all channels hold together, kept by triggers for so many partitions at a time: a sum over a hundred thousand
# conversations would take longer than the rest of a search. An older version that writes to the file keeps it too: its
# rows are replaced, and for a row that is replaced no other trigger runs than the one before the insertion.
SUM_BITS = 42
_SUMS = (
    "CREATE TABLE lane_sums (block INTEGER PRIMARY KEY, passages INTEGER NOT NULL, words INTEGER NOT NULL)",
    f"INSERT INTO lane_sums SELECT n >> {SUM_BITS}, sum(passages), sum(words) FROM lanes GROUP BY 1",
    f"""CREATE TRIGGER lane_replaced BEFORE INSERT ON lanes BEGIN
        INSERT INTO lane_sums SELECT NEW.n >> {SUM_BITS}, 0, 0
            WHERE NOT EXISTS (SELECT 1 FROM lane_sums WHERE block = NEW.n >> {SUM_BITS});
        UPDATE lane_sums SET
            passages = passages - coalesce((SELECT passages FROM lanes WHERE n = NEW.n), 0) + NEW.passages,
            words = words - coalesce((SELECT words FROM lanes WHERE n = NEW.n), 0) + NEW.words
            WHERE block = NEW.n >> {SUM_BITS};
    END""",
    f"""CREATE TRIGGER lane_deleted AFTER DELETE ON lanes BEGIN
        UPDATE lane_sums SET passages = passages - OLD.passages, words = words - OLD.words
            WHERE block = OLD.n >> {SUM_BITS};
    END""",
)
_DAMAGE = ("malformed", "not a database", "no such table", "no such column", "vtable constructor", "corrupt")

# Every addition leaves a segment, and a search opens all of them for each of its words. FTS5 merges some at once; more
# than this are merged in the background, so many pages at a time.
MAX_SEGMENTS, MERGED_PAGES = 6, 200


class _Use(NamedTuple):
    generation: int
    db: sqlite3.Connection


class IndexFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.rebuild_reason = ""
        """Why the file had to be rebuilt; empty if it was not."""
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        """Where the file is while its folder cannot be written."""
        self._local = threading.local()
        """The connection that a thread is using now, unless the file was closed since."""
        self._idle: list[sqlite3.Connection] = []
        self._generation = 0
        """Counts how often the file was closed: a connection of an earlier time is not used again."""
        self._lock = threading.RLock()

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows. A damaged file is rebuilt, and then has no rows."""
        try:
            with self.in_use() as db:
                return db.execute(query, values).fetchall()
        except sqlite3.Error as why:
            self._rebuild_if_damaged(why)
        with self._store_errors(), self.in_use() as db:
            return db.execute(query, values).fetchall()

    def channels_from(self, number: int) -> tuple[int, list[Any]]:
        """How many passages the channels hold that begin at a number or later; and the one before them, as
        `KeywordIndex.channels` gives it. Reads few others: a hundred thousand conversations have as many."""
        block = number >> SUM_BITS
        later = self.read(
            "SELECT (SELECT coalesce(sum(passages), 0) FROM lane_sums WHERE block > ?) "
            "+ (SELECT coalesce(sum(passages), 0) FROM lanes WHERE n >= ? AND n < ?)",
            (block, number, (block + 1) << SUM_BITS),
        )[0][0]
        return later, self.read("SELECT n, last, passages FROM lanes WHERE n < ? ORDER BY n DESC LIMIT 1", (number,))

    @contextmanager
    def in_use(self) -> Iterator[sqlite3.Connection]:
        """A connection for this thread alone, the same for all uses within. Threads come and go, so a connection
        belongs to a use, not to a thread. Nobody closes it meanwhile: closing it in use would crash the process."""
        outer: _Use | None = getattr(self._local, "use", None)
        if outer and outer.generation == self._generation:
            yield outer.db
            return
        with self._lock:
            use = _Use(self._generation, self._idle.pop() if self._idle else self._open_connection())
        self._local.use = use
        try:
            yield use.db
        finally:
            self._local.use = outer
            with self._lock:
                if use.generation == self._generation and len(self._idle) < MAX_IDLE:
                    self._idle.append(use.db)
                else:
                    _close(use.db)

    @contextmanager
    def write(self, *, changes: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction. Raises StoreError, also when the file was damaged and had to be rebuilt. `changes` tells
        all readers that there is something new."""
        self._check()
        try:
            with self.in_use() as db:
                with self._store_errors():
                    db.execute("BEGIN IMMEDIATE")
                try:
                    yield db
                    if changes:
                        db.execute("INSERT OR REPLACE INTO marks VALUES ('changes', ?)", (new_id(),))
                    db.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        db.execute("ROLLBACK")
                    raise
        except sqlite3.Error as why:
            self._rebuild_if_damaged(why)
            raise self._error(why) from why

    def optimize(self) -> None:
        """Joins the parts that words were written in: they are then found in two thirds of the time."""
        with self.write() as db:
            db.execute("INSERT INTO words (words) VALUES ('optimize')")

    def _check(self) -> None:
        """Rebuilds a damaged file before anything is written to it."""
        try:
            with self.in_use() as db:
                db.execute("SELECT value FROM marks LIMIT 1").fetchone()
        except sqlite3.Error as why:
            self._rebuild_if_damaged(why)

    def merge_segments(self) -> bool:
        """Does a part of what makes searches faster after many additions; returns whether more is left. What the index
        holds does not change."""
        if self.read("SELECT count(DISTINCT segid) FROM words_idx")[0][0] <= MAX_SEGMENTS:
            return False
        with self.write(changes=False) as db:
            before = db.total_changes
            db.execute("INSERT INTO words (words, rank) VALUES ('usermerge', 2)")
            configured = db.total_changes
            db.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (MERGED_PAGES,))
            return db.total_changes - configured > configured - before

    @property
    def change_id(self) -> str:
        """A value that differs after every write by any thread or process."""
        rows = self.read("SELECT value FROM marks WHERE name = 'changes'")
        return str(rows[0][0]) if rows else ""

    def rebuild(self, reason: str) -> None:
        """Deletes the file, so that the next use makes a new one; the user is told the reason."""
        with self._lock:
            self._close_idle()
            for suffix in ("", "-wal", "-shm"):
                with self._store_errors():
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            self.rebuild_reason = reason

    def close(self) -> None:
        self._close_idle()
        if self._copy is not None:
            self._copy.cleanup()

    def _close_idle(self) -> None:
        with self._lock:
            self._generation += 1
            while self._idle:
                _close(self._idle.pop())

    def _rebuild_if_damaged(self, why: sqlite3.Error) -> None:
        if not any(text in str(why) for text in _DAMAGE):
            raise self._error(why) from why
        self.rebuild(f"the search index was damaged ({why}) and is being rebuilt")

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Turns errors of SQLite and of the disk into a StoreError."""
        try:
            yield
        except RectoError:
            raise
        except (sqlite3.Error, OSError) as why:
            raise self._error(why) from why

    def _error(self, why: Exception) -> StoreError:
        if "locked" in str(why) or "busy" in str(why):
            return Busy(
                f"the search index {self.path.name} is busy because another process is writing to it; try again"
            )
        if isinstance(why, OSError):
            return StoreError(
                f"the search index {self.path} cannot be written: {why.strerror or why}; change the permissions of its "
                "folder or set RECTO_HOME"
            )
        return StoreError(f"the search index {self.path.name} cannot be used: {why}")

    def _open_connection(self) -> sqlite3.Connection:
        with self._store_errors():
            there = next(folder for folder in self.path.absolute().parents if folder.exists())
            if not os.access(there, os.W_OK):
                self._move_to_copy()
            make_private_folder(self.path.parent)
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            # a crash may lose the latest writes, which can be made again, but never the file
            use_write_ahead_log(db, BUSY_S)
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("PRAGMA secure_delete=ON")  # what the user removed for good must not stay in the file
            keep_private(self.path)
            if not self._is_current(db) or not _has_sums(db):
                self._create_tables(db)
        except BaseException:
            _close(db)
            raise
        return db

    def _move_to_copy(self) -> None:
        """In a home that cannot be written, the index is used and completed elsewhere, as long as this is open."""
        self._copy = tempfile.TemporaryDirectory(prefix="recto-")
        copy = Path(self._copy.name) / self.path.name
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{self.path}{suffix}", f"{copy}{suffix}")
        self.path = copy

    def _is_current(self, db: sqlite3.Connection) -> bool:
        version = _version(db)
        if version is None:
            return False
        if version != VERSION:
            self.rebuild_reason = "the search index was made by another version of Recto and is being rebuilt"
            return False
        return True

    def _create_tables(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        if not self._is_current(db):  # another process may have been quicker
            kept = _VECTOR_TABLES if _version(db) in _VERSIONS_WITH_VECTORS else ()
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'").fetchall():
                db.execute(f'DROP TABLE "{name}"')
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            for (name,) in db.execute(tables).fetchall():
                if name not in kept:
                    db.execute(f'DROP TABLE "{name}"')
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute("UPDATE embedders SET done = 0")
            db.executemany("INSERT INTO marks VALUES (?, ?)", [("version", VERSION), ("labels", LABELS)])
        if not _has_sums(db):
            for statement in _SUMS:
                db.execute(statement)
        db.execute("COMMIT")


def _has_sums(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'lane_sums'").fetchone() is not None


def _version(db: sqlite3.Connection) -> str | None:
    """None for a new file, empty for one that does not tell."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone():
        return None
    found = db.execute("SELECT value FROM marks WHERE name = 'version'").fetchone()
    return str(found[0]) if found else ""


def _close(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        db.close()
