"""IndexItem: something that can be found, cut into passages with their words, and written to the tables of an index."""

import hashlib
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from recto.search.dates import passage_labels
from recto.search.passages import asks_only, split_passages
from recto.search.terms import folded_text, folded_words, index_terms, topical, words

# A passage number holds its partition, its channel, and a count: neighbours in a channel have adjacent numbers.
PARTITION_BITS, CHANNEL_BITS = 33, 32
# The step in number where another branch or another session begins: too far for neighbours to share a score.
GAP = 16
SESSION_S = 6 * 3600
HASH_BYTES = 12
# Faster than the default, and hardly larger.
TEXT_COMPRESSION = 4
COLUMNS = "n, item, start, end, place, branch, kind, who, at, words, asks, sha"
"""Of the table of passages, in the order of `Passage`."""


class IndexItem(Struct, frozen=True):
    """Something that can be found: a message, or a part of a note."""

    number: int
    """Identifies the item to its owner."""
    text: str
    position: int = 0
    """Its order in the partition."""
    branch: int = 0
    kind: str = ""
    speaker: str = ""
    time: str = ""
    """When it was said, as text that sorts."""
    channel: int = 0
    """Only passages of one channel are neighbours: tool output does not separate a question from its answer."""


class CutPassage(Struct, frozen=True, gc=False):
    """A passage of an item that has no number yet."""

    row: tuple[Any, ...]
    """The values of `COLUMNS` after the number."""
    words: int
    terms: str
    """Its words and labels, as they are indexed."""
    packed: bytes | None
    """Its text for a second look."""


CutItem = tuple[IndexItem, Sequence[CutPassage]]


def embedded_text(text: str, speaker: str) -> str:
    """The text that is embedded for a passage: the speaker is a part of its meaning."""
    return text if not speaker or text.startswith(speaker) else f"{speaker}: {text}"


def text_hash(text: str, speaker: str = "") -> bytes:
    """The key of a vector: the hash of the text that is embedded."""
    return hashlib.blake2b(
        embedded_text(text, speaker).encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES
    ).digest()


def cut_item(item: IndexItem, *, keeps_text: bool) -> CutItem:
    """Everything about an item's passages that does not depend on what the index holds."""
    return item, [_cut_passage(item, *span, keeps_text=keeps_text) for span in split_passages(item.text)]


def _cut_passage(item: IndexItem, start: int, end: int, *, keeps_text: bool) -> CutPassage:
    text, packed = item.text[start:end], None
    if keeps_text:
        folded = folded_text(text)
        found, packed = folded_words(folded), zlib.compress(folded.encode("utf-8", "replace"), TEXT_COMPRESSION)
    else:
        found = words(text)
    once = set(found)  # the index does not tell how often
    count = len(topical(once))
    where = (item.number, start, end, item.position, item.branch)
    row = (*where, item.kind, item.speaker, item.time, count, asks_only(text), text_hash(text, item.speaker))
    return CutPassage(row, count, f"{index_terms(once)} {passage_labels(item.kind, item.time)}", packed)


def write_items(db: sqlite3.Connection, partitions: Mapping[str, Sequence[CutItem]]) -> None:
    """Adds items to their partitions, in order."""
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
    """The passages that a channel gets, with their numbers."""
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
    """Whether enough time has passed for another session to begin."""
    if not before or not now or before[:13] == now[:13]:
        return False
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds() > SESSION_S
    except (ValueError, TypeError):
        return False
