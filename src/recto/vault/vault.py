"""Vault: a folder of notes with their names and links. Reads, finds by name, writes; paths outside are rejected.

Everything is lazy: names need one walk, aliases and backlinks a catalog of all notes. A Watcher reports changed files.
"""

import codecs
import errno
import hashlib
import os
import posixpath
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import Invalid, NotFound, RectoError
from recto.vault.catalog import CacheEmptied, Catalog, DocumentInfo, Progress, ResolvedLink, VaultChanges, link_context
from recto.vault.decoding import decode_text
from recto.vault.document import Document
from recto.vault.folder import Folder, is_note
from recto.vault.gitignore import NAME as IGNORE_FILE
from recto.vault.link_resolver import LinkResolver, fold_name
from recto.vault.links import Link, find_all_links, split_link
from recto.vault.rename import BegunRename, RenameJournal, RenamePlan, rewrite_links

__all__ = ["Document", "DocumentInfo", "RenameResult", "ResolvedLink", "Vault", "VaultChanges"]

# How long a scan stays fresh. With a watcher, scans only catch the changes it missed.
FRESH_S, FRESH_WATCHED_S = 2.0, 60.0

# Editors write a file in several steps: the watcher waits this long for the rest of them, and wakes up this often
# without changes. The first wake-up shows that it is watching.
DEBOUNCE_MS, STEP_MS, _POLL_MS = 50, 20, 500

T = TypeVar("T")
OTHER_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)

NO_VAULT = "no vault is named: give --vault DIR, or set one with `recto config set vault DIR`"


class RenameResult(Struct, frozen=True):
    """A file's new path, and the number of changed links in each note."""

    path: str
    links: dict[str, int]


