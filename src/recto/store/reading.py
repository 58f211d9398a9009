"""Reading: rows found by id, and rows as messages; unfinished ones with what has streamed in so far."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from recto.chat.message import Message
from recto.errors import NotFound
from recto.store.queries import BARE_PATH, CONVERSATION_BY_ID, ID_OF, MESSAGE_BY_ID
from recto.store.rows import AnyRow, Numbered, bare_message, message_of, numbered_of
from recto.store.schema import deltas


def conversation_row(connection: Connection, id: str) -> AnyRow:
    row = CONVERSATION_BY_ID(connection, id=id).first()
    if row is None:
        raise NotFound(f"there is no conversation {id}; `recto conversations list` shows those there are", id=id)
    return row


def message_row(connection: Connection, id: str) -> AnyRow:
    row = MESSAGE_BY_ID(connection, id=id).first()
    if row is None:
        raise NotFound(f"there is no message {id}", id=id)
    return row


def read(connection: Connection, rows: Sequence[AnyRow]) -> list[Message]:
    growth = _growth(connection, rows)
    return [message_of(row, growth.get(row.n)) for row in rows]


def read_numbered(connection: Connection, rows: Sequence[AnyRow]) -> list[Numbered]:
    growth = _growth(connection, rows)
    return [numbered_of(row, growth.get(row.n)) for row in rows]


def bare_page(connection: Connection, start: str, most: int, until: str | None) -> list[Message]:
    rows = BARE_PATH(connection, start=start, most=most, until=until or "").all()
    if not rows:
        return []
    oldest = rows[-1].parent
    parents: list[str | None] = [row.id for row in rows[1:]]
    parents.append(ID_OF(connection, n=oldest).scalar() if oldest else None)
    growth = _growth(connection, rows)
    return [bare_message(row, parent, growth.get(row.n)) for row, parent in zip(rows, parents, strict=True)]


def _growth(connection: Connection, rows: Sequence[AnyRow]) -> dict[int, list[str]]:
    growing = [row.n for row in rows if row.status == "unfinished"]
    growth: dict[int, list[str]] = {}
    if growing:
        query = select(deltas.c.message, deltas.c.growth).where(deltas.c.message.in_(growing)).order_by(deltas.c.n)
        for number, steps in connection.execute(query):
            growth.setdefault(number, []).append(steps)
    return growth
