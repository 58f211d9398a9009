"""Rebuilding: requests as the bytes that were sent, from stored pieces. No renderer runs.

Requests share most of their pieces: whoever rebuilds many in a row reads, unpacks and proves each piece once.
"""

import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from sqlalchemy import Connection

from recto import wire
from recto.errors import Altered
from recto.store.kin import kin_again
from recto.store.packing import unpack
from recto.store.queries import BASE_BY_NUMBER, CHAIN, PIECES
from recto.store.rows import AnyRow
from recto.window.request import with_mark

T = TypeVar("T")

# Bytes of pieces, and numbers in lists of pieces, that are held while many requests are rebuilt.
MOST_BYTES, MOST_NUMBERS = 32_000_000, 1_000_000
NO_PIECES: list[int] = []


class Held(Generic[T]):
    """What was used last, by number, up to a weight in all."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._held: OrderedDict[int, tuple[T, int]] = OrderedDict()

    def get(self, number: int) -> T | None:
        if (found := self._held.get(number)) is None:
            return None
        self._held.move_to_end(number)
        return found[0]

    def put(self, number: int, value: T, weight: int) -> None:
        self._held[number] = value, weight
        self._weight += weight
        while self._weight > self._most:
            self._weight -= self._held.popitem(last=False)[1][1]


class Rebuilding:
    """Rebuilds rows of `requests`, one after another. What is stored by number never changes, so it may be held."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_numbers: int = MOST_NUMBERS) -> None:
        self._pieces = Held[bytes](most_bytes)
        self._lists = Held[tuple[int, list[int]]](most_numbers)

    def body(self, connection: Connection, row: AnyRow) -> bytes:
        """The bytes that were sent. Altered when what is stored no longer gives them."""
        stored = self.pieces(connection, row)
        body = b"".join(_with_marks(row.id, row.marks, stored))
        rebuilt = hashlib.sha256(body).digest()
        if rebuilt != row.sha256:
            raise Altered(
                f"request {row.id} does not rebuild: its {len(body)} bytes do not have the sha256 that was recorded",
                id=row.id,
                recorded=row.sha256.hex(),
                rebuilt=rebuilt.hex(),
            )
        if len(body) != row.size:
            raise Altered(f"request {row.id} has {len(body)} bytes; {row.size} were recorded", id=row.id)
        return body

    def pieces(self, connection: Connection, row: AnyRow) -> list[bytes]:
        """In order, without marks."""
        return self.data(connection, row.id, self.numbers(connection, row))

    def data(self, connection: Connection, request: str, numbers: Sequence[int]) -> list[bytes]:
        known = {number: self._pieces.get(number) for number in numbers}
        if missing := [number for number, data in known.items() if data is None]:
            known.update(self._read(connection, request, missing))
        found: list[bytes] = []
        for place, number in enumerate(numbers, 1):
            if (data := known[number]) is None:
                gone = f"piece {place} of {len(numbers)} is gone"
                raise Altered(f"request {request} does not rebuild: {gone}", id=request)
            found.append(data)
        return found

    def _read(self, connection: Connection, request: str, numbers: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for row in PIECES(connection, numbers=wire.dumps(numbers)):
            found[row.n] = data = _proved(connection, request, row.sha256, row.data)
            self._pieces.put(row.n, data, len(data))
        return found

    def numbers(self, connection: Connection, row: AnyRow) -> list[int]:
        """Of the request's pieces: what it kept of its base's, then its own."""
        held = self._lists.get(row.n)
        if held is None:
            before = self._base(connection, row) if row.base is not None else NO_PIECES
            held = row.chain, before[: row.kept] + _added(row.id, row.added)
            self._lists.put(row.n, held, len(held[1]))
        return held[1]

    def _base(self, connection: Connection, row: AnyRow) -> list[int]:
        """A chain falls from request to base: damaged data that goes round ends there."""
        held = self._lists.get(row.base)
        if held is None:
            found = BASE_BY_NUMBER(connection, n=row.base).first()
            held = (
                (found.chain, _chained(connection, found.id, row.id)) if found is not None else (row.chain, NO_PIECES)
            )
            self._lists.put(row.base, held, len(held[1]))
        return held[1] if held[0] < row.chain else NO_PIECES


def _chained(connection: Connection, base: str, request: str) -> list[int]:
    """The numbers of a base's pieces: back along its own bases, then forward, keeping what each kept."""
    numbers = NO_PIECES
    for row in CHAIN(connection, id=base):
        numbers = numbers[: row.kept] + _added(request, row.added)
    return numbers


def _added(request: str, text: bytes | str) -> list[int]:
    try:
        added = wire.loads(text.decode() if isinstance(text, bytes) else text)
    except ValueError:
        added = None
    if not isinstance(added, list) or not all(type(number) is int for number in added):
        raise Altered(f"request {request} does not rebuild: its list of pieces was changed", id=request)
    return added


def beside(connection: Connection) -> Callable[[list[int]], bytes]:
    return lambda numbers: kin_again(connection, numbers).data


def _proved(connection: Connection, request: str, sha256: bytes, packed: bytes) -> bytes:
    try:
        data = unpack(packed, beside(connection))
    except zlib.error:
        data = b""
    if hashlib.sha256(data).digest() != sha256:
        raise Altered(f"request {request} does not rebuild: its piece {sha256.hex()[:16]} was changed", id=request)
    return data


def _with_marks(request: str, marks: bytes | str | None, stored: list[bytes]) -> list[bytes]:
    """The pieces as they were sent; they are stored without marks."""
    if marks is None:
        return stored
    try:
        known = wire.loads(marks)
        mark, at = known["bytes"].encode(), dict(known["at"])
        return [with_mark(data, at[place], mark) if place in at else data for place, data in enumerate(stored)]
    except (ValueError, TypeError, LookupError, AttributeError) as why:
        raise Altered(f"request {request} does not rebuild: its marks were changed", id=request) from why
