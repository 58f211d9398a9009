"""TokenCounts: the tokens of each piece by each token counter, so that nothing is tokenized twice."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, select

from recto.store.database import Database
from recto.store.dialect import Statement, in_list
from recto.store.schema import counts, meters
from recto.window.count import Count

# Half a sha256 is plenty for a cache key, and halves the table.
KEY_BYTES = 16
# Every version of SQLite accepts so many parameters.
BATCH = 500

_ADD_METER = Statement(lambda insert: insert(meters).values(key=bindparam("key")).on_conflict_do_nothing())
_meter = select(meters.c.n).where(meters.c.key == bindparam("key"))
_METER = Statement(_meter)
_FIND = Statement(
    select(counts.c.sha, counts.c.tokens).where(
        counts.c.meter == _meter.scalar_subquery(), in_list(counts.c.sha, "keys")
    )
)
_columns: dict[str, BindParameter[Any]] = {name: bindparam(name) for name in ("meter", "sha", "tokens")}
_SAVE = Statement(
    lambda insert: (
        insert(counts)
        .values(_columns)
        .on_conflict_do_update(index_elements=[counts.c.meter, counts.c.sha], set_={"tokens": bindparam("tokens")})
    )
)


class TokenCounts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, meter: str, hashes: Sequence[bytes]) -> dict[bytes, Count]:
        """The known counts, by full hash."""
        short = {digest[:KEY_BYTES]: digest for digest in hashes}
        found: dict[bytes, Count] = {}
        with self._database.read() as connection:
            keys = list(short)
            for start in range(0, len(keys), BATCH):
                for key, tokens in _FIND(connection, key=meter, keys=keys[start : start + BATCH]):
                    found[short[key]] = Count(tokens) if tokens >= 0 else Count(-1 - tokens, exact=False)
        return found

    def save(self, meter: str, known: Mapping[bytes, Count]) -> None:
        if not known:
            return
        with self._database.write() as connection:
            number = _meter_number(connection, meter)
            rows = [
                {
                    "meter": number,
                    "sha": digest[:KEY_BYTES],
                    "tokens": count.tokens if count.exact else -1 - count.tokens,
                }
                for digest, count in known.items()
            ]
            _SAVE.many(connection, rows)


def _meter_number(connection: Connection, key: str) -> int:
    # looked up each time: a cached number would outlive a transaction that is rolled back
    if (number := _METER(connection, key=key).scalar()) is None:
        _ADD_METER(connection, key=key)
        number = _METER(connection, key=key).scalar_one()
    return int(number)
