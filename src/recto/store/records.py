"""Records: requests as the pieces of bytes that were sent. Rebuilding joins stored bytes; no renderer runs."""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from recto import wire
from recto.errors import Altered, NotFound
from recto.store.database import Database
from recto.store.kin import ALONE, Kin, kin_again, kin_of, named
from recto.store.packing import pack, pack_beside, unpack
from recto.store.queries import (
    CHAIN,
    INSERT_PIECES,
    INSERT_REQUEST,
    KNOWN_PIECES,
    LATEST_REQUEST,
    REQUEST_BY_ID,
    SET_OUTCOME,
)
from recto.store.rows import AnyRow, read_details
from recto.store.schema import conversations, messages, pieces, requests
from recto.window.request import Piece, Purpose, Request, with_mark

# Rebuilding walks back over bases; a full list now and then keeps that walk short.
LONGEST_CHAIN = 64
# A piece that quotes messages is longer than this.
QUOTING = 500
BREAKS = {
    "head": "another model or format",
    "tool": "the tools changed",
    "join": "the tools changed",
    "system": "the instructions changed",
    "message": "another branch",
    "tail": "another branch",
}


@dataclass(frozen=True, slots=True)
class Record:
    """A request as it is kept: everything about it but its bytes, which `rebuild` gives."""

    id: str
    conversation: str
    message: str | None
    purpose: str
    created: str
    sha256: str
    size: int
    pieces: int
    account: dict[str, Any]
    outcome: dict[str, Any]


