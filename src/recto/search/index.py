"""Index: what can be found, cut into passages, with its words. Generic over what is searched: items on shelves.

Holds no texts: whoever put an item there can give its text again.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from recto.ids import new_id
from recto.search.dates import When
from recto.search.file import IndexFile
from recto.search.labels import between, labels, of_days, of_kind
from recto.search.passages import spans
from recto.search.terms import content, indexed

# A passage's number is its shelf's, its lane's, and its own: neighbours on a shelf are neighbours in number.
SHELF, LANE = 33, 32
# So far apart that no score is shared across: another branch, or another sitting.
GAP = 16
SITTING_S = 6 * 3600


@dataclass(frozen=True, slots=True)
class Item:
    """Something to be found: a message now; a document, a source, a fact later."""

    number: int
    """What it is known by to whoever puts it there."""
    text: str
    place: int = 0
    """Its order on the shelf."""
    branch: int = 0
    kind: str = ""
    who: str = ""
    at: str = ""
    """When it was said, as text that sorts."""
    lane: int = 0
    """Neighbours count within a lane: what tools gave out does not part question and answer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of an item, without its text."""

    n: int
    item: int
    start: int
    end: int
    place: int
    branch: int
    kind: str
    who: str
    at: str
    words: int
    asks: bool
    """It ends as a question: what is asked is seldom what is looked for."""
    sha: bytes

    @property
    def shelf(self) -> int:
        return self.n >> SHELF


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is on a shelf, or on all: what scores are measured against."""

    passages: int
    words: int

    @property
    def mean(self) -> float:
        return max(1.0, self.words / self.passages) if self.passages else 1.0


@dataclass(frozen=True, slots=True)
class Filter:
    """What is looked for by what it is, not by what it says."""

    kind: str | None = None
    since: str | None = None
    before: str | None = None

    @property
    def labels(self) -> list[list[str]]:
        """What a passage that it takes holds: one of each. One that it does not take may, too."""
        groups = [[of_kind(self.kind)] if self.kind else [], between(self.since, self.before)]
        return [group for group in groups if group]

    def takes(self, passage: Passage) -> bool:
        return (
            (self.kind is None or passage.kind == self.kind)
            and (self.since is None or passage.at >= self.since)
            and (self.before is None or passage.at < self.before)
        )


ANYTHING = Filter()


