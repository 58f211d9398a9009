"""Records: requests as the pieces of bytes that were sent, saved, told, found, proved and compared."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from recto import wire
from recto.errors import Altered, NotFound
from recto.store.accounts import prove_account, read_account, read_bare, shared_picks, with_numbers, written
from recto.store.comparing import Difference, compare
from recto.store.database import Database
from recto.store.kept import Kept
from recto.store.kin import ALONE, Kin, kin_of, named
from recto.store.packing import pack, pack_beside
from recto.store.prefix import kept_prefix
from recto.store.queries import (
    INSERT_PIECES,
    INSERT_REQUEST,
    KNOWN_PIECES,
    LATEST_REQUEST,
    MESSAGE_BY_ID,
    REBUILT_BY_IDS,
    REQUEST_BEFORE,
    REQUEST_BY_ID,
    REQUEST_FOR,
    SET_OUTCOME,
)
from recto.store.rebuilding import Rebuilding
from recto.store.record import Record as Record
from recto.store.rows import AnyRow, read_details
from recto.store.said import said_in
from recto.store.schema import conversations, messages, requests
from recto.store.side import Side
from recto.window.request import Piece, Purpose, Request

# Rebuilding walks back over bases; a full list now and then keeps that walk short.
LONGEST_CHAIN = 64
# So many requests are verified at one look.
BATCH = 200
# A piece that quotes messages is longer than this.
QUOTING = 500


class Records:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, request: Request, base: str | None) -> None:
        """Stores the request as what it shares with `base` plus what is new, and names what broke the prefix."""
        with self._database.write() as connection:
            before = _request_row(connection, base) if base else None
            kin = kin_of(connection, named(request.account))
            picks = shared_picks(request.account)
            shared, kept, numbers = _split(connection, request, before, kin, tuple(picks.values()))
            added = numbers[: len(numbers) - len(picks)]
            account = _account(request, dict(zip(picks, numbers[len(added) :], strict=True)))
            account["prefix"] = kept_prefix(request, before, shared, partial(_told, connection, before))
            body = request.body
            values = {
                "id": request.id,
                "home": request.conversation,
                "answers": request.message,
                "purpose": request.purpose,
                "created": request.created,
                "base": before.n if before is not None and kept else None,
                "kept": kept,
                "added": wire.dumps(added),
                "chain": before.chain + 1 if before is not None and kept else 0,
                "sha256": hashlib.sha256(body).digest(),
                "size": len(body),
                "stable": request.stable,
                "stable_sha256": request.beginning(request.stable),
                "account": _packed(written(account), kin),
                "marks": _marks(request),
            }
            try:
                INSERT_REQUEST(connection, **values)
            except IntegrityError as why:
                raise NotFound(f"there is no conversation {request.conversation}", id=request.conversation) from why

    def outcome(self, id: str, **facts: Any) -> None:
        """Says once what became of the request: attempts, usage, finish, error, the reply's id."""
        with self._database.write() as connection:
            SET_OUTCOME(connection, request=id, new_outcome=wire.dumps(facts))

    def record(self, id: str) -> Record:
        with self._database.read() as connection:
            return _record(connection, _request_row(connection, id))

    def ids(self, conversation: str | None = None) -> list[str]:
        """All requests, oldest first."""
        query = select(requests.c.id).order_by(requests.c.n)
        if conversation:
            query = query.join(conversations).where(conversations.c.id == conversation)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def latest(self, conversation: str, purpose: Purpose = "reply") -> str | None:
        with self._database.read() as connection:
            return LATEST_REQUEST(connection, id=conversation, purpose=purpose).scalar()

    def named(self, id: str) -> str:
        """The request of this id, or the one behind the message of this id: a reply's, or the last for a question."""
        with self._database.read() as connection:
            if REQUEST_BY_ID(connection, id=id).first() is not None:
                return id
            message = MESSAGE_BY_ID(connection, id=id).first()
            if message is None:
                raise _unknown(id)
            found = message.request_id or REQUEST_FOR(connection, id=id).scalar()
        if found is None:
            raise NotFound(f"No context data available: no request is recorded for message {id}", id=id)
        return str(found)

    def before(self, id: str) -> str:
        """The request that this one went on from, or that was sent before it in its conversation."""
        with self._database.read() as connection:
            prefix = read_bare(connection, _request_row(connection, id)).get("prefix") or {}
            found = prefix.get("base") or REQUEST_BEFORE(connection, id=id).scalar()
        if found is None:
            raise NotFound(f"nothing was sent before request {id} in its conversation: name two to compare", id=id)
        return str(found)

    def compare(self, before: str, after: str) -> Difference:
        """What came in, went out and changed from one request to another, and what broke the prefix."""
        with self._database.read() as connection:
            again = Rebuilding()
            one, other = (_side(connection, again, _request_row(connection, id)) for id in (before, after))
        return compare(one, other, self._text)

    def _text(self, sha256: str) -> bytes | None:
        with suppress(NotFound, Altered):
            return Kept(self._database).get(sha256)
        return None

    def rebuild(self, id: str) -> bytes:
        """The bytes that were sent. Altered when what is stored no longer gives them."""
        with self._database.read() as connection:
            return Rebuilding().body(connection, _rebuilt_rows(connection, [id])[0])

    def differences(self, ids: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """For each request: None when it rebuilds and its account can be read, else what differs."""
        again = Rebuilding()
        for start in range(0, len(ids), BATCH):
            # a batch at a time: a look that lasts as long as the whole would keep the store's log from being folded
            with self._database.read() as connection:
                rows = _rebuilt_rows(connection, ids[start : start + BATCH])
                found = [(row.id, _difference(connection, again, row)) for row in rows]
            yield from found


def _difference(connection: Connection, again: Rebuilding, row: AnyRow) -> str | None:
    try:
        again.body(connection, row)
        prove_account(connection, row, again)
    except Altered as why:
        return why.message
    return None


def _rebuilt_rows(connection: Connection, ids: Sequence[str]) -> list[AnyRow]:
    """In the order of the ids; NotFound for the first that there is not."""
    found = {row.id: row for row in REBUILT_BY_IDS(connection, ids=wire.dumps(ids))}
    return [found.get(id) or _request_row(connection, id) for id in ids]


def _split(
    connection: Connection, request: Request, base: AnyRow | None, kin: Kin, more: tuple[Piece, ...]
) -> tuple[int, int, list[int]]:
    """How many pieces come first again, how many of them are kept by naming the base, and the numbers of the others;
    `more` is stored in the same step, and its numbers come last.

    Where the base's stable part comes again, as it does at nearly every turn, its pieces need not even be looked up.
    """
    may_chain = base is not None and base.chain < LONGEST_CHAIN
    is_reply = request.purpose == "reply"  # a summary's may go on with what was not stable
    if base is not None and may_chain and is_reply and base.stable and _begins_again(request, base):
        return base.stable, base.stable, _store_pieces(connection, (*request.pieces[base.stable :], *more), kin)
    numbers = _store_pieces(connection, (*request.pieces, *more), kin)
    shared = _shared(_numbers(connection, base), numbers[: len(request.pieces)]) if base is not None else 0
    kept = shared if may_chain else 0
    return shared, kept, numbers[kept:]


def _numbers(connection: Connection, base: AnyRow) -> list[int]:
    try:
        return Rebuilding().numbers(connection, base)
    except Altered:  # what is damaged shares nothing, and stops no chat
        return []


def _begins_again(request: Request, base: AnyRow) -> bool:
    return bool(request.beginning(base.stable) == base.stable_sha256)


def _told(connection: Connection, row: AnyRow | None) -> dict[str, Any]:
    return read_bare(connection, row) if row is not None else {}


def _account(request: Request, numbers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "model": request.model,
        "format": request.format,
        "parameters": dict(request.parameters),
        **with_numbers(request.account, numbers),
    }


def _marks(request: Request) -> str | None:
    at = [[place, piece.mark] for place, piece in enumerate(request.pieces) if piece.mark is not None]
    return wire.dumps({"bytes": request.mark_bytes.decode(), "at": at}) if at and request.mark_bytes else None


def _record(connection: Connection, row: AnyRow) -> Record:
    home = select(conversations.c.id).where(conversations.c.n == row.conversation)
    message = select(messages.c.id).where(messages.c.n == row.message)
    account = read_account(connection, row)
    return Record(
        id=row.id,
        conversation=connection.execute(home).scalar_one(),
        message=connection.execute(message).scalar(),
        purpose=row.purpose,
        created=row.created,
        sha256=row.sha256.hex(),
        size=row.size,
        pieces=len(Rebuilding().numbers(connection, row)),
        account=account,
        outcome={"counted": account.get("total"), **_reply(connection, row), **wire.loads(row.outcome)},
    )


def _reply(connection: Connection, row: AnyRow) -> dict[str, Any]:
    """The message that came of the request, and what was reported for it."""
    query = select(messages.c.id, messages.c.details).where(messages.c.request == row.n).order_by(messages.c.n)
    found = connection.execute(query.limit(1)).first()
    if found is None:
        return {}
    usage = read_details(found.details).get("usage")
    return {"reply": found.id, "usage": asdict(usage) if usage else None}


def _request_row(connection: Connection, id: str) -> AnyRow:
    row = REQUEST_BY_ID(connection, id=id).first()
    if row is None:
        raise _unknown(id)
    return row


def _unknown(id: str) -> NotFound:
    return NotFound(f"there is no request {id}; `recto conversations show --json` names those of a conversation", id=id)


def _side(connection: Connection, again: Rebuilding, row: AnyRow) -> Side:
    record = _record(connection, row)
    pieces = tuple(again.pieces(connection, row))
    return Side(record, pieces, row.stable, said_in(connection, record.account))


def _shared(one: list[int], other: list[int]) -> int:
    same = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        same += 1
    return same


def _store_pieces(connection: Connection, sent: Sequence[Piece], kin: Kin = ALONE) -> list[int]:
    hashes = [piece.sha256 for piece in sent]
    known = _known_pieces(connection, hashes)
    fresh = {digest: piece for digest, piece in zip(hashes, sent, strict=True) if digest not in known}
    if fresh:
        # nothing but a message quotes messages
        kins = {digest: kin if piece.kind == "message" else ALONE for digest, piece in fresh.items()}
        rows = [{"sha256": digest, "data": _packed(piece.data, kins[digest])} for digest, piece in fresh.items()]
        known.update(zip(fresh, connection.execute(INSERT_PIECES, rows).scalars(), strict=True))
    return [known[digest] for digest in hashes]


def _packed(data: bytes, kin: Kin) -> bytes:
    return pack_beside(data, kin.numbers, kin.data) if kin.numbers and len(data) > QUOTING else pack(data)


def _known_pieces(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    known: dict[bytes, int] = {}
    for start in range(0, len(hashes), 500):
        found = connection.execute(KNOWN_PIECES, {"hashes": hashes[start : start + 500]})
        known.update((digest, number) for digest, number in found)
    return known
