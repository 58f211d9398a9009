"""UsageTotals: how each conversation used sources and documents and what it cost, summed and kept.

A large store has too many requests to read them for every report. What changes the uses or costs of a conversation
forgets its sums in the same transaction; the next report sums that conversation again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, case, delete, distinct, func, insert, select

from recto import wire
from recto.errors import StoreError
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.rows import read_details
from recto.store.schema import (
    conversations,
    document_pairs,
    document_totals,
    messages,
    requests,
    source_days,
    source_totals,
    source_uses,
    spending_totals,
    summed_conversations,
    uses,
)
from recto.store.use_over_time import (
    IS_REPLY,
    MINUTE,
    REPLY,
    local_day,
    local_month,
    sum_document_pairs,
    sum_source_days,
)

T = TypeVar("T")
Progress = Callable[[int, int], object]
# Conversations that are summed in one transaction: other processes wait for it when they write.
BATCH = 20
TOKENS = ("input", "output", "cache_read")


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def sums_by_conversation(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Requests -> turns (one row per source and reply) -> sums (one row per source and conversation), with the columns
    of `source_totals`. The conditions are about requests and their conversations."""
    sent = (
        select(requests.c.n, requests.c.conversation, REPLY.label("message"))
        .join(conversations, conversations.c.n == requests.c.conversation)
        .where(*IS_REPLY, *conditions)
        .cte("sent")
        .prefix_with("MATERIALIZED")
    )
    rank = case({"called": 4, "quoted": 3, "paraphrased": 2, "": 1}, value=source_uses.c.sign, else_=0)
    turns = (
        select(
            # a message belongs to one conversation
            func.max(sent.c.conversation).label("conversation"),
            source_uses.c.source,
            func.max(source_uses.c.mode).label("mode"),
            func.sum(source_uses.c.tokens).label("tokens"),
            func.max(source_uses.c.request).label("last"),
            func.max(rank).label("sign"),
        )
        .select_from(sent)
        .join(source_uses, source_uses.c.request == sent.c.n)
        .group_by(source_uses.c.source, sent.c.message)
        .cte("turns")
    )
    mode, sign = turns.c.mode, turns.c.sign
    return select(
        turns.c.conversation,
        turns.c.source,
        func.count().label("replies"),
        _count(mode == "always").label("always"),
        _count(mode == "manual").label("manual"),
        _count(mode == "agent").label("by_agent"),
        func.sum(turns.c.tokens).label("tokens"),
        _count(sign > 0).label("looked"),
        _count(sign == 4).label("called"),
        _count(sign == 3).label("quoted"),
        _count(sign == 2).label("paraphrased"),
        func.max(turns.c.last).label("last"),
        func.max(case((sign > 1, turns.c.last))).label("used"),
    ).group_by(turns.c.conversation, turns.c.source)


_IN_HOMES = in_list(requests.c.conversation, "homes")
_HAS_SOURCES = select(source_uses.c.source).where(source_uses.c.request == requests.c.n).exists()


def replies_by_conversation(*conditions: ColumnElement[bool]) -> Select[Any]:
    """The number of replies with any source in each conversation, as far as there are any."""
    return (
        select(requests.c.conversation, func.count(distinct(REPLY)).label("replies"))
        .join(conversations, conversations.c.n == requests.c.conversation)
        .where(*IS_REPLY, *conditions, _HAS_SOURCES)
        .group_by(requests.c.conversation)
    )


_UNSUMMED = Statement(
    select(conversations.c.n)
    .outerjoin(summed_conversations, summed_conversations.c.conversation == conversations.c.n)
    .where(summed_conversations.c.conversation.is_(None))
    .order_by(conversations.c.n)
)


def _spans(table: Table, name: str) -> Statement:
    return Statement(select(table.c[name], func.min(table.c.first), func.max(table.c.last)).group_by(table.c[name]))


