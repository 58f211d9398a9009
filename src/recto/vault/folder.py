"""Folder: a vault's directory on disk. Walks, reads and writes it without ever leaving it; knows files, not notes.
NoteFolder: the contents of a folder that may be chosen as a vault.

A symlink to a file inside counts as that file. Symlinks to folders are not followed: their notes are either inside
already or not part of the vault.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from recto.base.ids import new_id
from recto.base.text import clean
from recto.errors import Invalid, NotFound, RectoError
from recto.vault.gitignore import NAME as IGNORE_FILE
from recto.vault.gitignore import GitIgnore, is_ignored
from recto.vault.link_resolver import NOTE_ENDINGS

TRASH = ".trash"
# Half a million tokens: more than any window holds.
MAX_NOTE_BYTES = 2_000_000

# Files and folders that `look_at_folder` reads: enough to recognise a folder of notes, and fast.
MOST_LOOKED_AT = 20_000
MOST_NAMED = 3

OnSkipped = Callable[[str], object]
"""Called with the path of an existing file or folder that cannot be read."""
Enters = Callable[[str, Set[str]], bool]
"""Decides whether to enter a folder, by its path and the names in it."""


class FolderEntry(NamedTuple):
    """A tuple, because it takes half the time of a dataclass and there are many."""

    path: str
    """Relative to the vault, with forward slashes."""
    size: int
    mtime_ns: int


def is_note(path: str) -> bool:
    return path.lower().endswith(NOTE_ENDINGS)


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = _open_root(root)
        self._prefix = os.path.join(self.root, "")

    # -- walking

    def walk(self, on_skipped: OnSkipped = lambda path: None, *, enters: Enters | None = None) -> Iterator[FolderEntry]:
        """Notes and attachments, folder by folder, sorted by name."""
        pending = [("", GitIgnore())]
        while pending:
            prefix, ignored = pending.pop()
            children = self._children(prefix, on_skipped)
            if enters and prefix and not enters(prefix[:-1], {child.name for child in children}):
                continue
            if any(child.name == IGNORE_FILE for child in children):
                ignored = ignored.within(self.root / prefix, prefix)
            folders: list[tuple[str, GitIgnore]] = []
            for child in children:
                path = prefix + child.name
                if child.name.startswith("."):
                    continue
                if not path.isascii() and (cleaned := clean(path))[1]:  # cannot be stored or linked to
                    on_skipped(cleaned[0])
                    continue
                is_folder = _is_folder(child)
                if ignored.rules and ignored.ignores(path, is_folder):
                    continue
                if is_folder:
                    folders.append((path + "/", ignored))
                elif entry := self._entry_of(child, path, on_skipped):
                    yield entry
            pending.extend(reversed(folders))

    def _children(self, prefix: str, on_skipped: OnSkipped) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / prefix) as children:
                return sorted(children, key=lambda child: child.name)
        except OSError as why:
            if not prefix:
                raise _unusable_error(self.root, why) from why
            if not isinstance(why, FileNotFoundError):
                on_skipped(prefix.rstrip("/"))
            return []

    def _entry_of(self, child: os.DirEntry[str], path: str, on_skipped: OnSkipped) -> FolderEntry | None:
        try:
            if child.is_symlink():
                self.locate(path)
            if not child.is_file():
                return None
            info = child.stat()
            return FolderEntry(path, info.st_size, info.st_mtime_ns)
        except (FileNotFoundError, Invalid, NotFound):
            return None  # deleted since it was listed, or a link to the outside
        except OSError:
            on_skipped(path)
            return None

    # -- paths

    def locate(self, path: str) -> Path:
        """The real location of a relative path. Symlinks, `..` and absolute paths cannot lead outside."""
        return Path(self._visible_path(path))

    def relative(self, location: Path) -> str:
        return location.relative_to(self.root).as_posix()

    def _visible_path(self, path: str) -> str:
        # a string: creating a Path would take longer than reading a note
        location = self._resolve(path)
        if self._is_hidden(location):
            raise _missing_error(path)
        return location

    def _resolve(self, path: str) -> str:
        if "\0" in path:
            raise Invalid("a document's path cannot contain a NUL character", path=path)
        try:
            os.fsencode(path)  # fails here if no disk can store the name
            location = os.path.realpath(os.path.join(self._prefix, path))
        except (OSError, ValueError) as why:
            raise _missing_error(path) from why
        if not f"{location}{os.sep}".startswith(self._prefix):
            raise Invalid(f"{path[:80]} is outside the vault", path=path)
        return location

    def _is_hidden(self, location: str) -> bool:
        return f"{os.sep}." in location[len(self._prefix) - 1 :]

    def _relative(self, location: str) -> str:
        return location[len(self._prefix) :].replace(os.sep, "/")

    def _writable_path(self, path: str) -> Path:
        location = self._resolve(path)
        if self._is_hidden(location):
            raise Invalid(f"{path[:80]} is hidden; hidden files cannot be written", path=path)
        self.check_ignored(path, location)
        return Path(location)

    def check_ignored(self, path: str, location: str | None = None) -> None:
        """Raises Invalid for a path that a .gitignore excludes."""
        if is_ignored(self.root, self._relative(location or self._resolve(path))):
            raise Invalid(f"{path[:80]} is excluded by a .gitignore in the vault", path=path)

    def refusal(self, path: str) -> str:
        """Why an existing file (with or without `.md`) is not part of the vault; else empty."""
        for name in (path, f"{path}.md"):
            try:
                location = self._resolve(name)
            except NotFound:
                continue
            except Invalid as why:  # the target is not looked up
                return why.message.removeprefix(f"{name[:80]} ").replace("is outside", "it is outside", 1)
            if os.path.isfile(location) and self._is_hidden(location):
                return "hidden files and folders of a vault are not read"
            if os.path.isfile(location) and is_ignored(self.root, self._relative(location)):
                return "a .gitignore in the vault excludes it"
        return ""

    # -- reading

    def read(self, path: str, limit: int = MAX_NOTE_BYTES) -> bytes:
        """The whole file. Raises Invalid if it exceeds `limit` bytes: part of a note would mislead."""
        location = self._visible_path(path)
        with _disk_errors("read", path):
            self._stat_file(location, path, limit)
            with open(location, "rb") as file:
                content = file.read(limit + 1)
        if len(content) > limit:  # it has grown since
            raise too_large_error(path[:80], path, len(content), limit)
        return content

    def entry(self, path: str) -> FolderEntry:
        """One file as in a walk. Raises NotFound if it is missing or ignored by git."""
        entry = self._entry(path)
        if is_ignored(self.root, entry.path):
            raise _missing_error(path)
        return entry

    def _entry(self, path: str) -> FolderEntry:
        location = self.locate(path)
        with _disk_errors("read", path):
            info = self._stat_file(location, path)
        return FolderEntry(self.relative(location), info.st_size, info.st_mtime_ns)

    def _stat_file(self, location: Path | str, path: str, limit: int | None = None) -> os.stat_result:
        info = os.stat(location)
        # reading a pipe or a device might never end
        if not stat.S_ISREG(info.st_mode):
            raise _missing_error(path)
        if limit is not None and info.st_size > limit:
            raise too_large_error(path[:80], path, info.st_size, limit)
        return info

    # -- writing

    def write(self, path: str, content: str | bytes) -> FolderEntry:
        """Writes a note atomically and creates its folders. Text is cleaned; bytes are written as they are."""
        location = self._writable_path(path)
        if not is_note(location.name):
            raise Invalid(
                f"{path[:80]} is not a note; only {' and '.join(NOTE_ENDINGS)} files can be written", path=path
            )
        raw = content if isinstance(content, bytes) else clean(content)[0].encode()
        with _disk_errors("write", path, may_be_missing=False):
            if location.is_dir():
                raise Invalid(f"{path[:80]} is a folder", path=path)
            location.parent.mkdir(parents=True, exist_ok=True)
            _replace_file(location, raw)
        return self._entry(path)

    def move(self, old: str, new: str) -> FolderEntry:
        """Moves a file to a new path, never over another file. Changing only the case of its name is allowed."""
        source, location = self._movable_path(old), self._writable_path(new)
        if is_note(source.name) != is_note(location.name):
            raise Invalid(f"{new[:80]} must end like {old[:80]}: a note stays a note", path=new)
        with _disk_errors("move", old, may_be_missing=False):
            if location.exists() and not location.samefile(source):
                raise Invalid(f"{new[:80]} already exists in the vault", path=new)
            location.parent.mkdir(parents=True, exist_ok=True)
            source.rename(location)
        return self._entry(new)

    def delete(self, path: str) -> str:
        """Moves a file to the vault's trash and returns its path there."""
        source = self._movable_path(path)
        trash = Path(self._resolve(TRASH))
        with _disk_errors("delete", path, may_be_missing=False):
            trash.mkdir(exist_ok=True)
            location = _free_path(trash / source.name)
            source.rename(location)
        return self.relative(location)

    def _movable_path(self, path: str) -> Path:
        """The file to move or delete. Rejects a symlink, whose target would move instead."""
        location = self.locate(path)
        if os.path.islink(os.path.join(self._prefix, path)):
            raise Invalid(f"{path[:80]} is a link to {self.relative(location)}; name that file instead", path=path)
        self.check_ignored(path, str(location))
        with _disk_errors("read", path):
            self._stat_file(location, path)
        return location


