"""Readings: files of agents as they lie on the disk, and what was made of each; one is read again only when it has
changed. Knows no agent."""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
LARGEST = 2_000_000
"""Bytes of a file that is read; what is longer is no text for a window."""
# A file may be written twice within one tick of the disk's clock: one as young as this is read once more.
_TICK_NS = 50_000_000


class Entry(NamedTuple):
    """A file as it was seen: what has the same entry says the same."""

    path: str
    size: int
    mtime_ns: int
    changed_ns: int
    """Also of its rights: what could not be read may be readable now."""
    number: int
    is_link: bool = False

    @property
    def is_settled(self) -> bool:
        now = time.time_ns()
        # what says that it is from tomorrow would be read for ever
        latest = max(self.changed_ns, self.mtime_ns if self.mtime_ns <= now else 0)
        return now - latest > _TICK_NS


def entry_of(path: Path) -> Entry | None:
    """None where nothing is there; what is there and cannot be seen says why when it is read."""
    try:
        return _entry(str(path), path.stat(), path.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return _unseen(str(path), True) if path.is_symlink() else None
    except OSError:
        return _unseen(str(path), False)


def _entry(path: str, found: os.stat_result, is_link: bool) -> Entry:
    return Entry(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, is_link)


def _unseen(path: str, is_link: bool) -> Entry:
    return Entry(path, 0, 0, 0, 0, is_link)


def entries_in(folder: Path, ending: str) -> tuple[tuple[Entry, ...], str]:
    """The files of a folder with this ending, by name, hidden ones aside; and what is wrong with it, if anything."""
    try:
        with os.scandir(folder) as found:
            wanted = [each for each in found if _is_wanted(each, ending)]
        return tuple(sorted(_listed(each) for each in wanted)), ""
    except FileNotFoundError:
        return (), ""
    except NotADirectoryError:
        return (), f"{folder} is no folder: nothing is read from it" if os.path.lexists(folder) else ""
    except OSError as why:
        return (), f"cannot read {folder}: {why.strerror}"


def _is_wanted(found: "os.DirEntry[str]", ending: str) -> bool:
    name = found.name
    if name.startswith(".") or not name.lower().endswith(ending):
        return False
    return found.is_file() or (found.is_symlink() and not found.is_dir())


def _listed(found: "os.DirEntry[str]") -> Entry:
    try:
        return _entry(found.path, found.stat(), found.is_symlink())
    except OSError:  # a link that leads nowhere
        return _unseen(found.path, found.is_symlink())


class Readings:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Entry, Any]] = {}

    def of(self, entry: Entry, what: str, make: Callable[[str, bytes | str], T]) -> T:
        """What `make` makes of a file's path and bytes, or of a sentence that says why there are none. `what` tells
        apart those who make different things of one file."""
        known = self._known.get((entry.path, what))
        if known and known[0] == entry:
            made: T = known[1]
            return made
        made = make(entry.path, _bytes(entry))
        if entry.is_settled:
            self._known[entry.path, what] = (entry, made)
        return made


def _bytes(entry: Entry) -> bytes | str:
    if stat.S_ISFIFO(_mode(entry.path)):
        return f"{entry.path} is no file: it is left out"
    try:
        with open(entry.path, "rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as why:
        return f"cannot read {entry.path}: {why.strerror}"
    return raw if len(raw) <= LARGEST else f"{entry.path} is larger than 2 MB, the most that is read: it is left out"


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0