class Records:
    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, request: Request, base: str | None) -> None:
        """Stores the request as what it shares with `base` plus what is new, and names what broke the prefix."""
        with self._database.write() as connection:
            before = _request_row(connection, base) if base else None
            kin = kin_of(connection, named(request.account))
            shared, kept, added = _split(connection, request, before, kin)
            account = _account(request) | {"prefix": _prefix(connection, request, before, shared)}
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
                "account": pack_beside(wire.dumpb(account), kin.numbers, kin.data),
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

    def rebuild(self, id: str) -> bytes:
        """The bytes that were sent. Altered when what is stored no longer gives them."""
        with self._database.read() as connection:
            row = _request_row(connection, id)
            stored = list(_read_pieces(connection, id, _piece_numbers(connection, row.id)))
        body = b"".join(_with_marks(id, row.marks, stored))
        if hashlib.sha256(body).digest() != row.sha256:
            raise Altered(
                f"request {id} does not rebuild: its {len(body)} bytes do not have the sha256 that was recorded",
                id=id,
                recorded=row.sha256.hex(),
                rebuilt=hashlib.sha256(body).hexdigest(),
            )
        return body

    def differences(self, ids: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """For each request: None when it rebuilds, else what differs."""
        for id in ids:
            try:
                self.rebuild(id)
                yield id, None
            except Altered as why:
                yield id, why.message


def _split(connection: Connection, request: Request, base: AnyRow | None, kin: Kin) -> tuple[int, int, list[int]]:
    """How many pieces come first again, how many of them are kept by naming the base, and the numbers of the others.

    Where the base's stable part comes again, as it does at nearly every turn, its pieces need not even be looked up.
    """
    may_chain = base is not None and base.chain < LONGEST_CHAIN
    is_reply = request.purpose == "reply"  # a summary's may go on with what was not stable
    if base is not None and may_chain and is_reply and base.stable and _begins_again(request, base):
        return base.stable, base.stable, _store_pieces(connection, request.pieces[base.stable :], kin)
    numbers = _store_pieces(connection, request.pieces, kin)
    shared = _shared(_piece_numbers(connection, base.id), numbers) if base is not None else 0
    kept = shared if may_chain else 0
    return shared, kept, numbers[kept:]


def _begins_again(request: Request, base: AnyRow) -> bool:
    return bool(request.beginning(base.stable) == base.stable_sha256)


def _prefix(connection: Connection, request: Request, base: AnyRow | None, shared: int) -> dict[str, Any]:
    """How much of the former request's stable part came first again, and what stood in the way of the rest."""
    if base is None:
        return {"base": None, "kept": 0, "of": 0, "broken_by": None}
    if request.purpose == "summary":
        # it stops where the covered part ends: what counts is how much of it the former request began with
        broken = None if shared >= request.stable else "a transcript of its own"
        if broken and request.model != _told(connection, base).get("model"):
            broken = "another model"
        return {"base": base.id, "kept": min(shared, request.stable), "of": request.stable, "broken_by": broken}
    broken = None
    if shared < base.stable:
        before = _told(connection, base)
        broken = BREAKS[request.pieces[shared].kind] if shared < len(request.pieces) else "another branch"
        now = request.account.get("compaction")
        # with a compaction comes the tool that recalls, and it may go with one
        if now != before.get("compaction") and broken in (BREAKS["message"], BREAKS["tool"], BREAKS["head"]):
            broken = f"compaction {now}" if now else "another branch, before the compaction"
        if request.account.get("passing") or before.get("passing"):
            broken = "what does not fit is left out anew with every request"
        if request.model != before.get("model"):
            broken = "another model"
        elif broken == BREAKS["head"] and request.format == before.get("format"):
            broken = BREAKS["tool"]  # the head says whether a list of tools follows
    elif request.account.get("messages", {}).get("rounds"):
        # within a turn everything of the former request should come again, and a compaction may have cut its rounds
        now = request.account.get("compaction")
        broken = f"compaction {now}" if now != _told(connection, base).get("compaction") else None
    return {"base": base.id, "kept": shared, "of": base.stable, "broken_by": broken}


def _told(connection: Connection, row: AnyRow) -> dict[str, Any]:
    try:
        told: dict[str, Any] = wire.loads(unpack(row.account, _beside(connection)))
    except (zlib.error, ValueError) as why:
        raise Altered(f"the account of request {row.id} cannot be read: {why}", id=row.id) from why
    return told


def _beside(connection: Connection) -> Callable[[list[int]], bytes]:
    return lambda numbers: kin_again(connection, numbers).data


def _account(request: Request) -> dict[str, Any]:
    return {
        "model": request.model,
        "format": request.format,
        "parameters": dict(request.parameters),
        **request.account,
    }


def _marks(request: Request) -> str | None:
    at = [[place, piece.mark] for place, piece in enumerate(request.pieces) if piece.mark is not None]
    return wire.dumps({"bytes": request.mark_bytes.decode(), "at": at}) if at and request.mark_bytes else None


def _with_marks(request: str, marks: str | None, stored: list[bytes]) -> list[bytes]:
    """The pieces as they were sent; they are stored without marks."""
    if marks is None:
        return stored
    try:
        known = wire.loads(marks)
        mark, at = known["bytes"].encode(), dict(known["at"])
        return [with_mark(data, at[place], mark) if place in at else data for place, data in enumerate(stored)]
    except (ValueError, TypeError, LookupError, AttributeError) as why:
        raise Altered(f"request {request} does not rebuild: its marks were changed", id=request) from why


def _record(connection: Connection, row: AnyRow) -> Record:
    home = select(conversations.c.id).where(conversations.c.n == row.conversation)
    message = select(messages.c.id).where(messages.c.n == row.message)
    account = _told(connection, row)
    return Record(
        id=row.id,
        conversation=connection.execute(home).scalar_one(),
        message=connection.execute(message).scalar(),
        purpose=row.purpose,
        created=row.created,
        sha256=row.sha256.hex(),
        size=row.size,
        pieces=len(_piece_numbers(connection, row.id)),
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
        raise NotFound(
            f"there is no request {id}; `recto conversations show --json` names those of a conversation", id=id
        )
    return row


def _piece_numbers(connection: Connection, request: str) -> list[int]:
    """The request's pieces in order: back along its bases, then forward, keeping what each kept."""
    chain = CHAIN(connection, id=request)
    numbers: list[int] = []
    for row in chain:
        numbers = numbers[: row.kept] + wire.loads(row.added)
    return numbers


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
    fresh = {digest: piece.data for digest, piece in zip(hashes, sent, strict=True) if digest not in known}
    if fresh:
        rows = [{"sha256": digest, "data": _packed(data, kin)} for digest, data in fresh.items()]
        known.update(zip(fresh, connection.execute(INSERT_PIECES, rows).scalars(), strict=True))
    return [known[digest] for digest in hashes]


def _packed(data: bytes, kin: Kin) -> bytes:
    return pack_beside(data, kin.numbers, kin.data) if len(data) > QUOTING else pack(data)


def _known_pieces(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    known: dict[bytes, int] = {}
    for start in range(0, len(hashes), 500):
        found = connection.execute(KNOWN_PIECES, {"hashes": hashes[start : start + 500]})
        known.update((digest, number) for digest, number in found)
    return known


def _read_pieces(connection: Connection, request: str, numbers: list[int]) -> Iterator[bytes]:
    found: dict[int, bytes] = {}
    for start in range(0, len(numbers), 500):
        query = select(pieces).where(pieces.c.n.in_(numbers[start : start + 500]))
        for row in connection.execute(query):
            found[row.n] = _unpack(connection, request, row)
    for place, number in enumerate(numbers):
        if number not in found:
            raise Altered(
                f"request {request} does not rebuild: piece {place + 1} of {len(numbers)} is gone", id=request
            )
        yield found[number]


def _unpack(connection: Connection, request: str, row: AnyRow) -> bytes:
    try:
        data = unpack(row.data, _beside(connection))
    except zlib.error:
        data = b""
    if hashlib.sha256(data).digest() != row.sha256:
        raise Altered(f"request {request} does not rebuild: its piece {row.sha256.hex()[:16]} was changed", id=request)
    return data
