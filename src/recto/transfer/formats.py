"""The import formats: opens a file, detects its format from its content, and selects the reader.

JSON files of any size are read item by item: the elements of a list, or consecutive objects, so a file of hundreds of
megabytes takes little more memory than its largest item. The JSON files in a ZIP file are unpacked into a temporary
folder, within limits.
"""

import json
import lzma
import mmap
import os
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from msgspec import Struct

from recto.base.text import clean
from recto.chat.message import stored_time
from recto.errors import Invalid, NotFound
from recto.transfer.chatgpt import is_chatgpt, read_chatgpt
from recto.transfer.foreign import FindMedia, ForeignConversation, ForeignTree, object_of, text_of
from recto.transfer.llm_logs import MAGIC as SQLITE_MAGIC
from recto.transfer.llm_logs import LlmLogs
from recto.transfer.message_lists import (
    is_claude,
    is_librechat,
    is_message,
    is_openai,
    read_claude,
    read_librechat,
    read_openai,
)
from recto.transfer.recto_json import FORMAT, RectoFile
from recto.transfer.report import IMPORT_FORMATS, ConversationSource, ImportFormat, IncomingConversation

# The number of bytes examined to detect the format.
BEGINNING = 1 << 12
_JSON: dict[ImportFormat, tuple[Callable[[Any], bool], Callable[[Any, str, FindMedia], ForeignConversation]]] = {
    "chatgpt": (is_chatgpt, read_chatgpt),
    "claude": (is_claude, read_claude),
    "librechat": (is_librechat, read_librechat),
    "openai": (is_openai, read_openai),
}


@contextmanager
def open_source(path: Path, format: ImportFormat | None = None) -> Iterator[ConversationSource]:
    """The conversations of a file; `format` is used if the file does not show it."""
    try:
        if path.is_dir():
            raise Invalid(f"{path} is a folder; name a file in it, such as conversations.json", path=str(path))
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
        if not beginning.strip():
            raise Invalid(f"{path} is empty: there is nothing to import", path=str(path))
        with _opened(path, beginning, format) as source:
            yield source
    except FileNotFoundError as why:
        raise NotFound(f"there is no file {path}", path=str(path)) from why
    except OSError as why:
        raise Invalid(f"cannot read {path}: {why.strerror or why}", path=str(path)) from why


@contextmanager
def _opened(path: Path, beginning: bytes, format: ImportFormat | None) -> Iterator[ConversationSource]:
    changed = stored_time(datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat())
    if beginning.startswith(ZIP_MAGIC):
        with _unpacked(path) as (files, archive):
            yield JsonSource(files, format, _archive_media(archive), changed)
    elif format == "llm" or (format is None and beginning.startswith(SQLITE_MAGIC)):
        yield LlmLogs(path, changed)
    elif format == "recto" or (format is None and f'"{FORMAT}"'.encode() in beginning.partition(b"\n")[0]):
        yield RectoFile(path)
    else:
        yield JsonSource([path], format, _folder_media(path.parent), changed)


class JsonSource:
    def __init__(self, files: list[Path], format: ImportFormat | None, media: FindMedia, changed: str) -> None:
        self._files = [JsonFile(file) for file in files]
        self._media, self._changed = media, changed
        self.name: ImportFormat = format or _sniffed(self._files)
        self.size = sum(file.size for file in self._files)

    def conversations(self) -> Generator[IncomingConversation, None, None]:
        _, read = _JSON[self.name]
        before = 0
        for file in self._files:
            for item in _joined_messages(file):
                found = read(item.value, item.place, self._media)
                yield ForeignTree(self.name, found, item.place, self._changed).incoming(before + item.end)
            before += file.size


