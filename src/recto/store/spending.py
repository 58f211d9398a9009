"""Spending: tokens and costs of all calls, summed by conversation, day, model or purpose.

A call in a conversation is a row of `requests`. A call outside (passed through by the endpoint, or for embeddings) is a
row of `charges` instead: key, model, bound and cost, and no words. So each call counts once.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import cache
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import ColumnElement, Connection, Select, Table, case, func, insert, literal, select, update

from recto import wire
from recto.chat.message import Usage, now, stored_time
from recto.store.database import Database
from recto.store.rows import read_details
from recto.store.schema import charges, client_conversations, conversations, messages, requests

SpentBy = Literal["total", "day", "model", "conversation", "purpose"]
UNKNOWN_MODEL = "unknown"
NO_CONVERSATION = "no conversation"
"""The name, in sums by conversation, for calls outside."""
TOKENS = ("input", "output", "cache_read")
# The length of a stored time up to its minute; days are those of the user's clock, which no database knows.
MINUTE = 16


class Spent(Struct, frozen=True):
    name: str = ""
    """The shared day (2026-01-31, by the user's clock), model, conversation (its id) or purpose."""
    requests: int = 0
    cost_usd: float = 0.0
    """For the requests with a known price."""
    unpriced: int = 0
    """Requests with an unknown price, missing from the sum."""
    open_usd: float = 0.0
    """The most that unfinished requests can cost, including those whose process died."""

    def to_json(self) -> dict[str, Any]:
        return {name: round(value, 9) if isinstance(value, float) else value for name, value in asdict(self).items()}


class TokenUse(Spent, frozen=True):
    input: int = 0
    """Including those read from a cache."""
    output: int = 0
    cache_read: int = 0


Kind = TypeVar("Kind", bound=Spent)
_REPLY_DETAILS = select(messages.c.details).where(messages.c.request == requests.c.n).order_by(messages.c.n).limit(1)


class Spending:
    def __init__(self, database: Database) -> None:
        self._database = database

    def total(self, conversation: str | None = None, since: str | None = None) -> Spent:
        """For a conversation (by its id), all requests since a stored time, or both."""
        return self.by("total", conversation, since)[0]

    def of_messages(self, ids: Sequence[str]) -> Spent:
        """For the requests that answered these messages, and the summaries made for them."""
        numbers = select(messages.c.n).where(messages.c.id.in_(ids))
        query = select(literal(""), *_cost_sums(requests))
        query = query.where(requests.c.message.in_(numbers), requests.c.message.is_not(None))
        return _summed(Spent, "total", self._database.rows(query))[0]

    def by(self, group: SpentBy, conversation: str | None = None, since: str | None = None) -> list[Spent]:
        """Days in order; other groups by cost, highest first. `total` is one sum. By conversation, calls outside have a
        sum of their own. Summed by the database, since every turn with a limit asks."""
        with self._database.read() as connection:
            rows = [
                row
                for table in _tables(conversation)
                for row in connection.execute(_query(table, group, _cost_sums(table), conversation, since))
            ]
        found = _summed(Spent, group, rows)
        return found if group == "day" else sorted(found, key=lambda each: (-each.cost_usd, -each.requests, each.name))

    def tokens(self, group: SpentBy, conversation: str | None = None, since: str | None = None) -> list[TokenUse]:
        """Days in order; other groups by tokens, most first. `total` is one sum."""
        with self._database.read() as connection:
            rows = [*_calls(connection, group, conversation, since)]
            if conversation is None:
                sums = (*_cost_sums(charges), *(func.sum(charges.c[name]) for name in TOKENS))
                rows += connection.execute(_query(charges, group, sums, None, since))
        found = _summed(TokenUse, group, rows)
        return found if group == "day" else sorted(found, key=lambda each: (-each.input - each.output, each.name))


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


def local_day(stored: str) -> str:
    """The day of a stored time on the user's clock."""
    try:
        return datetime.fromisoformat(f"{stored[:MINUTE]}Z").astimezone().strftime("%Y-%m-%d")
    except (ValueError, OverflowError):  # a damaged row must not hide the others
        return stored[:10]


# -- from calls to sums


def _cost_sums(table: Table) -> tuple[ColumnElement[Any], ...]:
    """The columns of `Spent` after its name."""
    cost, bound = table.c.cost, table.c.cost_bound
    return (
        func.count(table.c.n),
        func.sum(cost),
        func.sum(case((cost.is_(None) & bound.is_(None), 1), else_=0)),
        func.sum(case((cost.is_(None), bound), else_=0.0)),
    )


def _tables(conversation: str | None) -> tuple[Table, ...]:
    return (requests, charges) if conversation is None else (requests,)


def _query(
    table: Table, by: SpentBy, columns: Sequence[Any], conversation: str | None, since: str | None, *, sums: bool = True
) -> Select[Any]:
    """These columns of calls, after the name of their group."""
    names: dict[str, ColumnElement[Any]] = {
        "total": literal(""),
        "day": func.substr(table.c.created, 1, MINUTE),
        "conversation": conversations.c.id if table is requests else literal(NO_CONVERSATION),
        "model": table.c.model,
        "purpose": table.c.purpose,
    }
    query = select(names[by].label("name"), *columns)
    if table is requests and by == "conversation":
        query = query.join_from(requests, conversations, conversations.c.n == requests.c.conversation)
    if conversation is not None:
        home = select(conversations.c.n).where(conversations.c.id == conversation).scalar_subquery()
        query = query.where(requests.c.conversation == home)
    query = query if since is None else query.where(table.c.created >= since)
    return query.group_by("name") if sums and by != "total" else query


def _calls(
    connection: Connection, by: SpentBy, conversation: str | None, since: str | None
) -> Iterator[tuple[Any, ...]]:
    """The values of a `TokenUse` for every request, as reported with its reply, or with a request that has none."""
    stored = (requests.c.cost, requests.c.cost_bound, requests.c.outcome, _REPLY_DETAILS.scalar_subquery())
    for name, cost, bound, outcome, details in connection.execute(
        _query(requests, by, stored, conversation, since, sums=False)
    ):
        used = wire.loads(outcome).get("usage")
        if used is None and details and (usage := read_details(details).get("usage")):
            used = asdict(usage)
        open_usd = bound if cost is None else 0.0
        tokens = ((used or {}).get(each) for each in TOKENS)
        yield name, 1, cost, int(cost is None and bound is None), open_usd, *tokens


def _summed(kind: type[Kind], by: SpentBy, rows: Sequence[Sequence[Any]]) -> list[Kind]:
    """The values of each group added up. A sum may be missing, or a decimal in PostgreSQL."""
    sums: dict[str, Kind] = {"": kind()} if by == "total" else {}
    fields, day = kind.__struct_fields__[1:], cache(local_day)
    for row in rows:
        if row[1]:
            name = day(row[0]) if by == "day" else row[0] or (UNKNOWN_MODEL if by == "model" else "")
            known = sums.get(name) or kind(name)
            before = ((field, getattr(known, field)) for field in fields)
            more = {field: old + type(old)(new or 0) for (field, old), new in zip(before, row[1:], strict=True)}
            sums[name] = replace(known, **more)
    return [sums[name] for name in sorted(sums)] if by == "day" else list(sums.values())
