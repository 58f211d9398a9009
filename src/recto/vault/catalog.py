"""Catalog: a vault's notes, their names and the links between them, in a SQLite file that can be rebuilt.

Names are kept in memory, links are not: links to a note are looked up by the name they end in.
"""

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from recto.errors import Invalid, NotFound, RectoError, StoreError
from recto.search.disposable_file import DisposableFile, close_quietly
from recto.vault.decoding import decode_text
from recto.vault.document import ParsedNote, note_name, parse_note
from recto.vault.folder import Folder, FolderEntry, is_note
from recto.vault.link_resolver import LinkResolver, link_key
from recto.vault.links import Link, find_all_links, mask_code

VERSION = "2"
CONTEXT_CHARS = 50
"""Context on either side of a link."""

# Notes per transaction: bounds what a crash loses and how long another process waits.
_BATCH = 200
_PAGE = 2000
_MAX_TITLE, _MAX_LINK = 200, 4096
# A file may be written twice within one clock tick of the disk, so a file this young is read again. Its time is stored
# negative, so that it never compares equal.
_TICK_NS = 50_000_000
_LINK_COLUMNS = ", ".join(Link.__slots__)
_link_row = attrgetter(*Link.__slots__)
_SELECT_LINKS = f"SELECT l.rowid, path, context, {_LINK_COLUMNS} FROM links AS l JOIN notes ON n = note"
_TABLES = f"""
CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (
    n INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, sha BLOB,
    problem TEXT, title TEXT NOT NULL, aliases TEXT NOT NULL, tags TEXT NOT NULL);
CREATE TABLE links (note INTEGER NOT NULL, key TEXT NOT NULL, context TEXT NOT NULL, {_LINK_COLUMNS});
CREATE INDEX links_key ON links (key);
CREATE INDEX links_note ON links (note)
"""

Progress = Callable[[int, int], object]


class CacheEmptied(StoreError):
    """The rows are gone and must be rebuilt; `CacheFile.warning` says why."""


