"""Vault: a folder of notes, its names and its links: read, asked, written. Nothing outside the folder can be named.

Nothing is looked at before it is asked for: names need one walk, aliases and backlinks a catalogue of all notes.
"""

import codecs
import os
import posixpath
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from recto.errors import Invalid, NotFound, RectoError
from recto.vault.card import context
from recto.vault.catalog import Catalog, Changes, Found, Listed, Progress
from recto.vault.decoding import text_of
from recto.vault.document import Document
from recto.vault.folder import Folder, is_note
from recto.vault.links import Link, find_all_links, split
from recto.vault.names import Names, fold
from recto.vault.renaming import Renaming, rewritten
from recto.vault.tables import Emptied
from recto.vault.watching import Watcher

__all__ = ["Changes", "Document", "Found", "Listed", "Renamed", "Vault"]

# What was seen this long ago is looked at again. Where somebody watches that is seldom: only for what was not heard.
FRESH_S, FRESH_WATCHED_S = 2.0, 60.0

T = TypeVar("T")
OTHER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


@dataclass(frozen=True, slots=True)
class Renamed:
    """A file's new path, and in which notes how many links were changed for it."""

    path: str
    links: dict[str, int]


class Vault:
    def __init__(self, root: Path, cache: Path | None = None) -> None:
        """`cache` is a file outside the notes where the catalogue is kept; without one it lives in memory."""
        self.folder = Folder(root)
        self.root = self.folder.root
        self._catalog = Catalog(cache)
        self._lock = threading.RLock()
        self._names: Names | None = None
        self._is_whole = False
        self._looked_at: float | None = None
        self._trouble = ""
        self._watcher: Watcher | None = None

    # -- keeping up with the disk

    def refresh(self, progress: Progress | None = None) -> Changes:
        """Looks through the folder and takes over what has changed."""
        with self._lock:
            began = time.monotonic()
            changes = self._catalog.refresh(self.folder, progress)
            self._names, self._is_whole, self._looked_at = self._catalog.names, True, began
            return changes

    def changed(self, paths: Iterable[str]) -> None:
        """Files that somebody changed; none means that nobody knows which."""
        only = set(paths)
        with self._lock:
            if not only or not self._is_whole:
                self._looked_at = None
                return
            try:
                self._catalog.refresh(self.folder, only=only)
            except RectoError:  # whoever asks next hears why
                self._looked_at = None
            self._names = self._catalog.names

    def watch(self) -> Watcher:
        """From now on changes are taken over as they happen."""
        with self._lock:
            if self._watcher is None:
                self._watcher = Watcher(self.root, self.changed)
            return self._watcher

    def close(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher:
            watcher.stop()
        with self._lock:
            self._catalog.close()
            self._names, self._is_whole = None, False

    @property
    def notes(self) -> list[str]:
        """What is not as it should be, in sentences."""
        notes = (self._trouble, self._catalog.note, self._watcher.note if self._watcher else "")
        return [note for note in notes if note]

    def _known(self, whole: bool = False) -> Names:
        """The names as they are now, aliases only when the `whole` is asked for or there is a catalogue already."""
        names = self._names
        if names is None or self._is_stale() or (whole and not self._is_whole):
            try:
                self._look(whole)
                self._trouble = ""
            except RectoError as why:
                if names is None or (whole and not self._is_whole):
                    raise
                self._trouble = why.message  # a disk that is away for a while takes nothing from the chat
        return self._names or Names()

    def _look(self, whole: bool) -> None:
        if whole or self._is_whole or self._catalog.is_filled:
            self.refresh()
            return
        self._names = Names(entry.path for entry in self.folder.walk())
        self._looked_at = time.monotonic()

    def _is_stale(self) -> bool:
        if self._looked_at is None:
            return True
        is_watched = self._watcher is not None and self._watcher.is_watching
        return time.monotonic() - self._looked_at > (FRESH_WATCHED_S if is_watched else FRESH_S)

    def _asked(self, ask: Callable[[Names], T]) -> T:
        """An answer from the catalogue; when it turns out to be damaged, from a new one."""
        with self._lock:
            try:
                return ask(self._known(whole=True))
            except Emptied:
                self.refresh()
                return ask(self._known(whole=True))

    # -- reading

    def resolve(self, link: Link, source: str | None = None) -> str | None:
        """The file that a link means, or None when it is broken."""
        with self._lock:
            found = self._known().follow(link, source)
            if found is None and link.target and not self._is_whole:
                found = self._known(whole=True).follow(link, source)
            return found

    def settle(self, link: Link, source: str | None = None) -> Link:
        """The link with its heading told from its name, which may hold a `#`."""
        with self._lock:
            return self._known().settle(link, source)

    def closest(self, target: str, most: int = 3) -> list[str]:
        """Files that somebody who wrote this may have meant."""
        with self._lock:
            return self._known().closest(target, most)

    def read(self, path: str) -> Document:
        """A document by relative path or by note name. NotFound or Invalid when it is not inside, or not readable."""
        path = self._path(path)
        self.folder.check_ignored(path)
        return Document(path, text_of(self.folder.read(path), path))

    def documents(self, prefix: str = "", tag: str | None = None) -> list[Listed]:
        """Notes by path, those below a folder or with a tag; a tag takes in the tags below it."""
        listed = self._asked(lambda _: self._catalog.listed(prefix))
        wanted = (tag or "").strip("#/ ").lower()
        return [each for each in listed if not wanted or any(_is_below(own, wanted) for own in each.tags)]

    def hashes(self) -> Mapping[str, bytes]:
        """Readable notes and the hashes of what they say: the very same value for as long as nothing has changed."""
        return self._asked(lambda _: self._catalog.hashes())

    def forward(self, path: str) -> list[Found]:
        """The links of a document, in order."""
        document = self.read(path)
        source, text, parsed = document.path, document.text, document.parsed
        return [
            Found(link, source, link.line, context(text, link, parsed), self.resolve(link, source))
            for link in find_all_links(text)
        ]

    def backlinks(self, path: str) -> list[Found]:
        """Links that lead to a document or an attachment, by path and place; `[[#heading]]` in itself is none."""
        target = self._path(path)
        if not self.folder.inside(target).is_file():
            near = self.closest(target, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise NotFound(f"there is no document {path[:80]} in the vault{meant}", path=path)

        def ask(names: Names) -> list[Found]:
            found = (each for each in self._catalog.links(names.keys(target)) if each.link.target)
            return [replace(each, path=target) for each in found if names.follow(each.link, each.source) == target]

        return self._asked(ask)

    def links(self) -> list[Found]:
        """Every link of every note that leads somewhere else, or nowhere."""
        return self._asked(lambda names: list(self._all(names)))

    def broken(self, path: str | None = None) -> list[Found]:
        """Links that lead nowhere: of a document, or of all."""
        if path is not None:
            return [each for each in self.forward(path) if each.path is None]
        found = self._asked(lambda names: [each for each in self._all(names) if each.path is None])
        return sorted(found, key=lambda each: (each.source, each.link.start))

    def _all(self, names: Names) -> Iterator[Found]:
        for each in self._catalog.all_links():
            if each.link.target:
                path = names.follow(each.link, each.source)
                # `replace` would take longer than following the link does
                yield Found(each.link, each.source, each.line, each.context, path)

    def _path(self, path: str) -> str:
        """The path of a file that is there, given by its path or its name, or else the path as it was given."""
        place = self.folder.inside(path)
        if not os.path.isfile(place):
            inside = path.strip("[]")
            if found := self.resolve(Link(f"[[{inside}]]", *split(inside))):
                return found
        return self.folder.relative(place)

    # -- writing

    def twin(self, path: str) -> str | None:
        """The file that is there under a path, or under one that other disks take for the same: case and accents
        differ."""
        place, wanted = self.folder.inside(path), fold(posixpath.normpath(path))
        try:
            if place.exists():
                return self.folder.relative(place)
            beside = os.listdir(place.parent)
        except OSError:
            return None
        name = next((name for name in sorted(beside) if fold(name) == wanted.rpartition("/")[2]), None)
        return self.folder.relative(place.parent / name) if name else None

    def write(self, path: str, text: str) -> Document:
        """A new note, or a new text of one."""
        with self._lock:
            self.folder.write(path, text)
            self.changed([path := posixpath.normpath(path)])
            return self.read(path)

    def delete(self, path: str) -> str:
        """Puts a file into the vault's trash; gives its place there."""
        with self._lock:
            path = self._path(path)
            place = self.folder.delete(path)
            self.changed([path])
            return place

    def rename(self, old: str, new: str) -> Renamed:
        """Another path for a file; all links lead where they led before. What stops half-way says how far it came."""
        with self._lock:
            old, new = self._path(old), posixpath.normpath(new)
            renaming, sources = self._asked(
                lambda names: self._affected(Renaming(old, new, names, names.renamed(old, new)))
            )
            self.folder.move(old, new)
            try:
                return Renamed(new, self._rewrite_all(renaming, sources))
            finally:
                self.changed([old, new, *sources])

    def _affected(self, renaming: Renaming) -> tuple[Renaming, list[str]]:
        """The notes in which a link has to change: those that name the old file, or may name the new."""
        if renaming.old not in renaming.before:
            raise NotFound(f"there is no document {renaming.old} in the vault", path=renaming.old)
        keys = renaming.before.keys(renaming.old) | renaming.after.keys(renaming.new)
        sources = {found.source for found in self._catalog.links(keys)}
        for source in sources - {renaming.old}:
            with suppress(NotFound):  # what cannot be read is told before anything is moved
                self.folder.read(source)
        if is_note(renaming.old):
            sources.add(renaming.old)
        return renaming, sorted(sources)

    def _rewrite_all(self, renaming: Renaming, sources: Sequence[str]) -> dict[str, int]:
        """Each note is read right before it is written: its owner may be typing. What fails is told in the end, with
        all others done."""
        counts: dict[str, int] = {}
        failed: dict[str, str] = {}
        for source in sources:
            path = renaming.new if source == renaming.old else source
            try:
                if count := self._rewrite(path, source, renaming):
                    counts[path] = count
            except RectoError as why:
                failed[path] = why.message
        if failed:
            first, because = next(iter(failed.items()))
            raise Invalid(
                f"the file is {renaming.new} now, but {len(failed)} of {len(failed) + len(counts)} notes that link to"
                f" it still have the old name, {first} first: {because}",
                path=renaming.new,
                done=tuple(counts),
                left=tuple(failed),
            )
        return counts

    def _rewrite(self, path: str, source: str, renaming: Renaming) -> int:
        """How many links were changed; none where the note is gone, or is none that can be read."""
        try:
            raw = self.folder.read(path)
        except (NotFound, Invalid):
            return 0
        if raw.startswith(OTHER_MARKS):
            raise Invalid(f"{path} is not in UTF-8, and only that is rewritten", path=path)
        text = raw.decode("utf-8", "surrogateescape")
        changed, count = rewritten(text, find_all_links(text), source, renaming)
        if count:
            self.folder.write(path, changed.encode("utf-8", "surrogateescape"))
        return count


def _is_below(tag: str, wanted: str) -> bool:
    return f"{tag.lower()}/".startswith(f"{wanted}/")