def _open_root(root: Path) -> Path:
    try:
        location = root.resolve()
        is_folder = stat.S_ISDIR(location.stat().st_mode)
    except (OSError, RuntimeError, ValueError) as why:
        raise _unusable_error(root, why) from why
    if not is_folder:
        raise Invalid(f"{root} is a file; a vault is a folder of notes", path=str(root))
    if not os.access(location, os.R_OK | os.X_OK):
        raise Invalid(f"the folder {root} cannot be read; a vault must be readable", path=str(root))
    return location


def _unusable_error(root: Path, why: Exception) -> Invalid | NotFound:
    if isinstance(why, FileNotFoundError):
        return NotFound(f"there is no folder {root} to use as a vault", path=str(root))
    reason = why.strerror if isinstance(why, OSError) else why
    return Invalid(f"the folder {root} cannot be used as a vault: {reason}", path=str(root))


def _missing_error(path: str) -> NotFound:
    return NotFound(f"there is no document {clean(path[:80])[0]} in the vault", path=path)


def too_large_error(name: str, path: str, size: int, limit: int = MAX_NOTE_BYTES) -> Invalid:
    sizes = f"{size / 1e6:.1f} MB; at most {limit / 1e6:g} MB can be read"
    return Invalid(f"{name} has {sizes}", path=path, size=size, most=limit)


