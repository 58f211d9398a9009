"""Accounts: what a record tells of a request, as it is stored. Knows nothing of the bytes that were sent.

What the session's sources say is the same from turn to turn: such a section's picks are kept once, as a piece, and the
account holds its number in their place.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from recto import wire
from recto.errors import Altered
from recto.store.packing import unpack
from recto.store.rebuilding import Rebuilding, beside
from recto.store.rows import AnyRow
from recto.window.request import Piece

OF_SESSION = ("rules", "references", "tools")
# Fewer bytes of picks than these take less room in the account itself.
WORTH_IT = 300


def shared_picks(account: Mapping[str, Any]) -> dict[str, Piece]:
    """The picks that come again with the next request, by section."""
    sections = [each for each in account.get("sections", ()) if isinstance(each, dict) and each["name"] in OF_SESSION]
    found = {each["name"]: wire.dumpb(each["picks"]) for each in sections}
    return {name: Piece("join", data) for name, data in found.items() if len(data) >= WORTH_IT}


def with_numbers(account: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    if not numbers:
        return dict(account)
    return _changed(account, lambda section: numbers.get(section["name"], section["picks"]))


def read_account(connection: Connection, row: AnyRow) -> dict[str, Any]:
    """The account of a row of `requests`. Altered when it can no longer be read."""
    with _altered(row.id):
        told = _unpacked(connection, row)
        if not (numbers := _numbers(told)):
            return told
        found = Rebuilding().data(connection, row.id, numbers)
        picks = {number: wire.loads(data) for number, data in zip(numbers, found, strict=True)}
        return _changed(told, lambda section: picks.get(_number(section), section["picks"]))


def read_bare(connection: Connection, row: AnyRow) -> dict[str, Any]:
    """The same without the picks that are kept as pieces: what a turn asks of the request before needs none."""
    with _altered(row.id):
        return _unpacked(connection, row)


def prove_account(connection: Connection, row: AnyRow, again: Rebuilding) -> None:
    """Altered when it can no longer be read. What is kept as a piece has its own hash and need not be read for that."""
    with _altered(row.id):
        again.data(connection, row.id, _numbers(_unpacked(connection, row)))


@contextmanager
def _altered(request: str) -> Iterator[None]:
    try:
        yield
    except (zlib.error, ValueError, TypeError, LookupError, AttributeError, Altered) as why:
        raise Altered(f"the account of request {request} cannot be read: {why}", id=request) from why


def written(account: Mapping[str, Any]) -> bytes:
    """As it is packed: JSON, and behind it on a line of its own the check without which a changed digit might pass."""
    data = wire.dumpb(account)
    return data + b"\n%08x" % zlib.crc32(data)


def _unpacked(connection: Connection, row: AnyRow) -> dict[str, Any]:
    data, _, check = unpack(row.account, beside(connection)).partition(b"\n")
    # older versions wrote none
    if check and int(check, 16) != zlib.crc32(data):
        raise ValueError("it was changed")
    told: dict[str, Any] = wire.loads(data)
    return told


def _changed(account: Mapping[str, Any], picks: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
    sections = account["sections"]
    changed = [{**each, "picks": picks(each)} if isinstance(each, dict) else each for each in sections]
    return {**account, "sections": changed}


def _numbers(told: Mapping[str, Any]) -> Sequence[int]:
    sections = told.get("sections") or ()
    return [number for each in sections if isinstance(each, dict) and (number := _number(each))]


def _number(section: Mapping[str, Any]) -> int:
    """Of the piece with its picks; 0, which no piece has, where the account holds them itself."""
    picks = section.get("picks")
    return picks if isinstance(picks, int) else 0
