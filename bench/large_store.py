"""A store of many long conversations, made by copying the rows of one real conversation with other words and ids.

The engine would take hours for a million messages. Requests, uses of documents and of sources are copied with their
messages; the pieces that requests list are shared by all copies.
"""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bench import corpus
from recto.api.blocking import open_desk
from recto.base.locations import STORE_FILE

TURNS, NOTES = 50, 20
LIMIT = 6_000
ID_SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# Ids begin with the time in milliseconds.
TIME_SIGNS, MS_PER_HOUR = 10, 3_600_000
ID = re.compile(rf"\b0[{ID_SIGNS}]{{25}}\b")
COST = 0.002
CONFIG = 'model = "scripted:{script}"\nvault = "{vault}"\n\n[search]\nembedder = "none"\n'

Row = dict[str, Any]


def make_home(home: Path, vault: Path) -> None:
    """A home with one conversation over a vault, through the real engine: documents, compactions, requests."""
    speaker = corpus.Speaker(TURNS)
    home.mkdir(parents=True)
    vault.mkdir(exist_ok=True)
    for number in range(NOTES):
        text = (
            f"# Note {number}\n\n{speaker.message()}\n\nSee [[Note {(number + 1) % NOTES}]] and [[Nowhere {number}]].\n"
        )
        (vault / f"Note {number}.md").write_text(text, "utf-8")
    script = home / "script.json"
    steps = [{"text": speaker.message()} for _ in range(TURNS)]
    script.write_text(json.dumps({"limit": LIMIT, "summarizes": False, "steps": steps}), "utf-8")
    (home / "config.toml").write_text(CONFIG.format(script=script, vault=vault), "utf-8")
    with chdir(home), open_desk(home=home, project=home) as desk:
        talk = desk.conversation()
        for number in range(TURNS):
            talk.ask(f"{speaker.message()} What does [[Note {number % NOTES}]] say?")


