"""Catalog: the notes of a vault, their names, and the links between them, in a database that can be made again.

Names are in memory, links are not: links to a note are looked up by the name they end in.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from recto.errors import Invalid, NotFound
from recto.vault.catalog_file import (
    LINK_COLUMNS,
    CatalogEmptied,
    CatalogFile,
    FileStamp,
    link_from_row,
    put_entry,
    read_entry,
)
from recto.vault.folder import Folder, FolderEntry, is_note
from recto.vault.link_resolver import LinkResolver
from recto.vault.links import Link

# Notes per transaction: what a crash may lose, and how long another process waits.
_BATCH = 200
_PAGE = 2000
_SELECT_LINKS = f"SELECT l.rowid, path, context, {LINK_COLUMNS} FROM links AS l JOIN notes ON n = note"

Progress = Callable[[int, int], object]


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
    """A link of a note and the file it leads to; `path` is None if it is broken."""

    link: Link
    source: str
    line: int
    context: str
    path: str | None = None


class Catalog:
    def __init__(self, path: Path | None = None) -> None:
        self.names = LinkResolver()
        self._tables = CatalogFile(path)
        self._loaded_version: int | None = None
        self._hashes: tuple[object, Mapping[str, bytes]] = (None, {})

    @property
    def warning(self) -> str:
        """Why the catalog was rebuilt, or is in memory only; empty if all is well."""
        return self._tables.warning

    @property
    def is_filled(self) -> bool:
        try:
            return bool(self._tables.read("SELECT 1 FROM notes LIMIT 1"))
        except CatalogEmptied:
            return False

    def close(self) -> None:
        self._tables.close()
        self._loaded_version = None

    # -- reading the disk

    def refresh(
        self, folder: Folder, progress: Progress | None = None, only: Iterable[str] | None = None
    ) -> VaultChanges:
        """Brings the catalog up to date with the folder, or with these files `only`."""
        paths = None if only is None else set(only)
        for _ in range(3):  # a damaged database is rebuilt, one that cannot be written moves to memory
            try:
                return self._refresh(folder, progress, paths)
            except CatalogEmptied:
                self._loaded_version, paths = None, None
        return self._refresh(folder, progress, None)

    def _refresh(self, folder: Folder, progress: Progress | None, only: set[str] | None) -> VaultChanges:
        stored = self._stored_stamps(folder, only)
        skipped: list[str] = []
        # a new path may be ignored, or a folder: only a walk can tell
        if only is None or not only <= stored.keys():
            stored = self._stored_stamps(folder) if only else stored
            found = list(folder.walk(skipped.append))
            removed = stored.keys() - {entry.path for entry in found}
        else:
            found = list(_read_entries(folder, only))
            removed = only - {entry.path for entry in found}
        self._remove(removed)
        pending = [entry for entry in found if entry.path not in stored or not stored[entry.path].matches(entry)]
        scan = _Scan(unreadable=skipped)
        for at in range(0, len(pending), _BATCH):
            self._store_batch(folder, pending[at : at + _BATCH], stored, scan)
            if progress:
                progress(min(at + _BATCH, len(pending)), len(pending))
        return VaultChanges(tuple(scan.added), tuple(scan.changed), tuple(sorted(removed)), tuple(scan.unreadable))

    def _stored_stamps(self, folder: Folder, only: set[str] | None = None) -> dict[str, FileStamp]:
        """The stamps of all files of this folder, or at least of `only` these. Reloads the names if another process has
        written."""
        root = str(folder.root)
        if not self._tables.read("SELECT 1 FROM marks WHERE name = 'root' AND value = ?", (root,)):
            self._reset(root)
        version = self._tables.version
        query, values = "SELECT path, aliases, size, mtime_ns, sha, problem FROM notes", list[str]()
        if only and self._loaded_version == version:
            query, values = f"{query} WHERE path IN (SELECT value FROM json_each(?))", [json.dumps(list(only))]
        rows = self._tables.read(query, values)
        with self._tables.interpreting():
            if self._loaded_version != version:
                self.names = LinkResolver()
                for path, aliases, *_ in rows:
                    self.names.add(path, _aliases(aliases))
                self._loaded_version = version
            return {path: FileStamp(*columns) for path, _, *columns in rows}

    def _reset(self, root: str) -> None:
        with self._tables.write() as db:
            db.execute("DELETE FROM links")
            db.execute("DELETE FROM notes")
            db.execute("INSERT OR REPLACE INTO marks VALUES ('root', ?)", (root,))
        self._loaded_version = None

    def _remove(self, paths: Iterable[str]) -> None:
        removed = [(path,) for path in paths]
        if removed:
            with self._tables.write() as db:
                db.executemany("DELETE FROM links WHERE note IN (SELECT n FROM notes WHERE path = ?)", removed)
                db.executemany("DELETE FROM notes WHERE path = ?", removed)
        for (path,) in removed:
            self.names.remove(path)

    def _store_batch(
        self, folder: Folder, batch: Sequence[FolderEntry], stored: dict[str, FileStamp], scan: "_Scan"
    ) -> None:
        entries = [read_entry(folder, entry) for entry in batch]
        new = [entry for entry in entries if not entry.is_unchanged(stored.get(entry.path))]
        with self._tables.write() as db:
            stamps = [(entry.size, entry.mtime_ns, entry.path) for entry in entries if entry.path in stored]
            db.executemany("UPDATE notes SET size = ?, mtime_ns = ? WHERE path = ?", stamps)
            for entry in new:
                put_entry(db, entry)
        for entry in new:
            self.names.add(entry.path, entry.parsed.aliases)
            (scan.changed if entry.path in stored else scan.added).append(entry.path)
        scan.unreadable += [entry.path for entry in entries if entry.is_unreadable]

    # -- looking up

    def documents(self, prefix: str = "") -> list[DocumentInfo]:
        """Notes whose paths begin with a prefix, by path."""
        query = (
            "SELECT path, title, size, mtime_ns, tags, problem, aliases FROM notes"
            " WHERE substr(path, 1, ?) = ? ORDER BY path"
        )
        with self._tables.interpreting():
            return [
                DocumentInfo(path, title, size, _modified(mtime_ns), tuple(tags.split()), problem, _aliases(aliases))
                for path, title, size, mtime_ns, tags, problem, aliases in self._tables.read(
                    query, (len(prefix), prefix)
                )
                if is_note(path)
            ]

    def hashes(self) -> Mapping[str, bytes]:
        """Readable notes and the hashes of their content: the same object as long as nothing has changed."""
        change_stamp = self._tables.change_stamp
        if change_stamp != self._hashes[0]:
            rows = self._tables.read("SELECT path, sha FROM notes WHERE sha IS NOT NULL")
            with self._tables.interpreting():
                self._hashes = change_stamp, {path: _hash(sha) for path, sha in rows}
        return self._hashes[1]

    def links(self, keys: Iterable[str]) -> list[ResolvedLink]:
        """Links that are filed under these keys, not yet resolved."""
        rows = [row for key in keys for row in self._tables.read(f"{_SELECT_LINKS} WHERE key = ?", (key,))]
        with self._tables.interpreting():
            return sorted((_resolved_link(*row) for row in rows), key=lambda each: (each.source, each.link.start))

    def all_links(self) -> Iterator[ResolvedLink]:
        """Every link, not yet resolved, read page by page to save memory."""
        last = 0
        while rows := self._tables.read(f"{_SELECT_LINKS} WHERE l.rowid > ? ORDER BY l.rowid LIMIT {_PAGE}", (last,)):
            yield from (_resolved_link(*row) for row in rows)
            last = rows[-1][0]


class _Scan(Struct):
    """What a refresh has found so far."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def _resolved_link(_: int, path: str, context: str, *parts: Any) -> ResolvedLink:
    link = link_from_row(parts)
    return ResolvedLink(link, path, link.line, context)


def _hash(stored: object) -> bytes:
    if not isinstance(stored, bytes):
        raise TypeError("a hash is not of bytes")
    return stored


def _modified(mtime_ns: int) -> datetime:
    return datetime.fromtimestamp(abs(mtime_ns) / 1e9, UTC)


def _read_entries(folder: Folder, paths: Iterable[str]) -> Iterator[FolderEntry]:
    for path in paths:
        try:
            entry = folder.entry(path)
        except (NotFound, Invalid):
            continue
        yield FolderEntry(path, entry.size, entry.mtime_ns)


def _aliases(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored)) if stored else ()
