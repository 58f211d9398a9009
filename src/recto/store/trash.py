"""Trash: removes conversations for good, with the pieces and blobs that no other conversation needs. Retention: removes
conversations unused for some time.

A conversation goes as a whole: later messages, summaries and requests repeat earlier ones, so its words would survive a
partial removal. Each is one transaction. The needs of other conversations are read before it, without a lock; only what
was stored since is read within it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from sqlalchemy import Column, ColumnElement, Connection, and_, delete, exists, func, or_, select, update

from recto.chat.conversation import Conversation
from recto.chat.message import stored_time
from recto.errors import Invalid
from recto.store.backup import copies_of
from recto.store.database import Database
from recto.store.dialect import overwrite_deleted, raw_bytes
from recto.store.marker import NewestMessage
from recto.store.packing import numbers_quoted, pack, unpack
from recto.store.rebuild import Rebuilder, dictionary_reader, hashes_in, named_by
from recto.store.rows import CONVERSATION, conversation_of
from recto.store.schema import (
    awaited_replies,
    client_conversations,
    client_messages,
    conversations,
    deltas,
    kept,
    messages,
    open_replies,
    pieces,
    requests,
    source_uses,
    usage_reports,
    uses,
    waiting,
)

Tell = Callable[[int, int], object]
"""Called with the number of rows read and the total."""
# Rows read per transaction, and parameters per statement.
BATCH = 500
_REQUESTS = select(
    *(requests.c[name] for name in ("n", "id", "account", "conversation")), raw_bytes(requests.c.added).label("added")
).order_by(requests.c.n)
_names_blobs = or_(*(messages.c.blocks.contains(f'"{name}":') for name in ("sha256", "whole", "media")))
_MESSAGES = (
    select(messages.c.n, messages.c.status, messages.c.conversation, raw_bytes(messages.c.blocks).label("blocks"))
    .where(or_(_names_blobs, messages.c.status == "unfinished"))
    .order_by(messages.c.n)
)
_WAITING = select(waiting.c.conversation, raw_bytes(waiting.c.blocks).label("blocks"))


class Needs(Struct):
    """Pieces by number, and blobs by hash."""

    pieces: set[int] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)


class Trash:
    def __init__(self, database: Database) -> None:
        self._database = database

    def empty(self, before: str, tell: Tell | None = None) -> int:
        """Removes what was deleted at this time or before; returns the number of conversations."""
        return self.remove(conversations.c.deleted <= before, tell)

    def remove(self, wanted: ColumnElement[bool], tell: Tell | None = None) -> int:
        """Removes the conversations that match, if they still do when their turn comes; returns their number."""
        query = select(conversations.c.n).where(wanted).order_by(conversations.c.n)
        with self._database.read() as connection:
            numbers = connection.execute(query).scalars().all()
            used = {number: _needs_of(connection, number) for number in numbers}
        if not used:
            return 0
        others = _OtherNeeds(used)
        self._read_others(others, tell)
        removed = sum([self._remove(number, used[number], others, wanted) for number in numbers])
        self._database.checkpoint(is_whole=True)
        return removed

    def _read_others(self, others: "_OtherNeeds", tell: Tell | None) -> None:
        with self._database.read() as connection:
            total = sum(connection.execute(select(func.max(table.c.n))).scalar() or 0 for table in (requests, messages))
        is_left = True
        while is_left:
            with self._database.read() as connection:
                is_left = others.read_on(connection)
            if tell:
                tell(min(others.read, total), total)

    def _remove(self, number: int, used: Needs, others: "_OtherNeeds", wanted: ColumnElement[bool]) -> bool:
        """False if it was restored, used or removed meanwhile."""
        with self._database.write() as connection:
            is_there = select(conversations.c.n).where(conversations.c.n == number, wanted)
            if connection.execute(is_there).first() is None:
                return False
            others.read_new(connection)
            still = others.of(used)
            overwrite_deleted(connection)
            _repack(connection, number, still.pieces)
            _delete_conversation(connection, number)
            _delete_all(connection, pieces.c.n, sorted(used.pieces - still.pieces))
            _delete_all(connection, kept.c.sha256, [bytes.fromhex(hash) for hash in sorted(used.blobs - still.blobs)])
            newest = connection.execute(select(messages.c.n, messages.c.id).order_by(messages.c.n.desc()).limit(1))
            # before the commit: a marker may name an older message, never one that is gone
            self._database.lower_newest(NewestMessage(*row) if (row := newest.first()) else None)
            self._database.note_change("removed")
        others.forget(used)
        return True


class _OtherNeeds:
    """Which of some pieces and blobs other conversations need: those that stay, and those to be removed later."""

    def __init__(self, used: dict[int, Needs]) -> None:
        self._homes = used.keys()
        self._pieces = Counter(piece for needs in used.values() for piece in needs.pieces)
        self._blobs = Counter(blob for needs in used.values() for blob in needs.blobs)
        self._needed = Needs()
        self._again = Rebuilder()
        self._request = self._message = 0
        self._unfinished: list[int] = []

    @property
    def read(self) -> int:
        return self._request + self._message

    def of(self, used: Needs) -> Needs:
        """The part of `used` that others need."""
        return Needs(
            {piece for piece in used.pieces if self._pieces[piece] > 1 or piece in self._needed.pieces},
            {blob for blob in used.blobs if self._blobs[blob] > 1 or blob in self._needed.blobs},
        )

    def forget(self, used: Needs) -> None:
        self._pieces.subtract(used.pieces)
        self._blobs.subtract(used.blobs)

    def read_on(self, connection: Connection) -> bool:
        """Reads some requests and messages of all other conversations; False if it has read all."""
        rows = connection.execute(_REQUESTS.where(requests.c.n > self._request).limit(BATCH)).all()
        for row in rows:
            self._request = row.n
            if row.conversation not in self._homes:
                numbers, hashes = named_by(connection, row, self._again)
                self._needed.pieces.update(number for number in numbers if number in self._pieces)
                self._add_blobs(hashes)
        return self._read_messages(connection, self._message) or len(rows) == BATCH

    def read_new(self, connection: Connection) -> None:
        """Reads what was stored since, and the messages that were unfinished then."""
        while self.read_on(connection):
            continue
        for number in self._unfinished:
            self._read_messages(connection, number - 1, most=1)
        for row in connection.execute(_WAITING):
            if row.conversation not in self._homes:
                self._add_blobs(hashes_in(row.blocks))

    def _add_blobs(self, hashes: set[str]) -> None:
        self._needed.blobs.update(hash for hash in hashes if hash in self._blobs)

    def _read_messages(self, connection: Connection, after: int, *, most: int = BATCH) -> bool:
        if not self._blobs:
            return False
        rows = connection.execute(_MESSAGES.where(messages.c.n > after).limit(most)).all()
        for row in rows:
            if row.conversation not in self._homes:
                self._add_blobs(hashes_in(row.blocks))
            if row.status == "unfinished" and row.n > self._message:
                self._unfinished.append(row.n)
            self._message = max(self._message, row.n)
        return len(rows) == most


def _needs_of(connection: Connection, number: int) -> Needs:
    needs, again = Needs(), Rebuilder()
    for row in connection.execute(_REQUESTS.where(requests.c.conversation == number)):
        numbers, hashes = named_by(connection, row, again)
        needs.pieces.update(numbers)
        needs.blobs.update(hashes)
    for query in (_MESSAGES.where(messages.c.conversation == number), _WAITING.where(waiting.c.conversation == number)):
        for row in connection.execute(query):
            needs.blobs.update(hashes_in(row.blocks))
    return needs


def _repack(connection: Connection, number: int, still_needed: Collection[int]) -> None:
    """Repacks the pieces that stay, if they were packed with messages of the conversation that goes."""
    going = set(connection.execute(select(messages.c.n).where(messages.c.conversation == number)).scalars())
    for some in _batches(sorted(still_needed)):
        for row in connection.execute(select(pieces.c.n, pieces.c.data).where(pieces.c.n.in_(some))).all():
            if not going.isdisjoint(numbers_quoted(row.data)):
                data = pack(unpack(row.data, dictionary_reader(connection)))
                connection.execute(update(pieces).where(pieces.c.n == row.n).values(data=data))


def _delete_conversation(connection: Connection, number: int) -> None:
    """All rows of a conversation, each table before the one that it refers to."""
    id = select(conversations.c.id).where(conversations.c.n == number)
    sent = select(requests.c.n).where(requests.c.conversation == number)
    said = select(messages.c.n).where(messages.c.conversation == number)
    connection.execute(update(messages).where(messages.c.conversation == number).values(request=None))
    rows: tuple[tuple[Column[Any], Any], ...] = (
        (usage_reports.c.conversation, id),
        *((table.c.conversation, [number]) for table in (client_conversations,)),
        (source_uses.c.request, sent),
        (requests.c.conversation, [number]),
        *((table.c.message, said) for table in (uses, deltas, client_messages, open_replies, awaited_replies)),
        *((table.c.conversation, [number]) for table in (messages, waiting)),
        (conversations.c.n, [number]),
    )
    for column, wanted in rows:
        connection.execute(delete(column.table).where(column.in_(wanted)))


def _delete_all(connection: Connection, column: Column[Any], values: Sequence[Any]) -> None:
    for some in _batches(values):
        connection.execute(delete(column.table).where(column.in_(some)))


def _batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


# -- retention

UNITS: Mapping[str, timedelta] = {
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
LONGEST = timedelta(days=36_500)


def time_before(age: str) -> str:
    """The stored form of the time this long ago (`90d`, `12h`, `6w`, `2y`). Raises Invalid for anything else."""
    text = age.strip().lower()
    number, unit = text[:-1], UNITS.get(text[-1:])
    if unit is None or not (number.isascii() and number.isdigit() and len(number) < 7):
        raise Invalid(f"{age[:40]!r} is not an age: write 90d, 12h, 6w or 2y", age=age)
    if (ago := int(number) * unit) > LONGEST:
        raise Invalid(f"{age} is more than a century", age=age)
    return stored_time((datetime.now(UTC) - ago).isoformat())


class PruneReport(Struct, frozen=True):
    conversations: tuple[Conversation, ...]
    """Those not used for that long."""
    messages: int
    removed: int
    """The number removed; fewer if one was used meanwhile."""
    copies: tuple[Path, ...]
    """Backups and replaced stores, which stay and may still hold them."""


class Retention:
    def __init__(self, database: Database, trash: Trash) -> None:
        self._database, self._trash = database, trash

    def prune(self, before: str, tell: Tell | None = None, *, dry_run: bool = False) -> PruneReport:
        """Removes the conversations not used since a stored time."""
        # a waiting message is not in the conversation yet, and counts as use
        is_awaited = exists().where(waiting.c.conversation == conversations.c.n, waiting.c.created >= before)
        wanted = and_(conversations.c.updated < before, ~is_awaited)
        goes = messages.c.conversation.in_(select(conversations.c.n).where(wanted))
        with self._database.read() as connection:
            rows = connection.execute(CONVERSATION.where(wanted).order_by(conversations.c.updated)).all()
            number = connection.execute(select(func.count()).select_from(messages).where(goes)).scalar_one()
        removed = 0 if dry_run else self._trash.remove(wanted, tell)
        file = self._database.file
        return PruneReport(tuple(map(conversation_of, rows)), number, removed, tuple(copies_of(file)) if file else ())