class Watcher:
    """A thread that reports changed files. If it cannot run, `warning` says why."""

    def __init__(self, root: Path, on_change: Callable[[set[str]], object]) -> None:
        """`on_change` gets relative paths; an empty set when watching begins, since anything may have changed
        before."""
        self.warning = ""
        self._root = root
        self._on_change = on_change
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)
        self._thread.start()

    @property
    def is_watching(self) -> bool:
        return self._ready.is_set() and self._thread.is_alive()

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is watching. Returns False on timeout."""
        return self._ready.wait(timeout_s) and self.is_watching

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            self._watch()
        except Exception as why:  # scans continue, and find the changes later
            self.warning = f"the vault cannot be watched ({why}); changes are found by scanning it instead"
        finally:
            self._ready.clear()

    def _watch(self) -> None:
        from watchfiles import watch  # only watching needs it

        batches = watch(
            self._root,
            watch_filter=lambda _, path: self._is_relevant(path),
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=_POLL_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            # it would also ignore all other failures, such as a missing folder
            ignore_permission_denied=False,
        )
        inode = self._root.stat().st_ino
        for changes in batches:
            # a replaced folder is another one, whose changes do not arrive
            if self._root.stat().st_ino != inode:
                raise FileNotFoundError(errno.ENOENT, "the folder was moved")
            if not self._ready.is_set():
                self._ready.set()
                self._on_change(set())
            if changes:
                self._on_change({Path(path).relative_to(self._root).as_posix() for _, path in changes})

    def _is_relevant(self, path: str) -> bool:
        location = Path(path)
        if not location.is_relative_to(self._root):
            return False
        *folders, name = location.relative_to(self._root).parts or (".",)
        is_hidden = name.startswith(".") and name != IGNORE_FILE
        return not (is_hidden or any(part.startswith(".") for part in folders))


class Vault:
    def __init__(self, root: Path, cache: Path | None = None) -> None:
        """`cache` is a file outside the notes for the catalog; without one it is in memory."""
        self.folder = Folder(root)
        self.root = self.folder.root
        self._catalog = Catalog(cache)
        self._lock = threading.RLock()
        self._names: LinkResolver | None = None
        self._has_catalog = False
        self._scanned_at: float | None = None
        self._problem = self._finished = self._untold = ""
        self._watcher: Watcher | None = None
        self._journal = RenameJournal(cache.parent if cache else None)
        self._is_journal_read = False

    def refresh(self, progress: Progress | None = None) -> VaultChanges:
        """Scans the folder and brings the catalog up to date."""
        with self._lock:
            began = time.monotonic()
            changes = self._catalog.refresh(self.folder, progress)
            self._names, self._has_catalog, self._scanned_at = self._catalog.names, True, began
            return changes

    def mark_changed(self, paths: Iterable[str]) -> None:
        """Reports changed files; an empty set means that any may have changed."""
        only = set(paths)
        with self._lock:
            if not only or not self._has_catalog:
                self._scanned_at = None
                return
            try:
                self._catalog.refresh(self.folder, only=only)
            except RectoError:  # the next call scans again and reports it
                self._scanned_at = None
            self._names = self._catalog.names

    def watch(self) -> Watcher:
        with self._lock:
            if self._watcher is None:
                self._watcher = Watcher(self.root, self.mark_changed)
            return self._watcher

    def close(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher:
            watcher.stop()
        with self._lock:
            self._catalog.close()
            self._names, self._has_catalog = None, False

    @property
    def warnings(self) -> list[str]:
        watching = self._watcher.warning if self._watcher else ""
        warnings = (self._problem, self._finished, self._catalog.warning, watching)
        return [warning for warning in warnings if warning]

    def untold_rename(self) -> str:
        """A note that an interrupted rename was finished; only the first call returns it."""
        told, self._untold = self._untold, ""
        return told

    def _current_names(self, with_catalog: bool = False) -> LinkResolver:
        """The current names. Aliases only `with_catalog`, or if a catalog exists already."""
        if not self._is_journal_read:
            self._is_journal_read = True
            self._finish_rename()
        names = self._names
        if names is None or self._is_stale() or (with_catalog and not self._has_catalog):
            try:
                self._scan(with_catalog)
                self._problem = ""
            except RectoError as why:
                if names is None or (with_catalog and not self._has_catalog):
                    raise
                self._problem = why.message  # a chat continues while the disk is unavailable
        return self._names or LinkResolver()

    def _scan(self, with_catalog: bool) -> None:
        if with_catalog or self._has_catalog or self._catalog.is_filled:
            self.refresh()
            return
        self._names = LinkResolver(entry.path for entry in self.folder.walk())
        self._scanned_at = time.monotonic()

    def _is_stale(self) -> bool:
        if self._scanned_at is None:
            return True
        is_watched = self._watcher is not None and self._watcher.is_watching
        return time.monotonic() - self._scanned_at > (FRESH_WATCHED_S if is_watched else FRESH_S)

    def _query(self, query: Callable[[LinkResolver], T]) -> T:
        """Queries the catalog, repeating if it was rebuilt, and again if it then moved to memory."""
        with self._lock:
            for _ in range(2):
                try:
                    return query(self._current_names(with_catalog=True))
                except CacheEmptied:
                    self.refresh()
            return query(self._current_names(with_catalog=True))

    # -- reading

    def resolve(self, link: Link, source: str | None = None) -> str | None:
        with self._lock:
            found = self._current_names().follow(link, source)
            if found is None and link.target and not self._has_catalog:
                found = self._current_names(with_catalog=True).follow(link, source)
            return found

    def shortest_link(self, path: str) -> str:
        with self._lock:
            return self._current_names().shortest_link(path)

    def closest(self, target: str, limit: int = 3) -> list[str]:
        with self._lock:
            return self._current_names().closest(target, limit)

    def read(self, path: str) -> Document:
        """A document by relative path or note name. Raises NotFound or Invalid if it is outside or unreadable."""
        path = self._resolve_path(path)
        self.folder.check_ignored(path)
        return Document(path, decode_text(self.folder.read(path), path))

    def documents(self, prefix: str = "", tag: str | None = None) -> list[DocumentInfo]:
        """Notes by path, below a folder or with a tag; a tag includes its subtags."""
        found = self._query(lambda _: self._catalog.documents(prefix))
        wanted = (tag or "").strip("#/ ").lower()
        subtags = f"{wanted}/"
        return [each for each in found if not wanted or any(f"{own.lower()}/".startswith(subtags) for own in each.tags)]

    def hashes(self) -> Mapping[str, bytes]:
        """Readable notes and the hashes of their content: the same object until something changes."""
        return self._query(lambda _: self._catalog.hashes())

    def outgoing_links(self, path: str) -> list[ResolvedLink]:
        document = self.read(path)
        source, text, parsed = document.path, document.text, document.parsed
        return [
            ResolvedLink(link, source, link.line, link_context(text, link, parsed), self.resolve(link, source))
            for link in find_all_links(text)
        ]

    def backlinks(self, path: str) -> list[ResolvedLink]:
        """Links to a document or an attachment, by path and position, without links to its own headings."""
        target = self._resolve_path(path)
        if not self.folder.locate(target).is_file():
            hint = "".join(f"; did you mean {each}?" for each in self.closest(target, 1))
            raise NotFound(f"there is no document {path[:80]} in the vault{hint}", path=path)

        def query(names: LinkResolver) -> list[ResolvedLink]:
            found = (each for each in self._catalog.links(names.link_keys(target)) if each.link.target)
            return [replace(each, path=target) for each in found if names.follow(each.link, each.source) == target]

        return self._query(query)

    def all_links(self) -> list[ResolvedLink]:
        """Every link of every note, except those to headings of the same note."""
        return self._query(lambda names: list(self._resolve_all(names)))

    def broken_links(self, path: str | None = None) -> list[ResolvedLink]:
        if path is not None:
            return [each for each in self.outgoing_links(path) if each.path is None]
        found = self._query(lambda names: [each for each in self._resolve_all(names) if each.path is None])
        return sorted(found, key=lambda each: (each.source, each.link.start))

    def _resolve_all(self, names: LinkResolver) -> Iterator[ResolvedLink]:
        for each in self._catalog.all_links():
            if each.link.target:
                path = names.follow(each.link, each.source)
                # `replace` would take longer than following the link
                yield ResolvedLink(each.link, each.source, each.line, each.context, path)

    def _resolve_path(self, path: str) -> str:
        """The path of an existing file, from its path or name; else the path unchanged."""
        location = self.folder.locate(path)
        if not os.path.isfile(location):
            inner = path.strip("[]")
            if found := self.resolve(Link(f"[[{inner}]]", *split_link(inner))):
                return found
        return self.folder.relative(location)

    # -- writing

    def find_existing(self, path: str) -> str | None:
        """The existing file at a path, or at one that other disks treat as the same: case and accents may differ."""
        location, folded = self.folder.locate(path), fold_name(posixpath.normpath(path))
        try:
            if location.exists():
                return self.folder.relative(location)
            names = os.listdir(location.parent)
        except OSError:
            return None
        name = next((name for name in sorted(names) if fold_name(name) == folded.rpartition("/")[2]), None)
        return self.folder.relative(location.parent / name) if name else None

    def write(self, path: str, text: str) -> Document:
        with self._lock:
            self.folder.write(path, text)
            self.mark_changed([path := posixpath.normpath(path)])
            return self.read(path)

    def delete(self, path: str) -> str:
        """Moves a file to the vault's trash and returns its path there."""
        with self._lock:
            path = self._resolve_path(path)
            location = self.folder.delete(path)
            self.mark_changed([path])
            return location

    def rename(self, old: str, new: str) -> RenameResult:
        """Moves a file and updates all links to it. If some notes fail, the error names them; the others are
        updated."""
        with self._lock:
            self._finish_rename()
            old, new = self._resolve_path(old), posixpath.normpath(new)
            plan, sources = self._query(
                lambda names: self._plan_rename(RenamePlan(old, new, names, names.with_rename(old, new)))
            )
            with self._journal.remembered(BegunRename(old, new, sources)):
                self.folder.move(old, new)
                try:
                    return RenameResult(new, self._rewrite_all(plan, sources))
                finally:
                    self.mark_changed([old, new, *sources])

    def _plan_rename(self, plan: RenamePlan) -> tuple[RenamePlan, dict[str, str]]:
        """The plan, and the hashes of the notes that may need new links: those that name the old file or may mean the
        new one."""
        if plan.old not in plan.before:
            raise NotFound(f"there is no document {plan.old} in the vault", path=plan.old)
        keys = plan.before.link_keys(plan.old) | plan.after.link_keys(plan.new)
        sources = {found.source for found in self._catalog.links(keys)} - {plan.old}
        # an unreadable note fails here, before anything is moved
        hashes = {source: self._hash(source, NotFound) for source in sorted(sources)}
        if is_note(plan.old):
            hashes[plan.old] = self._hash(plan.old, NotFound, Invalid)
        return plan, hashes

    def _hash(self, path: str, *ignored: type[RectoError]) -> str:
        with suppress(*ignored):
            return hashlib.sha256(self.folder.read(path)).hexdigest()
        return ""

    def _finish_rename(self) -> None:
        """Rewrites the links left by an interrupted rename, if their notes are otherwise unchanged."""
        with self._journal.left() as begun:
            if begun is None or not (self._is_file(begun.new) or self._is_file(begun.old)):
                return  # the disk may be unavailable
            if self._is_file(begun.new) and not self._is_file(begun.old):
                what = f"the rename of {begun.old} to {begun.new} was interrupted"
                try:
                    count = self._finish(begun)
                    told = f"{what} and has been finished now: {count} links were rewritten"
                except RectoError as why:
                    told = f"{what}: {why.message}"
                self._finished = self._untold = told
            self._journal.forget()

    def _finish(self, begun: BegunRename) -> int:
        try:
            self.mark_changed([begun.old, begun.new, *begun.notes])
            after = self._current_names(with_catalog=True)
            plan = RenamePlan(begun.old, begun.new, after.with_rename(begun.new, begun.old), after)
            return sum(self._rewrite_all(plan, begun.notes, is_begun=True).values())
        finally:
            self.mark_changed([begun.new, *begun.notes])

    def _is_file(self, path: str) -> bool:
        try:
            return self.folder.locate(path).is_file()
        except RectoError:
            return False

    def _rewrite_all(self, plan: RenamePlan, hashes: Mapping[str, str], *, is_begun: bool = False) -> dict[str, int]:
        """Reads each note right before writing it, as its owner may be typing. Failures are raised at the end, after
        all others. If the rename `is_begun`, a note changed since gets only its broken links fixed."""
        counts: dict[str, int] = {}
        failed: dict[str, str] = {}
        for source, known in hashes.items():
            path = plan.new_path(source)
            try:
                has_changed = is_begun and known != self._hash(path, NotFound, Invalid)
                if count := self._rewrite_note(path, source, plan, only_broken=has_changed):
                    counts[path] = count
            except RectoError as why:
                failed[path] = why.message
        if failed:
            first, reason = next(iter(failed.items()))
            raise Invalid(
                f"the file was moved to {plan.new}, but {len(failed)} of {len(failed) + len(counts)} notes that link to"
                f" it could not be updated and still use the old name, {first} first: {reason}",
                path=plan.new,
                done=tuple(counts),
                left=tuple(failed),
            )
        return counts

    def _rewrite_note(self, path: str, source: str, plan: RenamePlan, *, only_broken: bool) -> int:
        """Returns the number of changed links; 0 if the note is gone or unreadable."""
        try:
            raw = self.folder.read(path)
        except (NotFound, Invalid):
            return 0
        if raw.startswith(OTHER_BYTE_ORDER_MARKS):
            raise Invalid(f"{path} is not in UTF-8; its links cannot be rewritten", path=path)
        text = raw.decode("utf-8", "surrogateescape")
        links = [link for link in find_all_links(text) if not only_broken or plan.after.follow(link, path) is None]
        changed, count = rewrite_links(text, links, source, plan)
        if count:
            self.folder.write(path, changed.encode("utf-8", "surrogateescape"))
        return count
