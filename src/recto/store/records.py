"""Records: stores every request before it is sent, as pieces of exact bytes; rebuilds, verifies and compares them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from recto import wire
from recto.chat.message import Usage
from recto.errors import Altered, NotFound
from recto.store.comparison import Difference, compare, kept_prefix, shared_length
from recto.store.database import Database
from recto.store.dialect import in_list, raw_bytes
from recto.store.packing import PackDictionary, make_dictionaries, pack_with
from recto.store.prepared_statement import InsertStatement, Statement, given
from recto.store.rebuild import (
    Rebuilder,
    encode_account,
    read_account,
    read_bare_account,
    read_window_size,
    shared_picks,
    verify_account,
    with_piece_numbers,
)
from recto.store.rows import MESSAGE_BY_ID, WAS_SENT, AnyRow, read_details
from recto.store.schema import conversations, messages, pieces, requests
from recto.window.account import NO_ACCOUNT, RequestAccount
from recto.window.request import Piece, Purpose, Request

# Rebuilding walks back over bases; a full list at this length keeps the walk short.
LONGEST_CHAIN = 64
BATCH = 200
# The shortest piece that can quote messages.
MIN_QUOTING_BYTES = 120

KNOWN_PIECES = Statement(select(pieces.c.sha256, pieces.c.n).where(in_list(pieces.c.sha256, "hashes")))
_INSERT_PIECE = InsertStatement(insert(pieces).values(given(pieces)))
_INSERT = Statement(
    insert(requests).values(
        given(
            requests,
            conversation=select(conversations.c.n).where(conversations.c.id == bindparam("home")).scalar_subquery(),
            message=select(messages.c.n).where(messages.c.id == bindparam("answers")).scalar_subquery(),
            outcome=bindparam("new_outcome"),
        )
    )
)
_SET_OUTCOME = Statement(
    update(requests)
    .where(requests.c.id == bindparam("request"))
    .values(outcome=bindparam("new_outcome"), cost=bindparam("new_cost"))
)
_BY_ID = Statement(select(requests).where(requests.c.id == bindparam("id")))
REBUILT_BY_IDS = Statement(
    select(
        *(requests.c[name] for name in ("n", "id", "base", "kept", "chain", "sha256", "size", "account")),
        raw_bytes(requests.c.added).label("added"),
        raw_bytes(requests.c.marks).label("marks"),
    ).where(in_list(requests.c.id, "ids"))
)
_ID = select(requests.c.id).limit(1)
_FOR = Statement(
    _ID.join(messages, messages.c.n == requests.c.message)
    .where(messages.c.id == bindparam("id"))
    .order_by(requests.c.n.desc())
)
_later = requests.alias("later")
# The newest earlier request for a reply in this conversation.
_BEFORE = Statement(
    _ID.join(_later, _later.c.conversation == requests.c.conversation)
    .where(_later.c.id == bindparam("id"), requests.c.n < _later.c.n, requests.c.purpose == "reply")
    .order_by(requests.c.n.desc())
)
_OF_CONVERSATION = _ID.join(conversations).where(
    conversations.c.id == bindparam("id"), requests.c.purpose == bindparam("purpose")
)
_LATEST = Statement(_OF_CONVERSATION.order_by(requests.c.n.desc()))
_FIRST = Statement(_OF_CONVERSATION.order_by(requests.c.n))
_IN_HOME = requests.c.conversation == (
    select(conversations.c.n).where(conversations.c.id == bindparam("id")).scalar_subquery()
)
_SENT = Statement(
    select(*(requests.c[name] for name in ("n", "purpose", "model", "outcome", "cost")))
    .where(_IN_HOME, WAS_SENT)
    .order_by(requests.c.n)
)
# A request with several replies has the usage of its first one: the last row here.
_REPLY_DETAILS = Statement(
    select(messages.c.request, messages.c.details)
    .join(requests, requests.c.n == messages.c.request)
    .where(_IN_HOME)
    .order_by(messages.c.n.desc())
)


class Record(Struct, frozen=True):
    """A stored request without its bytes."""

    id: str
    conversation: str
    message: str | None
    purpose: str
    created: str
    sha256: str
    size: int
    pieces: int
    account: RequestAccount
    outcome: dict[str, Any]
    cost_usd: float | None = None
    """None if the price is unknown, or the request has not ended."""

    @property
    def was_sent(self) -> bool:
        """False for a request that never left, for lack of a key or a connection."""
        return not self.outcome.get("not_sent")

    def to_json(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__struct_fields__ if name not in ("account", "outcome")}
        return {**own, **self.account.to_json(), **self.outcome}


class SentRequest(Struct, frozen=True):
    """A sent request, as statistics of a conversation need it."""

    purpose: str
    model: str
    """Empty if unknown."""
    usage: Mapping[str, int]
    """As reported by the provider; empty without a report."""
    cost_usd: float | None


class Records:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, request: Request, base: str | None) -> None:
        """Stores the request as pieces shared with `base` and its own, with the reason for a broken prefix."""
        with self._database.write() as connection:
            before = _request_row(connection, base) if base else None
            dictionaries = make_dictionaries(connection, request.account)
            stated = request.account.to_json()
            picks = shared_picks(stated)
            shared, kept, numbers = _split(connection, request, before, dictionaries, tuple(picks.values()))
            added = numbers[: len(numbers) - len(picks)]
            account = {
                "model": request.model,
                "format": request.format,
                "parameters": dict(request.parameters),
                **with_piece_numbers(stated, dict(zip(picks, numbers[len(added) :], strict=True))),
                "prefix": kept_prefix(request, before, shared, partial(_account_of, connection, before)).to_json(),
            }
            body, is_based = request.body, before is not None and kept > 0
            insert_request(
                connection,
                id=request.id,
                home=request.conversation,
                answers=request.message,
                purpose=request.purpose,
                created=request.created,
                base=before if is_based else None,
                kept=kept,
                added=added,
                sha256=hashlib.sha256(body).digest(),
                size=len(body),
                stable=request.stable,
                stable_sha256=request.beginning(request.stable),
                account=pack_with(encode_account(account), dictionaries[-1]),
                marks=_marks(request),
                model=request.model,
                cost_bound=request.at_most_usd,
            )

    def outcome(self, id: str, *, cost_usd: float | None = None, **facts: Any) -> None:
        """Stores cost, attempts, usage, finish, error and the reply's id."""
        with self._database.write() as connection:
            _SET_OUTCOME(connection, request=id, new_outcome=wire.dumps(facts), new_cost=cost_usd)

    def record(self, id: str) -> Record:
        with self._database.read() as connection:
            return _record(connection, _request_row(connection, id))

    def account(self, id: str) -> RequestAccount:
        """Without the picks of the session's sources, which take longest to read."""
        with self._database.read() as connection:
            return read_bare_account(connection, _request_row(connection, id))

    def window_sizes(self, ids: Sequence[str]) -> dict[str, RequestAccount]:
        """Accounts with only model, limit and total; without unreadable ones."""
        found: dict[str, RequestAccount] = {}
        with self._database.read() as connection:
            for row in REBUILT_BY_IDS(connection, ids=ids):
                with suppress(Altered):
                    found[row.id] = read_window_size(connection, row)
        return found

    def ids(self, conversation: str | None = None) -> list[str]:
        """Oldest first."""
        query = select(requests.c.id).order_by(requests.c.n)
        if conversation:
            query = query.join(conversations).where(conversations.c.id == conversation)
        return [row.id for row in self._database.rows(query)]

    def unsent(self, ids: Sequence[str] | None = None) -> set[str]:
        query = select(requests.c.id).where(~WAS_SENT)
        if ids is not None:
            query = query.where(requests.c.id.in_(ids))
        return {row.id for row in self._database.rows(query)}

    def sent(self, conversation: str) -> list[SentRequest]:
        """The requests of a conversation that were sent, oldest first."""
        with self._database.read() as connection:
            details = _REPLY_DETAILS(connection, id=conversation)
            usage = {number: read_details(text).get("usage") for number, text in details}
            rows = _SENT(connection, id=conversation).all()
            return [_sent_request(row, usage.get(row.n)) for row in rows]

    def latest(self, conversation: str, purpose: Purpose = "reply") -> str | None:
        found: str | None = self._database.scalar(_LATEST, id=conversation, purpose=purpose)
        return found

    def first(self, conversation: str) -> str | None:
        found: str | None = self._database.scalar(_FIRST, id=conversation, purpose="reply")
        return found

    def named(self, id: str) -> str:
        """The request with this id, the one of a reply, or the last one for a user's message."""
        with self._database.read() as connection:
            if _BY_ID(connection, id=id).first() is not None:
                return id
            message = MESSAGE_BY_ID(connection, id=id).first()
            if message is None:
                raise _unknown(id)
            found = message.request_id or _FOR(connection, id=id).scalar()
        if found is None:
            raise NotFound(f"No context data available: no request is recorded for message #{message.said}", id=id)
        return str(found)

    def before(self, id: str) -> str:
        """The base of the request, or the one sent before it in its conversation."""
        with self._database.read() as connection:
            prefix = read_bare_account(connection, _request_row(connection, id)).prefix
            found = (prefix.base if prefix else None) or _BEFORE(connection, id=id).scalar()
        if found is None:
            raise NotFound("nothing was sent before this request in its conversation: name two to compare", id=id)
        return str(found)

    def compare(self, before: str, after: str) -> Difference:
        return compare(self.record(before).account, self.record(after).account, (before, after))

    def rebuild(self, id: str) -> bytes:
        """The bytes that were sent. Raises Altered if the stored data no longer yields them."""
        with self._database.read() as connection:
            return Rebuilder().body(connection, _rebuilt_rows(connection, [id])[0])

    def differences(self, ids: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """Each request with its difference; None if it rebuilds and its account is readable."""
        again = Rebuilder()
        for start in range(0, len(ids), BATCH):
            # in batches: one long read transaction would keep SQLite from checkpointing its log
            with self._database.read() as connection:
                rows = _rebuilt_rows(connection, ids[start : start + BATCH])
                found = [(row.id, _difference(connection, again, row)) for row in rows]
            yield from found


def _difference(connection: Connection, again: Rebuilder, row: AnyRow) -> str | None:
    try:
        again.body(connection, row)
        verify_account(connection, row, again)
    except Altered as why:
        return why.message
    return None


def _rebuilt_rows(connection: Connection, ids: Sequence[str]) -> list[AnyRow]:
    """In the order of the ids. Raises NotFound for the first unknown id."""
    found = {row.id: row for row in REBUILT_BY_IDS(connection, ids=ids)}
    return [found.get(id) or _request_row(connection, id) for id in ids]


def _split(
    connection: Connection,
    request: Request,
    base: AnyRow | None,
    dictionaries: Sequence[PackDictionary],
    more: tuple[Piece, ...],
) -> tuple[int, int, list[int]]:
    """The number of pieces shared with the base, how many of them are stored by reference to it, and the numbers of the
    others and of `more`. If the base's stable part is repeated, as in nearly every turn, it is not looked up."""
    may_chain = base is not None and base.chain < LONGEST_CHAIN
    is_reply = request.purpose == "reply"  # a summary request may continue with pieces that were not stable
    repeats = base is not None and may_chain and is_reply and base.stable
    if base is not None and repeats and request.beginning(base.stable) == base.stable_sha256:
        fresh = store_pieces(connection, (*request.pieces[base.stable :], *more), dictionaries)
        return base.stable, base.stable, fresh
    numbers = store_pieces(connection, (*request.pieces, *more), dictionaries)
    shared = shared_length(_numbers(connection, base), numbers[: len(request.pieces)]) if base is not None else 0
    kept = shared if may_chain else 0
    return shared, kept, numbers[kept:]


def _numbers(connection: Connection, base: AnyRow) -> list[int]:
    try:
        return Rebuilder().numbers(connection, base)
    except Altered:  # a damaged base shares nothing, and must not stop the chat
        return []


def _account_of(connection: Connection, row: AnyRow | None) -> RequestAccount:
    return read_bare_account(connection, row) if row is not None else NO_ACCOUNT


def _marks(request: Request) -> dict[str, Any] | None:
    at = [[place, piece.mark] for place, piece in enumerate(request.pieces) if piece.mark is not None]
    return {"bytes": request.mark_bytes.decode(), "at": at} if at and request.mark_bytes else None


def _record(connection: Connection, row: AnyRow) -> Record:
    home = select(conversations.c.id).where(conversations.c.n == row.conversation)
    message = select(messages.c.id).where(messages.c.n == row.message)
    account = read_account(connection, row)
    return Record(
        conversation=connection.execute(home).scalar_one(),
        message=connection.execute(message).scalar(),
        sha256=row.sha256.hex(),
        pieces=len(Rebuilder().numbers(connection, row)),
        account=account,
        outcome={"counted": account.total, **_reply(connection, row), **wire.loads(row.outcome)},
        cost_usd=row.cost,
        **{name: getattr(row, name) for name in ("id", "purpose", "created", "size")},
    )


def _reply(connection: Connection, row: AnyRow) -> dict[str, Any]:
    query = select(messages.c.id, messages.c.details).where(messages.c.request == row.n).order_by(messages.c.n)
    found = connection.execute(query.limit(1)).first()
    if found is None:
        return {}
    usage = read_details(found.details).get("usage")
    return {"reply": found.id, "usage": asdict(usage) if usage else None}


def _request_row(connection: Connection, id: str) -> AnyRow:
    row = _BY_ID(connection, id=id).first()
    if row is None:
        raise _unknown(id)
    return row


def _unknown(id: str) -> NotFound:
    return NotFound(f"there is no request {id}; `recto conversations show --json` lists those of a conversation", id=id)


def _sent_request(row: AnyRow, usage: Usage | None) -> SentRequest:
    reported = wire.loads(row.outcome).get("usage", asdict(usage) if usage else {}) or {}
    return SentRequest(row.purpose, row.model or "", reported, row.cost)


def insert_request(
    connection: Connection,
    *,
    base: AnyRow | None,
    added: Sequence[int],
    marks: Mapping[str, Any] | None,
    outcome: Mapping[str, Any] | None = None,
    cost: float | None = None,
    **columns: Any,
) -> None:
    """Stores a row of `requests`; `base` is the row of the request whose pieces it repeats."""
    try:
        _INSERT(
            connection,
            base=base.n if base is not None else None,
            chain=base.chain + 1 if base is not None else 0,
            added=wire.dumps(added),
            marks=wire.dumps(marks) if marks is not None else None,
            new_outcome=wire.dumps(outcome or {}),
            cost=cost,
            **columns,
        )
    except IntegrityError as why:
        raise NotFound(f"there is no conversation {columns['home']}", id=columns["home"]) from why


def store_pieces(
    connection: Connection, sent: Sequence[Piece], dictionaries: Sequence[PackDictionary] = ()
) -> list[int]:
    hashes = [piece.sha256 for piece in sent]
    known = _known_pieces(connection, hashes)
    fresh = {digest: piece for digest, piece in zip(hashes, sent, strict=True) if digest not in known}
    for digest, piece in fresh.items():
        # only a message quotes messages
        quotes = dictionaries if piece.kind == "message" and len(piece.data) > MIN_QUOTING_BYTES else ()
        number = _INSERT_PIECE.number(connection, sha256=digest, data=pack_with(piece.data, *quotes))
        assert number is not None, "one writer at a time"
        known[digest] = number
    return [known[digest] for digest in hashes]


def _known_pieces(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    known: dict[bytes, int] = {}
    for start in range(0, len(hashes), 500):
        found = KNOWN_PIECES(connection, hashes=hashes[start : start + 500])
        known.update((digest, number) for digest, number in found)
    return known