def _sniffed(files: list["JsonFile"]) -> ImportFormat:
    """The format of the first item that has one: an export may begin with an empty conversation."""
    for file in files:
        for item in file.items():
            for name, (is_in_format, _) in _JSON.items():
                if is_in_format(item.value):
                    return name
    known = ", ".join(IMPORT_FORMATS)
    raise Invalid(f"{files[0].name} has an unknown format (known: {known}); nothing was imported")


# -- JSON

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[\s,]*+")
_decoder = json.JSONDecoder(strict=False)
# The bytes that are tried first for an item, then four times as many.
FIRST_TRY = 1 << 16
LONGEST_TITLE = 60
# Characters shown on each side of a mistake.
AROUND = 20


class JsonItem(Struct, frozen=True):
    value: Any
    place: str
    end: int
    """The number of bytes read up to its end."""


def _joined_messages(file: "JsonFile") -> Iterator[JsonItem]:
    """The items of a file, with all messages collected in one list at the end."""
    messages: list[Any] = []
    end = 0
    for item in file.items():
        if is_message(item.value):
            messages.append(item.value)
            end = item.end
        else:
            yield item
    if messages:
        yield JsonItem(messages, file.name, end)


class JsonFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = path.name
        self.size = path.stat().st_size

    def items(self) -> Iterator[JsonItem]:
        """Raises Invalid, with the line, for text that is not JSON or is cut off."""
        with self._path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            start = _skip_space(data, len(_BOM) if data[:3] == _BOM else 0)
            is_list = data[start : start + 1] == b"["
            start = _skip_space(data, start + 1) if is_list else start
            for number in range(1, self.size + 1):
                if data[start : start + 1] in (b"", b"]"):
                    break
                value, end = self._decoded(data, start, f"item {number:,}" if is_list else "")
                yield JsonItem(value, f"{self.name}, {_place(value, number) if is_list else 'item 1'}", end)
                start = _skip_space(data, end)
            if is_list and data[start : start + 1] != b"]":
                raise self._error(data, self.size, "the list does not end, so the file was cut off")
            if _skip_space(data, start + is_list) < self.size:
                raise self._error(data, start, "unexpected text after the end")

    def _decoded(self, data: mmap.mmap, start: int, place: str) -> tuple[Any, int]:
        """The value that begins here, and its end."""
        size = FIRST_TRY
        while True:
            text = data[start : start + size].decode("utf-8", "surrogateescape")
            try:
                value, end = _decoder.raw_decode(text)
                return value, start + len(text[:end].encode("utf-8", "surrogateescape"))
            except RecursionError:
                raise self._error(data, start, "it is nested too deeply", place) from None
            except json.JSONDecodeError as why:
                if start + size < self.size:
                    size *= 4
                    continue
                if why.pos >= len(text.rstrip()) or why.msg.startswith("Unterminated"):
                    raise self._error(data, start, "it does not end, so the file was cut off", place) from why
                at = start + len(text[: why.pos].encode("utf-8", "surrogateescape"))
                near = " ".join(text[max(0, why.pos - AROUND) : why.pos + AROUND].split())
                problem = why.msg[:1].lower() + why.msg[1:]
                raise self._error(data, at, f"it is not valid JSON ({problem}) near “{near}”", place) from why
            except ValueError as why:  # a number of more than 4,300 digits
                raise self._error(data, start, str(why), place) from why

    def _error(self, data: mmap.mmap, at: int, why: str, place: str = "") -> Invalid:
        line = 1 + data[:at].count(b"\n")
        where = ", ".join(filter(None, (self.name, f"line {line:,}" if line > 1 else "", place)))
        return Invalid(clean(f"{where}: {why}; nothing was imported")[0], path=str(self._path))


def _place(value: Any, number: int) -> str:
    """The label of an item: a conversation's title, in exports that have one."""
    if is_message(value):
        return f"message {number:,}"
    about = object_of(value)
    title = text_of(about.get("title")) or text_of(about.get("name"))
    return f"conversation {number:,} (“{title[:LONGEST_TITLE]}”)" if title else f"item {number:,}"


