"""Spending: what requests cost, summed over conversations, days, models or purposes."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Select, func, select

from recto.chat.message import stored_time
from recto.store.charges import charge_sums, cost_sums
from recto.store.database import Database
from recto.store.rows import AnyRow
from recto.store.schema import conversations, messages, requests, spending_totals
from recto.store.usage_totals import Progress, UsageTotals

SpentBy = Literal["total", "day", "model", "conversation", "purpose"]
UNKNOWN_MODEL = "unknown"


class Spent(Struct, frozen=True):
    """What some requests cost together, in US dollars."""

    name: str = ""
    """The day (2026-01-31, as the user's clock has it), model, conversation (its id) or purpose that they share."""
    requests: int = 0
    cost_usd: float = 0.0
    """Of the requests whose price was known."""
    unpriced: int = 0
    """Requests whose price was not known: their cost is missing in the sum."""
    open_usd: float = 0.0
    """The most that the requests cost which have not ended, or never will since their process died."""

    def to_json(self) -> dict[str, Any]:
        costs = {"cost_usd": round(self.cost_usd, 9), "unpriced": self.unpriced, "open_usd": round(self.open_usd, 9)}
        return {"name": self.name, "requests": self.requests, **costs}


class Spending:
    def __init__(self, database: Database) -> None:
        self._database, self._kept_totals = database, UsageTotals(database)

    def total(self, conversation: str | None = None, since: str | None = None) -> Spent:
        """Of a conversation (by its id), of all requests since a stored time, or of both."""
        with self._database.read() as connection:
            return _with_charges(
                _by(connection, "total", conversation, since), connection, "total", conversation, since
            )[0]

    def of_messages(self, ids: Sequence[str]) -> Spent:
        """Of the requests that answered these messages, and of the summaries that were made on the way."""
        numbers = select(messages.c.n).where(messages.c.id.in_(ids))
        query = select().add_columns(*SUMS).where(requests.c.message.in_(numbers), requests.c.message.is_not(None))
        with self._database.read() as connection:
            return _spent(connection.execute(query).one())

    def by(
        self,
        group: SpentBy,
        conversation: str | None = None,
        since: str | None = None,
        progress: Progress | None = None,
    ) -> list[Spent]:
        """Days in their order; everything else by what it cost, the dearest first. `total` gives one sum. Calls of the
        endpoint that belong to no conversation have a sum of their own among those by conversation."""
        found = None
        if conversation is None and since is None:
            found = self._kept_totals.read(
                lambda connection: _kept_by(connection, group), progress, has_days=group == "day"
            )
        if found is None:
            with self._database.read() as connection:
                found = _by(connection, group, conversation, since)
        with self._database.read() as connection:
            found = _with_charges(found, connection, group, conversation, since)
        if group == "day":
            return sorted(found, key=lambda each: each.name)
        return sorted(found, key=lambda each: (-each.cost_usd, -each.requests, each.name))


def _by(connection: Connection, group: SpentBy, conversation: str | None, since: str | None) -> list[Spent]:
    """From the requests themselves."""
    if group == "total":
        return [_spent(connection.execute(_within(select().add_columns(*SUMS), conversation, since)).one())]
    if group == "day":
        return list(_by_day(connection, conversation, since))
    name = COLUMNS[group]
    query = _within(select(name.label("name"), *SUMS), conversation, since).group_by(name)
    if group == "conversation":
        query = query.join(conversations, conversations.c.n == requests.c.conversation)
    return [_spent(row, row.name or UNKNOWN_MODEL) for row in connection.execute(query)]


def _kept_by(connection: Connection, group: SpentBy) -> list[Spent]:
    """From the sums that are kept for each conversation."""
    sums = [func.sum(column).label(column.name) for column in _SUMMED]
    if group == "total":
        return [_spent(connection.execute(select(*sums)).one())]
    name = conversations.c.id if group == "conversation" else spending_totals.c[group]
    query = select(name.label("name"), *sums).select_from(spending_totals).group_by(name)
    if group == "conversation":
        query = query.join(conversations, conversations.c.n == spending_totals.c.conversation)
    return [_spent(row, row.name or UNKNOWN_MODEL) for row in connection.execute(query)]


def _by_day(connection: Connection, conversation: str | None, since: str | None) -> Iterator[Spent]:
    """Sums one day after the other: no database knows the days of the user's clock."""
    while True:
        first = select().add_columns(func.min(requests.c.created))
        begun = connection.execute(_within(first, conversation, since)).scalar()
        if begun is None:
            return
        day = datetime.fromisoformat(begun).astimezone().date()
        end = stored_time((day + timedelta(days=1)).isoformat())
        query = _within(select().add_columns(*SUMS), conversation, begun).where(requests.c.created < end)
        yield _spent(connection.execute(query).one(), day.isoformat())
        since = end


def _with_charges(
    found: list[Spent], connection: Connection, group: SpentBy, conversation: str | None, since: str | None
) -> list[Spent]:
    """With the calls of the endpoint that belong to no conversation."""
    if conversation is not None:
        return found
    sums = {each.name: each for each in found}
    for name, row in charge_sums(connection, group, since):
        sums[name] = _sum(sums.get(name, Spent(name)), _spent(row, name))
    return list(sums.values())


def _sum(one: Spent, other: Spent) -> Spent:
    numbers = ("requests", "cost_usd", "unpriced", "open_usd")
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in numbers})


def _spent(row: AnyRow, name: str = "") -> Spent:
    return Spent(name, row.requests or 0, row.cost or 0.0, row.unpriced or 0, row.open or 0.0)


def _within(query: Select[Any], conversation: str | None, since: str | None) -> Select[Any]:
    if conversation is not None:
        home = select(conversations.c.n).where(conversations.c.id == conversation).scalar_subquery()
        query = query.where(requests.c.conversation == home)
    return query if since is None else query.where(requests.c.created >= since)


SUMS = cost_sums(requests)
_SUMMED = tuple(spending_totals.c[name] for name in ("requests", "cost", "unpriced", "open"))
COLUMNS: dict[SpentBy, ColumnElement[Any]] = {
    "model": requests.c.model,
    "conversation": conversations.c.id,
    "purpose": requests.c.purpose,
}
