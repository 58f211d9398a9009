"""KeywordIndex: items cut into passages, with their words. Works for anything that has text, in any partition.

Stores no texts unless asked to: the owner of an item can provide its text again. The tables call partitions shelves and
channels lanes.
"""

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

from recto.base.ids import new_id
from recto.search.dates import passage_labels
from recto.search.index_file import IndexFile
from recto.search.passages import asks_only, split_passages
from recto.search.terms import folded_text, folded_words, index_terms, topical

# A passage number holds its partition, its channel, and a count: neighbours in a channel have adjacent numbers.
PARTITION_BITS, CHANNEL_BITS = 33, 32
# The gap in numbers between branches or sessions: too wide for neighbours to share a score.
GAP = 16
SESSION_S = 6 * 3600
HASH_BYTES = 12
# Faster than the default, and hardly larger.
TEXT_COMPRESSION = 4
COLUMNS = "n, item, start, end, place, branch, kind, who, at, words, asks, sha"
"""In the order of `Passage`."""
_NUMBERS = Decoder(list[int])
K = TypeVar("K")
T = TypeVar("T")
TEXTS_AT_ONCE = 500
MAX_CACHED_PARTITIONS = 8


class IndexItem(Struct, frozen=True):
    number: int
    text: str
    position: int = 0
    """Its order in the partition."""
    branch: int = 0
    kind: str = ""
    speaker: str = ""
    time: str = ""
    """When it was said, as text that sorts."""
    channel: int = 0
    """Only passages of one channel are neighbours, so that tool output does not separate a question from its answer."""


class Passage(Struct, frozen=True):
    number: int
    item: int
    start: int
    end: int
    position: int
    branch: int
    kind: str
    speaker: str
    time: str
    words: int
    is_question: bool
    """The passage only asks: a question is seldom what is looked for."""
    sha: bytes

    @property
    def partition(self) -> int:
        return self.number >> PARTITION_BITS


class Extent(Struct, frozen=True):
    """The size of a partition, or of all of them: the basis for scores."""

    passages: int
    words: int

    @property
    def mean(self) -> float:
        return max(1.0, self.words / self.passages) if self.passages else 1.0


class Filter(Struct, frozen=True):
    """Restricts a search to a kind of passage and to a time."""

    kind: str | None = None
    since: str | None = None
    before: str | None = None

    @property
    def condition(self) -> tuple[str, list[str]]:
        """For a statement that reads `words`; the same as `matches`."""
        parts = {"kind = ?": self.kind, "at >= ?": self.since, "at <> '' AND at < ?": self.before}
        used = {part: value for part, value in parts.items() if value is not None}
        if not used:
            return "", []
        return f" AND EXISTS (SELECT 1 FROM passages WHERE n = words.rowid AND {' AND '.join(used)})", [*used.values()]

    def matches(self, passage: Passage) -> bool:
        return (
            (self.kind is None or passage.kind == self.kind)
            and (self.since is None or passage.time >= self.since)
            and (self.before is None or "" < passage.time < self.before)
        )


NO_FILTER = Filter()


