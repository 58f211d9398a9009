"""What two search benches share: SQLite's own full-text search to stand beside us, and how long a work took."""

import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from recto.search.keyword_index import Filter, IndexItem

P = ParamSpec("P")
T = TypeVar("T")


class Plain:
    """SQLite's full-text search as it comes: it keeps the texts, and ranks what holds all words by its own bm25."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        # the same journal as ours, so that only the tables differ
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE VIRTUAL TABLE said USING fts5(text, kind UNINDEXED, at UNINDEXED, tokenize='porter')")

    def add(self, items: Iterable[IndexItem]) -> None:
        rows = [(item.number, item.text, item.kind, item.time) for item in items]
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO said (rowid, text, kind, at) VALUES (?, ?, ?, ?)", rows)
        self._db.execute("COMMIT")

    def find(self, text: str, only: Filter, most: int) -> list[int]:
        wanted = {"kind = ?": only.kind, "at >= ?": only.since, "at < ?": only.before}
        given = {part: value for part, value in wanted.items() if value is not None}
        query = " AND ".join(["SELECT rowid FROM said WHERE said MATCH ?", *given]) + " ORDER BY rank LIMIT ?"
        return [row[0] for row in self._db.execute(query, (text, *given.values(), most))]

    def holds(self, text: str, number: int) -> bool:
        return bool(self._db.execute("SELECT 1 FROM said WHERE said MATCH ? AND rowid = ?", (text, number)).fetchone())

    def close(self) -> None:
        self._db.close()


@dataclass(frozen=True, slots=True)
class Filled:
    count: int
    seconds: float
    bytes: int
    preamble: float = 0.0
    """What an embedder took for its first text."""
    why: str = ""


def timing(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> tuple[T, float]:
    started = time.perf_counter()
    return work(*args, **named), time.perf_counter() - started
