"""Kept: texts of sources, whole results of tools and what came with them, by the sha256 of their bytes.

A record names them; whatever becomes of a file or a server, what was sent of it is here.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.dialects.sqlite import insert as upsert

from recto.errors import Altered, NotFound
from recto.store.database import Database
from recto.store.packing import DICTIONARY, RAW, WITH_DICTIONARY, pack, unpack
from recto.store.queries import Prepared
from recto.store.schema import kept

# From here on the best packing takes seconds and saves little: fifty megabytes are packed lightly, in steps.
LARGE, STEP = 1 << 20, 1 << 18
LIGHT = 3

_KEEP = Prepared(upsert(kept).values(sha256=bindparam("sha256"), data=bindparam("data")).on_conflict_do_nothing())
_IS_KEPT = Prepared(select(kept.c.n).where(kept.c.sha256 == bindparam("sha256")))
_DATA = Prepared(select(kept.c.data).where(kept.c.sha256 == bindparam("sha256")))


class Kept:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, data: bytes) -> str:
        """Its sha256, by which it is found again; keeping the same twice does nothing."""
        return self.put_all([data])[0]

    def put_all(self, some: Iterable[bytes]) -> list[str]:
        """Their sha256s in their order, all kept or none."""
        given = [(hashlib.sha256(data).digest(), data) for data in some]
        with self._database.read() as connection:
            fresh = {digest: data for digest, data in given if not _is_kept(connection, digest)}
        # packed before the lock is taken: others may write meanwhile
        packed = [(digest, packed_of(data)) for digest, data in fresh.items()]
        if packed:
            with self._database.write() as connection:
                for digest, blob in packed:
                    _KEEP(connection, sha256=digest, data=blob)
        return [digest.hex() for digest, _ in given]

    def has(self, sha256: str) -> bool:
        with self._database.read() as connection:
            return _is_kept(connection, _digest(sha256))

    def get(self, sha256: str) -> bytes:
        """The bytes again. Altered when what is stored no longer gives them."""
        with self._database.read() as connection:
            blob = _DATA(connection, sha256=_digest(sha256)).scalar()
        if blob is None:
            raise NotFound(f"no text with the sha256 {sha256} is kept", sha256=sha256)
        try:
            data = unpack(blob)
        except zlib.error:
            data = b""
        if hashlib.sha256(data).hexdigest() != sha256.lower():
            raise Altered(f"the text that was kept as {sha256} was changed", sha256=sha256)
        return data


def packed_of(data: bytes) -> bytes:
    """As `unpack` reads it, whatever its size."""
    if len(data) < LARGE:
        return pack(data)
    small = b"".join(_lightly(data))
    return small if len(small) < len(data) else bytes([RAW]) + data


def _lightly(data: bytes) -> Iterator[bytes]:
    packer = zlib.compressobj(LIGHT, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    yield bytes([WITH_DICTIONARY])
    for start in range(0, len(data), STEP):
        yield packer.compress(memoryview(data)[start : start + STEP])
    yield packer.flush()


def _is_kept(connection: Connection, digest: bytes) -> bool:
    return _IS_KEPT(connection, sha256=digest).scalar() is not None


def _digest(sha256: str) -> bytes:
    try:
        return bytes.fromhex(sha256)
    except ValueError:
        return b""