class KeywordIndex:
    def __init__(self, path: Path, *, keeps_texts: bool = False) -> None:
        """`keeps_texts` also stores the words of each passage in order, for the second scoring."""
        self.file = IndexFile(path)
        self.keeps_texts = keeps_texts

    # -- filling

    def add(
        self,
        partitions: Mapping[str, Sequence[IndexItem]],
        marks: Mapping[str, str] | None = None,
        expected: Mapping[str, str] | None = None,
        removed: Sequence[int] = (),
    ) -> None:
        """Remove items, add others to their partitions in order, and set marks, in one transaction. Does nothing if
        another process has changed one of the `expected` marks."""
        keeps = self.keeps_texts
        # before the transaction, so that no other process waits for it
        cut = {key: [cut_item(item, keeps_text=keeps) for item in items] for key, items in partitions.items()}

        def write(db: sqlite3.Connection) -> None:
            if all(_read_mark(db, name) == value for name, value in (expected or {}).items()):
                _remove(db, removed)
                write_items(db, cut)
                _write_marks(db, marks or {})

        self.file.write(write)

    def remove(self, items: Sequence[int]) -> None:
        """Remove items. Their words stay until the index is cleared, but lead nowhere."""
        self.file.write(lambda db: _remove(db, items))

    def clear(self, kept_items: Iterable[int], marks: Mapping[str, str], forgotten_prefix: str) -> None:
        """Remove everything except the vectors of `kept_items`, which will be added again, and the marks that do not
        begin with `forgotten_prefix`."""
        kept = "SELECT sha FROM passages WHERE item IN (SELECT value FROM json_each(?))"
        numbers = _listed(kept_items)

        def write(db: sqlite3.Connection) -> None:
            db.execute(f"DELETE FROM vectors WHERE sha NOT IN ({kept})", (numbers,))
            for table in ("passages", "texts", "lanes", "queue", "people", "shelves"):
                db.execute(f"DELETE FROM {table}")
            db.execute("INSERT INTO words (words) VALUES ('delete-all')")
            db.execute("UPDATE embedders SET done = 0")
            prefix = (len(forgotten_prefix), forgotten_prefix)
            db.execute("DELETE FROM marks WHERE substr(name, 1, ?) = ?", prefix)
            _write_marks(db, {"removed": new_id(), **marks})

        self.file.write(write)

    def marks(self, prefix: str) -> dict[str, str]:
        """The non-empty marks with a prefix, by the rest of the name."""
        query = "SELECT substr(name, ?), value FROM marks WHERE substr(name, 1, ?) = ? AND value <> ''"
        return dict(self.file.read(query, (len(prefix) + 1, len(prefix), prefix)))

    def mark(self, name: str) -> str:
        """A value stored by the owner; empty in a new index."""
        rows = self.file.read("SELECT value FROM marks WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    def parsed_mark(self, name: str, parse: Callable[[str], T], default: T) -> T:
        return self.file.reading(lambda: parse(value) if (value := self.mark(name)) else default)

    # -- looking up

    def partition(self, key: str) -> int | None:
        rows = self.file.read("SELECT n FROM shelves WHERE key = ?", (key,))
        return int(rows[0][0]) if rows else None

    def extent(self, partition: int | None) -> Extent:
        query = "SELECT sum(passages), sum(words) FROM lanes WHERE n BETWEEN ? AND ?"
        passages, words = self.file.read(query, _bounds(partition))[0]
        return Extent(passages or 0, words or 0)

    def matching(
        self, terms: Sequence[Sequence[str]], partition: int | None, limit: int, only: Filter = NO_FILTER
    ) -> list[int]:
        """The newest passages that contain every term (word or label) in one of its forms; `term*` matches a
        prefix."""
        return self.matching_each([terms], partition, limit, only)[0]

    def matching_each(
        self,
        searches: Sequence[Sequence[Sequence[str]]],
        partition: int | None,
        limit: int,
        only: Filter = NO_FILTER,
    ) -> list[list[int]]:
        """The same for several lists of terms, read as one row: other threads run after each row."""
        condition, wanted = only.condition
        query = f"SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?{condition}"
        query += " ORDER BY rowid DESC LIMIT ?"
        # as one text: reading thousands of rows takes three times as long
        columns = ", ".join([f"(SELECT json_group_array(rowid) FROM ({query}))"] * len(searches))
        values = list[str | int]()
        for terms in searches:
            values += (" AND ".join(map(_any_of, terms)), *_bounds(partition), *wanted, limit)
        found = self.file.read(f"SELECT {columns}", values)[0] if searches else ()
        return [sorted(_NUMBERS.decode(each), reverse=True) for each in found]

    def count_from(self, number: int, partition: int | None) -> float:
        """The approximate number of passages with this number or a greater one."""
        share = "CASE WHEN n >= :from THEN 1.0 ELSE (last - :from + 1.0) / (last - n) END"
        query = f"SELECT total(passages * {share}) FROM lanes WHERE n BETWEEN :low AND :high AND last >= :from"
        low, high = _bounds(partition)
        return float(self.file.read(query, {"from": number, "low": low, "high": high})[0][0])

    def passages(self, numbers: Iterable[int]) -> dict[int, Passage]:
        query = f"SELECT {COLUMNS} FROM passages WHERE n IN (SELECT value FROM json_each(?))"
        return {row[0]: Passage(*row) for row in self.file.read(query, (_listed(numbers),))}

    def sizes(self, numbers: Iterable[int]) -> dict[int, tuple[int, int]]:
        """The words of passages and their positions: much faster than whole passages."""
        query = "SELECT n, words, place FROM passages WHERE n IN (SELECT value FROM json_each(?))"
        return {number: (count, position) for number, count, position in self.file.read(query, (_listed(numbers),))}

    def said_by(self, speaker: str, kind: str, numbers: Iterable[int]) -> list[int]:
        """The given passages that this speaker said, or that are of this kind."""
        query = "SELECT n FROM passages WHERE n IN (SELECT value FROM json_each(?)) AND (who = ? OR kind = ?)"
        return [number for (number,) in self.file.read(query, (_listed(numbers), speaker or None, kind or None))]

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """The texts of passages as returned by `folded_text`, if they are kept."""
        rows = self.file.read(
            "SELECT n, text FROM texts WHERE n IN (SELECT value FROM json_each(?))", [_listed(numbers)]
        )
        return {number: zlib.decompress(packed).decode() for number, packed in rows}

    def every_text(self) -> Iterator[str]:
        last = -1
        while rows := self.file.read("SELECT n, text FROM texts WHERE n > ? ORDER BY n LIMIT ?", (last, TEXTS_AT_ONCE)):
            yield from (zlib.decompress(packed).decode() for _, packed in rows)
            last = rows[-1][0]

    @property
    def queue_end(self) -> int:
        """The number of the last queue entry, which grows with every added passage. Passage numbers cannot show what
        is new: a later one may be smaller, in another channel."""
        return int(self.file.read("SELECT coalesce(max(n), 0) FROM queue")[0][0])

    def hashes(self, partition: int | None, queue_end: int = 0) -> list[tuple[int, bytes]]:
        added, values = _added(partition, queue_end)
        return self.file.read(f"SELECT n, sha {added}", values)

    def speakers(self, partition: int, min_messages: int = 2) -> list[str]:
        query = "SELECT who FROM people WHERE shelf = ? AND times >= ?"
        return [row[0] for row in self.file.read(query, (partition, min_messages))]

    def close(self) -> None:
        self.file.close()


def keep_recent(cache: dict[K, T], key: K, value: T, most: int = MAX_CACHED_PARTITIONS) -> None:
    """Put a value at the end of a cache and drop the least recently used ones."""
    cache.pop(key, None)
    cache[key] = value
    while len(cache) > most:
        cache.pop(next(iter(cache)), None)


def _remove(db: sqlite3.Connection, items: Sequence[int]) -> None:
    if items:
        db.executemany("DELETE FROM passages WHERE item = ?", [(item,) for item in items])
        _write_marks(db, {"removed": new_id()})


def _read_mark(db: sqlite3.Connection, name: str) -> str:
    row = db.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else ""


def _write_marks(db: sqlite3.Connection, marks: Mapping[str, str]) -> None:
    db.executemany("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(marks.items()))


def _listed(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def _bounds(partition: int | None) -> tuple[int, int]:
    return (0, 1 << 62) if partition is None else (partition << PARTITION_BITS, ((partition + 1) << PARTITION_BITS) - 1)


def _added(partition: int | None, queue_end: int) -> tuple[str, tuple[int, ...]]:
    """The end of a statement about passages added after a queue entry, and its values."""
    since = " AND n IN (SELECT passage FROM queue WHERE n > ?)" if queue_end else ""
    return f"FROM passages WHERE n BETWEEN ? AND ?{since}", (*_bounds(partition), *([queue_end] if queue_end else []))


def _any_of(forms: Sequence[str]) -> str:
    return f"({' OR '.join(map(_quote, forms))})"


def _quote(term: str) -> str:
    bare = term.removesuffix("*").replace('"', '""')
    return f'"{bare}"*' if term.endswith("*") else f'"{bare}"'


# -- cutting items into passages


class CutPassage(Struct, frozen=True, gc=False):
    row: tuple[Any, ...]
    """The values of `COLUMNS` after the number."""
    words: int
    terms: str
    """Its words and labels, as indexed."""
    packed: bytes | None
    """Its text for the second scoring."""


CutItem = tuple[IndexItem, Sequence[CutPassage]]


def embedded_text(text: str, speaker: str) -> str:
    """The text to embed for a passage: the speaker is a part of its meaning."""
    return text if not speaker or text.startswith(speaker) else f"{speaker}: {text}"


def text_hash(text: str, speaker: str = "") -> bytes:
    """The key of a vector: the hash of the embedded text."""
    embedded = embedded_text(text, speaker).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(embedded, digest_size=HASH_BYTES).digest()


def cut_item(item: IndexItem, *, keeps_text: bool) -> CutItem:
    """Prepare everything about an item's passages that does not depend on the index."""
    return item, [_cut_passage(item, *span, keeps_text=keeps_text) for span in split_passages(item.text)]


def _cut_passage(item: IndexItem, start: int, end: int, *, keeps_text: bool) -> CutPassage:
    text = item.text[start:end]
    folded = folded_text(text)
    packed = zlib.compress(folded.encode("utf-8", "replace"), TEXT_COMPRESSION) if keeps_text else None
    once = set(folded_words(folded))  # the index does not store counts
    count = len(topical(once))
    where = (item.number, start, end, item.position, item.branch)
    row = (*where, item.kind, item.speaker, item.time, count, asks_only(text), text_hash(text, item.speaker))
    return CutPassage(row, count, f"{index_terms(once)} {passage_labels(item.time[:10])}", packed)


def write_items(db: sqlite3.Connection, partitions: Mapping[str, Sequence[CutItem]]) -> None:
    written: list[tuple[int, CutPassage]] = []
    # ascending: words of a smaller number would begin another segment of the full-text index
    for number, key in sorted((_partition(db, key), key) for key in partitions):
        items = partitions[key]
        count = "INSERT INTO people VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1"
        db.executemany(count, [(number, item.speaker) for item, _ in items if item.speaker])
        for channel in sorted({item.channel for item, _ in items}):
            own = [each for each in items if each[0].channel == channel]
            written += _number_passages(db, (number << PARTITION_BITS) + (channel << CHANNEL_BITS), own)
    rows = [(number, *passage.row) for number, passage in written]
    db.executemany(f"INSERT INTO passages ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", rows)
    terms = [(number, passage.terms) for number, passage in written]
    db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", terms)
    packed = [(number, passage.packed) for number, passage in written if passage.packed is not None]
    db.executemany("INSERT INTO texts VALUES (?, ?)", packed)
    db.executemany("INSERT INTO queue (passage) VALUES (?)", [(number,) for number, _ in written])


def _partition(db: sqlite3.Connection, key: str) -> int:
    db.execute("INSERT OR IGNORE INTO shelves (key) VALUES (?)", (key,))
    return int(db.execute("SELECT n FROM shelves WHERE key = ?", (key,)).fetchone()[0])


def _number_passages(db: sqlite3.Connection, channel: int, items: Sequence[CutItem]) -> list[tuple[int, CutPassage]]:
    known = db.execute("SELECT passages, words, last, branch, at FROM lanes WHERE n = ?", (channel,)).fetchone()
    count, total, last, branch, time = known or (0, 0, channel, 0, "")
    numbered: list[tuple[int, CutPassage]] = []
    for item, passages in items:
        step = GAP if item.branch != branch or _is_new_session(time, item.time) else 1
        branch, time = item.branch, item.time or time
        for passage in passages:
            last, step, total = last + step, 1, total + passage.words
            numbered.append((last, passage))
    row = (channel, count + len(numbered), total, last, branch, time)
    db.execute("INSERT OR REPLACE INTO lanes VALUES (?,?,?,?,?,?)", row)
    return numbered


def _is_new_session(before: str, now: str) -> bool:
    """True if enough time has passed for another session."""
    if not before or not now or before[:13] == now[:13]:
        return False
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds() > SESSION_S
    except (ValueError, TypeError):
        return False
