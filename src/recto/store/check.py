"""Checks a whole store: the database itself, the trees of messages, every message, record and blob."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from msgspec import Struct, field
from sqlalchemy import Connection, and_, func, or_, select

from recto.errors import RectoError, StoreError
from recto.store.dialect import SQLITE
from recto.store.schema import conversations, kept, messages, requests
from recto.store.store import Store

T = TypeVar("T")
Tell = Callable[[int, int], object]
"""Called with the number of rows done and the total."""
TABLES = {"conversations": conversations, "messages": messages, "requests": requests, "blobs": kept}
BATCH = 500
MAX_TOLD = 100
"""The most problems reported per table, and for the file."""


class StoreReport(Struct, frozen=True):
    problems: tuple[str, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of rows of each kind; empty if the file is too damaged to count."""


def check_store(store: Store, tell: Tell | None = None) -> StoreReport:
    try:
        with store.database.read() as connection:
            damage = _damage(connection)
    except StoreError as why:  # so damaged that the check itself fails
        damage = [why.message]
    if damage:
        return StoreReport(tuple(damage))
    with store.database.read() as connection:
        counts = {
            name: int(connection.execute(select(func.count(table.c.n))).scalar_one()) for name, table in TABLES.items()
        }
        found = [*_loose_rows(connection), *_wrong_parents(connection), *_wrong_heads(connection)]
    total = sum(counts.values()) - counts["conversations"]
    records = (difference for _, difference in store.records.differences(store.records.ids()))
    for done, problem in enumerate(chain(_messages(store), records, _blobs(store)), 1):
        if problem:
            found.append(problem)
        if tell and (done % BATCH == 0 or done == total):
            tell(done, total)
    return StoreReport(tuple(found), counts)


def _damage(connection: Connection) -> list[str]:
    """The damage that SQLite finds; PostgreSQL has its own tools."""
    if connection.dialect.name != SQLITE:
        return []
    pages = connection.exec_driver_sql(f"PRAGMA integrity_check({MAX_TOLD})").scalars().all()
    return [f"the file: {text}" for text in pages if text != "ok"]


def _loose_rows(connection: Connection) -> list[str]:
    if connection.dialect.name != SQLITE:
        return []
    rows = connection.exec_driver_sql("PRAGMA foreign_key_check").all()[:MAX_TOLD]
    return [f"row {row[1]} of {row[0]} refers to a missing row of {row[2]}" for row in rows]


def _wrong_parents(connection: Connection) -> list[str]:
    parents = messages.alias("above")
    is_misplaced = or_(
        and_(messages.c.parent.is_(None), messages.c.depth != 1),
        parents.c.conversation != messages.c.conversation,
        messages.c.depth != parents.c.depth + 1,
    )
    query = select(messages.c.id).outerjoin(parents, parents.c.n == messages.c.parent).where(is_misplaced)
    found = connection.execute(query.limit(MAX_TOLD)).scalars()
    return [f"message {id} is not in its place under its parent" for id in found]


def _wrong_heads(connection: Connection) -> list[str]:
    is_wrong = and_(conversations.c.head.is_not(None), messages.c.n.is_(None))
    query = (
        select(conversations.c.n)
        .outerjoin(messages, and_(messages.c.n == conversations.c.head, messages.c.conversation == conversations.c.n))
        .where(is_wrong)
    )
    found = connection.execute(query.limit(MAX_TOLD)).scalars()
    return [f"conversation #{number} ends with a message that it does not contain" for number in found]


def _messages(store: Store) -> Iterator[str | None]:
    """For each message None if it is readable, else the problem."""
    rows = store.database.rows(select(messages.c.n, messages.c.id).order_by(messages.c.n))
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        is_readable = _problem(store.tree.by_number, [row.n for row in batch]) is None
        for row in batch:
            why = None if is_readable else _problem(store.tree.by_number, [row.n])
            yield f"message {row.id} cannot be read: {why}" if why else None


def _problem(read: Callable[[T], object], what: T) -> str | None:
    try:
        read(what)
    except (RectoError, ValueError, TypeError, LookupError, AttributeError) as why:
        return str(why) or type(why).__name__
    return None


def _blobs(store: Store) -> Iterator[str | None]:
    for row in store.database.rows(select(kept.c.sha256).order_by(kept.c.n)):
        yield _problem(store.blobs.get, row.sha256.hex())
