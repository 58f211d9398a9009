"""FileCache: caches what was parsed from a file until the file changes."""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
MAX_FILE_BYTES = 2_000_000
"""Files larger than this are skipped."""
# A file can be written twice within one tick of the disk's clock, so a newer one is read again.
_CLOCK_TICK_NS = 50_000_000


class FileEntry(NamedTuple):
    """A file's `stat`: equal entries mean equal content."""

    path: str
    size: int = 0
    mtime_ns: int = 0
    changed_ns: int = 0
    """Also changes with permissions: an unreadable file may be readable now."""
    inode: int = 0
    is_link: bool = False

    @property
    def is_settled(self) -> bool:
        now = time.time_ns()
        # a file dated in the future would never settle
        latest = max(self.changed_ns, self.mtime_ns if self.mtime_ns <= now else 0)
        return now - latest > _CLOCK_TICK_NS


def stat_file(path: "Path | os.DirEntry[str]") -> FileEntry | None:
    """The file's entry; None if there is no file. If `stat` fails, the entry has the number of the error: reading
    reports it."""
    name = os.fspath(path)
    try:
        found = path.stat()
    except OSError as why:
        is_link = os.path.islink(name)
        is_missing = isinstance(why, FileNotFoundError | NotADirectoryError) and not is_link
        return None if is_missing else FileEntry(name, inode=why.errno or 0, is_link=is_link)
    return FileEntry(name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, path.is_symlink())


def folder_files(folder: Path, suffix: str) -> tuple[tuple[FileEntry, ...], str]:
    """The files of a folder with this suffix, sorted, without hidden ones; and the problem, if any."""
    try:
        with os.scandir(folder) as found:
            matching = [item for item in found if _matches(item, suffix)]
        return tuple(sorted(entry for item in matching if (entry := stat_file(item)))), ""
    except FileNotFoundError:
        return (), ""
    except NotADirectoryError:
        return (), f"{folder} is not a folder; nothing is read from it" if os.path.lexists(folder) else ""
    except OSError as why:
        return (), f"cannot read {folder}: {why.strerror}"


def _matches(item: "os.DirEntry[str]", suffix: str) -> bool:
    name = item.name
    if name.startswith(".") or not name.lower().endswith(suffix):
        return False
    return item.is_file() or (item.is_symlink() and not item.is_dir())


class FileCache:
    def __init__(self) -> None:
        self._cached: dict[tuple[str, str], tuple[FileEntry, Any]] = {}

    def get(self, entry: FileEntry, purpose: str, parse: Callable[[str, bytes | str], T]) -> T:
        """Return `parse` of the file's path and bytes, or of a sentence that says why it cannot be read.

        `purpose` separates the results if one file is parsed in several ways.
        """
        cached = self._cached.get((entry.path, purpose))
        if cached and cached[0] == entry:
            parsed: T = cached[1]
            return parsed
        parsed = parse(entry.path, _read_bytes(entry))
        if entry.is_settled:
            self._cached[entry.path, purpose] = (entry, parsed)
        return parsed


def _read_bytes(entry: FileEntry) -> bytes | str:
    try:
        if stat.S_ISFIFO(os.stat(entry.path).st_mode):
            return f"{entry.path} is not a regular file and is ignored"
        with open(entry.path, "rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as why:
        return f"cannot read {entry.path}: {why.strerror}"
    return raw if len(raw) <= MAX_FILE_BYTES else f"{entry.path} is larger than 2 MB, the limit, and is ignored"
