"""Uses of sources over time, and documents that were used together: read for reports, from the requests and messages
themselves."""

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Connection, Text, bindparam, case, func, or_, select

from recto.store.prepared_statement import Statement
from recto.store.schema import conversations, messages, requests, source_uses, uses
from recto.store.usage_totals import IS_REPLY, MINUTE, REPLY, local_day, local_month

Period = Literal["month", "day"]
Together = Literal["turn", "conversation"]


class SourcePeriod(Struct, frozen=True):
    """The sources of all replies of a month or a day. A reply answers one message, however many tool rounds it took."""

    name: str
    """2026-01, or 2026-01-31, on the user's clock."""
    replies: int = 0
    """Replies with any source."""
    included: int = 0
    """Sources in their windows, each once for a reply."""
    chosen: int = 0
    """Of these, those that were chosen for the message."""
    looked: int = 0
    """Chosen ones whose reply was examined for signs of use."""
    used: int = 0
    """Chosen ones that the reply shows signs of using."""
    score: float | None = None
    """The mean score of the chosen ones."""
    tokens: int = 0
    """Of all sources, over all requests."""

    def to_json(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__struct_fields__}
        return own | {"score": None if self.score is None else round(self.score, 4)}


_agent = bindparam("agent", type_=Text)
_turns = (
    select(
        REPLY.label("message"),
        source_uses.c.source,
        func.max(source_uses.c.mode).label("mode"),
        func.max(source_uses.c.score).label("score"),
        func.sum(source_uses.c.tokens).label("tokens"),
        func.max(source_uses.c.sign).label("sign"),
        func.min(requests.c.created).label("created"),
    )
    .select_from(source_uses)
    .join(requests, requests.c.n == source_uses.c.request)
    .join(conversations, conversations.c.n == requests.c.conversation)
    .where(*IS_REPLY, requests.c.created >= bindparam("since"), or_(_agent == "", conversations.c.agent == _agent))
    .group_by(REPLY, source_uses.c.source)
    .cte("turns")
)
_is_chosen = _turns.c.mode == "agent"


def _count(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


_BY_REPLY = Statement(
    select(
        func.min(_turns.c.created).label("created"),
        func.count().label("included"),
        _count(_is_chosen).label("chosen"),
        _count(_is_chosen & _turns.c.sign.is_not(None)).label("looked"),
        _count(_is_chosen & (_turns.c.sign > "")).label("used"),
        func.sum(case((_is_chosen, _turns.c.score))).label("score"),
        _count(_is_chosen & _turns.c.score.is_not(None)).label("scored"),
        func.sum(_turns.c.tokens).label("tokens"),
    ).group_by(_turns.c.message)
)


def source_periods(connection: Connection, by: Period, agent: str | None, since: str | None) -> list[SourcePeriod]:
    """The earliest first; periods without a source are left out."""
    period = cache(local_month if by == "month" else local_day)
    groups: dict[str, list[Any]] = {}
    for row in _BY_REPLY(connection, agent=agent or "", since=since or ""):
        groups.setdefault(period(row.created[:MINUTE]), []).append(row)
    return [_period(name, rows) for name, rows in sorted(groups.items())]


def _period(name: str, rows: list[Any]) -> SourcePeriod:
    sums = {
        key: int(sum(getattr(row, key) for row in rows)) for key in ("included", "chosen", "looked", "used", "tokens")
    }
    scored = sum(row.scored for row in rows)
    score = sum(row.score or 0.0 for row in rows) / scored if scored else None
    return SourcePeriod(name, len(rows), score=score, **sums)


# A reply belongs to the turn of the message that its request answers.
_TURN = func.coalesce(requests.c.message, messages.c.n)
_TOGETHER = {
    by: Statement(
        select(group.label("group"), uses.c.path)
        .select_from(uses)
        .join(messages, messages.c.n == uses.c.message)
        .outerjoin(requests, requests.c.n == messages.c.request)
        .where(uses.c.vault == bindparam("vault"), uses.c.path.is_not(None))
        .order_by(group)
    )
    for by, group in (("turn", _TURN), ("conversation", messages.c.conversation))
}


def documents_together(connection: Connection, vault: str, by: Together) -> Iterator[list[str]]:
    """For each turn or conversation, the documents of a vault (its folder) that it used, once for each use."""
    for _, rows in groupby(_TOGETHER[by](connection, vault=vault).all(), key=lambda row: row.group):
        yield [row.path for row in rows]
