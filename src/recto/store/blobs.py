"""Blobs: texts of sources, full tool results and attached media, by the sha256 of their bytes.

Records refer to them, so that a request stays readable after a file or server has changed.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, bindparam, select

from recto.errors import Altered, NotFound
from recto.store.database import Database
from recto.store.dialect import Statement
from recto.store.packing import DICTIONARY, RAW, WITH_DICTIONARY, pack, unpack
from recto.store.schema import kept

# For larger blobs the best compression takes seconds and saves little: they are compressed fast, in chunks.
LARGE, CHUNK = 1 << 20, 1 << 18
FAST_LEVEL = 3

_INSERT = Statement(
    lambda insert: insert(kept).values(sha256=bindparam("sha256"), data=bindparam("data")).on_conflict_do_nothing()
)
_EXISTS = Statement(select(kept.c.n).where(kept.c.sha256 == bindparam("sha256")))
_DATA = Statement(select(kept.c.data).where(kept.c.sha256 == bindparam("sha256")))


class Blobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, data: bytes) -> str:
        """Stores the bytes and returns their sha256; storing the same bytes again does nothing."""
        return self.put_all([data])[0]

    def put_all(self, blobs: Iterable[bytes]) -> list[str]:
        """Stores all or none, and returns the sha256s in the same order."""
        hashed = [(hashlib.sha256(data).digest(), data) for data in blobs]
        with self._database.read() as connection:
            new = {digest: data for digest, data in hashed if not _exists(connection, digest)}
        # packed before the lock is taken, so that others may write meanwhile
        packed = [(digest, packed_of(data)) for digest, data in new.items()]
        if packed:
            with self._database.write() as connection:
                for digest, blob in packed:
                    _INSERT(connection, sha256=digest, data=blob)
        return [digest.hex() for digest, _ in hashed]

    def has(self, sha256: str) -> bool:
        with self._database.read() as connection:
            return _exists(connection, _digest(sha256))

    def get(self, sha256: str) -> bytes:
        """The stored bytes. Raises Altered when they no longer have this hash."""
        with self._database.read() as connection:
            blob = _DATA(connection, sha256=_digest(sha256)).scalar()
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
    """The data as `unpack` reads it, whatever its size."""
    if len(data) < LARGE:
        return pack(data)
    small = b"".join(_compress_fast(data))
    return small if len(small) < len(data) else bytes([RAW]) + data


def _compress_fast(data: bytes) -> Iterator[bytes]:
    packer = zlib.compressobj(FAST_LEVEL, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    yield bytes([WITH_DICTIONARY])
    for start in range(0, len(data), CHUNK):
        yield packer.compress(memoryview(data)[start : start + CHUNK])
    yield packer.flush()


def _exists(connection: Connection, digest: bytes) -> bool:
    return _EXISTS(connection, sha256=digest).scalar() is not None


def _digest(sha256: str) -> bytes:
    try:
        return bytes.fromhex(sha256)
    except ValueError:
        return b""
