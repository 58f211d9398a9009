"""Catalog: what a vault holds, kept in throw-away tables: notes, their names, and the links between them.

Names are in memory, links are not: those that may mean a note are found by the name they end in.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recto.errors import Invalid, NotFound
from recto.vault.card import LINK, Known, link_of, put_card, read_card
from recto.vault.folder import Entry, Folder, is_note
from recto.vault.links import Link
from recto.vault.names import Names
from recto.vault.tables import Emptied, Tables

# One transaction: what a crash may cost, and what another process waits for.
_BATCH = 200
_PAGE = 2000
_FOUND = f"SELECT l.rowid, path, context, {LINK} FROM links AS l JOIN notes ON n = note"

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths; a renamed file is removed and added."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Notes and folders that are there and could not be read."""


@dataclass(frozen=True, slots=True)
class Listed:
    path: str
    title: str
    size: int
    modified: datetime
    tags: tuple[str, ...] = ()
    problem: str | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A link of a note and what it leads to; `path` is None when it is broken."""

    link: Link
    source: str
    line: int
    context: str
    path: str | None = None


class Catalog:
    def __init__(self, path: Path | None = None) -> None:
        self.names = Names()
        self._tables = Tables(path)
        self._loaded: int | None = None
        self._hashes: tuple[object, Mapping[str, bytes]] = (None, {})

    @property
    def note(self) -> str:
        """What was not as it should be: begun anew, or in memory only."""
        return self._tables.note

    @property
    def is_filled(self) -> bool:
        try:
            return bool(self._tables.read("SELECT 1 FROM notes LIMIT 1"))
        except Emptied:
            return False

    def close(self) -> None:
        self._tables.close()
        self._loaded = None

    # -- taking over what is on the disk

    def refresh(self, folder: Folder, progress: Progress | None = None, only: Iterable[str] | None = None) -> Changes:
        """What has changed in all of the folder, or in these files `only`."""
        paths = None if only is None else set(only)
        for _ in range(3):  # a damaged file is begun anew, one that cannot be kept goes to memory
            try:
                return self._refresh(folder, progress, paths)
            except Emptied:
                self._loaded, paths = None, None
        return self._refresh(folder, progress, None)

    def _refresh(self, folder: Folder, progress: Progress | None, only: set[str] | None) -> Changes:
        known = self._known(folder, only)
        skipped: list[str] = []
        # what is new may be ignored, or a folder: only a walk can tell
        if only is None or not only <= known.keys():
            known = self._known(folder) if only else known
            entries = list(folder.walk(skipped.append))
            gone = known.keys() - {entry.path for entry in entries}
        else:
            entries = list(_entries(folder, only))
            gone = only - {entry.path for entry in entries}
        self._remove(gone)
        pending = [entry for entry in entries if entry.path not in known or not known[entry.path].is_of(entry)]
        taken = _Taken(unreadable=skipped)
        for at in range(0, len(pending), _BATCH):
            self._take(folder, pending[at : at + _BATCH], known, taken)
            if progress:
                progress(min(at + _BATCH, len(pending)), len(pending))
        return Changes(tuple(taken.added), tuple(taken.changed), tuple(sorted(gone)), tuple(taken.unreadable))

    def _known(self, folder: Folder, only: set[str] | None = None) -> dict[str, Known]:
        """What the tables hold of this very folder, or of these files at least; the names are loaded with it when they
        are not the newest."""
        root = str(folder.root)
        if not self._tables.read("SELECT 1 FROM marks WHERE name = 'root' AND value = ?", (root,)):
            self._begin(root)
        version = self._tables.version
        query, values = "SELECT path, aliases, size, mtime_ns, sha, problem FROM notes", list[str]()
        if only and self._loaded == version:
            query, values = f"{query} WHERE path IN (SELECT value FROM json_each(?))", [json.dumps(list(only))]
        rows = self._tables.read(query, values)
        if self._loaded != version:
            self.names = Names()
            for path, aliases, *_ in rows:
                self.names.add(path, _aliases(aliases))
            self._loaded = version
        return {path: Known(*facts) for path, _, *facts in rows}

    def _begin(self, root: str) -> None:
        with self._tables.write() as db:
            db.execute("DELETE FROM links")
            db.execute("DELETE FROM notes")
            db.execute("INSERT OR REPLACE INTO marks VALUES ('root', ?)", (root,))
        self._loaded = None

    def _remove(self, paths: Iterable[str]) -> None:
        gone = [(path,) for path in paths]
        if gone:
            with self._tables.write() as db:
                db.executemany("DELETE FROM links WHERE note IN (SELECT n FROM notes WHERE path = ?)", gone)
                db.executemany("DELETE FROM notes WHERE path = ?", gone)
        for (path,) in gone:
            self.names.remove(path)

    def _take(self, folder: Folder, batch: Sequence[Entry], known: dict[str, Known], taken: "_Taken") -> None:
        cards = [read_card(folder, entry) for entry in batch]
        new = [card for card in cards if not card.is_as(known.get(card.path))]
        with self._tables.write() as db:
            facts = [(card.size, card.mtime_ns, card.path) for card in cards if card.path in known]
            db.executemany("UPDATE notes SET size = ?, mtime_ns = ? WHERE path = ?", facts)
            for card in new:
                put_card(db, card)
        for card in new:
            self.names.add(card.path, card.parsed.aliases)
            (taken.changed if card.path in known else taken.added).append(card.path)
        taken.unreadable += [card.path for card in cards if card.is_unreadable]

    # -- asking

    def listed(self, prefix: str = "") -> list[Listed]:
        """Notes by path; attachments have only a name."""
        query = (
            "SELECT path, title, size, mtime_ns, tags, problem, aliases FROM notes"
            " WHERE substr(path, 1, ?) = ? ORDER BY path"
        )
        return [
            Listed(path, title, size, _moment(mtime_ns), tuple(tags.split()), problem, _aliases(aliases))
            for path, title, size, mtime_ns, tags, problem, aliases in self._tables.read(query, (len(prefix), prefix))
            if is_note(path)
        ]

    def hashes(self) -> Mapping[str, bytes]:
        """Readable notes and the hashes of what they say: the very same value for as long as nothing has changed."""
        stamp = self._tables.stamp
        if stamp != self._hashes[0]:
            self._hashes = stamp, dict(self._tables.read("SELECT path, sha FROM notes WHERE sha IS NOT NULL"))
        return self._hashes[1]

    def links(self, keys: Iterable[str]) -> list[Found]:
        """Links that are filed under these keys; whether they lead anywhere is not looked up."""
        rows = [row for key in keys for row in self._tables.read(f"{_FOUND} WHERE key = ?", (key,))]
        return sorted((_found(*row) for row in rows), key=lambda each: (each.source, each.link.start))

    def all_links(self) -> Iterator[Found]:
        """Every link, a page at a time: there may be more than memory should hold."""
        last = 0
        while rows := self._tables.read(f"{_FOUND} WHERE l.rowid > ? ORDER BY l.rowid LIMIT {_PAGE}", (last,)):
            yield from (_found(*row) for row in rows)
            last = rows[-1][0]


@dataclass(slots=True)
class _Taken:
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def _found(_: int, path: str, context: str, *parts: Any) -> Found:
    link = link_of(parts)
    return Found(link, path, link.line, context)


def _moment(mtime_ns: int) -> datetime:
    return datetime.fromtimestamp(abs(mtime_ns) / 1e9, UTC)


def _entries(folder: Folder, paths: Iterable[str]) -> Iterator[Entry]:
    for path in paths:
        try:
            entry = folder.entry(path)
        except (NotFound, Invalid):
            continue
        yield Entry(path, entry.size, entry.mtime_ns)


def _aliases(kept: str) -> tuple[str, ...]:
    return tuple(json.loads(kept)) if kept else ()
