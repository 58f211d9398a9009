"""Counts: what each piece costs by each meter, kept so that nothing is tokenized twice."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from recto.store.database import Database
from recto.store.schema import counts, meters
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
                {"meter": number, "sha": digest[:KEY_BYTES], "tokens": c.tokens if c.exact else -1 - c.tokens}
                for digest, c in known.items()
            ]
            connection.execute(insert(counts).prefix_with("OR REPLACE", dialect="sqlite"), rows)

    def _find_meter(self, connection: Connection, key: str) -> int | None:
        if key not in self._meters:
            number = connection.execute(select(meters.c.n).where(meters.c.key == key)).scalar()
            if number is None:
                return None
            self._meters[key] = int(number)
        return self._meters[key]
