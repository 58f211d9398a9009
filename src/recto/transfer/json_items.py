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

from recto.errors import Invalid

MAX_ITEM_BYTES = 1 << 28
_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[\s,]*+")
_PLAIN = rb'[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SHALLOW = rb"[\[{](?:" + _PLAIN + rb")*+[\]}]"
_NESTED = rb"[\[{](?:" + _PLAIN + rb"|" + _SHALLOW + rb")*+[\]}]"
# Up to the next bracket that is not within a text. Small lists and objects are passed over as a whole.
_BRACKET = re.compile(rb"(?:" + _PLAIN + rb"|" + _NESTED + rb")*+([\[\]{}])", re.DOTALL)
_OPENING = b"[{"


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
                end = self._end(data, start)
                yield JsonItem(self._decoded(data, start, end), f"{self.name}, item {number:,}", end)
                start = _skip_space(data, end)
            self._check_rest(data, start, is_list)

    @contextmanager
    def _mapped(self) -> Iterator[mmap.mmap]:
        with self._path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data

    def _end(self, data: mmap.mmap, start: int) -> int:
        """Where the object or list ends that starts here."""
        if data[start : start + 1] not in (b"{", b"["):
            raise self._error(data, start, "an object should begin here")
        depth, at = 1, start + 1
        while (found := _BRACKET.match(data, at)) is not None:
            depth += 1 if found[1] in _OPENING else -1
            at = found.end()
            if depth == 0:
                return at
            if at - start > MAX_ITEM_BYTES:
                raise self._error(data, start, f"an item is longer than {MAX_ITEM_BYTES:,} bytes")
        raise self._error(data, start, "the item that begins here has no end, so the file was cut off")

    def _decoded(self, data: mmap.mmap, start: int, end: int) -> Any:
        try:
            return json.loads(data[start:end].decode("utf-8", "surrogateescape"), strict=False)
        except RecursionError:
            raise self._error(data, start, "it is nested too deeply") from None
        except json.JSONDecodeError as why:
            raise self._error(data, start, f"{why.msg} (character {why.pos:,} of the item)") from why
        except ValueError as why:  # a number of more than 4,300 digits
            raise self._error(data, start, str(why)) from why

    def _check_rest(self, data: mmap.mmap, start: int, is_list: bool) -> None:
        if is_list and data[start : start + 1] != b"]":
            raise self._error(data, self.size, "the list has no end, so the file was cut off")
        if _skip_space(data, start + is_list) < self.size:
            raise self._error(data, start, "nothing should follow here")

    def _error(self, data: mmap.mmap, at: int, why: str) -> Invalid:
        line = 1 + sum(1 for _ in re.finditer(rb"\n", data[:at])) if at < MAX_ITEM_BYTES else 0
        where = f"line {line:,}" if line > 1 else f"byte {at:,}"
        return Invalid(f"{self.name}, {where}: {why}; nothing was imported", path=str(self._path))


def _skip_space(data: mmap.mmap, start: int) -> int:
    found = _SPACE.match(data, start)
    return found.end() if found else start
