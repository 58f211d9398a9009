"""Uses of sources over time, and documents that were used together: from the requests and messages themselves, or from
sums of them that are kept for each conversation (`usage_totals.py`)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import combinations, groupby
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, Text, bindparam, case, func, literal, or_, select

from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.rows import AnyRow
from recto.store.schema import (
    conversations,
    document_pairs,
    document_totals,
    messages,
    requests,
    source_days,
    source_uses,
    uses,
)
from recto.store.statements import WAS_SENT

Period = Literal["month", "day"]
Together = Literal["turn", "conversation"]
# So many documents of one turn or conversation are paired: each with each makes 4,950 pairs.
MOST_PAIRED = 100
# So much of a stored time tells its minute: 2026-01-31T23:30. No zone is off by less.
MINUTE = 16
DAY = 10
MONTH = 7

IS_REPLY = (requests.c.purpose == "reply", WAS_SENT)
# All rounds of a turn are one reply, because they answer one message.
REPLY = func.coalesce(requests.c.message, -requests.c.n)


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


def local_day(stored: str) -> str:
    """The day of a stored time on the user's clock."""
    try:
        return datetime.fromisoformat(f"{stored[:MINUTE]}Z").astimezone().strftime("%Y-%m-%d")
    except (ValueError, OverflowError):  # a damaged row must not hide the others
        return stored[:DAY]


def local_month(stored: str) -> str:
    return local_day(stored)[:MONTH]


# -- sources, by day and month

_COUNTS = ("replies", "included", "chosen", "looked", "used", "scored", "tokens")