_MONTHS, _DAYS = _spans(document_totals, "month"), _spans(spending_totals, "day")
_SUM_SOURCES = Statement(
    insert(source_totals).from_select(
        [column.name for column in source_totals.columns], sums_by_conversation(_IN_HOMES)
    )
)
_REPLIES = Statement(replies_by_conversation(_IN_HOMES))
_DOCUMENTS = (
    select(conversations.c.id, uses.c.vault, uses.c.path, uses.c.direct, messages.c.created)
    .join(messages, messages.c.conversation == conversations.c.n)
    .join(uses, uses.c.message == messages.c.n)
    .where(uses.c.path.is_not(None))
)
_DOCUMENTS_IN_HOMES = Statement(_DOCUMENTS.where(in_list(conversations.c.n, "homes")))
_DOCUMENTS_OF_VAULT = Statement(_DOCUMENTS.where(uses.c.vault == bindparam("vault")))
_COLUMNS = ("vault", "path", "month", "uses", "direct", "first", "last")
_DOCUMENT_TOTALS = Statement(
    select(conversations.c.id, *(document_totals.c[name] for name in _COLUMNS))
    .join(document_totals, document_totals.c.conversation == conversations.c.n)
    .where(document_totals.c.vault == bindparam("vault"))
)
_ADD_DOCUMENTS = Statement(
    insert(document_totals).values(
        conversation=select(conversations.c.n).where(conversations.c.id == bindparam("conversation")).scalar_subquery(),
        **{name: bindparam(name) for name in _COLUMNS},
    )
)
# A request with several replies has the usage of its first one.
_REPLY_DETAILS = select(messages.c.details).where(messages.c.request == requests.c.n).order_by(messages.c.n).limit(1)
SPENDING = select(
    requests.c.conversation,
    *(requests.c[name] for name in ("created", "model", "purpose", "cost", "cost_bound", "outcome")),
    _REPLY_DETAILS.scalar_subquery().label("details"),
)
_SPENDING = Statement(SPENDING.where(_IN_HOMES))


def _add(table: Table) -> Statement:
    return Statement(insert(table).values({each.name: bindparam(each.name) for each in table.c}))


_ADD_SPENDING, _ADD_SUMMED = _add(spending_totals), _add(summed_conversations)
_ADD_SOURCE_DAYS, _ADD_PAIRS = _add(source_days), _add(document_pairs)
_DROP = [
    Statement(delete(table).where(in_list(table.c.conversation, "homes")))
    for table in (source_totals, source_days, document_totals, document_pairs, spending_totals)
]
_FORGET_ALL = Statement(delete(summed_conversations))
_FORGET_OF_REQUEST = Statement(
    delete(summed_conversations).where(
        summed_conversations.c.conversation
        == select(requests.c.conversation).where(requests.c.id == bindparam("id")).scalar_subquery()
    )
)
_FORGET_OF_MESSAGE = Statement(
    delete(summed_conversations).where(
        summed_conversations.c.conversation
        == select(messages.c.conversation).where(messages.c.n == bindparam("number")).scalar_subquery()
    )
)


class DocumentTotal(Struct, frozen=True):
    """The uses of a document in one conversation within one month."""

    conversation: str
    vault: str
    path: str
    month: str
    """On the user's clock: 2026-01."""
    uses: int
    direct: int
    first: str
    last: str


class UsageTotals:
    def __init__(self, database: Database) -> None:
        self._database = database

    def read(
        self, ask: Callable[[Connection], T], progress: Progress | None = None, *, has_days: bool = True
    ) -> T | None:
        """What `ask` reads while the sums of all conversations are there; None where they cannot be stored. Only what
        tells days or months depends on the zone of the user's clock, and looking at all days takes its time."""
        with self._database.read() as connection:
            if not _unsummed(connection) and (not has_days or _days_hold(connection)):
                return ask(connection)
        try:
            return self._sum_and_read(ask, progress, has_days)
        except StoreError:  # as in a store that is read-only, or busy
            return None

    def _sum_and_read(self, ask: Callable[[Connection], T], progress: Progress | None, has_days: bool) -> T:
        with self._database.write() as connection:
            if has_days and not _days_hold(connection):
                _FORGET_ALL(connection)
        done = 0
        while True:
            with self._database.write() as connection:
                left = _unsummed(connection)
                if not left:
                    return ask(connection)
                _sum_up(connection, left[:BATCH])
            done += len(left[:BATCH])
            if progress and (more := left[BATCH:]):
                progress(done, done + len(more))


