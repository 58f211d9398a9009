"""CatalogFile: the SQLite file of a catalog. Knows how it is stored, not what the rows mean.

A damaged or outdated file is rebuilt. If no file can be used, the rows are in memory.

CatalogEntry: a file of the vault as the catalog stores it: read, parsed, turned into rows and back.
"""

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple

from msgspec import Struct, field

from recto.errors import Invalid, NotFound, RectoError, StoreError
from recto.search.disposable_file import DisposableFile, close_quietly
from recto.vault.decoding import decode_text
from recto.vault.document import ParsedNote, note_name, parse_note
from recto.vault.folder import Folder, FolderEntry, is_note
from recto.vault.link_resolver import link_key
from recto.vault.links import Link, find_all_links, mask_code

VERSION = "1"

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


class CatalogEmptied(StoreError):
    """The rows are gone and must be made again; `CatalogFile.warning` says why."""


class CatalogFile:
    def __init__(self, path: Path | None) -> None:
        self.warning = ""
        """Why the file was rebuilt or is in memory only; empty if all is well."""
        self._file = DisposableFile(path, "the catalog of the vault", _prepare) if path else None
        """None in memory."""
        self._db: sqlite3.Connection | None = None

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows. Raises CatalogEmptied if the file was damaged."""
        with self.interpreting():
            return self._connection().execute(query, values).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction. Raises CatalogEmptied if the file was damaged."""
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
        """Around statements, and code that works with their rows and nothing else. Raises CatalogEmptied if it fails,
        from now on in memory if the file cannot be used."""
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
            raise CatalogEmptied(self.warning) from why

    def _connection(self) -> sqlite3.Connection:
        if self._db is None and self._file is not None:
            self._db = self._file.connect()
        elif self._db is None:
            self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            _prepare(self._db)
        return self._db


def _prepare(db: sqlite3.Connection) -> None:
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


CONTEXT_CHARS = 50
"""How many characters on either side of a link are its context."""
LINK_COLUMNS = "wikilink, target, heading, block, caption, embed, start, end, line, kind"

_MAX_TITLE, _MAX_LINK, _MAX_HEADINGS = 200, 4096, 500
# A file may be written twice within one tick of the disk's clock, so one as young as this is read once more. Its time
# is stored negative, so that it equals no other.
_TICK_NS = 50_000_000


class FileStamp(NamedTuple):
    """Tells whether a file has changed. There are many, and a tuple is made in half the time of a dataclass."""

    size: int
    mtime_ns: int
    sha: bytes | None
    problem: str | None

    def matches(self, entry: FolderEntry) -> bool:
        if (self.size, self.mtime_ns) != (entry.size, entry.mtime_ns):
            return False
        # an unreadable note may be readable now: changing the mode does not change the time
        return self.sha is not None or not is_note(entry.path)


class CatalogEntry(Struct, frozen=True):
    """An attachment is not read. An unreadable note has a problem and no hash; a note that is not text has both."""

    path: str
    size: int
    mtime_ns: int
    sha: bytes | None = None
    text: str = ""
    parsed: ParsedNote = field(default_factory=ParsedNote)
    links: Sequence[Link] = ()

    def is_unchanged(self, stored: FileStamp | None) -> bool:
        return stored is not None and (stored.sha, stored.problem) == (self.sha, self.parsed.problem)

    @property
    def is_unreadable(self) -> bool:
        return self.sha is None and self.parsed.problem is not None


def read_entry(folder: Folder, entry: FolderEntry) -> CatalogEntry:
    is_settled = time.time_ns() - entry.mtime_ns > _TICK_NS
    stamp = (entry.path, entry.size, entry.mtime_ns if is_settled else -entry.mtime_ns)
    if not is_note(entry.path):
        return CatalogEntry(*stamp)
    try:
        raw = folder.read(entry.path)
    except (Invalid, NotFound) as why:
        return CatalogEntry(*stamp, parsed=ParsedNote(problem=why.message))
    sha = hashlib.sha256(raw).digest()
    try:
        text = decode_text(raw, entry.path)
    except Invalid as why:
        return CatalogEntry(*stamp, sha, parsed=ParsedNote(problem=why.message))
    mask = mask_code(text)
    links = [link for link in find_all_links(text, mask) if len(link.wikilink) <= _MAX_LINK]
    return CatalogEntry(*stamp, sha, text, parse_note(text, mask), links)


def put_entry(db: Connection, entry: CatalogEntry) -> None:
    number = db.execute(
        "INSERT INTO notes (path, size, mtime_ns, sha, title, aliases, tags, headings, problem)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, sha = excluded.sha, title = excluded.title, aliases = excluded.aliases,"
        " tags = excluded.tags, headings = excluded.headings, problem = excluded.problem RETURNING n",
        _note_row(entry),
    ).fetchone()
    db.execute("DELETE FROM links WHERE note = ?", number)
    db.executemany(
        f"INSERT INTO links (note, key, context, {LINK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (*number, link_key(link.target), link_context(entry.text, link, entry.parsed), *_link_row(link))
            for link in entry.links
        ],
    )


def link_context(text: str, link: Link, parsed: ParsedNote) -> str:
    """A link with the text around it, in one line. Properties do not count as the text around a link."""
    earliest = parsed.body_start if link.start >= parsed.body_start else 0
    return " ".join(text[max(earliest, link.start - CONTEXT_CHARS) : link.end + CONTEXT_CHARS].split())


def link_from_row(row: Sequence[Any]) -> Link:
    """A link from the values of `LINK_COLUMNS`."""
    before, embed, after = row[:5], row[5], row[6:]
    return Link(*(*before, bool(embed), *after))


def _link_row(link: Link) -> tuple[Any, ...]:
    parts = (link.wikilink, link.target, link.heading, link.block, link.caption)
    return (*parts, link.embed, link.start, link.end, link.line, link.kind)


def _note_row(entry: CatalogEntry) -> tuple[Any, ...]:
    parsed = entry.parsed
    title = (parsed.title or note_name(entry.path))[:_MAX_TITLE]
    aliases = json.dumps(parsed.aliases) if parsed.aliases else ""
    headings = [(heading.level, heading.text[:_MAX_TITLE]) for heading in parsed.headings[:_MAX_HEADINGS]]
    details = (title, aliases, " ".join(parsed.tags), json.dumps(headings) if headings else "", parsed.problem)
    return (entry.path, entry.size, entry.mtime_ns, entry.sha, *details)