def _count(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def _by_reply(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Requests -> turns (one row per source and reply) -> one row per reply. The conditions are about requests and
    their conversations."""
    turns = (
        select(
            REPLY.label("message"),
            source_uses.c.source,
            # a message belongs to one conversation
            func.max(requests.c.conversation).label("conversation"),
            func.max(source_uses.c.mode).label("mode"),
            func.max(source_uses.c.score).label("score"),
            func.sum(source_uses.c.tokens).label("tokens"),
            func.max(source_uses.c.sign).label("sign"),
            func.min(requests.c.created).label("created"),
        )
        .select_from(source_uses)
        .join(requests, requests.c.n == source_uses.c.request)
        .join(conversations, conversations.c.n == requests.c.conversation)
        .where(*IS_REPLY, *conditions)
        .group_by(REPLY, source_uses.c.source)
        .cte("turns")
    )
    is_chosen = turns.c.mode == "agent"
    return select(
        func.max(turns.c.conversation).label("conversation"),
        func.min(turns.c.created).label("created"),
        literal(1).label("replies"),
        func.count().label("included"),
        _count(is_chosen).label("chosen"),
        _count(is_chosen & turns.c.sign.is_not(None)).label("looked"),
        _count(is_chosen & (turns.c.sign > "")).label("used"),
        func.sum(case((is_chosen, turns.c.score))).label("score"),
        _count(is_chosen & turns.c.score.is_not(None)).label("scored"),
        func.sum(turns.c.tokens).label("tokens"),
    ).group_by(turns.c.message)


_agent = bindparam("agent", type_=Text)
_IS_ASKED_FOR = or_(_agent == "", conversations.c.agent == _agent)
_REPLIES = Statement(_by_reply(requests.c.created >= bindparam("since"), _IS_ASKED_FOR))
_REPLIES_IN_HOMES = Statement(_by_reply(in_list(requests.c.conversation, "homes")))
_KEPT_DAYS = Statement(
    select(source_days.c.day, *(func.sum(source_days.c[name]).label(name) for name in (*_COUNTS, "score")))
    .join(conversations, conversations.c.n == source_days.c.conversation)
    .where(_IS_ASKED_FOR)
    .group_by(source_days.c.day)
)


def source_periods(connection: Connection, by: Period, agent: str | None, since: str | None) -> list[SourcePeriod]:
    """The earliest first; periods without a source are left out."""
    period = cache(local_month if by == "month" else local_day)
    rows = _REPLIES(connection, agent=agent or "", since=since or "")
    return _periods((period(row.created[:MINUTE]), row) for row in rows)


def kept_periods(connection: Connection, by: Period, agent: str | None) -> list[SourcePeriod]:
    """The same from the sums that are kept for each conversation."""
    length = MONTH if by == "month" else DAY
    return _periods((row.day[:length], row) for row in _KEPT_DAYS(connection, agent=agent or ""))


def sum_source_days(connection: Connection, homes: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of `source_days` for these conversations."""
    day = cache(local_day)
    groups: dict[tuple[int, str], list[AnyRow]] = {}
    for row in _REPLIES_IN_HOMES(connection, homes=homes):
        groups.setdefault((row.conversation, day(row.created[:MINUTE])), []).append(row)
    return [
        {"conversation": home, "day": day, "score": sum(row.score or 0.0 for row in rows), **_sums(rows)}
        for (home, day), rows in groups.items()
    ]


def _periods(rows: Iterable[tuple[str, AnyRow]]) -> list[SourcePeriod]:
    groups: dict[str, list[AnyRow]] = {}
    for name, row in rows:
        groups.setdefault(name, []).append(row)
    return [_period(name, group) for name, group in sorted(groups.items())]


def _period(name: str, rows: Sequence[AnyRow]) -> SourcePeriod:
    sums = _sums(rows)
    scored = sums.pop("scored")
    score = sum(row.score or 0.0 for row in rows) / scored if scored else None
    return SourcePeriod(name, score=score, **sums)


def _sums(rows: Sequence[AnyRow]) -> dict[str, int]:
    return {key: int(sum(getattr(row, key) for row in rows)) for key in _COUNTS}


# -- documents, together

# A reply belongs to the turn of the message that its request answers.
_TURN = func.coalesce(requests.c.message, messages.c.n)


def _together(group: ColumnElement[Any], condition: ColumnElement[bool]) -> Statement:
    return Statement(
        select(messages.c.conversation, uses.c.vault, group.label("group"), uses.c.path)
        .select_from(uses)
        .join(messages, messages.c.n == uses.c.message)
        .outerjoin(requests, requests.c.n == messages.c.request)
        .where(condition, uses.c.path.is_not(None))
        .order_by(uses.c.vault, group)
    )


_OF_VAULT = uses.c.vault == bindparam("vault")
_TOGETHER = {"turn": _together(_TURN, _OF_VAULT), "conversation": _together(messages.c.conversation, _OF_VAULT)}
_TURNS_IN_HOMES = _together(_TURN, in_list(messages.c.conversation, "homes"))
_uses = func.sum(document_totals.c.uses).label("uses")
_USED = Statement(
    select(document_totals.c.path, _uses)
    .where(document_totals.c.vault == bindparam("vault"))
    .group_by(document_totals.c.path)
)
_USED_IN_CONVERSATIONS = Statement(
    select(document_totals.c.conversation, document_totals.c.path, _uses)
    .where(document_totals.c.vault == bindparam("vault"))
    .group_by(document_totals.c.conversation, document_totals.c.path)
    .order_by(document_totals.c.conversation)
)
_PAIRS = Statement(
    select(document_pairs.c.path, document_pairs.c.other, func.sum(document_pairs.c.turns).label("turns"))
    .where(document_pairs.c.vault == bindparam("vault"))
    .group_by(document_pairs.c.path, document_pairs.c.other)
)


class UsedTogether(Struct, frozen=True):
    """How often each document was used, and in how many turns or conversations two of them were."""

    uses: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]


def count_together(groups: Iterable[Sequence[str] | Mapping[str, int]]) -> UsedTogether:
    """`groups` are the documents of each turn or conversation. Of a group with very many, the most used are paired."""
    uses, pairs = Counter[str](), Counter[tuple[str, str]]()
    for group in groups:
        counts = Counter(group)
        uses.update(counts)
        pairs.update(_pairs_of(counts))
    return UsedTogether(uses, pairs)


def _pairs_of(counts: Counter[str]) -> Iterator[tuple[str, str]]:
    return combinations(sorted(path for path, _ in counts.most_common(MOST_PAIRED)), 2)


def documents_together(connection: Connection, vault: str, by: Together) -> Iterator[list[str]]:
    """For each turn or conversation, the documents of a vault (its folder) that it used, once for each use."""
    for _, rows in groupby(_TOGETHER[by](connection, vault=vault).all(), key=lambda row: row.group):
        yield [row.path for row in rows]


def kept_together(connection: Connection, vault: str, by: Together) -> UsedTogether:
    """Counted from the sums that are kept for each conversation."""
    if by == "conversation":
        rows = groupby(_USED_IN_CONVERSATIONS(connection, vault=vault).all(), key=lambda row: row.conversation)
        return count_together({row.path: int(row.uses) for row in group} for _, group in rows)
    used = {row.path: int(row.uses) for row in _USED(connection, vault=vault)}
    return UsedTogether(used, {(row.path, row.other): int(row.turns) for row in _PAIRS(connection, vault=vault)})


def sum_document_pairs(connection: Connection, homes: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of `document_pairs` for these conversations."""
    found = Counter[tuple[int, str, str, str]]()
    rows = _TURNS_IN_HOMES(connection, homes=homes).all()
    for (home, vault, _), group in groupby(rows, key=lambda row: (row.conversation, row.vault, row.group)):
        found.update((home, vault, *pair) for pair in _pairs_of(Counter(row.path for row in group)))
    names = ("conversation", "vault", "path", "other")
    return [{**dict(zip(names, key, strict=True)), "turns": turns} for key, turns in found.items()]
