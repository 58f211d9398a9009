"""`logs.db` of the command `llm`, opened read-only. There are two generations of tables: threads of messages with
parts (from 0.32 on), and responses by conversation. A file may hold both."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recto.chat.blocks import Block, Image, Text, Thinking, ToolResult
from recto.chat.message import Role, Usage
from recto.errors import Invalid
from recto.transfer.foreign import (
    ROLES,
    ForeignConversation,
    ForeignMessage,
    ForeignTree,
    as_json,
    object_of,
    objects_of,
    text_of,
    time_of,
    tool_call,
)
from recto.transfer.report import ImportFormat, IncomingConversation

Row = Mapping[str, Any]
Found = Iterator[tuple[ForeignConversation, int]]
"""Conversations, each with its number of rows."""
MAGIC = b"SQLite format 3\0"
_CHAIN = """
WITH RECURSIVE chain(hash, parent_hash, role, depth) AS (
  SELECT hash, parent_hash, role, 0 FROM messages WHERE hash = ?
  UNION SELECT m.hash, m.parent_hash, m.role, depth + 1 FROM messages m JOIN chain c ON m.hash = c.parent_hash
  WHERE depth < 1000000)
SELECT hash, parent_hash, role FROM chain ORDER BY depth DESC"""


class LlmLogs:
    name: ImportFormat = "llm"

    def __init__(self, path: Path, fallback: str) -> None:
        self._path, self._fallback = path, fallback
        with self._opened() as tables:
            self.size = max(1, sum(tables.count(name) for name in ("turns", "responses")))

    def conversations(self) -> Generator[IncomingConversation, None, None]:
        done = 0
        with self._opened() as tables:
            for found, rows in tables.conversations():
                done += rows
                place = f"{self._path.name}, conversation {found.key[:40]}"
                yield ForeignTree(self.name, found, place, self._fallback).incoming(done)

    @contextmanager
    def _opened(self) -> "Iterator[_Tables]":
        try:
            with closing(sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro", uri=True)) as db:
                db.row_factory = lambda cursor, row: dict(
                    zip((each[0] for each in cursor.description), row, strict=True)
                )
                # clean texts that are not UTF-8 like all others
                db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
                yield _Tables(db, self._path.name)
        except sqlite3.Error as why:
            raise Invalid(
                f"{self._path.name} cannot be read ({why}); nothing was imported", path=str(self._path)
            ) from why


class _Tables:
    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        self._db = db
        self._names = {row["name"] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not self._names & {"turns", "responses"}:
            raise Invalid(f"{name} is an SQLite file, but not a log of llm: it has no responses table")

    def _rows(self, table: str, query: str, *values: Any) -> list[Row]:
        """Empty if an older file does not have the table."""
        return self._db.execute(query, values).fetchall() if table in self._names else []

    def count(self, table: str) -> int:
        return sum(row["count"] for row in self._rows(table, f"SELECT count(*) AS count FROM [{table}]"))

    def conversations(self) -> Found:
        has_threads = {"turns", "messages", "parts"} <= self._names
        threads = self._rows("threads", "SELECT * FROM threads ORDER BY id") if has_threads else []
        for thread in threads:
            yield self._thread(thread)
        if "responses" in self._names:
            yield from self._responses({thread["id"] for thread in threads})

    def _attachment(self, id: object, found: ForeignConversation) -> Block:
        rows = self._rows("attachments", "SELECT type, path, url, content FROM attachments WHERE id = ?", id)
        if not rows:
            return found.missing("an attachment")
        row = rows[0]
        if row["content"] is not None:
            return found.media("", row["type"] or "", bytes(row["content"]))
        if row["url"]:
            return Image(row["type"] or "image/*", url=row["url"])
        # never read it: the path may name any file on this machine
        return found.missing(f"the file {row['path']}")

    # -- threads of messages

    def _thread(self, thread: Row) -> tuple[ForeignConversation, int]:
        created = time_of(thread["datetime_utc"])
        found = ForeignConversation(
            str(thread["id"]), text_of(thread["name"]), created, head=thread["tip_message_hash"]
        )
        made: dict[str, ForeignMessage] = {}
        turns = self._rows("turns", "SELECT * FROM turns WHERE thread_id = ? ORDER BY datetime_utc, id", thread["id"])
        for turn in turns:
            tip = turn["tip_message_hash"]
            self._add(made, found, tip, time_of(turn["datetime_utc"]))
            if tip in made:
                made[tip].model, made[tip].usage = turn["model"], _usage(turn)
        self._add(made, found, found.head, None)
        found.messages = [*made.values()]
        return found, len(turns)

    def _add(
        self, made: dict[str, ForeignMessage], found: ForeignConversation, tip: str | None, created: str | None
    ) -> None:
        """Add the messages up to and including `tip` that are missing."""
        for row in self._rows("messages", _CHAIN, tip) if tip and tip not in made else ():
            key, role = row["hash"], ROLES.get(row["role"], "assistant")
            if key not in made:
                parts = self._rows("parts", "SELECT * FROM parts WHERE message_hash = ? ORDER BY position", key)
                blocks = [block for part in parts if (block := self._block(part, found)) is not None]
                made[key] = ForeignMessage(key, row["parent_hash"], role, blocks, created)

    def _block(self, part: Row, found: ForeignConversation) -> Block | None:
        payload = _object(part["payload"])
        # a text may consist of fragments, which are stored once
        text = part["text"] or "".join(map(self._fragment, objects_of(payload.get("text_ref"))))
        name, call = part["tool_name"], payload.get("tool_call_id")
        match part["type"]:
            case "reasoning":
                return Thinking(text) if text else None
            case "tool_call":
                return tool_call(call, name, payload.get("arguments") or {})
            case "tool_result":
                return _result(name, call, payload.get("output", text), payload.get("exception"))
            case "attachment":
                return self._attachment(object_of(payload.get("attachment")).get("id"), found)
            case _:
                return Text(text)

    def _fragment(self, part: Row) -> str:
        if "fragment" not in part:
            return text_of(part.get("literal"))
        rows = self._rows("fragments", "SELECT content FROM fragments WHERE id = ?", part["fragment"])
        return "".join(str(row["content"]) for row in rows)

    # -- responses by conversation

    def _responses(self, known: set[str]) -> Found:
        """A thread of the same id holds these too."""
        names = {row["id"]: row["name"] for row in self._rows("conversations", "SELECT id, name FROM conversations")}
        # read completely: these tables have no index
        calls, results = self._by_response("tool_calls"), self._by_response("tool_results")
        query = "SELECT * FROM responses ORDER BY coalesce(conversation_id, id), datetime_utc, id"
        for key, group in groupby(self._db.execute(query), lambda row: row["conversation_id"] or row["id"]):
            if key in known:
                continue
            rows = [*group]
            found = ForeignConversation(str(key), text_of(names.get(key)), time_of(rows[0]["datetime_utc"]))
            last_system = ""
            for row in rows:
                system = self._joined(row, "system")
                is_new = system and system != last_system
                last_system = system or last_system
                _append_turn(
                    found,
                    row,
                    system=[Text(system)] if is_new else [],
                    tool=[
                        _result(each["name"], each["tool_call_id"], each["output"], each.get("exception"))
                        for each in results[row["id"]]
                    ],
                    user=[Text(self._joined(row, "prompt")), *self._attached(row, found)],
                    assistant=[
                        *([Thinking(row["reasoning"])] if row.get("reasoning") else []),
                        Text(row["response"] or ""),
                        *(
                            tool_call(each["tool_call_id"], each["name"], _object(each["arguments"]))
                            for each in calls[row["id"]]
                        ),
                    ],
                )
            yield found, len(rows)

    def _by_response(self, table: str) -> Mapping[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self._rows(table, f"SELECT * FROM {table} ORDER BY id"):
            found[row["response_id"]].append(row)
        return found

    def _attached(self, row: Row, found: ForeignConversation) -> list[Block]:
        query = 'SELECT attachment_id AS id FROM prompt_attachments WHERE response_id = ? ORDER BY "order"'
        return [self._attachment(each["id"], found) for each in self._rows("prompt_attachments", query, row["id"])]

    def _joined(self, row: Row, name: str) -> str:
        """Fragments come before the text."""
        joined = f"SELECT f.content FROM {name}_fragments r JOIN fragments f ON f.id = r.fragment_id"
        fragments = self._rows(f"{name}_fragments", f'{joined} WHERE r.response_id = ? ORDER BY r."order"', row["id"])
        return "\n".join(filter(None, (*(str(each["content"]) for each in fragments), row[name])))


def _append_turn(found: ForeignConversation, row: Row, **said: Any) -> None:
    for name, blocks in said.items():
        role: Role = ROLES[name]
        above = found.messages[-1].key if found.messages else None
        message = ForeignMessage(f"{row['id']}/{role}", above, role, blocks, time_of(row["datetime_utc"]))
        if role == "assistant":
            message.model, message.usage = row["model"], _usage(row)
        found.messages.append(message)


def _usage(row: Row) -> Usage | None:
    given, came = row.get("input_tokens"), row.get("output_tokens")
    return Usage(given or 0, came or 0) if given is not None or came is not None else None


def _result(name: object, id: object, output: object, failed: object) -> ToolResult:
    text = output if isinstance(output, str) else as_json(output) if output else ""
    return ToolResult(str(id or name or ""), str(name or ""), text, is_error=bool(failed))


def _object(text: object) -> Row:
    try:
        return object_of(json.loads(text)) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