class Index:
    def __init__(self, path: Path) -> None:
        self.file = IndexFile(path)

    # -- filling

    def add(
        self,
        shelves: Mapping[str, Sequence[Item]],
        marks: Mapping[str, str] | None = None,
        expects: Mapping[str, str] | None = None,
    ) -> None:
        """Puts items on their shelves, in their order, and notes the marks, all in one step; nothing of it when another
        process has moved a mark that is expected."""
        with self.file.write() as db:
            if any(_marked(db, name) != value for name, value in (expects or {}).items()):
                return
            for shelf, items in shelves.items():
                _put(db, shelf, items)
            _mark(db, marks or {})

    def remove(self, items: Sequence[int]) -> None:
        """Takes items off their shelves. Their words stay behind until the index is begun anew, and lead nowhere."""
        with self.file.write() as db:
            db.executemany("DELETE FROM passages WHERE item = ?", [(item,) for item in items])
            _mark(db, {"removed": new_id()})

    def begin_anew(self, still: Iterable[int], marks: Mapping[str, str], forgets: str) -> None:
        """Takes out everything but the vectors of items that are still there and will come again, and the marks that
        begin with a word."""
        held = "SELECT sha FROM passages WHERE item IN (SELECT value FROM json_each(?))"
        with self.file.write() as db:
            db.execute(f"DELETE FROM vectors WHERE sha NOT IN ({held})", (f"[{','.join(map(str, still))}]",))
            for table in ("passages", "lanes", "queue", "people", "shelves"):
                db.execute(f"DELETE FROM {table}")
            db.execute("INSERT INTO words (words) VALUES ('delete-all')")
            db.execute("UPDATE embedders SET done = 0")
            db.execute("DELETE FROM marks WHERE substr(name, 1, ?) = ?", (len(forgets), forgets))
            _mark(db, {"removed": new_id(), **marks})

    def marks(self, prefix: str) -> dict[str, str]:
        """What was noted under names that begin so, by the rest of the name; what is empty is left out."""
        query = "SELECT substr(name, ?), value FROM marks WHERE substr(name, 1, ?) = ? AND value <> ''"
        return dict(self.file.read(query, (len(prefix) + 1, len(prefix), prefix)))

    def mark(self, name: str) -> str:
        """How far something has come; empty in a new index."""
        rows = self.file.read("SELECT value FROM marks WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    # -- looking up

    def shelf(self, key: str) -> int | None:
        rows = self.file.read("SELECT n FROM shelves WHERE key = ?", (key,))
        return int(rows[0][0]) if rows else None

    def extent(self, shelf: int | None) -> Extent:
        query = "SELECT sum(passages), sum(words) FROM lanes WHERE n BETWEEN ? AND ?"
        passages, words = self.file.read(query, _bounds(shelf))[0]
        return Extent(passages or 0, words or 0)

    def holding(self, terms: Sequence[Sequence[str]], shelf: int | None, most: int, after: int = -1) -> list[int]:
        """The newest passages that hold all of these, words or labels, each in one of its forms; `term*` is whatever
        begins so. What stands before `after` is left out."""
        match = " AND ".join("(" + " OR ".join(_quoted(form) for form in forms) + ")" for forms in terms)
        low, high = _bounds(shelf)
        query = "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"
        return [row[0] for row in self.file.read(query, (match, max(low, after + 1), high, most))]

    def newer(self, shelf: int | None, number: int) -> float:
        """About how many passages stand from a number on."""
        low, high = _bounds(shelf)
        part = "CASE WHEN n >= ? THEN 1.0 ELSE (last - ? + 1.0) / (last - n) END"
        query = f"SELECT sum(passages * {part}) FROM lanes WHERE n BETWEEN ? AND ? AND last >= ? AND last > n"
        return float(self.file.read(query, (number, number, low, high, number))[0][0] or 0.0)

    def passages(self, numbers: Iterable[int]) -> dict[int, Passage]:
        return passages_of(self.file, numbers)

    def on_shelf(self, shelf: int | None) -> dict[int, Passage]:
        """What stands on a shelf, in order."""
        query = f"SELECT {_COLUMNS} FROM passages WHERE n BETWEEN ? AND ? ORDER BY n"
        return {row[0]: Passage(*row) for row in self.file.read(query, _bounds(shelf))}

    @property
    def came(self) -> int:
        """How many passages have come so far."""
        return int(self.file.read("SELECT coalesce(max(n), 0) FROM queue")[0][0])

    def since(self, shelf: int, came: int) -> dict[int, Passage]:
        """What came to a shelf after so many. Numbers cannot tell: what comes later may stand before others, in another
        lane."""
        query = (
            f"SELECT {', '.join('passages.' + name for name in _COLUMNS.split(', '))} FROM queue "
            "JOIN passages ON passages.n = queue.passage WHERE queue.n > ? AND queue.passage BETWEEN ? AND ?"
        )
        return {row[0]: Passage(*row) for row in self.file.read(query, (came, *_bounds(shelf)))}

    def hashes(self, shelf: int | None, came: int = 0) -> list[tuple[int, bytes]]:
        """Numbers and hashes of what came to a shelf after so many."""
        if not came:
            return self.file.read("SELECT n, sha FROM passages WHERE n BETWEEN ? AND ?", _bounds(shelf))
        query = (
            "SELECT passages.n, sha FROM queue JOIN passages ON passages.n = queue.passage "
            "WHERE queue.n > ? AND queue.passage BETWEEN ? AND ?"
        )
        return self.file.read(query, (came, *_bounds(shelf)))

    def people(self, shelf: int, least: int = 2) -> list[str]:
        """Who speaks there by name, and more than once."""
        query = "SELECT who FROM people WHERE shelf = ? AND times >= ?"
        return [row[0] for row in self.file.read(query, (shelf, least))]

    def of_time(self, shelf: int | None, days: When, most: int) -> list[int]:
        """The newest passages of these days."""
        names = of_days(days)
        return self.holding([names], shelf, most) if names else []

    def close(self) -> None:
        self.file.close()


_COLUMNS = "n, item, start, end, place, branch, kind, who, at, words, asks, sha"


def passages_of(file: IndexFile, numbers: Iterable[int]) -> dict[int, Passage]:
    wanted = f"[{','.join(map(str, numbers))}]"
    query = f"SELECT {_COLUMNS} FROM passages WHERE n IN (SELECT value FROM json_each(?))"
    return {row[0]: Passage(*row) for row in file.read(query, (wanted,))}


def spoken(text: str, who: str) -> str:
    """What is embedded of a passage: who says it belongs to what it means."""
    return text if not who or text.startswith(who) else f"{who}: {text}"


def text_hash(text: str, who: str = "") -> bytes:
    """What a vector belongs to: the text that is embedded, whoever holds it."""
    return hashlib.blake2b(spoken(text, who).encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _put(db: sqlite3.Connection, shelf: str, items: Sequence[Item]) -> None:
    number = _shelf(db, shelf)
    count = "INSERT INTO people VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1"
    db.executemany(count, [(number, item.who) for item in items if item.who])
    for lane in sorted({item.lane for item in items}):
        _fill(db, (number << SHELF) + (lane << LANE), [item for item in items if item.lane == lane])


def _marked(db: sqlite3.Connection, name: str) -> str:
    row = db.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else ""


def _mark(db: sqlite3.Connection, marks: Mapping[str, str]) -> None:
    db.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(marks.items()))


def _bounds(shelf: int | None) -> tuple[int, int]:
    return (0, 1 << 62) if shelf is None else (shelf << SHELF, ((shelf + 1) << SHELF) - 1)


def _quoted(term: str) -> str:
    bare = term.removesuffix("*").replace('"', '""')
    return f'"{bare}"*' if term.endswith("*") else f'"{bare}"'


def _shelf(db: sqlite3.Connection, key: str) -> int:
    db.execute("INSERT OR IGNORE INTO shelves (key) VALUES (?)", (key,))
    return int(db.execute("SELECT n FROM shelves WHERE key = ?", (key,)).fetchone()[0])


def _fill(db: sqlite3.Connection, lane: int, items: Sequence[Item]) -> None:
    known = db.execute("SELECT passages, words, last, branch, at FROM lanes WHERE n = ?", (lane,)).fetchone()
    count, total, last, branch, at = known or (0, 0, lane, 0, "")
    rows: list[tuple[Any, ...]] = []
    texts: list[tuple[int, str]] = []
    for item in items:
        apart = GAP if item.branch != branch or _is_later(at, item.at) else 1
        branch, at = item.branch, item.at or at
        for start, end in spans(item.text):
            last, apart = last + apart, 1
            text = item.text[start:end]
            size = len(content(text))
            asks = text.rstrip().endswith(("?", "？"))
            rows.append((last, item.number, start, end, item.place, item.branch, item.kind, item.who, item.at, size))
            rows[-1] += (asks, text_hash(text, item.who))
            texts.append((last, f"{indexed(text)} {labels(item.kind, item.at)}"))
            count, total = count + 1, total + size
    db.executemany(f"INSERT INTO passages ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", rows)
    db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", texts)
    db.executemany("INSERT INTO queue (passage) VALUES (?)", [(number,) for number, _ in texts])
    db.execute("INSERT OR REPLACE INTO lanes VALUES (?,?,?,?,?,?)", (lane, count, total, last, branch, at))


def _is_later(before: str, now: str) -> bool:
    """Whether so much time has passed that another sitting began."""
    if not before or not now or before[:13] == now[:13]:
        return False
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds() > SITTING_S
    except (ValueError, TypeError):
        return False
