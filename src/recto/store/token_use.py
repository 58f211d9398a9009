"""TokenUse: tokens that requests read and wrote, as reported, with what they cost, summed by day, model and more."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, func, select

from recto.store.charges import charge_sums
from recto.store.database import Database
from recto.store.rows import AnyRow
from recto.store.schema import conversations, requests, spending_totals
from recto.store.spending import UNKNOWN_MODEL, SpentBy
from recto.store.usage_totals import SPENDING, TOKENS, Progress, UsageTotals, sum_spending

COUNTED = ("requests", "unpriced", *TOKENS)
SUMMED = (*COUNTED, "cost")


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
    found = None
    if conversation is None and since is None:
        totals = UsageTotals(database)
        found = totals.read(lambda connection: _kept_by(connection, by), progress, has_days=by == "day")
    if found is None:
        with database.read() as connection:
            found = _anew_by(connection, by, conversation, since)
    if conversation is None:
        with database.read() as connection:
            found = _with_charges(found, charge_sums(connection, by, since))
    return sorted(found, key=lambda each: each.name if by == "day" else (-each.input - each.output, each.name))


def _kept_by(connection: Connection, by: SpentBy) -> list[TokenUse]:
    """From the sums that are kept for each conversation. The database adds them up: of many conversations there are
    thousands."""
    sums = [func.coalesce(func.sum(spending_totals.c[name]), 0).label(name) for name in SUMMED]
    if by == "total":
        return [_total("", connection.execute(select(*sums)).one())]
    name = conversations.c.id if by == "conversation" else spending_totals.c[by]
    query = select(*sums, name.label("name")).select_from(spending_totals).group_by(name)
    if by == "conversation":
        query = query.join(conversations, conversations.c.n == spending_totals.c.conversation)
    return [_total(row.name or UNKNOWN_MODEL, row) for row in connection.execute(query)]


def _with_charges(found: Sequence[TokenUse], charged: Sequence[tuple[str, AnyRow]]) -> list[TokenUse]:
    """With the calls of the endpoint that belong to no conversation."""
    sums = {each.name: each for each in found}
    for name, row in charged:
        before = sums.get(name, TokenUse(name))
        more = {key: getattr(before, key) + int(getattr(row, key) or 0) for key in COUNTED}
        sums[name] = replace(before, cost_usd=before.cost_usd + (row.cost or 0.0), **more)
    return list(sums.values())


def _total(name: str, sums: AnyRow) -> TokenUse:
    *counts, cost = (getattr(sums, key) for key in (*COUNTED, "cost"))
    return TokenUse(name, cost_usd=float(cost), **dict(zip(COUNTED, map(int, counts), strict=True)))


def _anew_by(connection: Connection, by: SpentBy, conversation: str | None, since: str | None) -> list[TokenUse]:
    """From the requests themselves."""
    query = SPENDING if since is None else SPENDING.where(requests.c.created >= since)
    if conversation is not None:
        home = select(conversations.c.n).where(conversations.c.id == conversation).scalar_subquery()
        query = query.where(requests.c.conversation == home)
    ids = {row.n: row.id for row in connection.execute(select(conversations.c.n, conversations.c.id))}
    groups: dict[str, list[Mapping[str, Any]]] = {"": []} if by == "total" else {}
    for row in sum_spending(connection.execute(query)):
        named = {**row, "total": "", "conversation": ids[row["conversation"]]}[by]
        groups.setdefault(named if by == "total" else named or UNKNOWN_MODEL, []).append(row)
    return [_sum(name, group) for name, group in groups.items()]


def _sum(name: str, rows: Sequence[Mapping[str, Any]]) -> TokenUse:
    sums = {key: sum(row[key] for row in rows) for key in COUNTED}
    return TokenUse(name, cost_usd=float(sum(row["cost"] for row in rows)), **sums)