def multiply(home: Path, conversations: int, repeats: int) -> int:
    """Copies the one conversation of a home, each copy with its messages so many times in a row; returns how many
    messages there are. The search index knows them all."""
    with closing(sqlite3.connect(home / STORE_FILE)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous = OFF")
        copier = _Copier(connection, repeats)
        for number in range(1, conversations):
            copier.copy(number)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        [count] = connection.execute("SELECT count(*) FROM messages").fetchone()
    with open_desk(home=home, project=home) as desk:
        desk.index()
    return int(count)


@dataclass(frozen=True, slots=True)
class _Offsets:
    """What is added to the numbers of one copied stretch."""

    conversation: int
    message: int
    request: int
    branch: int
    depth: int
    said: int
    before: int | None
    """The message that its first one follows."""
    compaction: int | None
    """The compaction that counts until it has its own."""


class _Copier:
    def __init__(self, connection: sqlite3.Connection, repeats: int) -> None:
        self._connection, self._repeats = connection, repeats
        [self._conversation] = self._rows("conversations")
        self._messages, self._requests = self._rows("messages"), self._rows("requests")
        self._uses, self._source_uses = self._rows("uses"), self._rows("source_uses")
        self._speaker = corpus.Speaker(1)
        self._stretches = 0

    def _rows(self, table: str) -> list[Row]:
        return [dict(row) for row in self._connection.execute(f"SELECT * FROM {table}")]  # the primary key's order

    def copy(self, number: int) -> None:
        """One more conversation; each of its stretches is an hour later than the one before it."""
        later = timedelta(hours=self._stretches + 1)
        made = self._conversation | {"n": number + 1, "id": self._id(self._conversation["id"], self._stretches + 1)}
        made |= {name: _later(self._conversation[name], later) for name in ("created", "updated")}
        self._insert("conversations", [made | {"title": self._speaker.text(40), "head": None}])
        last: tuple[int | None, int | None] = None, None
        for repeat in range(self._repeats):
            self._stretches += 1
            last = self._copy_stretch(self._offsets(number, repeat, *last), timedelta(hours=self._stretches))
        self._connection.execute("UPDATE conversations SET head = ? WHERE n = ?", (last[0], number + 1))

    def _offsets(self, number: int, repeat: int, before: int | None, compaction: int | None) -> _Offsets:
        messages, requests = len(self._messages), len(self._requests)
        return _Offsets(
            number,
            self._stretches * messages,
            self._stretches * requests,
            (self._stretches - repeat) * messages,
            repeat * self._messages[-1]["depth"],
            repeat * self._messages[-1]["said"],
            before,
            compaction,
        )

    def _copy_stretch(self, by: _Offsets, later: timedelta) -> tuple[int, int | None]:
        """Returns the last message, and the compaction that counts there."""
        requests = [self._request(row, by, later) for row in self._requests]
        messages = [self._message(row, by, later) for row in self._messages]
        uses = [row | {"n": None, "message": row["message"] + by.message} for row in self._uses]
        sources = [row | {"request": row["request"] + by.request} for row in self._source_uses]
        self._insert("messages", messages)
        self._insert("requests", requests)
        self._insert("uses", uses)
        self._insert("source_uses", sources)
        return messages[-1]["n"], messages[-1]["compaction"]

    def _message(self, row: Row, by: _Offsets, later: timedelta) -> Row:
        first = row["parent"] is None
        return row | {
            "n": row["n"] + by.message,
            "id": self._id(row["id"]),
            "conversation": row["conversation"] + by.conversation,
            "parent": by.before if first else row["parent"] + by.message,
            "depth": row["depth"] + by.depth,
            "said": row["said"] + by.said,
            "compaction": by.compaction if row["compaction"] is None else row["compaction"] + by.message,
            "created": _later(row["created"], later),
            "request": None if row["request"] is None else row["request"] + by.request,
            "blocks": self._blocks(row["blocks"]),
            "branch": row["branch"] + by.branch,
        }

    def _blocks(self, text: str) -> str:
        blocks = json.loads(ID.sub(lambda found: self._id(found[0]), text))
        for block in blocks:
            if block["type"] == "text":
                block["text"] = self._speaker.message()
        return json.dumps(blocks, ensure_ascii=False, separators=(",", ":"))

    def _request(self, row: Row, by: _Offsets, later: timedelta) -> Row:
        return row | {
            "n": row["n"] + by.request,
            "id": self._id(row["id"]),
            "conversation": row["conversation"] + by.conversation,
            "message": None if row["message"] is None else row["message"] + by.message,
            "base": None if row["base"] is None else row["base"] + by.request,
            "created": _later(row["created"], later),
            "cost": COST,
        }

    def _id(self, id: str, stretch: int | None = None) -> str:
        """Of a time that is so many hours later: the rest of an id does not tell two of one moment apart."""
        time = sum(
            ID_SIGNS.index(sign) * len(ID_SIGNS) ** place for place, sign in enumerate(reversed(id[:TIME_SIGNS]))
        )
        time, later = time + (stretch or self._stretches) * MS_PER_HOUR, ""
        for _ in range(TIME_SIGNS):
            time, sign = divmod(time, len(ID_SIGNS))
            later = ID_SIGNS[sign] + later
        return later + id[TIME_SIGNS:]

    def _insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            columns = ", ".join(rows[0])
            values = ", ".join(f":{name}" for name in rows[0])
            self._connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({values})", rows)


def _later(stored: str, by: timedelta) -> str:
    moved = datetime.fromisoformat(stored) + by
    return moved.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def names(home: Path) -> Iterator[str]:
    """Ids of the newest conversation's last message and request."""
    with closing(sqlite3.connect(home / STORE_FILE)) as connection:
        for table in ("messages", "requests"):
            [id] = connection.execute(f"SELECT id FROM {table} ORDER BY n DESC LIMIT 1").fetchone()
            yield str(id)
