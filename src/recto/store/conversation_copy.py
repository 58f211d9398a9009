"""ConversationCopies: reads everything that a conversation owns, and stores it again. Knows no file format.

Items never refer to later ones: a blob or piece comes before what names it, a request after the message it answers and
before its reply.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from sqlalchemy import Connection, bindparam, insert, select, union_all

from recto import wire
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.errors import Invalid, NotFound
from recto.sources.advice import Sign
from recto.sources.source import Mode, SourceId, SourceKind
from recto.store.blobs import Blobs, blobs_of, blobs_of_account, digest_of
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.packing import make_dictionaries, pack_with
from recto.store.paths import MOVE_HEAD, ParentPlace, has_child, insert_message, place_below, place_of, place_under
from recto.store.prepared_statement import Statement
from recto.store.rebuild import Rebuilder, encode_account, read_account_json, shared_picks, with_piece_numbers
from recto.store.records import LONGEST_CHAIN, insert_request, store_pieces
from recto.store.rows import (
    CONVERSATION_BY_ID,
    MESSAGE,
    AnyRow,
    conversation_of,
    conversation_row,
    message_row,
    read_messages,
)
from recto.store.schema import conversations, messages, requests, waiting
from recto.store.source_uses import SourceUse, SourceUses, uses_of_request
from recto.store.waiting import WaitingMessage, insert_waiting, waiting_in
from recto.window.account import RequestAccount
from recto.window.request import Piece, Purpose

BATCH = 200

_MESSAGES = Statement(MESSAGE.where(in_list(messages.c.n, "numbers")).order_by(messages.c.n))
_REQUESTS = Statement(select(requests).where(in_list(requests.c.n, "numbers")).order_by(requests.c.n))
_REQUEST_PLACE = Statement(
    select(requests.c.n, requests.c.conversation, requests.c.chain).where(requests.c.id == bindparam("id"))
)
_ID_AT = Statement(select(messages.c.id).where(messages.c.n == bindparam("n")))


class StoredBytes(Struct, frozen=True):
    """Bytes that are stored by their sha256: a piece of requests, or a blob."""

    sha256: str
    data: bytes
    is_piece: bool


Whole = Annotated[int, Meta(ge=0, le=2**53)]
Id = Annotated[str, Meta(min_length=26, max_length=26)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Dollars = Annotated[float, Meta(ge=0, le=1e12)]


class UsedSource(Struct, frozen=True, forbid_unknown_fields=True):
    """A source of a request."""

    kind: SourceKind
    name: str
    mode: Mode
    server: str = ""
    tokens: Whole = 0
    score: float | None = None
    sign: Sign | None = None


class StoredRequest(Struct, frozen=True, tag_field="type", tag="request", forbid_unknown_fields=True):
    """A request as stored, and as a line of an export; its body is the first `kept` pieces of `base`, then `pieces`, by
    their sha256."""

    id: Id
    purpose: Purpose
    created: str
    sha256: Sha256
    size: Whole
    stable: Whole
    stable_sha256: Sha256
    pieces: tuple[Sha256, ...]
    account: dict[str, Any]
    message: Id | None = None
    base: Id | None = None
    kept: Whole = 0
    marks: dict[str, Any] | None = None
    outcome: dict[str, Any] = field(default_factory=dict)
    sources: tuple[UsedSource, ...] = ()
    model: str | None = None
    cost_bound: Dollars | None = None
    cost: Dollars | None = None


# Fields stored in columns of the same name and value.
_SAME = ("id", "purpose", "created", "size", "stable", "model", "cost_bound", "cost")
# Tables whose ids an import must not repeat.
_NAMED = (messages, requests, waiting)
StoredItem = StoredBytes | Message | StoredRequest | WaitingMessage


class ConversationCopies:
    def __init__(self, database: Database, blobs: Blobs, uses: SourceUses) -> None:
        self._database, self._blobs, self._uses = database, blobs, uses

    def ids(self) -> list[str]:
        return [row.id for row in self._database.rows(select(conversations.c.id).order_by(conversations.c.n))]

    def find(self, id: str) -> Conversation | None:
        row = self._database.first(CONVERSATION_BY_ID, id=id)
        return conversation_of(row) if row is not None else None

    def read(self, id: str) -> Iterator[StoredItem]:
        """Everything that a conversation owns, in one consistent state. Raises Altered for a damaged record."""
        with self._database.read() as connection:
            home = conversation_row(connection, id).n
            yield from _ConversationReader(connection, home, self._blobs).items()

    def write(self, conversation: Conversation, items: Iterable[StoredItem]) -> int:
        """Stores a new conversation; returns the number of its messages."""
        with self._database.write() as connection:
            if CONVERSATION_BY_ID(connection, id=conversation.id).first() is not None:
                raise Invalid(f"conversation {conversation.id} is already stored", id=conversation.id)
            values = {name: getattr(conversation, name) for name in ("id", "title", "agent", "created", "updated")}
            values |= {"archived": conversation.hidden, "deleted": conversation.deleted}
            connection.execute(insert(conversations).values(**values, details=wire.dumps(conversation.details)))
            home = conversation_row(connection, conversation.id)
            writer = _ConversationWriter(connection, home, self._blobs, self._uses)
            count = writer.add_all(items)
            self._end(writer, conversation.head, conversation.updated, conversation.title)
            return count

    def extend(self, id: str, items: Iterable[StoredItem], head: str | None, updated: str) -> int:
        """Adds messages to a stored conversation; moves its head unless `head` is None. Returns the number of new
        messages."""
        with self._database.write() as connection:
            home = conversation_row(connection, id)
            writer = _ConversationWriter(connection, home, self._blobs, self._uses)
            count = writer.add_all(items)
            if count and head is not None:
                self._end(writer, head, max(home.updated, updated), home.title)
            return count

    def known(self, id: str, named: Collection[str]) -> set[str]:
        query = select(messages.c.id).join(conversations).where(conversations.c.id == id)
        known = Statement(query.where(in_list(messages.c.id, "ids")))
        return {row.id for row in self._database.rows(known, ids=list(named))}

    @contextmanager
    def together(self) -> Iterator[None]:
        """Joins writes into one transaction, since each commit waits for the disk."""
        with self._database.write():
            yield

    def taken(self, ids: Sequence[str]) -> str | None:
        """The first of these messages and requests that is already in the store, or waiting to enter it."""
        query = union_all(*(select(table.c.id).where(in_list(table.c.id, "ids")) for table in _NAMED)).limit(1)
        found: str | None = self._database.scalar(Statement(query), ids=list(ids))
        return found

    def _end(self, writer: "_ConversationWriter", head: str | None, updated: str, title: str) -> None:
        number = writer.place(head).n if head is not None else None
        MOVE_HEAD(writer.connection, home=writer.home, new_head=number, new_updated=updated, new_title=title)
        if writer.newest:
            self._database.note_newest(*writer.newest)


# -- reading


class _ConversationReader:
    def __init__(self, connection: Connection, home: int, blobs: Blobs) -> None:
        self._connection, self._home, self._blobs = connection, home, blobs
        self._rebuilder = Rebuilder()
        self._written: set[str] = set()
        """The hashes of the pieces and blobs already yielded."""
        query = select(requests.c.n, requests.c.id).where(requests.c.conversation == home).order_by(requests.c.n)
        self._ids = {row.n: row.id for row in connection.execute(query)}
        self._at = {id: place for place, id in enumerate(self._ids.values(), 1)}
        self._requests, self._next = list(self._ids), 0

    def items(self) -> Iterator[StoredItem]:
        query = select(messages.c.n).where(messages.c.conversation == self._home).order_by(messages.c.n)
        numbers = list(self._connection.execute(query).scalars())
        for start in range(0, len(numbers), BATCH):
            rows = _MESSAGES(self._connection, numbers=numbers[start : start + BATCH]).all()
            for message in read_messages(self._connection, rows):
                yield from self._requests_until(self._at.get(message.request or "", 0))
                yield from self._named_blobs(blobs_of(message.blocks))
                yield message
        yield from self._requests_until(len(self._requests))
        for waiting_message in waiting_in(self._connection, self._home):
            yield from self._named_blobs(blobs_of(waiting_message.blocks))
            yield waiting_message

    def _requests_until(self, end: int) -> Iterator[StoredItem]:
        while self._next < end:
            numbers = self._requests[self._next : min(end, self._next + BATCH)]
            self._next += len(numbers)
            for row in _REQUESTS(self._connection, numbers=numbers).all():
                yield from self._request(row)

    def _request(self, row: AnyRow) -> Iterator[StoredItem]:
        account = read_account_json(self._connection, row, self._rebuilder)
        yield from self._named_blobs(blobs_of_account(account))
        # a request based on another conversation is written in full, so that a copy needs no other
        is_based = row.base is None or row.base in self._ids
        numbers = wire.loads(row.added) if is_based else self._rebuilder.numbers(self._connection, row)
        data = self._rebuilder.data(self._connection, row.id, numbers)
        hashes = [hashlib.sha256(each).hexdigest() for each in data]
        for each, sha256 in zip(data, hashes, strict=True):
            if sha256 not in self._written:
                self._written.add(sha256)
                yield StoredBytes(sha256, each, is_piece=True)
        yield StoredRequest(
            **{name: getattr(row, name) for name in _SAME},
            message=_ID_AT(self._connection, n=row.message).scalar() if row.message is not None else None,
            sha256=row.sha256.hex(),
            stable_sha256=row.stable_sha256.hex(),
            base=self._ids.get(row.base) if is_based else None,
            kept=row.kept if is_based else 0,
            pieces=tuple(hashes),
            marks=wire.loads(row.marks) if row.marks is not None else None,
            account=account,
            outcome=wire.loads(row.outcome),
            # source numbers differ from store to store
            sources=tuple(
                _used(use) for use in sorted(uses_of_request(self._connection, row.n), key=lambda use: use.id)
            ),
        )

    def _named_blobs(self, named: Iterable[str]) -> Iterator[StoredItem]:
        for sha256 in named:
            if digest_of(sha256) and sha256 not in self._written:
                self._written.add(sha256)
                with suppress(NotFound):  # a text that was never kept, such as a document's
                    yield StoredBytes(sha256, self._blobs.get(sha256), is_piece=False)


def _used(use: SourceUse) -> UsedSource:
    about = {name: getattr(use, name) for name in ("mode", "tokens", "score", "sign")}
    return UsedSource(kind=use.id.kind, name=use.id.name, server=use.id.server, **about)


def _source_order(source: UsedSource) -> tuple[str, str, str]:
    return source.kind, source.name, source.server


def _use(source: UsedSource) -> SourceUse:
    id = SourceId(source.kind, source.name, source.server)
    return SourceUse(id, source.mode, source.tokens, source.score, source.sign)


# -- writing


class _ConversationWriter:
    """Stores items in a conversation, within a transaction. Raises Invalid for unknown references."""

    def __init__(self, connection: Connection, home: AnyRow, blobs: Blobs, uses: SourceUses) -> None:
        self.connection, self.home, self._home_id = connection, home.n, home.id
        self.newest: tuple[int, str] | None = None
        self._blobs, self._uses = blobs, uses
        self._places: dict[str, ParentPlace] = {}
        self._pieces: dict[str, bytes] = {}
        """Pieces waiting for their request."""
        self._numbered: dict[str, int] = {}
        """Stored pieces of this conversation, by sha256."""

    def add_all(self, items: Iterable[StoredItem]) -> int:
        count = 0
        for item in items:
            if isinstance(item, Message):
                self._add_message(item)
                count += 1
            elif isinstance(item, StoredRequest):
                self._add_request(item)
            elif isinstance(item, WaitingMessage):
                insert_waiting(self.connection, self.home, item)
            elif item.is_piece:
                self._pieces[item.sha256] = item.data
            else:
                self._blobs.put(item.data)
        return count

    def place(self, id: str | None) -> ParentPlace:
        if id is None:
            return ParentPlace()
        if (known := self._places.get(id)) is None:
            known = self._places[id] = place_of(self._row(id))
        return known

    def _row(self, id: str) -> AnyRow:
        row = message_row(self.connection, id)
        if row.conversation != self.home:
            raise Invalid(f"message {id} belongs to another conversation", id=id)
        return row

    def _add_message(self, message: Message) -> None:
        parent = self.place(message.parent)
        placed = place_under(message, parent)
        begins = parent.n is None or has_child(self.connection, parent.n)
        number = insert_message(self.connection, self.home, parent, placed, begins=begins)
        if number is None:
            raise Invalid(f"message {message.id} is already stored", id=message.id)
        self._places[placed.id] = place_below(parent, number, placed, number if begins else parent.branch)
        self.newest = number, placed.id

    def _add_request(self, request: StoredRequest) -> None:
        base = self._request_row(request.base) if request.base is not None else None
        if base is not None and base.chain >= LONGEST_CHAIN:
            raise Invalid(f"the chain of request {request.id} is too long; {LONGEST_CHAIN} requests are allowed")
        if _REQUEST_PLACE(self.connection, id=request.id).first() is not None:
            raise Invalid(f"request {request.id} is already stored", id=request.id)
        if request.message is not None:
            self._row(request.message)
        dictionaries = make_dictionaries(self.connection, RequestAccount.from_json(request.account))
        picks = shared_picks(request.account)
        own = [Piece("message", self._pieces.pop(each)) for each in request.pieces if each in self._pieces]
        numbers = store_pieces(self.connection, (*own, *picks.values()), dictionaries)
        self._numbered.update(zip((piece.sha256.hex() for piece in own), numbers, strict=False))
        # pieces that did not come with it were stored before
        if missing := [sha256 for sha256 in request.pieces if sha256 not in self._numbered]:
            raise Invalid(f"request {request.id} lacks its piece {missing[0][:16]}", id=request.id)
        account = with_piece_numbers(request.account, dict(zip(picks, numbers[len(own) :], strict=True)))
        insert_request(
            self.connection,
            **{name: getattr(request, name) for name in (*_SAME, "kept", "marks", "outcome")},
            home=self._home_id,
            answers=request.message,
            base=base,
            added=[self._numbered[sha256] for sha256 in request.pieces],
            sha256=bytes.fromhex(request.sha256),
            stable_sha256=bytes.fromhex(request.stable_sha256),
            account=pack_with(encode_account(account), dictionaries[-1]),
        )
        self._uses.note(request.id, [_use(source) for source in request.sources])

    def _request_row(self, id: str) -> AnyRow:
        row = _REQUEST_PLACE(self.connection, id=id).first()
        if row is None or row.conversation != self.home:
            raise Invalid(f"the request {id}, which another is based on, is not there", id=id)
        return row