def kept_documents(connection: Connection, vault: str) -> list[DocumentTotal]:
    return [DocumentTotal(*row) for row in _DOCUMENT_TOTALS(connection, vault=vault)]


def documents_anew(connection: Connection, vault: str) -> list[DocumentTotal]:
    """The same from the uses themselves."""
    return sum_documents(_DOCUMENTS_OF_VAULT(connection, vault=vault))


def forget_totals(connection: Connection, *, request: str | None = None, message: int | None = None) -> None:
    """What was summed of the conversation of a request (its id) or a message (its number) does not hold any more."""
    if request is not None:
        _FORGET_OF_REQUEST(connection, id=request)
    if message is not None:
        _FORGET_OF_MESSAGE(connection, number=message)


def sum_documents(rows: Iterable[tuple[str, str, str, int, str]]) -> list[DocumentTotal]:
    """Of uses: conversation, vault, path, whether the user named it, time."""
    groups: dict[tuple[str, str, str, str], list[tuple[int, str]]] = {}
    month = cache(local_month)
    for home, vault, path, direct, created in rows:
        groups.setdefault((home, vault, path, month(created[:MINUTE])), []).append((direct, created))
    return [_document_total(key, group) for key, group in groups.items()]


def _document_total(key: tuple[str, str, str, str], group: Sequence[tuple[int, str]]) -> DocumentTotal:
    times = [created for _, created in group]
    return DocumentTotal(*key, len(group), sum(direct for direct, _ in group), min(times), max(times))


def sum_spending(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Rows of `spending_totals`, from rows of `SPENDING`."""
    groups: dict[tuple[int, str, str, str], list[Any]] = {}
    tokens: dict[tuple[int, str, str, str], Counter[str]] = {}
    day = cache(local_day)
    for row in rows:
        key = (row.conversation, day(row.created[:MINUTE]), row.model or "", row.purpose)
        groups.setdefault(key, []).append(row)
        tokens.setdefault(key, Counter(dict.fromkeys(TOKENS, 0))).update(_usage_of(row))
    return [
        {
            **dict(zip(("conversation", "day", "model", "purpose"), key, strict=True)),
            **tokens[key],
            "requests": len(group),
            "cost": sum(row.cost or 0.0 for row in group),
            "unpriced": sum(row.cost is None and row.cost_bound is None for row in group),
            "open": sum(row.cost_bound or 0.0 for row in group if row.cost is None),
            "first": min(row.created for row in group),
            "last": max(row.created for row in group),
        }
        for key, group in groups.items()
    ]


def _usage_of(row: Any) -> dict[str, int]:
    """As reported with the reply, or with a request that has none."""
    found = wire.loads(row.outcome).get("usage")
    if found is None and row.details:
        usage = read_details(row.details).get("usage")
        found = asdict(usage) if usage else None
    return {name: int((found or {}).get(name) or 0) for name in TOKENS}


def _unsummed(connection: Connection) -> list[int]:
    return [number for (number,) in _UNSUMMED(connection)]


def _days_hold(connection: Connection) -> bool:
    """False when the user's clock has another zone than it had when things were summed. Days of sources are days of
    requests that are among those of the costs."""
    months = all(local_month(first) == month == local_month(last) for month, first, last in _MONTHS(connection))
    return months and all(local_day(first) == day == local_day(last) for day, first, last in _DAYS(connection))


def _sum_up(connection: Connection, homes: Sequence[int]) -> None:
    for drop in _DROP:
        drop(connection, homes=homes)
    _SUM_SOURCES(connection, homes=homes)
    _ADD_DOCUMENTS.many(
        connection, [asdict(each) for each in sum_documents(_DOCUMENTS_IN_HOMES(connection, homes=homes))]
    )
    _ADD_SOURCE_DAYS.many(connection, sum_source_days(connection, homes))
    _ADD_PAIRS.many(connection, sum_document_pairs(connection, homes))
    _ADD_SPENDING.many(connection, sum_spending(_SPENDING(connection, homes=homes)))
    replies = dict(_REPLIES(connection, homes=homes))
    _ADD_SUMMED.many(connection, [{"conversation": home, "replies": replies.get(home, 0)} for home in homes])
