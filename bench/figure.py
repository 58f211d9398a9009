"""Figures that can be held against those of another day and machine: ratios to something measured in the same run.

Either a peer, or a yardstick: a fixed piece of work in plain Python, SQLite and zlib. Qualities stand for themselves.
"""

import hashlib
import json
import sqlite3
import statistics
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from random import Random

YARDSTICK = "yardstick"
YARDSTICK_RUNS = 7


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, of us and of what it is compared with. Of costs, less is better; they have a reference."""

    name: str
    ours: float
    unit: str
    of: str = ""
    """Whose figure the reference is; the yardstick's is filled in by who measured it. Empty for a quality."""
    reference: float = 0.0
    more_is_better: bool = False

    @property
    def is_quality(self) -> bool:
        return not self.of

    @property
    def value(self) -> float:
        """The ratio, or the quality itself."""
        return self.ours if self.is_quality else self.ours / self.reference


def cost(name: str, ours_s: float, of: str = YARDSTICK, reference_s: float = 0.0) -> Figure:
    """A time beside that of a peer, both in seconds; without one, beside the yardstick."""
    return Figure(name, ours_s * 1000, "ms", of, reference_s * 1000)


def share(name: str, found: float) -> Figure:
    return Figure(name, found, "share", more_is_better=True)


def wrong(name: str, number: float, unit: str = "number") -> Figure:
    """How many went wrong, or how large an error is."""
    return Figure(name, number, unit)


def yardstick() -> float:
    """Seconds that this machine takes just now for a fixed piece of work: the median of several."""
    return statistics.median(_timed_work() for _ in range(YARDSTICK_RUNS))


def _timed_work() -> float:
    started = time.perf_counter()
    random = Random(1)
    lines = [" ".join(str(random.randrange(1000)) for _ in range(20)) for _ in range(400)]
    Counter(word for line in lines for word in line.split())
    packed = [zlib.compress(json.dumps({"line": line}).encode()) for line in lines]
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE lines (sha BLOB PRIMARY KEY, data BLOB)")
        rows = [
            (hashlib.sha256(data + bytes([n % 256])).digest() + bytes([n // 256]), data)
            for n, data in enumerate(packed)
        ]
        connection.executemany("INSERT INTO lines VALUES (?, ?)", rows)
        for _, data in connection.execute("SELECT sha, data FROM lines ORDER BY sha").fetchall():
            json.loads(zlib.decompress(data))
    connection.close()
    return time.perf_counter() - started
