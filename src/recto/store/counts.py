"""Counts: what each piece costs by each meter, kept so that nothing is tokenized twice."""

from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.dialects.sqlite import insert as upsert

from recto.store.database import Database
from recto.store.queries import METER_BY_KEY
from recto.store.schema import meters
from recto.window.count import Count

# Half a sha256 is plenty for a cache key, and halves the table.
KEY_BYTES = 16
AT_ONCE = 500


class Counts:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._meters: dict[str, int] = {}

    def find(self, meter: str, hashes: Sequence[bytes]) -> dict[bytes, Count]:
        """What is known, by full hash."""
        short = {digest[:KEY_BYTES]: digest for digest in hashes}
        found: dict[bytes, Count] = {}
        with self._database.read() as connection:
            number = self._find_meter(connection, meter)
            if number is None:
                return found
            keys = list(short)
            for start in range(0, len(keys), AT_ONCE):
                some = keys[start : start + AT_ONCE]
                # hundreds of keys at every turn: an expanding IN of the statement builder takes three times as long
                query = f"SELECT sha, tokens FROM counts WHERE meter = ? AND sha IN ({','.join('?' * len(some))})"
                for key, tokens in connection.exec_driver_sql(query, (number, *some)):
                    found[short[key]] = Count(tokens) if tokens >= 0 else Count(-1 - tokens, exact=False)
        return found

    def save(self, meter: str, known: dict[bytes, Count]) -> None:
        if not known:
            return
        with self._database.write() as connection:
            number = self._find_meter(connection, meter)
            if number is None:
                connection.execute(upsert(meters).values(key=meter).on_conflict_do_nothing())
                number = self._find_meter(connection, meter)
            rows = [
                (number, digest[:KEY_BYTES], count.tokens if count.exact else -1 - count.tokens)
                for digest, count in known.items()
            ]
            query = "INSERT OR REPLACE INTO counts (meter, sha, tokens) VALUES (?, ?, ?)"
            connection.exec_driver_sql(query, rows)

    def _find_meter(self, connection: Connection, key: str) -> int | None:
        if key not in self._meters:
            number = METER_BY_KEY(connection, key=key).scalar()
            if number is None:
                return None
            self._meters[key] = int(number)
        return self._meters[key]
