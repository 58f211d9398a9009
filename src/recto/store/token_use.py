"""TokenUse: tokens that requests read and wrote, as reported, with what they cost, summed by day, model and more."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, select

from recto.store.database import Database
from recto.store.schema import conversations, requests, spending_totals
from recto.store.spending import UNKNOWN_MODEL, SpentBy
from recto.store.usage_totals import SPENDING, TOKENS, Progress, UsageTotals, sum_spending

SUMMED = ("requests", "cost", "unpriced", *TOKENS)


class TokenUse(Struct, frozen=True):
    name: str
    """The day (2026-01-31, as the user's clock has it), model, conversation (its id) or purpose that they share."""
    requests: int = 0
    input: int = 0
    """With what was read from a cache."""
    output: int = 0
    cache_read: int = 0
    cost_usd: float = 0.0
    """Of the requests whose price was known."""
    unpriced: int = 0

    def to_json(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__struct_fields__}
        return own | {"cost_usd": round(self.cost_usd, 9)}


def token_use(
    database: Database,
    by: SpentBy,
    conversation: str | None = None,
    since: str | None = None,
    progress: Progress | None = None,
) -> list[TokenUse]:
    """Days in their order; everything else by its tokens, the most first. `total` gives one sum."""
    rows = None
    if conversation is None and since is None:
        rows = UsageTotals(database).read(lambda connection: _read(connection, _kept), progress)
    if rows is None:
        with database.read() as connection:
            rows = _read(connection, lambda connection: _anew(connection, conversation, since))
    groups: dict[str, list[Mapping[str, Any]]] = {"": []} if by == "total" else {}
    for row in rows:
        groups.setdefault("" if by == "total" else row[by] or UNKNOWN_MODEL, []).append(row)
    found = [_sum(name, group) for name, group in groups.items()]
    return sorted(found, key=lambda each: each.name if by == "day" else (-each.input - each.output, each.name))


Rows = list[Mapping[str, Any]]


def _read(connection: Connection, rows: Callable[[Connection], Rows]) -> Rows:
    """With the ids of conversations in place of their numbers."""
    ids = {row.n: row.id for row in connection.execute(select(conversations.c.n, conversations.c.id))}
    return [{**row, "conversation": ids[row["conversation"]]} for row in rows(connection)]


def _kept(connection: Connection) -> Rows:
    return [row._asdict() for row in connection.execute(select(spending_totals))]


def _anew(connection: Connection, conversation: str | None, since: str | None) -> Rows:
    query = SPENDING if since is None else SPENDING.where(requests.c.created >= since)
    if conversation is not None:
        home = select(conversations.c.n).where(conversations.c.id == conversation).scalar_subquery()
        query = query.where(requests.c.conversation == home)
    return list(sum_spending(connection.execute(query)))


def _sum(name: str, rows: Iterable[Mapping[str, Any]]) -> TokenUse:
    rows = list(rows)
    sums = {key: sum(row[key] for row in rows) for key in SUMMED}
    return TokenUse(name, cost_usd=float(sums.pop("cost")), **sums)
