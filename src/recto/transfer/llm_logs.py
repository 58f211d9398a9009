"""`logs.db` of the command `llm`, opened to read only. There are three generations of tables: threads of messages with
parts (from 0.32 on), responses by conversation, and the first table of logs. A file may hold all of them."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recto.chat.blocks import Block, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Role, Usage
from recto.errors import Invalid
from recto.transfer.foreign import ForeignConversation, ForeignMessage, ForeignTree
from recto.transfer.foreign_blocks import BlockReader
from recto.transfer.incoming import IncomingConversation, time_of
from recto.transfer.report import ImportFormat

Row = Mapping[str, Any]
Said = list[tuple[Role, list[Block]]]
ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
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
            self.size = max(1, sum(tables.count(name) for name in ("turns", "responses", "logs")))

    def conversations(self) -> Generator[IncomingConversation, None, None]:
        with self._opened() as tables:
            done = 0
            for found, rows in tables.conversations():
                done += rows
                place = f"{self._path.name}, conversation {found.key[:40]}"
                yield ForeignTree(self.name, found, place, self._fallback).incoming(done)

    def _opened(self) -> "_Opened":
        return _Opened(self._path)


class _Opened:
    """The open file; failures of SQLite become one sentence."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> "_Tables":
        try:
            self._connection = sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro", uri=True)
            self._connection.row_factory = sqlite3.Row
            # texts that are no UTF-8 are cleaned as all others are
            self._connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            return _Tables(self._connection, self._path.name)
        except sqlite3.Error as why:
            raise self._error(why) from why

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        with closing(self._connection):
            if isinstance(error, sqlite3.Error):
                raise self._error(error) from error

    def _error(self, why: sqlite3.Error) -> Invalid:
        return Invalid(f"{self._path.name} cannot be read ({why}); nothing was imported", path=str(self._path))


