"""Rebuilds requests from the store: the bytes that were sent, and their account. Nothing is rendered again. Requests
share most of their pieces, so a Rebuilder reads, unpacks and checks each piece once.
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, bindparam, select

from recto import wire
from recto.errors import Altered
from recto.store.dialect import in_list, raw_bytes
from recto.store.packing import load_dictionary, unpack
from recto.store.prepared_statement import Statement
from recto.store.rows import AnyRow
from recto.store.schema import pieces, requests
from recto.window.account import RequestAccount
from recto.window.request import Piece, with_mark

T = TypeVar("T")

# Cache limits while many requests are rebuilt: bytes of pieces, and numbers in lists of pieces.
MAX_CACHED_BYTES, MAX_CACHED_NUMBERS = 32_000_000, 1_000_000
NO_PIECES: list[int] = []
PIECES = Statement(select(pieces.c.n, pieces.c.sha256, pieces.c.data).where(in_list(pieces.c.n, "numbers")))
_BASE = Statement(select(requests.c.id, requests.c.chain).where(requests.c.n == bindparam("n")))


def _chain() -> Statement:
    """A request and its bases back to a full list, oldest first; the last row is the request itself."""
    columns = ("base", "kept", "added", "chain")
    bases = (
        select(*(requests.c[name] for name in columns))
        .where(requests.c.id == bindparam("id"))
        .cte("bases", recursive=True)
    )
    base = requests.alias("before")
    further = select(*(base.c[name] for name in columns)).join(bases, base.c.n == bases.c.base)
    # `chain` decreases from request to base, so damaged data cannot loop
    bases = bases.union_all(further.where(base.c.chain < bases.c.chain))
    return Statement(select(bases.c.kept, raw_bytes(bases.c.added).label("added")).order_by(bases.c.chain))


CHAIN = _chain()


class _Cache(Generic[T]):
    """Values by number, up to a total weight: then it starts again."""

    def __init__(self, max_weight: int) -> None:
        self._max_weight, self._weight = max_weight, 0
        self._known: dict[int, T] = {}
        self.get = self._known.get

    def put(self, number: int, value: T, weight: int) -> None:
        if self._weight > self._max_weight:
            self._known.clear()
            self._weight = 0
        self._known[number] = value
        self._weight += weight


class Rebuilder:
    """Rebuilds rows of `requests`. Numbered rows never change, so they can be cached."""

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES, max_numbers: int = MAX_CACHED_NUMBERS) -> None:
        self._pieces = _Cache[bytes](max_bytes)
        self._lists = _Cache[tuple[int, list[int]]](max_numbers)

    def body(self, connection: Connection, row: AnyRow) -> bytes:
        """The bytes that were sent. Raises Altered if the stored data no longer yields them."""
        stored = self.pieces(connection, row)
        body = b"".join(_with_marks(row.id, row.marks, stored))
        rebuilt = hashlib.sha256(body).digest()
        if rebuilt != row.sha256:
            hashes = {"recorded": row.sha256.hex(), "rebuilt": rebuilt.hex()}
            raise _not_rebuilt(row.id, f"its {len(body)} bytes do not have the sha256 that was recorded", **hashes)
        if len(body) != row.size:
            raise Altered(f"request {row.id} has {len(body)} bytes; {row.size} were recorded", id=row.id)
        return body

    def pieces(self, connection: Connection, row: AnyRow) -> list[bytes]:
        """Without marks."""
        return self.data(connection, row.id, self.numbers(connection, row))

    def data(self, connection: Connection, request: str, numbers: Sequence[int]) -> list[bytes]:
        known = {number: data for number in numbers if (data := self._pieces.get(number)) is not None}
        if missing := [number for number in dict.fromkeys(numbers) if number not in known]:
            for row in PIECES(connection, numbers=missing):
                known[row.n] = data = _checked(connection, request, row.sha256, row.data)
                self._pieces.put(row.n, data, len(data))
        if lost := [place for place, number in enumerate(numbers, 1) if number not in known]:
            raise _not_rebuilt(request, f"piece {lost[0]} of {len(numbers)} is missing")
        return [known[number] for number in numbers]

    def numbers(self, connection: Connection, row: AnyRow) -> list[int]:
        """The numbers of the request's pieces: those shared with its base, then its own."""
        known = self._lists.get(row.n)
        if known is None:
            before = self._base(connection, row) if row.base is not None else NO_PIECES
            known = row.chain, before[: row.kept] + _added(row.id, row.added)
            self._lists.put(row.n, known, len(known[1]))
        return known[1]

    def _base(self, connection: Connection, row: AnyRow) -> list[int]:
        """The numbers of the base's pieces. `chain` decreases from request to base, so damaged data cannot loop."""
        known = self._lists.get(row.base)
        if known is None:
            found = _BASE(connection, n=row.base).first()
            known = (
                (found.chain, _chained(connection, found.id, row.id)) if found is not None else (row.chain, NO_PIECES)
            )
            self._lists.put(row.base, known, len(known[1]))
        return known[1] if known[0] < row.chain else NO_PIECES


def _not_rebuilt(request: str, why: str, **data: str) -> Altered:
    return Altered(f"request {request} does not rebuild: {why}", id=request, **data)


def _chained(connection: Connection, base: str, request: str) -> list[int]:
    """The numbers of a base's pieces, collected from its first base on."""
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
        raise _not_rebuilt(request, "its list of pieces was changed")
    return added


def dictionary_reader(connection: Connection) -> Callable[[list[int]], bytes]:
    return lambda numbers: load_dictionary(connection, numbers).data


