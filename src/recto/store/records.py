"""Records: requests as the pieces of bytes that were sent. Rebuilding joins stored bytes; no renderer runs."""

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, text, update

from recto import wire
from recto.errors import Altered, NotFound
from recto.store.database import Database
from recto.store.rows import AnyRow
from recto.store.schema import conversations, messages, pieces, requests
from recto.window.request import Piece, Request

# Rebuilding walks back over bases; a full list now and then keeps that walk short.
LONGEST_CHAIN = 64
_RAW, _DEFLATED = 0, 1
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
            home = _number(connection, conversations, request.conversation)
            numbers = _store_pieces(connection, request.pieces)
            before, known, chain = self._before(connection, base)
            shared = _shared(known, numbers)
            kept = shared if chain < LONGEST_CHAIN else 0
            account = _account(request) | {"prefix": _prefix(connection, request, before, shared)}
            connection.execute(
                insert(requests).values(
                    id=request.id,
                    conversation=home,
                    message=_number(connection, messages, request.message) if request.message else None,
                    purpose=request.purpose,
                    created=request.created,
                    base=before.n if before is not None and kept else None,
                    kept=kept,
                    added=wire.dumps(numbers[kept:]),
                    chain=chain + 1 if kept else 0,
                    sha256=bytes.fromhex(request.sha256),
                    size=len(request.body),
                    account=zlib.compress(wire.dumpb(account), 9),
                )
            )

    def _before(self, connection: Connection, base: str | None) -> tuple[AnyRow | None, list[int], int]:
        if base is None:
            return None, [], 0
        row = _request_row(connection, base)
        return row, _piece_numbers(connection, row.n), row.chain

    def outcome(self, id: str, **facts: Any) -> None:
        """Adds what became of the request: attempts, usage, finish, error, the reply's id."""
        with self._database.write() as connection:
            row = _request_row(connection, id)
            merged = wire.dumps(wire.loads(row.outcome) | facts)
            connection.execute(update(requests).where(requests.c.n == row.n).values(outcome=merged))

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

    def latest(self, conversation: str) -> str | None:
        query = select(requests.c.id).join(conversations).where(conversations.c.id == conversation)
        with self._database.read() as connection:
            return connection.execute(query.order_by(requests.c.n.desc()).limit(1)).scalar()

    def rebuild(self, id: str) -> bytes:
        """The bytes that were sent. Altered when what is stored no longer gives them."""
        with self._database.read() as connection:
            row = _request_row(connection, id)
            body = b"".join(_read_pieces(connection, id, _piece_numbers(connection, row.n)))
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


def _prefix(connection: Connection, request: Request, base: AnyRow | None, shared: int) -> dict[str, Any]:
    """How much of the former request's stable part came first again, and what stood in the way of the rest."""
    if base is None:
        return {"base": None, "kept": 0, "of": 0, "broken_by": None}
    before = wire.loads(zlib.decompress(base.account))
    stable = before.get("stable") or 0
    broken = None
    if shared < stable:
        broken = BREAKS[request.pieces[shared].kind] if shared < len(request.pieces) else "another branch"
        now = request.account.get("compaction")
        if now != before.get("compaction") and broken == BREAKS["message"]:
            broken = f"compaction {now}" if now else "another branch, before the compaction"
        if request.model != before.get("model"):
            broken = "another model"
    return {"base": base.id, "kept": shared, "of": stable, "broken_by": broken}


def _account(request: Request) -> dict[str, Any]:
    return {
        "model": request.model,
        "format": request.format,
        "parameters": dict(request.parameters),
        **request.account,
    }


def _record(connection: Connection, row: AnyRow) -> Record:
    home = select(conversations.c.id).where(conversations.c.n == row.conversation)
    message = select(messages.c.id).where(messages.c.n == row.message)
    return Record(
        id=row.id,
        conversation=connection.execute(home).scalar_one(),
        message=connection.execute(message).scalar(),
        purpose=row.purpose,
        created=row.created,
        sha256=row.sha256.hex(),
        size=row.size,
        pieces=len(_piece_numbers(connection, row.n)),
        account=wire.loads(zlib.decompress(row.account)),
        outcome=wire.loads(row.outcome),
    )


def _request_row(connection: Connection, id: str) -> AnyRow:
    row = connection.execute(select(requests).where(requests.c.id == id)).first()
    if row is None:
        raise NotFound(
            f"there is no request {id}; `recto conversations show --json` names those of a conversation", id=id
        )
    return row


def _number(connection: Connection, table: Any, id: str) -> int:
    number = connection.execute(select(table.c.n).where(table.c.id == id)).scalar()
    if number is None:
        raise NotFound(f"there is no {table.name[:-1]} {id}", id=id)
    return int(number)


def _piece_numbers(connection: Connection, request: int) -> list[int]:
    """The request's pieces in order: back along its bases, then forward, keeping what each kept."""
    chain = connection.execute(
        text(
            "WITH RECURSIVE bases(n, base, kept, added, chain) AS ("
            "SELECT n, base, kept, added, chain FROM requests WHERE n = :n UNION ALL "
            "SELECT r.n, r.base, r.kept, r.added, r.chain FROM requests r JOIN bases ON r.n = bases.base "
            "WHERE r.chain < bases.chain) SELECT kept, added FROM bases ORDER BY chain"
        ),
        {"n": request},
    )
    numbers: list[int] = []
    for kept, added in chain:
        numbers = numbers[:kept] + wire.loads(added)
    return numbers


def _shared(one: list[int], other: list[int]) -> int:
    same = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        same += 1
    return same


def _store_pieces(connection: Connection, sent: Sequence[Piece]) -> list[int]:
    hashes = [piece.sha256 for piece in sent]
    known = _known_pieces(connection, hashes)
    fresh = {digest: piece.data for digest, piece in zip(hashes, sent, strict=True) if digest not in known}
    if fresh:
        rows = [
            dict(zip(("sha256", "packing", "data"), (digest, *_pack(data)), strict=True))
            for digest, data in fresh.items()
        ]
        connection.execute(insert(pieces), rows)
        known |= _known_pieces(connection, list(fresh))
    return [known[digest] for digest in hashes]


def _known_pieces(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    known: dict[bytes, int] = {}
    for start in range(0, len(hashes), 500):
        query = select(pieces.c.sha256, pieces.c.n).where(pieces.c.sha256.in_(hashes[start : start + 500]))
        known.update((digest, number) for digest, number in connection.execute(query))
    return known


def _pack(data: bytes) -> tuple[int, bytes]:
    small = zlib.compress(data, 6)
    return (_DEFLATED, small) if len(small) < len(data) else (_RAW, data)


def _read_pieces(connection: Connection, request: str, numbers: list[int]) -> Iterator[bytes]:
    found: dict[int, bytes] = {}
    for start in range(0, len(numbers), 500):
        query = select(pieces).where(pieces.c.n.in_(numbers[start : start + 500]))
        for row in connection.execute(query):
            found[row.n] = _unpack(request, row)
    for place, number in enumerate(numbers):
        if number not in found:
            raise Altered(
                f"request {request} does not rebuild: piece {place + 1} of {len(numbers)} is gone", id=request
            )
        yield found[number]


def _unpack(request: str, row: AnyRow) -> bytes:
    try:
        data = zlib.decompress(row.data) if row.packing == _DEFLATED else bytes(row.data)
    except zlib.error:
        data = b""
    if hashlib.sha256(data).digest() != row.sha256:
        raise Altered(f"request {request} does not rebuild: its piece {row.sha256.hex()[:16]} was changed", id=request)
    return data
