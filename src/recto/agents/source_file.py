"""SourceFile: a file of rules/ or references/ read as a source, from its front matter and its text.

Each problem becomes a sentence; the rest of the file is used.

FileCache: what was parsed from a file, kept until the file changes. Knows nothing of agents.
"""

import os
import stat
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from recto.errors import Invalid
from recto.sources.source import INCLUDES, MAX_PRIORITY, TextSource
from recto.text import clean
from recto.vault.decoding import decode_text
from recto.vault.document import Document, note_name, parse_note
from recto.vault.links import front_matter

FRONT_MATTER_KEYS = ("description", "include", "priority", "enabled")
_MAX_DESCRIPTION_CHARS = 2000


class SourceFile(Struct, frozen=True):
    """The source that a file holds, if any, and the problems found in it."""

    source: TextSource | None
    notes: tuple[str, ...] = ()


def read_source_file(kind: type[TextSource], path: str, raw: bytes | str) -> SourceFile:
    """`raw` is the content of the file, or a sentence that says why it cannot be read."""
    if isinstance(raw, str):
        return SourceFile(None, (raw,))
    name = source_name(path)
    if not name or not name.isprintable():
        return SourceFile(None, (f"{clean(path)[0]!r} has a name that cannot be printed and is ignored",))
    try:
        text = decode_text(raw, path)
    except Invalid as why:
        return SourceFile(None, (why.message,))
    properties, body, notes = _split(path, text)
    values = dict(_read_properties(path, properties, notes))
    if not body:
        return SourceFile(None, (*notes, f"{path} has no text, so the {kind.kind} is ignored"))
    return SourceFile(kind(name, body, path=path, **values), tuple(notes))


def source_name(path: str) -> str:
    """The file's name as people type it: some disks store an accent apart from its letter."""
    return unicodedata.normalize("NFC", note_name(path.replace("\\", "/"))).strip()


def name_key(name: str) -> str:
    """Names with the same key are the same: case and the encoding of accents do not matter."""
    return unicodedata.normalize("NFC", name).casefold()


def _split(path: str, text: str) -> tuple[Mapping[str, Any], str, list[str]]:
    """Properties, body and problems of a file."""
    document, front = Document(path, text), front_matter(text)
    properties, start = document.head
    is_odd = start == 0 if front else text.startswith("---")
    problem = parse_note(text).problem if is_odd else None
    body = text[front[2] if front else 0 :].strip()
    return properties, body, [f"{path}: {problem}"] if problem else []


def _read_properties(path: str, properties: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yields the valid properties. A wrong value becomes a note, and the default applies."""
    for key, value in properties.items():
        if key not in FRONT_MATTER_KEYS:
            near = get_close_matches(key.lower(), FRONT_MATTER_KEYS, 1, 0.8)
            notes += [f"{path}: unknown property {key}; did you mean {near[0]}?"] if near else []
        elif value is not None and _is_allowed(key, value):
            yield key, _one_line(value) if key == "description" else value
        elif value is not None:
            notes.append(f"{path}: {key} = {_repr(value)} is not allowed; it takes {_allowed_values(key)}")


def _is_allowed(key: str, value: Any) -> bool:
    if key == "priority":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PRIORITY
    if key == "enabled":
        return isinstance(value, bool)
    return isinstance(value, str) and (key == "description" or value in INCLUDES)


def _allowed_values(key: str) -> str:
    numbers = f"a whole number from 0 to {MAX_PRIORITY}"
    return {"include": " or ".join(INCLUDES), "priority": numbers, "enabled": "true or false"}.get(key, "a text")


def _one_line(text: str) -> str:
    return " ".join(clean(text)[0].split())[:_MAX_DESCRIPTION_CHARS]


def _repr(value: Any) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # a number with more digits than Python prints
        return "a very long number"


T = TypeVar("T")
MAX_FILE_BYTES = 2_000_000
"""Larger files are not read: they are no text for a window."""
# A file can be written twice within one tick of the disk's clock, so one this young is read again.
_CLOCK_TICK_NS = 50_000_000


class FileEntry(NamedTuple):
    """What `stat` says about a file: equal entries mean equal content."""

    path: str
    size: int
    mtime_ns: int
    changed_ns: int
    """Also changes with permissions: an unreadable file may be readable now."""
    inode: int
    is_link: bool = False

    @property
    def is_settled(self) -> bool:
        now = time.time_ns()
        # a file dated in the future would never settle
        latest = max(self.changed_ns, self.mtime_ns if self.mtime_ns <= now else 0)
        return now - latest > _CLOCK_TICK_NS


def stat_file(path: Path) -> FileEntry | None:
    """None where there is no file. A file that `stat` refuses gets an empty entry: reading it says why."""
    try:
        return _entry(str(path), path.stat(), path.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return _empty_entry(str(path), True) if path.is_symlink() else None
    except OSError:
        return _empty_entry(str(path), False)


def _entry(path: str, result: os.stat_result, is_link: bool) -> FileEntry:
    return FileEntry(path, result.st_size, result.st_mtime_ns, result.st_ctime_ns, result.st_ino, is_link)


def _empty_entry(path: str, is_link: bool) -> FileEntry:
    return FileEntry(path, 0, 0, 0, 0, is_link)


def list_files(folder: Path, suffix: str) -> tuple[tuple[FileEntry, ...], str]:
    """The files of a folder with this suffix, sorted, without hidden ones; and the problem, if there is one."""
    try:
        with os.scandir(folder) as found:
            matching = [item for item in found if _matches(item, suffix)]
        return tuple(sorted(_stat_item(item) for item in matching)), ""
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


def _stat_item(item: "os.DirEntry[str]") -> FileEntry:
    try:
        return _entry(item.path, item.stat(), item.is_symlink())
    except OSError:  # a broken link
        return _empty_entry(item.path, item.is_symlink())


class FileCache:
    def __init__(self) -> None:
        self._cached: dict[tuple[str, str], tuple[FileEntry, Any]] = {}

    def get(self, entry: FileEntry, purpose: str, parse: Callable[[str, bytes | str], T]) -> T:
        """What `parse` returns for the file's path and bytes, or for a sentence that says why it cannot be read.

        `purpose` separates results when one file is parsed in several ways.
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
    if stat.S_ISFIFO(_mode(entry.path)):
        return f"{entry.path} is not a regular file and is ignored"
    try:
        with open(entry.path, "rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as why:
        return f"cannot read {entry.path}: {why.strerror}"
    return raw if len(raw) <= MAX_FILE_BYTES else f"{entry.path} is larger than 2 MB, the limit, and is ignored"


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0