def _skip_space(data: mmap.mmap, start: int) -> int:
    found = _SPACE.match(data, start)
    return found.end() if found else start


# -- ZIP files

ZIP_MAGIC = b"PK\x03\x04"
MAX_UNPACKED_BYTES = 4 << 30
# Text shrinks to a tenth; a higher ratio suggests a ZIP bomb.
MAX_RATIO = 200
# Small files may shrink to nearly nothing.
HARMLESS_BYTES = 16 << 20


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[list[Path], ZipFile]]:
    """The files with conversations, and the archive itself for the files they refer to."""
    try:
        with ZipFile(path) as archive, TemporaryDirectory(prefix="recto-import-") as folder:
            files = []
            for number, member in enumerate(_conversation_files(archive, path)):
                # use our own name: one from an archive may lead anywhere
                files.append(Path(folder, f"{number}-{PurePosixPath(member.filename).name}"))
                with archive.open(member) as source, files[-1].open("wb") as file:
                    copyfileobj(source, file)
            yield files, archive
    except (BadZipFile, zlib.error, lzma.LZMAError, EOFError) as why:
        raise Invalid(f"{path.name} is damaged or was cut off ({why}); nothing was imported") from why
    except RuntimeError as why:  # an unknown compression, a password
        raise Invalid(f"{path.name} cannot be unpacked ({why}); unpack it yourself") from why


def _conversation_files(archive: ZipFile, path: Path) -> list[ZipInfo]:
    found = [each for each in archive.infolist() if _holds_conversations(PurePosixPath(each.filename).name)]
    if not found:
        raise Invalid(f"{path.name} contains no conversations.json, so it is not a chat export")
    size, packed = sum(each.file_size for each in found), sum(each.compress_size for each in found)
    if size > MAX_UNPACKED_BYTES or (size > HARMLESS_BYTES and size > MAX_RATIO * packed):
        raise Invalid(f"{path.name} would unpack to {size:,} bytes from {packed:,}: this is not a chat export")
    return sorted(found, key=lambda each: each.filename)


def _holds_conversations(name: str) -> bool:
    """`conversations.json`, or `conversations-001.json` of several."""
    number = name.removeprefix("conversations").removesuffix(".json")
    return name == f"conversations{number}.json" and (not number or (number[0] in "-_" and number[1:].isdecimal()))


# -- files that come with an export: found by the beginning of their name, in its folder or archive

MAX_FILE_BYTES = 64 << 20
SHORTEST_KEY = 4


def _folder_media(folder: Path) -> FindMedia:
    """Files next to an export. Their names come from the folder, never from the export."""

    @cache
    def listed() -> FindMedia:
        with os.scandir(folder) as found:
            sizes = {each.name: each.stat().st_size for each in found if each.is_file(follow_symlinks=False)}
        return _finder(sizes, lambda name: (folder / name).read_bytes())

    return lambda key: listed()(key)


def _archive_media(archive: ZipFile) -> FindMedia:
    sizes = {each.filename: each.file_size for each in archive.infolist() if not each.is_dir()}
    return _finder(sizes, archive.read)


def _finder(sizes: dict[str, int], read: Callable[[str], bytes]) -> FindMedia:
    names: dict[str, str] = {}
    for name in sizes:  # `file-abc-photo.png` and `file_abc.dat` by `file-abc` and `file_abc`
        own = PurePosixPath(name).name
        names.setdefault(own.partition(".")[0], name)
        if key := re.match(r"file[-_][A-Za-z0-9]+", own):
            names.setdefault(key[0], name)

    def find(key: str) -> tuple[str, bytes] | None:
        name = names.get(key) if len(key) >= SHORTEST_KEY else None
        if name is None or sizes[name] > MAX_FILE_BYTES:
            return None
        own = PurePosixPath(name).name
        return own.removeprefix(key).lstrip("-_") or own, read(name)

    return find