@contextmanager
def _disk_errors(action: str, path: str, *, may_be_missing: bool = True) -> Iterator[None]:
    try:
        yield
    except OSError as why:
        is_absent = isinstance(why, FileNotFoundError | IsADirectoryError | NotADirectoryError)
        if may_be_missing and (is_absent or why.errno == errno.ELOOP):
            raise _missing_error(path) from None
        raise Invalid(f"cannot {action} {path[:80]}: {why.strerror}", path=path) from why


def _replace_file(location: Path, raw: bytes) -> None:
    # hidden, so that no walk or watcher takes it for a note
    temporary = location.with_name(f".{new_id()}.tmp")
    mode = _writable_mode(location)
    try:
        with temporary.open("xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(location)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _writable_mode(location: Path) -> int | None:
    """The mode to preserve. Raises PermissionError for a read-only file."""
    if not location.exists():
        return None
    if not os.access(location, os.W_OK):
        raise PermissionError(errno.EACCES, "it is read-only")
    return stat.S_IMODE(location.stat().st_mode)


def _free_path(location: Path) -> Path:
    """The location, or the first free one like it: `Note 2.md`."""
    number, free = 2, location
    while os.path.lexists(free):
        free, number = location.with_name(f"{location.stem} {number}{location.suffix}"), number + 1
    return free


def _is_folder(child: os.DirEntry[str]) -> bool:
    try:
        return child.is_dir(follow_symlinks=False)
    except OSError:
        return False


class NoteFolder(Struct, frozen=True):
    path: Path
    notes: int = 0
    has_more: bool = False
    names: tuple[str, ...] = ()
    problem: str = ""


def look_at_folder(typed: str) -> NoteFolder:
    """The contents of a folder given as people type it, such as ~/notes."""
    # Path.expanduser raises for an unknown user
    path = Path(os.path.expanduser(typed.strip()))
    if not path.is_absolute():
        return NoteFolder(path, problem="write the full path, such as ~/notes or /home/me/notes")
    try:
        entries = list(islice(Folder(path).walk(), MOST_LOOKED_AT))
    except RectoError as why:
        return NoteFolder(path, problem=why.message)
    except ValueError:
        return NoteFolder(path, problem="no folder can have this name")
    notes = [entry for entry in entries if is_note(entry.path)]
    latest = sorted(notes, key=lambda entry: -entry.mtime_ns)[:MOST_NAMED]
    names = tuple(entry.path.rpartition("/")[2].rpartition(".")[0] for entry in latest)
    problem = "" if notes else "it contains no notes; Recto reads Markdown files (.md)"
    return NoteFolder(path, len(notes), len(entries) == MOST_LOOKED_AT, names, problem)


def folders_like(typed: str, most: int = 6) -> list[str]:
    """Folders whose path starts with the typed text; for empty text, those in the user's home."""
    start = typed.strip() or "~/"
    place, slash, name = start.rpartition("/")
    if not slash:
        place, name = "~", "" if start == "~" else start
    try:
        with os.scandir(Path(place or "/").expanduser()) as children:
            found = sorted(child.name for child in children if not child.name.startswith(".") and child.is_dir())
    except (OSError, RuntimeError, ValueError):
        return []
    return [f"{place}/{each}" for each in found if each.lower().startswith(name.lower()) and each != name][:most]