def _checked(connection: Connection, request: str, sha256: bytes, packed: bytes) -> bytes:
    try:
        data = unpack(packed, dictionary_reader(connection))
    except zlib.error:
        data = b""
    if hashlib.sha256(data).digest() != sha256:
        raise _not_rebuilt(request, f"its piece {sha256.hex()[:16]} was changed")
    return data


def _with_marks(request: str, marks: bytes | str | None, stored: list[bytes]) -> list[bytes]:
    if marks is None:
        return stored
    try:
        known = wire.loads(marks)
        mark, at = known["bytes"].encode(), dict(known["at"])
        return [with_mark(data, at[place], mark) if place in at else data for place, data in enumerate(stored)]
    except (ValueError, TypeError, LookupError, AttributeError) as why:
        raise _not_rebuilt(request, "its marks were changed") from why


# -- accounts: JSON in which the picks of some sections are replaced by the number of a piece

# Sections whose picks seldom change between requests: stored once, as a piece.
SHARED_SECTIONS = ("system", "rules", "references", "tools")
# Shorter picks take less space in the account itself.
SHORTEST_SHARED = 100


def shared_picks(account: Mapping[str, Any]) -> dict[str, Piece]:
    sections = [section for section in account.get("sections", ()) if section["name"] in SHARED_SECTIONS]
    found = {section["name"]: wire.dumpb(section["picks"]) for section in sections}
    return {name: Piece("join", data) for name, data in found.items() if len(data) >= SHORTEST_SHARED}


def with_piece_numbers(account: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    """The account with picks replaced by piece numbers; `numbers` are by section."""
    if not numbers:
        return dict(account)
    return _with_picks(account, lambda section: numbers.get(section["name"], section["picks"]))


def encode_account(account: Mapping[str, Any]) -> bytes:
    """JSON, then a line with its checksum: otherwise a changed digit would go unnoticed."""
    data = wire.dumpb(account)
    return data + b"\n%08x" % zlib.crc32(data)


def read_account(connection: Connection, row: AnyRow) -> RequestAccount:
    """Raises Altered if the account is unreadable."""
    with _altered(row.id):
        return RequestAccount.from_json(read_account_json(connection, row, Rebuilder()))


def read_account_json(connection: Connection, row: AnyRow, again: Rebuilder) -> dict[str, Any]:
    with _altered(row.id):
        account = _decoded(connection, row)
        if numbers := _piece_numbers(account):
            found = again.data(connection, row.id, numbers)
            picks = {number: wire.loads(data) for number, data in zip(numbers, found, strict=True)}
            account = _with_picks(account, lambda section: picks.get(_piece_number(section), section["picks"]))
        return account


def read_bare_account(connection: Connection, row: AnyRow) -> RequestAccount:
    """Without the picks stored as pieces, which saving the next request does not need."""
    with _altered(row.id):
        account = _decoded(connection, row)
        if _piece_numbers(account):
            account = _with_picks(account, lambda section: () if _piece_number(section) else section["picks"])
        return RequestAccount.from_json(account)


def read_window_size(connection: Connection, row: AnyRow) -> RequestAccount:
    """Only model, limit and total: for reports, which read hundreds of accounts."""
    with _altered(row.id):
        account = _decoded(connection, row)
        return RequestAccount(model=account.get("model"), limit=account.get("limit"), total=account.get("total"))


def verify_account(connection: Connection, row: AnyRow, again: Rebuilder) -> None:
    """Raises Altered if the account is unreadable. Pieces have their own hash, so their picks are not decoded."""
    with _altered(row.id):
        again.data(connection, row.id, _piece_numbers(_decoded(connection, row)))


_HASH = re.compile(rb"[0-9a-f]{64}")


def hashes_in(text: bytes) -> set[str]:
    """Everything in a stored text that may be the sha256 of a blob."""
    return {found.decode() for found in _HASH.findall(text)}


def named_by(connection: Connection, row: AnyRow, again: Rebuilder) -> tuple[list[int], set[str]]:
    """The numbers of the pieces that a request adds to its base or names in its account, and the hashes of the blobs in
    its account. Damaged data names nothing."""
    numbers: list[int] = []
    hashes: set[str] = set()
    with suppress(Altered):
        numbers += _added(row.id, row.added)
    with suppress(Altered), _altered(row.id):
        account = unpack(row.account, dictionary_reader(connection))
        picks = _piece_numbers(wire.loads(account.partition(b"\n")[0]))
        numbers += picks
        hashes = hashes_in(b" ".join([account, *again.data(connection, row.id, picks)]))
    return numbers, hashes


@contextmanager
def _altered(request: str) -> Iterator[None]:
    try:
        yield
    except (zlib.error, ValueError, TypeError, LookupError, AttributeError, Altered) as why:
        raise Altered(f"the account of request {request} cannot be read: {why}", id=request) from why


def _decoded(connection: Connection, row: AnyRow) -> dict[str, Any]:
    data, _, check = unpack(row.account, dictionary_reader(connection)).partition(b"\n")
    if int(check, 16) != zlib.crc32(data):
        raise ValueError("it was changed")
    account: dict[str, Any] = wire.loads(data)
    return account


def _with_picks(account: Mapping[str, Any], picks: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
    return {**account, "sections": [{**section, "picks": picks(section)} for section in account["sections"]]}


def _piece_numbers(account: Mapping[str, Any]) -> Sequence[int]:
    return [number for section in account.get("sections") or () if (number := _piece_number(section))]


def _piece_number(section: Mapping[str, Any]) -> int:
    """The number of the piece with the picks; 0, which no piece has, if the picks are in the account itself."""
    picks = section.get("picks")
    return picks if isinstance(picks, int) else 0
