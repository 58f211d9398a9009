"""Blobs: source texts, full tool results and attached media, by the sha256 of their bytes. Records refer to them, so a
request stays readable after a file or server changes.

TokenCounts: the tokens of each piece by each token counter, so nothing is tokenized twice. UsageReports: the latest
usage that providers reported, by model, for calibrating estimates.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select

from recto.chat.blocks import Block, File, Image, ToolResult
from recto.errors import Altered, NotFound
from recto.store.database import Database
from recto.store.dialect import in_list
from recto.store.packing import RAW, pack, unpack
from recto.store.prepared_statement import Statement, given
from recto.store.schema import counts, kept, meters, usage_reports
from recto.window.calibration import UsageReport
from recto.window.count import Count

# Compressing larger blobs takes seconds and mostly saves little.
LARGE = 1 << 20

_INSERT = Statement(
    lambda insert: insert(kept).values(sha256=bindparam("sha256"), data=bindparam("data")).on_conflict_do_nothing()
)
_EXISTS = Statement(select(kept.c.n).where(kept.c.sha256 == bindparam("sha256")))
_DATA = Statement(select(kept.c.data).where(kept.c.sha256 == bindparam("sha256")))


class Blobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, data: bytes) -> str:
        """Stores the bytes and returns their sha256. Idempotent."""
        return self.put_all([data])[0]

    def put_all(self, blobs: Iterable[bytes]) -> list[str]:
        """Stores all or none, and returns the sha256s in order."""
        hashed = [(hashlib.sha256(data).digest(), data) for data in blobs]
        with self._database.read() as connection:
            new = {digest: data for digest, data in hashed if _EXISTS(connection, sha256=digest).scalar() is None}
        # packed before the lock is taken, so that others can write meanwhile
        packed = [(digest, packed_of(data)) for digest, data in new.items()]
        if packed:
            with self._database.write() as connection:
                for digest, blob in packed:
                    _INSERT(connection, sha256=digest, data=blob)
        return [digest.hex() for digest, _ in hashed]

    def has(self, sha256: str) -> bool:
        return self._database.scalar(_EXISTS, sha256=digest_of(sha256)) is not None

    def get(self, sha256: str) -> bytes:
        """The stored bytes. Raises Altered if they no longer have this hash."""
        blob = self._database.scalar(_DATA, sha256=digest_of(sha256))
        if blob is None:
            raise NotFound(f"the store has no text with the sha256 {sha256}", sha256=sha256)
        try:
            data = unpack(blob)
        except zlib.error:
            data = b""
        if hashlib.sha256(data).hexdigest() != sha256.lower():
            raise Altered(f"the text stored as {sha256} was changed", sha256=sha256)
        return data


def packed_of(data: bytes) -> bytes:
    """The data as `unpack` reads it. Large blobs, mostly images and files, are stored as they are."""
    return pack(data) if len(data) < LARGE else bytes([RAW]) + data


def digest_of(sha256: str) -> bytes:
    try:
        return bytes.fromhex(sha256)
    except ValueError:
        return b""


# Half a sha256 is plenty for a cache key, and halves the table.
KEY_BYTES = 16
# Every version of SQLite accepts this many parameters.
BATCH = 500

_ADD_METER = Statement(lambda insert: insert(meters).values(key=bindparam("key")).on_conflict_do_nothing())
_meter = select(meters.c.n).where(meters.c.key == bindparam("key"))
_METER = Statement(_meter)
_FIND = Statement(
    select(counts.c.sha, counts.c.tokens).where(
        counts.c.meter == _meter.scalar_subquery(), in_list(counts.c.sha, "keys")
    )
)
_SAVE = Statement(
    lambda insert: (
        insert(counts)
        .values(given(counts))
        .on_conflict_do_update(index_elements=[counts.c.meter, counts.c.sha], set_={"tokens": bindparam("tokens")})
    )
)


class TokenCounts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, meter: str, hashes: Sequence[bytes]) -> dict[bytes, Count]:
        short = {digest[:KEY_BYTES]: digest for digest in hashes}
        found: dict[bytes, Count] = {}
        with self._database.read() as connection:
            keys = list(short)
            for start in range(0, len(keys), BATCH):
                for key, stored in _FIND(connection, key=meter, keys=keys[start : start + BATCH]):
                    # an estimate is stored as -1 - tokens
                    found[short[key]] = Count(stored) if stored >= 0 else Count(-1 - stored, exact=False)
        return found

    def save(self, meter: str, known: Mapping[bytes, Count]) -> None:
        if not known:
            return
        with self._database.write() as connection:
            number = _meter_number(connection, meter)
            tokens = {
                digest[:KEY_BYTES]: count.tokens if count.exact else -1 - count.tokens
                for digest, count in known.items()
            }
            rows = [{"meter": number, "sha": key, "tokens": stored} for key, stored in tokens.items()]
            _SAVE.many(connection, rows)


def _meter_number(connection: Connection, key: str) -> int:
    # looked up each time: a cached number would survive the rollback of its transaction
    if (number := _METER(connection, key=key).scalar()) is None:
        _ADD_METER(connection, key=key)
        number = _METER(connection, key=key).scalar()
    return int(number)


MOST_REPORTS = 64
_REPORT = UsageReport.__struct_fields__
_of_model = usage_reports.c.model == bindparam("model")
_ADD_REPORT = Statement(
    lambda insert: insert(usage_reports).values({name: bindparam(name) for name in ("model", *_REPORT)})
)
_LATEST_REPORTS = Statement(
    select(*(usage_reports.c[name] for name in _REPORT))
    .where(_of_model)
    .order_by(usage_reports.c.n.desc())
    .limit(MOST_REPORTS)
)
_oldest = select(usage_reports.c.n).where(_of_model).order_by(usage_reports.c.n.desc()).offset(MOST_REPORTS).limit(1)
_FORGET_REPORTS = Statement(delete(usage_reports).where(_of_model, usage_reports.c.n <= _oldest.scalar_subquery()))


class UsageReports:
    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, model: str) -> list[UsageReport]:
        """The newest first."""
        return [UsageReport(*row) for row in self._database.rows(_LATEST_REPORTS, model=model)]

    def add(self, model: str, report: UsageReport) -> None:
        with self._database.write() as connection:
            _ADD_REPORT(connection, model=model, **{name: getattr(report, name) for name in _REPORT})
            _FORGET_REPORTS(connection, model=model)


def blobs_of(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case File(sha256=sha256) | Image(sha256=sha256) if sha256:
                yield sha256
            case ToolResult():
                yield from [block.whole] if block.whole else []
                yield from (each.rpartition(" ")[2] for each in block.media)
                yield from blobs_of(block.attachments)
            case _:
                pass


def blobs_of_account(account: Mapping[str, Any]) -> Iterator[str]:
    picks = [pick for section in account.get("sections") or () for pick in section["picks"]]
    for pick in (*picks, *(account.get("not_picked") or ())):
        if sha256 := pick.get("sha256"):
            yield str(sha256)
