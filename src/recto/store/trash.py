"""Trash: removes conversations for good: their messages and records, and the pieces and blobs that no other
conversation needs.

Each conversation is one transaction. What the others need is read before, without a lock; within the transaction only
what was stored since.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from msgspec import Struct, field
from sqlalchemy import ColumnElement, Connection, Table, delete, func, or_, select, update

from recto.store.database import Database
from recto.store.dialect import overwrite_deleted, raw_bytes
from recto.store.marker import NewestMessage
from recto.store.packing import numbers_quoted, pack, unpack
from recto.store.rebuild import Rebuilder, dictionary_reader, hashes_in, named_by
from recto.store.schema import (
    awaited_replies,
    client_conversations,
    client_messages,
    conversations,
    deltas,
    document_pairs,
    document_totals,
    kept,
    messages,
    open_replies,
    pieces,
    requests,
    source_days,
    source_totals,
    source_uses,
    spending_totals,
    summed_conversations,
    usage_reports,
    uses,
    waiting,
)

Tell = Callable[[int, int], object]
"""Called with how many rows were read, and how many there are."""
# Rows that are read in one transaction, and parameters of one statement.
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
    """Pieces by their numbers, and blobs by their hashes."""

    pieces: set[int] = field(default_factory=set)
    blobs: set[str] = field(default_factory=set)


class Trash:
    def __init__(self, database: Database) -> None:
        self._database = database

    def empty(self, before: str, tell: Tell | None = None) -> int:
        """Removes the conversations that were deleted at this time or before; returns how many."""
        return self.remove(conversations.c.deleted <= before, tell)

    def remove(self, wanted: ColumnElement[bool], tell: Tell | None = None) -> int:
        """Removes the conversations that are wanted, and still are when their turn comes; returns how many."""
        query = select(conversations.c.n).where(wanted).order_by(conversations.c.n)
        with self._database.read() as connection:
            numbers = connection.execute(query).scalars().all()
            used = {number: _needs_of(connection, number) for number in numbers}
        if not used:
            return 0
        others = OtherNeeds(used)
        self._read_others(others, tell)
        removed = sum([self._remove(number, used[number], others, wanted) for number in numbers])
        self._database.checkpoint(is_whole=True)
        return removed

    def _read_others(self, others: "OtherNeeds", tell: Tell | None) -> None:
        with self._database.read() as connection:
            total = sum(connection.execute(select(func.max(table.c.n))).scalar() or 0 for table in (requests, messages))
        is_left = True
        while is_left:
            with self._database.read() as connection:
                is_left = others.read_on(connection)
            if tell:
                tell(min(others.read, total), total)

    def _remove(self, number: int, used: Needs, others: "OtherNeeds", wanted: ColumnElement[bool]) -> bool:
        """False where it was restored, used or removed meanwhile."""
        with self._database.write() as connection:
            is_there = select(conversations.c.n).where(conversations.c.n == number, wanted)
            if connection.execute(is_there).first() is None:
                return False
            others.read_new(connection)
            still = others.of(used)
            overwrite_deleted(connection)
            _repack(connection, number, still.pieces)
            _delete_conversation(connection, number)
            _delete_all(connection, pieces, sorted(used.pieces - still.pieces))
            _delete_blobs(connection, sorted(used.blobs - still.blobs))
            newest = connection.execute(select(messages.c.n, messages.c.id).order_by(messages.c.n.desc()).limit(1))
            # before the commit: a marker may name an older message, never one that is gone
            self._database.lower_newest(NewestMessage(*row) if (row := newest.first()) else None)
            self._database.note_change("removed")
        others.forget(used)
        return True


class OtherNeeds:
    """What other conversations need of what some use: those that stay, and those that are still to be removed."""

    def __init__(self, used: dict[int, Needs]) -> None:
        self._homes = used.keys()
        self._pieces = Counter(piece for needs in used.values() for piece in needs.pieces)
        self._blobs = Counter(blob for needs in used.values() for blob in needs.blobs)
        self._needed = Needs()
        self._again = Rebuilder()
        self._request = self._message = 0
        self._unfinished: list[int] = []
        """Messages whose blocks were still to come when they were read."""

    @property
    def read(self) -> int:
        return self._request + self._message

    def of(self, used: Needs) -> Needs:
        """Of what one of the conversations uses, what others need."""
        return Needs(
            {piece for piece in used.pieces if self._pieces[piece] > 1 or piece in self._needed.pieces},
            {blob for blob in used.blobs if self._blobs[blob] > 1 or blob in self._needed.blobs},
        )

    def forget(self, used: Needs) -> None:
        """A conversation is removed, and needs nothing any more."""
        self._pieces.subtract(used.pieces)
        self._blobs.subtract(used.blobs)

    def read_on(self, connection: Connection) -> bool:
        """Reads some requests and messages of all other conversations; False when it has read all."""
        rows = connection.execute(_REQUESTS.where(requests.c.n > self._request).limit(BATCH)).all()
        for row in rows:
            self._request = row.n
            if row.conversation not in self._homes:
                numbers, hashes = named_by(connection, row, self._again)
                self._needed.pieces.update(number for number in numbers if number in self._pieces)
                self._needed.blobs.update(hash for hash in hashes if hash in self._blobs)
        return self._read_messages(connection, self._message) or len(rows) == BATCH

    def read_new(self, connection: Connection) -> None:
        """Reads what was stored since, and the messages that were unfinished then."""
        while self.read_on(connection):
            continue
        for number in self._unfinished:
            self._read_messages(connection, number - 1, most=1)
        for row in connection.execute(_WAITING):
            if row.conversation not in self._homes:
                self._needed.blobs.update(hash for hash in hashes_in(row.blocks) if hash in self._blobs)

    def _read_messages(self, connection: Connection, after: int, *, most: int = BATCH) -> bool:
        if not self._blobs:
            return False
        rows = connection.execute(_MESSAGES.where(messages.c.n > after).limit(most)).all()
        for row in rows:
            if row.conversation not in self._homes:
                self._needed.blobs.update(hash for hash in hashes_in(row.blocks) if hash in self._blobs)
            if row.status == "unfinished" and row.n > self._message:
                self._unfinished.append(row.n)
            self._message = max(self._message, row.n)
        return len(rows) == most


def _needs_of(connection: Connection, number: int) -> Needs:
    """What a conversation uses."""
    needs, again = Needs(), Rebuilder()
    for row in connection.execute(_REQUESTS.where(requests.c.conversation == number)):
        numbers, hashes = named_by(connection, row, again)
        needs.pieces.update(numbers)
        needs.blobs.update(hashes)
    for row in connection.execute(_MESSAGES.where(messages.c.conversation == number)):
        needs.blobs.update(hashes_in(row.blocks))
    for row in connection.execute(_WAITING.where(waiting.c.conversation == number)):
        needs.blobs.update(hashes_in(row.blocks))
    return needs


def _repack(connection: Connection, number: int, still_needed: Collection[int]) -> None:
    """Packs pieces that stay anew, where they were packed with messages of a conversation that goes."""
    going = set(connection.execute(select(messages.c.n).where(messages.c.conversation == number)).scalars())
    for some in _batches(sorted(still_needed)):
        for row in connection.execute(select(pieces.c.n, pieces.c.data).where(pieces.c.n.in_(some))).all():
            if not going.isdisjoint(numbers_quoted(row.data)):
                data = pack(unpack(row.data, dictionary_reader(connection)))
                connection.execute(update(pieces).where(pieces.c.n == row.n).values(data=data))


def _delete_conversation(connection: Connection, number: int) -> None:
    """All rows of a conversation, each table before the one that it refers to."""
    own_requests = select(requests.c.n).where(requests.c.conversation == number).scalar_subquery()
    own_messages = select(messages.c.n).where(messages.c.conversation == number).scalar_subquery()
    id = select(conversations.c.id).where(conversations.c.n == number).scalar_subquery()
    connection.execute(delete(usage_reports).where(usage_reports.c.conversation == id))
    connection.execute(update(messages).where(messages.c.conversation == number).values(request=None))
    for table in (
        summed_conversations,
        source_totals,
        source_days,
        document_totals,
        document_pairs,
        spending_totals,
        client_conversations,
    ):
        connection.execute(delete(table).where(table.c.conversation == number))
    connection.execute(delete(source_uses).where(source_uses.c.request.in_(own_requests)))
    connection.execute(delete(requests).where(requests.c.conversation == number))
    for table in (uses, deltas, client_messages, open_replies, awaited_replies):
        connection.execute(delete(table).where(table.c.message.in_(own_messages)))
    for table in (messages, waiting):
        connection.execute(delete(table).where(table.c.conversation == number))
    connection.execute(delete(conversations).where(conversations.c.n == number))


def _delete_all(connection: Connection, table: Table, numbers: Sequence[int]) -> None:
    for some in _batches(numbers):
        connection.execute(delete(table).where(table.c.n.in_(some)))


def _delete_blobs(connection: Connection, hashes: Sequence[str]) -> None:
    for some in _batches([bytes.fromhex(hash) for hash in hashes]):
        connection.execute(delete(kept).where(kept.c.sha256.in_(some)))


T = TypeVar("T")


def _batches(values: Sequence[T]) -> list[Sequence[T]]:
    return [values[start : start + BATCH] for start in range(0, len(values), BATCH)]