class CacheFile:
    """A SQLite file that is rebuilt if damaged. If no file can be used, the rows are in memory."""

    def __init__(self, path: Path | None, name: str, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self.warning = ""
        """Why the file was rebuilt or is in memory only; else empty."""
        self._prepare = prepare
        self._file = DisposableFile(path, name, prepare) if path else None
        self._db: sqlite3.Connection | None = None

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows. Raises CacheEmptied if the file was damaged."""
        with self.interpreting():
            return self._connection().execute(query, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction. Raises CacheEmptied if the file was damaged."""
        with self.interpreting():
            db = self._connection()
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
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
            close_quietly(self._db)
        self._db = None

    @contextmanager
    def interpreting(self) -> Iterator[None]:
        """Around statements and code that only handles their rows. Raises CacheEmptied on failure, then stays in memory
        if the file cannot be used."""
        try:
            with self._file.interpreting() if self._file else nullcontext():
                yield
        except (sqlite3.Error, OSError) as why:
            self.close()
            if self._file is None:
                raise
            try:
                self._file.recover(why)
                self.warning = self._file.rebuild_reason
            except RectoError as problem:
                self.warning = f"{problem.message}; until the next start it is kept in memory"
                self._file = None
            raise CacheEmptied(self.warning) from why

    def _connection(self) -> sqlite3.Connection:
        if self._db is None and self._file is not None:
            self._db = self._file.connect()
        elif self._db is None:
            self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._prepare(self._db)
        return self._db


def _prepare(db: sqlite3.Connection) -> None:
    if _is_current(db):
        return
    db.execute("BEGIN IMMEDIATE")
    if not _is_current(db):  # another process may have been faster
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
    return bool(db.execute("SELECT value FROM marks WHERE name = 'version'").fetchone() == (VERSION,))


class VaultChanges(Struct, frozen=True):
    """Paths; a renamed file is both removed and added."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Notes and folders that exist but could not be read."""


class DocumentInfo(Struct, frozen=True):
    path: str
    title: str
    size: int
    modified: datetime
    tags: tuple[str, ...] = ()
    problem: str | None = None
    aliases: tuple[str, ...] = ()


class ResolvedLink(Struct, frozen=True):
    link: Link
    source: str
    line: int
    context: str
    path: str | None = None


class _FileStamp(NamedTuple):
    """Tells whether a file has changed. A tuple, because it takes half the time of a dataclass and there are many."""

    size: int
    mtime_ns: int
    sha: bytes | None
    problem: str | None

    def matches(self, entry: FolderEntry) -> bool:
        if (self.size, self.mtime_ns) != (entry.size, entry.mtime_ns):
            return False
        # an unreadable note may be readable now: chmod does not change the time
        return self.sha is not None or not is_note(entry.path)


class _CatalogEntry(Struct, frozen=True):
    """Attachments are not read. An unreadable note has a problem and no hash; a note that is not text has both."""

    path: str
    size: int
    mtime_ns: int
    sha: bytes | None = None
    text: str = ""
    parsed: ParsedNote = field(default_factory=ParsedNote)
    links: Sequence[Link] = ()


class Catalog:
    def __init__(self, path: Path | None = None) -> None:
        self.names = LinkResolver()
        self._file = CacheFile(path, "the catalog of the vault", _prepare)
        self._loaded_version: int | None = None
        self._hashes: tuple[object, Mapping[str, bytes]] = (None, {})

    @property
    def warning(self) -> str:
        return self._file.warning

    @property
    def is_filled(self) -> bool:
        try:
            return bool(self._file.read("SELECT 1 FROM notes LIMIT 1"))
        except CacheEmptied:
            return False

    def close(self) -> None:
        self._file.close()
        self._loaded_version = None

    # -- reading the disk

    def refresh(
        self, folder: Folder, progress: Progress | None = None, only: Iterable[str] | None = None
    ) -> VaultChanges:
        """Brings the catalog up to date with the folder, or with `only` these files."""
        paths = None if only is None else set(only)
        for _ in range(3):  # a damaged database is rebuilt; an unwritable one moves to memory
            try:
                return self._refresh(folder, progress, paths)
            except CacheEmptied:
                self._loaded_version, paths = None, None
        return self._refresh(folder, progress, None)

    def _refresh(self, folder: Folder, progress: Progress | None, only: set[str] | None) -> VaultChanges:
        stored = self._stored_stamps(folder, only)
        unreadable, new_paths = list[str](), list[str]()
        # a new path may be ignored, or be a folder: that takes a walk
        if only is None or not only <= stored.keys():
            stored = self._stored_stamps(folder) if only else stored
            found = list(folder.walk(unreadable.append))
            removed = stored.keys() - {entry.path for entry in found}
        else:
            found = list(_existing(folder, only))
            removed = only - {entry.path for entry in found}
        self._remove(removed)
        pending = [entry for entry in found if entry.path not in stored or not stored[entry.path].matches(entry)]
        for at in range(0, len(pending), _BATCH):
            entries = [_read_entry(folder, entry) for entry in pending[at : at + _BATCH]]
            new_paths += self._store(entries, stored)
            unreadable += [entry.path for entry in entries if entry.sha is None and entry.parsed.problem is not None]
            if progress:
                progress(min(at + _BATCH, len(pending)), len(pending))
        added = tuple(path for path in new_paths if path not in stored)
        changed = tuple(path for path in new_paths if path in stored)
        return VaultChanges(added, changed, tuple(sorted(removed)), tuple(unreadable))

    def _stored_stamps(self, folder: Folder, only: set[str] | None = None) -> dict[str, _FileStamp]:
        """The stamps of all files, or at least of `only` these. Reloads the names if another process has written."""
        root = str(folder.root)
        if not self._file.read("SELECT 1 FROM marks WHERE name = 'root' AND value = ?", (root,)):
            with self._file.write() as db:
                db.execute("DELETE FROM links")
                db.execute("DELETE FROM notes")
                db.execute("INSERT OR REPLACE INTO marks VALUES ('root', ?)", (root,))
            self._loaded_version = None
        version = self._file.version
        query, values = "SELECT path, aliases, size, mtime_ns, sha, problem FROM notes", list[str]()
        if only and self._loaded_version == version:
            query, values = f"{query} WHERE path IN (SELECT value FROM json_each(?))", [json.dumps(list(only))]
        rows = self._file.read(query, values)
        with self._file.interpreting():
            if self._loaded_version != version:
                self.names = LinkResolver()
                for path, aliases, *_ in rows:
                    self.names.add(path, _aliases(aliases))
                self._loaded_version = version
            return {path: _FileStamp(*columns) for path, _, *columns in rows}

    def _remove(self, paths: Iterable[str]) -> None:
        removed = [(path,) for path in paths]
        if removed:
            with self._file.write() as db:
                db.executemany("DELETE FROM links WHERE note IN (SELECT n FROM notes WHERE path = ?)", removed)
                db.executemany("DELETE FROM notes WHERE path = ?", removed)
        for (path,) in removed:
            self.names.remove(path)

    def _store(self, entries: Sequence[_CatalogEntry], stored: Mapping[str, _FileStamp]) -> list[str]:
        new = [
            entry
            for entry in entries
            if entry.path not in stored
            or (stored[entry.path].sha, stored[entry.path].problem) != (entry.sha, entry.parsed.problem)
        ]
        with self._file.write() as db:
            stamps = [(entry.size, entry.mtime_ns, entry.path) for entry in entries if entry.path in stored]
            db.executemany("UPDATE notes SET size = ?, mtime_ns = ? WHERE path = ?", stamps)
            for entry in new:
                _put(db, entry)
        for entry in new:
            self.names.add(entry.path, entry.parsed.aliases)
        return [entry.path for entry in new]

    # -- looking up

    def documents(self, prefix: str = "") -> list[DocumentInfo]:
        """Notes whose paths have this prefix, by path."""
        query = (
            "SELECT path, title, size, mtime_ns, tags, problem, aliases FROM notes"
            " WHERE substr(path, 1, ?) = ? ORDER BY path"
        )
        rows = self._file.read(query, (len(prefix), prefix))
        with self._file.interpreting():
            return [
                DocumentInfo(path, title, size, _modified(mtime_ns), tuple(tags.split()), problem, _aliases(aliases))
                for path, title, size, mtime_ns, tags, problem, aliases in rows
                if is_note(path)
            ]

    def hashes(self) -> Mapping[str, bytes]:
        """Readable notes and the hashes of their content: the same object until something changes."""
        change_stamp = self._file.change_stamp
        if change_stamp != self._hashes[0]:
            rows = self._file.read("SELECT path, sha FROM notes WHERE sha IS NOT NULL")
            with self._file.interpreting():
                # fails here for a hash that is not bytes
                self._hashes = change_stamp, {path: b"" + sha for path, sha in rows}
        return self._hashes[1]

    def links(self, keys: Iterable[str]) -> list[ResolvedLink]:
        rows = [row for key in keys for row in self._file.read(f"{_SELECT_LINKS} WHERE key = ?", (key,))]
        with self._file.interpreting():
            return sorted(map(_stored_link, rows), key=lambda each: (each.source, each.link.start))

    def all_links(self) -> Iterator[ResolvedLink]:
        """Every link, not yet resolved, read in pages to save memory."""
        last = 0
        while rows := self._file.read(f"{_SELECT_LINKS} WHERE l.rowid > ? ORDER BY l.rowid LIMIT {_PAGE}", (last,)):
            yield from map(_stored_link, rows)
            last = rows[-1][0]


def _existing(folder: Folder, paths: Iterable[str]) -> Iterator[FolderEntry]:
    for path in paths:
        with suppress(NotFound, Invalid):
            yield folder.entry(path)._replace(path=path)


def _read_entry(folder: Folder, entry: FolderEntry) -> _CatalogEntry:
    is_settled = time.time_ns() - entry.mtime_ns > _TICK_NS
    stamp = (entry.path, entry.size, entry.mtime_ns if is_settled else -entry.mtime_ns)
    if not is_note(entry.path):
        return _CatalogEntry(*stamp)
    sha = None
    try:
        raw = folder.read(entry.path)
        sha = hashlib.sha256(raw).digest()
        text = decode_text(raw, entry.path)
    except (Invalid, NotFound) as why:
        return _CatalogEntry(*stamp, sha, parsed=ParsedNote(problem=why.message))
    mask = mask_code(text)
    links = [link for link in find_all_links(text, mask) if len(link.wikilink) <= _MAX_LINK]
    return _CatalogEntry(*stamp, sha, text, parse_note(text, mask), links)


def _put(db: sqlite3.Connection, entry: _CatalogEntry) -> None:
    parsed, stamp = entry.parsed, (entry.path, entry.size, entry.mtime_ns, entry.sha)
    title = (parsed.title or note_name(entry.path))[:_MAX_TITLE]
    aliases = json.dumps(parsed.aliases) if parsed.aliases else ""
    db.execute("DELETE FROM links WHERE note IN (SELECT n FROM notes WHERE path = ?)", (entry.path,))
    number = db.execute(
        "INSERT OR REPLACE INTO notes (path, size, mtime_ns, sha, problem, title, aliases, tags)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING n",
        (*stamp, parsed.problem, title, aliases, " ".join(parsed.tags)),
    ).fetchone()
    rows = [
        (*number, link_key(link.target), link_context(entry.text, link, parsed), *_link_row(link))
        for link in entry.links
    ]
    db.executemany(f"INSERT INTO links VALUES ({', '.join('?' * (3 + len(Link.__slots__)))})", rows)


def link_context(text: str, link: Link, parsed: ParsedNote) -> str:
    """A link with the surrounding text, on one line, without properties."""
    earliest = parsed.body_start if link.start >= parsed.body_start else 0
    return " ".join(text[max(earliest, link.start - CONTEXT_CHARS) : link.end + CONTEXT_CHARS].split())


def _stored_link(row: Sequence[Any]) -> ResolvedLink:
    _, path, context, *columns = row
    columns[5] = bool(columns[5])  # `embed`
    link = Link(*columns)
    return ResolvedLink(link, path, link.line, context)


def _modified(mtime_ns: int) -> datetime:
    return datetime.fromtimestamp(abs(mtime_ns) / 1e9, UTC)


def _aliases(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored)) if stored else ()
