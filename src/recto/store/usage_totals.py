"""UsageTotals: each conversation's sums of uses and costs, stored for reports.

A large store has too many requests to read them for every report. A change to the uses or costs of a conversation
deletes its row in `summed_conversations` in the same transaction; the next report sums that conversation again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, select

from recto.errors import StoreError
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement, given
from recto.store.schema import conversations, document_totals, messages, requests, spending_totals, summed_conversations

T = TypeVar("T")
Progress = Callable[[int, int], object]
Sums = Callable[[Connection, Sequence[int]], Iterable[Mapping[str, Any]]]
"""The rows of a table of sums for these conversations, by number."""
# Conversations summed per transaction: other writers wait for it.
BATCH = 20
# The lengths of a stored time (2026-01-31T23:30) up to its minute, day and month. No zone differs by less than a
# minute.
MINUTE, DAY, MONTH = 16, 10, 7


def local_day(stored: str) -> str:
    """The day of a stored time on the user's clock."""
    try:
        return datetime.fromisoformat(f"{stored[:MINUTE]}Z").astimezone().strftime("%Y-%m-%d")
    except (ValueError, OverflowError):  # a damaged row must not hide the others
        return stored[:DAY]


def local_month(stored: str) -> str:
    return local_day(stored)[:MONTH]


_UNSUMMED = Statement(
    select(conversations.c.n)
    .outerjoin(summed_conversations, summed_conversations.c.conversation == conversations.c.n)
    .where(summed_conversations.c.conversation.is_(None))
    .order_by(conversations.c.n)
)
_SPANS = [
    (period, Statement(select(column, func.min(column.table.c.first), func.max(column.table.c.last)).group_by(column)))
    for period, column in ((local_month, document_totals.c.month), (local_day, spending_totals.c.day))
]
_FORGET = delete(summed_conversations)
_FORGET_ALL = Statement(_FORGET)
_FORGET_OF_REQUEST, _FORGET_OF_MESSAGE = (
    Statement(_FORGET.where(summed_conversations.c.conversation == select(home).where(known).scalar_subquery()))
    for home, known in (
        (requests.c.conversation, requests.c.id == bindparam("id")),
        (messages.c.conversation, messages.c.n == bindparam("number")),
    )
)


class UsageTotals:
    def __init__(self, database: Database, sums: Mapping[Table, Sums]) -> None:
        self._database = database
        self._sums = [
            (
                Statement(delete(table).where(in_list(table.c.conversation, "homes"))),
                Statement(insert(table).values(given(table))),
                rows,
            )
            for table, rows in sums.items()
        ]

    def read(
        self,
        kept: Callable[[Connection], T] | None,
        anew: Callable[[Connection], T],
        progress: Progress | None = None,
        *,
        has_days: bool = True,
    ) -> T:
        """The result of `kept` from the sums of all conversations; without it, or if sums cannot be stored, the result
        of `anew` from the requests and messages themselves. Days and months depend on the user's time zone, which takes
        time to check: `has_days` is True if the report has any."""
        if kept is not None:
            with self._database.read() as connection:
                if not _unsummed(connection) and (not has_days or _days_hold(connection)):
                    return kept(connection)
            try:
                return self._sum_and_read(kept, progress, has_days)
            except StoreError:  # the store is read-only, or busy
                pass
        with self._database.read() as connection:
            return anew(connection)

    def _sum_and_read(self, kept: Callable[[Connection], T], progress: Progress | None, has_days: bool) -> T:
        with self._database.write() as connection:
            if has_days and not _days_hold(connection):
                _FORGET_ALL(connection)
        done = 0
        while True:
            with self._database.write() as connection:
                left = _unsummed(connection)
                if not left:
                    return kept(connection)
                homes, more = left[:BATCH], left[BATCH:]
                for drop, add, rows in self._sums:
                    drop(connection, homes=homes)
                    add.many(connection, list(rows(connection, homes)))
            done += len(homes)
            if progress and more:
                progress(done, done + len(more))


def forget_totals(connection: Connection, *, request: str | None = None, message: int | None = None) -> None:
    """Invalidates the sums of the conversation of a request (its id) or a message (its number)."""
    if request is not None:
        _FORGET_OF_REQUEST(connection, id=request)
    if message is not None:
        _FORGET_OF_MESSAGE(connection, number=message)


def _unsummed(connection: Connection) -> list[int]:
    return [number for (number,) in _UNSUMMED(connection)]


def _days_hold(connection: Connection) -> bool:
    """False if the user's time zone has changed since the sums were made. Days of sources are days of requests, which
    are among those of the costs."""
    return all(
        period(first) == name == period(last) for period, spans in _SPANS for name, first, last in spans(connection)
    )
