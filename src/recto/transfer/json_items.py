"""JSON files of any size, read item by item: the elements of a list, or objects one after another.

Ends of items are found by their brackets, and each item is decoded when it comes: a file of hundreds of megabytes takes
hardly more memory than its largest item.
"""

import json
import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.base.text import REPLACEMENT, clean
from recto.errors import Invalid

MAX_ITEM_BYTES = 1 << 28
_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[\s,]*+")
_PLAIN = rb'[^"\[\]{}]++|"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"'
_SHALLOW = rb"[\[{](?>(?:" + _PLAIN + rb")*)[\]}]"
_NESTED = rb"[\[{](?>(?:" + _PLAIN + rb"|" + _SHALLOW + rb")*)[\]}]"
# Up to the next bracket that is not within a text. Small lists and objects are passed over as a whole.
_BRACKET = re.compile(rb"(?>(?:" + _PLAIN + rb"|" + _NESTED + rb")*)([\[\]{}])", re.DOTALL)
_OPENING = b"[{"
# Where the title of a conversation stands in the exports that have one, and how a message begins.
_TITLE = re.compile(
    rb'\{\s*(?:"(?:uuid|id|conversation_id|conversationId)"\s*:\s*"[^"]*"\s*,\s*)*"(?:title|name)"\s*:\s*"([^"\\]+)"'
)
_ROLE = re.compile(rb'\{\s*"role"')
LOOKED_AT, LONGEST_TITLE = 2_000, 60
# Characters of what stands where JSON should be, and on both sides of a mistake.
BEGINNING, BEFORE = 40, 20


class JsonItem(Struct, frozen=True):
    value: Any
    place: str
    """Where it is, for people."""
    end: int
    """How many bytes are read with it."""


class JsonFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = path.name
        self.size = path.stat().st_size

    def items(self) -> Iterator[JsonItem]:
        """Raises Invalid, with the line, for what is no JSON or was cut off."""
        with self._mapped() as data:
            start = _skip_space(data, len(_BOM) if data[:3] == _BOM else 0)
            is_list = data[start : start + 1] == b"["
            start = _skip_space(data, start + 1) if is_list else start
            for number in range(1, self.size + 1):
                if data[start : start + 1] in (b"", b"]"):
                    break
                place = _place(data[start : start + LOOKED_AT], number) if is_list else ""
                end = self._end(data, start, place)
                yield JsonItem(self._decoded(data, start, end, place), f"{self.name}, {place or 'item 1'}", end)
                start = _skip_space(data, end)
            self._check_rest(data, start, is_list)

    @contextmanager
    def _mapped(self) -> Iterator[mmap.mmap]:
        with self._path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data

    def _end(self, data: mmap.mmap, start: int, place: str) -> int:
        """Where the object or list ends that starts here."""
        if data[start : start + 1] not in (b"{", b"["):
            begins = " ".join(data[start : start + BEGINNING].decode("utf-8", "replace").split())
            there = f"“{begins}”" if begins.isprintable() and REPLACEMENT not in begins else "something that is no text"
            raise self._error(data, start, f"there should be JSON, and there is {there}", place)
        depth, at = 1, start + 1
        while (found := _BRACKET.match(data, at)) is not None:
            depth += 1 if found[1] in _OPENING else -1
            at = found.end()
            if depth == 0:
                return at
            if at - start > MAX_ITEM_BYTES:
                raise self._error(data, start, f"it is longer than {MAX_ITEM_BYTES:,} bytes", place)
        raise self._error(data, start, "it has no end, so the file was cut off", place)

    def _decoded(self, data: mmap.mmap, start: int, end: int, place: str) -> Any:
        text = data[start:end].decode("utf-8", "surrogateescape")
        try:
            return json.loads(text, strict=False)
        except RecursionError:
            raise self._error(data, start, "it is nested too deeply", place) from None
        except json.JSONDecodeError as why:
            at = start + len(text[: why.pos].encode("utf-8", "surrogateescape"))
            near = " ".join(text[max(0, why.pos - BEFORE) : why.pos + BEFORE].split())
            problem = why.msg[:1].lower() + why.msg[1:]
            raise self._error(data, at, f"it is no valid JSON ({problem}) near “{near}”", place) from why
        except ValueError as why:  # a number of more than 4,300 digits
            raise self._error(data, start, str(why), place) from why

    def _check_rest(self, data: mmap.mmap, start: int, is_list: bool) -> None:
        if is_list and data[start : start + 1] != b"]":
            raise self._error(data, self.size, "the list has no end, so the file was cut off")
        if _skip_space(data, start + is_list) < self.size:
            raise self._error(data, start, "nothing should follow here")

    def _error(self, data: mmap.mmap, at: int, why: str, place: str = "") -> Invalid:
        line = 1 + sum(1 for _ in re.finditer(rb"\n", data[:at])) if at < MAX_ITEM_BYTES else 0
        where = ", ".join(filter(None, (self.name, f"line {line:,}" if line > 1 else "", place)))
        return Invalid(clean(f"{where}: {why}; nothing was imported")[0], path=str(self._path))


def _place(head: bytes, number: int) -> str:
    """An item as a person finds it: a conversation by its title, in exports that have one."""
    title = _TITLE.search(head)
    if title is not None:
        return f"conversation {number:,} (“{title[1].decode('utf-8', 'replace')[:LONGEST_TITLE]}”)"
    return f"message {number:,}" if _ROLE.match(head) else f"item {number:,}"


def _skip_space(data: mmap.mmap, start: int) -> int:
    found = _SPACE.match(data, start)
    return found.end() if found else start
