"""Spending: tokens and costs of all calls, summed by conversation, day, model or purpose.

A call in a conversation is a row of `requests`. A call outside (passed through by the endpoint, or for embeddings) is a
row of `charges` instead: key, model, bound and cost, and no words. So each call counts once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache, partial
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import ColumnElement, Connection, Select, Table, case, func, insert, select, update

from recto import wire
from recto.chat.message import Usage, now, stored_time
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.rows import AnyRow, read_details
from recto.store.schema import charges, client_conversations, conversations, messages, requests, spending_totals
from recto.store.usage_totals import MINUTE, Progress, UsageTotals, local_day

SpentBy = Literal["total", "day", "model", "conversation", "purpose"]
UNKNOWN_MODEL = "unknown"
NO_CONVERSATION = "no conversation"
"""The name, in sums by conversation, for calls outside."""
TOKENS = ("input", "output", "cache_read")
_SUMMED = ("requests", "cost", "unpriced", "open", *TOKENS)


class _Sums(Struct, frozen=True):
    name: str = ""
    """The shared day (2026-01-31, by the user's clock), model, conversation (its id) or purpose."""
    requests: int = 0

    @property
    def order(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        return {name: round(value, 9) if isinstance(value, float) else value for name, value in asdict(self).items()}


class Spent(_Sums, frozen=True):
    cost_usd: float = 0.0
    """For the requests with a known price."""
    unpriced: int = 0
    """Requests with an unknown price, missing from the sum."""
    open_usd: float = 0.0
    """The most that unfinished requests can cost, including those whose process died."""

    @property
    def order(self) -> tuple[Any, ...]:
        return -self.cost_usd, -self.requests, self.name


class TokenUse(_Sums, frozen=True):
    input: int = 0
    """Including those read from a cache."""
    output: int = 0
    cache_read: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    @property
    def order(self) -> tuple[Any, ...]:
        return -self.input - self.output, self.name


Kind = TypeVar("Kind", bound=_Sums)
Group = tuple[str, Mapping[Any, Any]]
"""A name, and sums of the columns of `spending_totals`."""
Read = Callable[[Connection], list[Group]]


def _cost_sums(table: Table) -> tuple[ColumnElement[Any], ...]:
    cost, bound = table.c.cost, table.c.cost_bound
    return (
        func.count(table.c.n).label("requests"),
        func.sum(cost).label("cost"),
        func.sum(case((cost.is_(None) & bound.is_(None), 1), else_=0)).label("unpriced"),
        func.sum(case((cost.is_(None), bound), else_=0.0)).label("open"),
    )


_COSTS = _cost_sums(requests)
_CHARGED = (*_cost_sums(charges), *(func.sum(charges.c[name]).label(name) for name in TOKENS))
# A request with several replies has the usage of its first one.
_REPLY_DETAILS = select(messages.c.details).where(messages.c.request == requests.c.n).order_by(messages.c.n).limit(1)
_CALLS = select(
    requests.c.conversation,
    *(requests.c[name] for name in ("created", "model", "purpose", "cost", "cost_bound", "outcome")),
    _REPLY_DETAILS.scalar_subquery().label("details"),
)
_CALLS_IN_HOMES = Statement(_CALLS.where(in_list(requests.c.conversation, "homes")))


class Spending:
    def __init__(self, database: Database, totals: UsageTotals) -> None:
        self._database, self._totals = database, totals

    def total(self, conversation: str | None = None, since: str | None = None) -> Spent:
        """For a conversation (by its id), all requests since a stored time, or both."""
        with self._database.read() as connection:
            groups = [*_request_costs(connection, "total", conversation, since)]
            return _summed(Spent, [*groups, *_charged(connection, "total", conversation, since)])[0]

    def of_messages(self, ids: Sequence[str]) -> Spent:
        """For the requests that answered these messages, and the summaries made for them."""
        numbers = select(messages.c.n).where(messages.c.id.in_(ids))
        query = select(*_COSTS).where(requests.c.message.in_(numbers), requests.c.message.is_not(None))
        return _summed(Spent, [("", self._database.first(query)._mapping)])[0]

    def by(
        self,
        group: SpentBy,
        conversation: str | None = None,
        since: str | None = None,
        progress: Progress | None = None,
    ) -> list[Spent]:
        """Days in order; other groups by cost, highest first. `total` is one sum. By conversation, calls outside have a
        sum of their own."""
        return self._by(Spent, _request_costs, group, conversation, since, progress)

    def tokens(
        self,
        group: SpentBy,
        conversation: str | None = None,
        since: str | None = None,
        progress: Progress | None = None,
    ) -> list[TokenUse]:
        """Days in order; other groups by tokens, most first. `total` is one sum."""
        return self._by(TokenUse, _request_tokens, group, conversation, since, progress)

    def _by(
        self,
        kind: type[Kind],
        anew: Callable[..., list[Group]],
        by: SpentBy,
        conversation: str | None,
        since: str | None,
        progress: Progress | None,
    ) -> list[Kind]:
        asked: Read = partial(anew, by=by, conversation=conversation, since=since)
        kept: Read | None = partial(_kept, by=by) if conversation is None and since is None else None
        groups = self._totals.read(kept, asked, progress, has_days=by == "day")
        with self._database.read() as connection:
            found = _summed(kind, [*groups, *_charged(connection, by, conversation, since)])
        return sorted(found, key=lambda each: (each.name,) if by == "day" else each.order)


class Charges:
    """A row is written before the call, with its maximum cost, and settled afterwards. The bound of a call whose
    process died stays counted: its provider may have answered."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, owner: str, model: str, purpose: str, bound: float | None) -> int:
        """Returns the number to settle the call by."""
        values = {"owner": owner, "model": model, "purpose": purpose, "created": now(), "cost_bound": bound}
        query = insert(charges).values(**values, **dict.fromkeys(TOKENS, 0)).returning(charges.c.n)
        with self._database.write() as connection:
            return int(connection.execute(query).scalar_one())

    def settle(self, number: int, cost: float | None, usage: Usage | None = None) -> None:
        reported = {name: getattr(usage, name) for name in TOKENS} if usage else {}
        with self._database.write() as connection:
            connection.execute(update(charges).where(charges.c.n == number).values(cost=cost, **reported))

    def spent_today(self, owner: str) -> float:
        """US dollars for all calls of a key; open ones count with their bound."""
        since, owned = today(), client_conversations.c.conversation == requests.c.conversation
        asked = select(_counted(requests)).join(client_conversations, owned)
        asked = asked.where(client_conversations.c.owner == owner, requests.c.created >= since)
        passed = select(_counted(charges)).where(charges.c.owner == owner, charges.c.created >= since)
        with self._database.read() as connection:
            return sum(float(connection.execute(query).scalar() or 0.0) for query in (asked, passed))


def _counted(table: Table) -> ColumnElement[Any]:
    return func.sum(func.coalesce(table.c.cost, table.c.cost_bound, 0.0))


def today() -> str:
    """When the user's day began, as a stored time."""
    return stored_time(date.today().isoformat())


# -- from calls to sums


def _request_costs(connection: Connection, by: SpentBy, conversation: str | None, since: str | None) -> list[Group]:
    """Summed by the database, since every turn with a limit asks."""
    query = _within(select(*_COSTS), conversation)
    if by == "conversation":
        query = query.join(conversations, conversations.c.n == requests.c.conversation)
    name = {"model": requests.c.model, "conversation": conversations.c.id, "purpose": requests.c.purpose}.get(by)
    return list(_grouped(connection, query, requests, by, name, since))


def _request_tokens(connection: Connection, by: SpentBy, conversation: str | None, since: str | None) -> list[Group]:
    ids = {row.n: row.id for row in connection.execute(select(conversations.c.n, conversations.c.id))}
    rows = _sum_calls(connection.execute(_since(_within(_CALLS, conversation), requests, since)))
    named = [{**row, "total": "", "conversation": ids[row["conversation"]]} for row in rows]
    nothing = [("", dict.fromkeys(_SUMMED, 0))] if by == "total" else []
    return [*nothing, *((row[by] or (UNKNOWN_MODEL if by == "model" else ""), row) for row in named)]


def _kept(connection: Connection, by: SpentBy) -> list[Group]:
    query = select(*(func.sum(spending_totals.c[name]).label(name) for name in _SUMMED))
    if by == "conversation":
        query = query.join(conversations, conversations.c.n == spending_totals.c.conversation)
    name = None if by == "total" else conversations.c.id if by == "conversation" else spending_totals.c[by]
    return list(_grouped(connection, query, spending_totals, "", name))


def _charged(connection: Connection, by: SpentBy, conversation: str | None, since: str | None) -> list[Group]:
    if conversation is not None:
        return []
    name = charges.c[by] if by in ("model", "purpose") else None
    groups = _grouped(connection, select(*_CHARGED), charges, by, name, since)
    return [(NO_CONVERSATION if by == "conversation" else name, row) for name, row in groups if row["requests"]]


def _grouped(
    connection: Connection,
    query: Select[Any],
    table: Table,
    by: str,
    name: ColumnElement[Any] | None,
    since: str | None = None,
) -> Iterator[Group]:
    if by == "day":
        # day by day: no database knows the days of the user's clock
        first = query.with_only_columns(func.min(table.c.created))
        while begun := connection.execute(_since(first, table, since)).scalar():
            day = datetime.fromisoformat(begun).astimezone().date()
            since = stored_time((day + timedelta(days=1)).isoformat())
            of_day = _since(query, table, begun).where(table.c.created < since)
            yield day.isoformat(), connection.execute(of_day).mappings().one()
    elif name is None:
        yield "", connection.execute(_since(query, table, since)).mappings().one()
    else:
        grouped = query.add_columns(name.label("name")).group_by(name)
        for row in connection.execute(_since(grouped, table, since)).mappings():
            yield row["name"] or UNKNOWN_MODEL, row


def _since(query: Select[Any], table: Table, since: str | None) -> Select[Any]:
    return query if since is None else query.where(table.c.created >= since)


def _within(query: Select[Any], conversation: str | None) -> Select[Any]:
    if conversation is None:
        return query
    home = select(conversations.c.n).where(conversations.c.id == conversation).scalar_subquery()
    return query.where(requests.c.conversation == home)


def _summed(kind: type[Kind], groups: Iterable[Group]) -> list[Kind]:
    sums: dict[str, Kind] = {}
    for name, row in groups:
        before = sums.get(name) or kind(name)
        more = {field: row[field.removesuffix("_usd")] or 0 for field in kind.__struct_fields__[1:]}
        # a sum of sums is a decimal in PostgreSQL
        added = {field: (known := getattr(before, field)) + type(known)(value) for field, value in more.items()}
        sums[name] = replace(before, **added)
    return list(sums.values())


def sum_spending(connection: Connection, homes: Sequence[int]) -> list[dict[str, Any]]:
    return _sum_calls(_CALLS_IN_HOMES(connection, homes=homes))


def _sum_calls(rows: Iterable[AnyRow]) -> list[dict[str, Any]]:
    groups: dict[tuple[int, str, str, str], list[AnyRow]] = {}
    day = cache(local_day)
    for row in rows:
        key = (row.conversation, day(row.created[:MINUTE]), row.model or "", row.purpose)
        groups.setdefault(key, []).append(row)
    return [
        {
            **dict(zip(("conversation", "day", "model", "purpose"), key, strict=True)),
            **_sum_usage(group),
            "requests": len(group),
            "cost": sum(row.cost or 0.0 for row in group),
            "unpriced": sum(row.cost is None and row.cost_bound is None for row in group),
            "open": sum(row.cost_bound or 0.0 for row in group if row.cost is None),
            "first": min(row.created for row in group),
            "last": max(row.created for row in group),
        }
        for key, group in groups.items()
    ]


def _sum_usage(rows: Sequence[AnyRow]) -> dict[str, int]:
    """As reported with the replies, or with requests that have none."""
    sums = dict.fromkeys(TOKENS, 0)
    for row in rows:
        found = wire.loads(row.outcome).get("usage")
        if found is None and row.details and (usage := read_details(row.details).get("usage")):
            found = asdict(usage)
        for name in TOKENS:
            sums[name] += int((found or {}).get(name) or 0)
    return sums