class _Tables:
    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._db = connection
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._names = {row[0] for row in found}
        if not self._names & {"turns", "responses", "logs", "log"}:
            raise Invalid(f"{name} is an SQLite file, but not the log of llm: it has no table of responses")

    def count(self, table: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM [{table}]").fetchone()[0]) if table in self._names else 0

    def conversations(self) -> Iterator[tuple[ForeignConversation, int]]:
        """Each with the number of rows that it is made of."""
        threads = {"threads", "turns", "messages", "parts"} <= self._names
        known: set[str] = set()
        for row in self._all("SELECT * FROM threads ORDER BY id") if threads else ():
            known.add(row["id"])
            yield _Thread(self._db, row).read()
        if "responses" in self._names:
            yield from _Responses(self._db, self._names).read(known)
        for table in ("logs", "log"):
            if table in self._names:
                yield from _first_logs(self._db, table)

    def _all(self, query: str) -> list[Row]:
        return self._db.execute(query).fetchall()


class _MediaReader(BlockReader):
    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db

    def attachment(self, id: object) -> Block:
        row = self._db.execute("SELECT type, path, url, content FROM attachments WHERE id = ?", (id,)).fetchone()
        if row is None:
            return Text(self.missing("an attachment"))
        if row["content"] is not None:
            return self.media("", row["type"] or "", bytes(row["content"]))
        if row["url"]:
            return Image(row["type"] or "image/*", url=row["url"])
        # a path may name any file of this machine: it is not read for being named in a file
        return Text(self.missing(f"the file {row['path']}"))


# -- threads of messages


class _Thread:
    def __init__(self, db: sqlite3.Connection, thread: Row) -> None:
        self._db, self._thread = db, thread
        self._reader = _MediaReader(db)
        query = "SELECT * FROM turns WHERE thread_id = ? ORDER BY datetime_utc, id"
        self._turns = db.execute(query, (thread["id"],)).fetchall()

    def read(self) -> tuple[ForeignConversation, int]:
        thread = self._thread
        found = ForeignConversation(
            key=thread["id"], title=thread["name"] or "", created=time_of(thread["datetime_utc"])
        )
        made: dict[str, ForeignMessage] = {}
        for turn in self._turns:
            self._add(made, turn["tip_message_hash"], time_of(turn["datetime_utc"]))
            if (reply := made.get(turn["tip_message_hash"])) is not None:
                reply.model, reply.usage = turn["model"], _usage(turn)
        self._add(made, thread["tip_message_hash"], None)
        found.messages, found.head = list(made.values()), thread["tip_message_hash"]
        found.blobs, found.notes = self._reader.blobs, self._reader.notes
        return found, len(self._turns)

    def _add(self, made: dict[str, ForeignMessage], tip: str | None, created: str | None) -> None:
        """The messages up to and with `tip`, as far as they are not there."""
        for row in self._db.execute(_CHAIN, (tip,)).fetchall() if tip and tip not in made else ():
            if row["hash"] not in made:
                role, blocks = ROLES.get(row["role"], "assistant"), self._blocks(row["hash"])
                made[row["hash"]] = ForeignMessage(row["hash"], row["parent_hash"], role, blocks, created)

    def _blocks(self, message: str) -> list[Block]:
        query = "SELECT * FROM parts WHERE message_hash = ? ORDER BY position"
        return [block for part in self._db.execute(query, (message,)) if (block := self._block(part)) is not None]

    def _block(self, part: Row) -> Block | None:
        payload = _json(part["payload"])
        text = part["text"] or self._referenced(payload)
        match part["type"]:
            case "reasoning":
                return Thinking(text) if text else None
            case "tool_call":
                return _call(part["tool_name"], payload.get("tool_call_id"), payload.get("arguments"))
            case "tool_result":
                told = payload.get("output", text)
                return _result(part["tool_name"], payload.get("tool_call_id"), told, payload.get("exception"))
            case "attachment":
                attached = payload.get("attachment")
                return self._reader.attachment(attached.get("id") if isinstance(attached, Mapping) else None)
            case _:
                return Text(text)

    def _referenced(self, payload: Row) -> str:
        """A text that is made of fragments, which are stored once."""
        refs = payload.get("text_ref")
        parts = [each for each in refs if isinstance(each, Mapping)] if isinstance(refs, list) else []
        return "".join(self._fragment(each["fragment"]) if "fragment" in each else each["literal"] for each in parts)

    def _fragment(self, id: object) -> str:
        row = self._db.execute("SELECT content FROM fragments WHERE id = ?", (id,)).fetchone()
        return str(row[0]) if row else ""


# -- responses by conversation


class _Responses:
    def __init__(self, db: sqlite3.Connection, tables: set[str]) -> None:
        self._db, self._tables = db, tables
        self._calls = self._grouped("SELECT * FROM tool_calls ORDER BY id", "tool_calls")
        self._results = self._grouped("SELECT * FROM tool_results ORDER BY id", "tool_results")

    def read(self, known: set[str]) -> Iterator[tuple[ForeignConversation, int]]:
        """A thread of the same id holds these too."""
        names = dict(self._db.execute("SELECT id, name FROM conversations")) if "conversations" in self._tables else {}
        query = "SELECT * FROM responses ORDER BY coalesce(conversation_id, id), datetime_utc, id"
        rows: list[Row] = []
        for row in self._db.execute(query):
            if rows and _home(row) != _home(rows[0]):
                yield self._conversation(rows, names), len(rows)
                rows = []
            if _home(row) not in known:
                rows.append(row)
        if rows:
            yield self._conversation(rows, names), len(rows)

    def _conversation(self, rows: list[Row], names: Mapping[str, Any]) -> ForeignConversation:
        key = _home(rows[0])
        found = ForeignConversation(key=key, title=names.get(key) or "", created=time_of(rows[0]["datetime_utc"]))
        reader = _MediaReader(self._db)
        system = ""
        for row in rows:
            told = self._joined(row["id"], "system_fragments", row["system"])
            said: Said = []
            if told and told != system:
                said.append(("system", [Text(told)]))
                system = told
            said.append(("tool", [_result_of(each) for each in self._results[row["id"]]]))
            said.append(("user", self._asked(row, reader)))
            said.append(("assistant", self._answered(row)))
            _append_turn(found, row, said)
        found.blobs, found.notes = reader.blobs, reader.notes
        return found

    def _asked(self, row: Row, reader: _MediaReader) -> list[Block]:
        blocks: list[Block] = [Text(self._joined(row["id"], "prompt_fragments", row["prompt"]))]
        query = 'SELECT attachment_id FROM prompt_attachments WHERE response_id = ? ORDER BY "order"'
        found = self._db.execute(query, (row["id"],)) if "prompt_attachments" in self._tables else ()
        return blocks + [reader.attachment(each[0]) for each in found]

    def _answered(self, row: Row) -> list[Block]:
        thought = row["reasoning"] if "reasoning" in row.keys() else None  # noqa: SIM118 - a row is no mapping
        blocks: list[Block] = [Thinking(thought)] if thought else []
        blocks.append(Text(row["response"] or ""))
        calls = self._calls[row["id"]]
        return blocks + [_call(each["name"], each["tool_call_id"], _json(each["arguments"])) for each in calls]

    def _joined(self, response: str, table: str, text: str | None) -> str:
        """Fragments come before the text."""
        joined = f"SELECT f.content FROM {table} r JOIN fragments f ON f.id = r.fragment_id"
        query = f'{joined} WHERE r.response_id = ? ORDER BY r."order"'
        found = self._db.execute(query, (response,)) if table in self._tables else ()
        return "\n".join(part for part in (*(str(row[0]) for row in found), text or "") if part)

    def _grouped(self, query: str, table: str) -> Mapping[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self._db.execute(query) if table in self._tables else ():
            found[row["response_id"]].append(row)
        return found


def _home(row: Row) -> str:
    return str(row["conversation_id"] or row["id"])


def _append_turn(found: ForeignConversation, row: Row, said: Said) -> None:
    for role, blocks in said:
        above = found.messages[-1].key if found.messages else None
        message = ForeignMessage(f"{row['id']}/{role}", above, role, blocks, time_of(row["datetime_utc"]))
        if role == "assistant":
            message.model, message.usage = row["model"], _usage(row)
        found.messages.append(message)


def _first_logs(db: sqlite3.Connection, table: str) -> Iterator[tuple[ForeignConversation, int]]:
    """The first table of logs: a row knows the row that its chat began with."""
    columns = {row["name"] for row in db.execute(f"PRAGMA table_info([{table}])")}
    when = next((name for name in ("datetime_utc", "timestamp_utc", "timestamp") if name in columns), "NULL")
    id, chat = ("id" if "id" in columns else "rowid"), ("chat_id" if "chat_id" in columns else "NULL")
    query = (
        f"SELECT {id} AS id, coalesce({chat}, {id}) AS chat, {when} AS datetime_utc, model, system, prompt, response "
        f"FROM [{table}] ORDER BY chat, {id}"
    )
    found: ForeignConversation | None = None
    count = 0
    for row in db.execute(query):
        key = f"{table}-{row['chat']}"
        if found is None or found.key != key:
            if found is not None:
                yield found, count
            found, count = ForeignConversation(key, created=time_of(row["datetime_utc"])), 0
        said: Said = [] if found.messages else [("system", [Text(row["system"] or "")])]
        said += [("user", [Text(row["prompt"] or "")]), ("assistant", [Text(row["response"] or "")])]
        _append_turn(found, row, said)
        count += 1
    if found is not None:
        yield found, count


def _usage(row: Row) -> Usage | None:
    names = row.keys()
    given, came = (row[name] if name in names else None for name in ("input_tokens", "output_tokens"))
    return Usage(given or 0, came or 0) if given is not None or came is not None else None


def _call(name: object, id: object, arguments: object) -> ToolCall:
    called = str(name or "tool")
    return ToolCall(str(id or called), called, json.dumps(arguments or {}, ensure_ascii=False))


def _result_of(row: Row) -> ToolResult:
    failed = row["exception"] if "exception" in row.keys() else None  # noqa: SIM118 - a row is no mapping
    return _result(row["name"], row["tool_call_id"], row["output"], failed)


def _result(name: object, id: object, output: object, failed: object) -> ToolResult:
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False) if output else ""
    return ToolResult(str(id or name or ""), str(name or ""), text, is_error=bool(failed))


def _json(text: object) -> Row:
    try:
        told = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
