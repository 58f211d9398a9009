"""Charges: what calls of the endpoint cost, by key.

A call that belongs to a conversation has its cost in its request. One that belongs to none (passed through, or for
embeddings) has a row here instead: key, model, bound and cost, and no words. So each call is counted once.

A row is written before the call, with the most that the call can cost, and settled with its cost afterwards. The bound
of a call whose process died stays counted: its provider may have answered.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, case, func, insert, select, update

from recto.chat.message import Usage, now, stored_time
from recto.store.database import Database
from recto.store.rows import AnyRow
from recto.store.schema import charges, client_conversations, requests

NO_CONVERSATION = "no conversation"
"""In sums by conversation, the name of what belongs to none."""


def cost_sums(table: Table) -> tuple[ColumnElement[Any], ...]:
    """How many calls there are, what they cost, how many have no price, and the most that the open ones can cost."""
    cost, bound = table.c.cost, table.c.cost_bound
    return (
        func.count(table.c.n).label("requests"),
        func.sum(cost).label("cost"),
        func.sum(case((cost.is_(None) & bound.is_(None), 1), else_=0)).label("unpriced"),
        func.sum(case((cost.is_(None), bound), else_=0.0)).label("open"),
    )


_SUMS = (*cost_sums(charges), *(func.sum(charges.c[name]).label(name) for name in ("input", "output", "cache_read")))


class Charges:
    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, owner: str, model: str, purpose: str, bound: float | None) -> int:
        """A call is about to be made; gives the number to settle it by."""
        values = {"owner": owner, "model": model, "purpose": purpose, "created": now(), "cost_bound": bound}
        with self._database.write() as connection:
            row = insert(charges).values(**values, input=0, output=0, cache_read=0).returning(charges.c.n)
            return int(connection.execute(row).scalar_one())

    def settle(self, number: int, cost: float | None, usage: Usage | None = None) -> None:
        """What a call cost in the end, and the usage that its provider reported."""
        told = {name: getattr(usage, name) for name in ("input", "output", "cache_read")} if usage else {}
        with self._database.write() as connection:
            connection.execute(update(charges).where(charges.c.n == number).values(cost=cost, **told))

    def spent_today(self, owner: str) -> float:
        """US dollars of all calls of a key; those that are on their way count with their bound."""
        since = today()
        owned = client_conversations.c.conversation == requests.c.conversation
        asked = select(_counted(requests)).join(client_conversations, owned)
        asked = asked.where(client_conversations.c.owner == owner, requests.c.created >= since)
        passed = select(_counted(charges)).where(charges.c.owner == owner, charges.c.created >= since)
        with self._database.read() as connection:
            return sum(float(connection.execute(query).scalar() or 0.0) for query in (asked, passed))


def today() -> str:
    """When the user's day began, as stored times are written."""
    return stored_time(date.today().isoformat())


def _counted(table: Table) -> ColumnElement[Any]:
    return func.sum(func.coalesce(table.c.cost, table.c.cost_bound, 0.0))


def charge_sums(connection: Connection, by: str, since: str | None) -> list[tuple[str, AnyRow]]:
    """The sums of all charges by total, conversation, day, model or purpose, each with its name."""
    if by == "day":
        return list(_by_day(connection, since))
    if by in ("total", "conversation"):
        row = connection.execute(_since(select(*_SUMS), since)).one()
        return [("" if by == "total" else NO_CONVERSATION, row)] if by == "total" or row.requests else []
    name = charges.c[by]
    rows = connection.execute(_since(select(name.label("name"), *_SUMS), since).group_by(name))
    return [(row.name, row) for row in rows]


def _by_day(connection: Connection, since: str | None) -> Iterator[tuple[str, AnyRow]]:
    """One day after the other, by the user's clock."""
    while begun := connection.execute(_since(select(func.min(charges.c.created)), since)).scalar():
        day = datetime.fromisoformat(begun).astimezone().date()
        end = stored_time((day + timedelta(days=1)).isoformat())
        query = _since(select(*_SUMS), begun).where(charges.c.created < end)
        yield day.isoformat(), connection.execute(query).one()
        since = end


def _since(query: Select[Any], since: str | None) -> Select[Any]:
    return query if since is None else query.where(charges.c.created >= since)
