"""Said: which messages a request sent word for word, read again from what its account names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from recto import wire
from recto.store.queries import SAID_BY_IDS, SAID_PATH
from recto.store.rows import AnyRow
from recto.store.side import Said

BETWEEN = "…"


def said_in(connection: Connection, account: Mapping[str, Any]) -> tuple[Said, ...]:
    """Each once: lifted ones, the history between its ends, the message that was answered, its rounds."""
    told = account.get("messages") or {}
    found = [
        *_history(connection, account),
        *_named(connection, [id for id in (told.get("current"), *told.get("rounds", ())) if id]),
    ]
    return tuple({row.id: Said(row.id, row.said, row.role) for row in found}.values())


def _history(connection: Connection, account: Mapping[str, Any]) -> Iterator[AnyRow]:
    sections = [section for section in account.get("sections", ()) if section.get("name") == "history"]
    for pick in (pick for section in sections for pick in section.get("picks", ())):
        first, is_range, last = str(pick.get("name", "")).partition(BETWEEN)
        if pick.get("kind") == "message":
            yield from _named(connection, [first])
        elif is_range:
            yield from _between(connection, first, last)


def _named(connection: Connection, ids: Sequence[str]) -> list[AnyRow]:
    found = {row.id: row for row in SAID_BY_IDS(connection, ids=wire.dumps(ids))} if ids else {}
    return [found[id] for id in ids if id in found]


def _between(connection: Connection, first: str, last: str) -> list[AnyRow]:
    """Down the path, compactions left out: they are never sent as messages."""
    ends = _named(connection, [first, last])
    if len(ends) < 2:
        return ends
    most = ends[1].depth - ends[0].depth + 1
    path = SAID_PATH(connection, start=last, most=most, until="").all()
    return [row for row in reversed(path) if not row.cut]
