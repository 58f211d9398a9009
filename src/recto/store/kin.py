"""Kin: the messages that a request quotes. What it says of them is packed beside them, and so hardly kept twice.

Ids and blocks as they are stored serve as a dictionary, for ever: whoever rewrites stored blocks packs anew what was
packed beside them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from recto.store.schema import messages

# Of one message, and of all: zlib looks back 32 kilobytes.
LONGEST, MOST = 3_000, 24_000


@dataclass(frozen=True, slots=True)
class Kin:
    numbers: tuple[int, ...] = ()
    data: bytes = b""


ALONE = Kin()


def named(account: Mapping[str, Any]) -> list[str]:
    """The ids of the messages that were recalled, or found and left out."""
    sections = [each for each in account.get("sections", ()) if isinstance(each, dict) and each["name"] == "recalled"]
    picks = [*(pick for section in sections for pick in section["picks"]), *account.get("not_picked", ())]
    return list(dict.fromkeys(pick["name"] for pick in picks if pick["kind"] == "message"))


def kin_of(connection: Connection, ids: Sequence[str]) -> Kin:
    """Those whose blocks change no more, as many as fit."""
    if not ids:
        return ALONE
    query = select(messages.c.n, messages.c.id, messages.c.blocks)
    rows = connection.execute(query.where(messages.c.id.in_(ids), messages.c.status != "unfinished")).all()
    numbers, parts, left = [], [], MOST
    for row in sorted(rows, key=lambda row: row.n):
        part = _part(row.id, row.blocks)
        if len(part) <= left:
            numbers.append(row.n)
            parts.append(part)
            left -= len(part)
    return Kin(tuple(numbers), b"".join(parts))


def kin_again(connection: Connection, numbers: Iterable[int]) -> Kin:
    """The same as when it was packed; where a message is gone its part is missing, and what was packed shows it."""
    wanted = tuple(numbers)
    query = select(messages.c.n, messages.c.id, messages.c.blocks).where(messages.c.n.in_(wanted))
    found = {row.n: _part(row.id, row.blocks) for row in connection.execute(query)}
    return Kin(wanted, b"".join(found.get(number, b"") for number in wanted))


def _part(id: str, blocks: str) -> bytes:
    return id.encode() + blocks.encode()[:LONGEST]
