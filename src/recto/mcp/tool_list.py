"""ToolList: the checked tools of a server, their names for models, and their cache in the home."""

import hashlib
import json
import string
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from recto.base.home_files import write_json
from recto.base.text import clean, counted

MAX_DESCRIPTION_CHARS = 8_000
MAX_SCHEMA_BYTES = 100_000
MAX_SCHEMA_DEPTH = 100
"""Deepest schema. Real ones have ten levels; a recursive reader must not run out of stack."""
MAX_LISTED_TOOLS = 2_000
"""Most tools per server: more than any real one has."""
MAX_CALL_NAME = 64
_MAX_NAME_CHARS = 1_000
_MAX_NOTES = 5
_READABLE = frozenset(string.ascii_letters + string.digits + "-")


class ListedTool(Struct, frozen=True):
    name: str
    description: str
    schema: Mapping[str, Any]


class ToolList(Struct, frozen=True):
    tools: tuple[ListedTool, ...] = ()
    notes: tuple[str, ...] = ()

    def tool(self, name: str) -> ListedTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


# -- what a server lists


def check_tools(server: str, listed: Sequence[tuple[str, str, dict[str, Any]]]) -> ToolList:
    """The tools that can be offered, in the server's order, and a note for each problem. Each has its name, its
    description and its schema."""
    tools: dict[str, ListedTool] = {}
    notes: list[str] = []
    for given, description, schema in listed[:MAX_LISTED_TOOLS]:
        name, replaced = clean(given)
        if not name.strip() or replaced or len(name) > _MAX_NAME_CHARS:
            notes.append(f"MCP server {server}: a tool without a usable name is ignored")
        elif name in tools:
            notes.append(f"MCP server {server}: tool {name} is listed twice, and the first is used")
        elif problem := _schema_problem(schema):
            notes.append(f"MCP server {server}: tool {name} is ignored: its schema {problem}")
        else:
            text = clean(description)[0].strip()
            cut = text if len(text) <= MAX_DESCRIPTION_CHARS else text[: MAX_DESCRIPTION_CHARS - 1] + "…"
            tools[name] = ListedTool(name, cut, schema)
    if len(listed) > MAX_LISTED_TOOLS:
        notes.append(f"the MCP server {server} has {len(listed):,} tools: the first {MAX_LISTED_TOOLS:,} are offered")
    if (more := len(notes) - _MAX_NOTES) > 0:
        notes[_MAX_NOTES:] = [f"MCP server {server}: {counted(more, 'more problem')} with its tools"]
    return ToolList(tuple(tools.values()), tuple(notes))


def _schema_problem(schema: dict[str, Any]) -> str:
    try:
        size = len(json.dumps(schema, ensure_ascii=False, allow_nan=False).encode())
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return "is not valid JSON"
    level: list[object] = [schema]
    for _ in range(MAX_SCHEMA_DEPTH):
        parents = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [item for items in parents for item in items]
    if level:
        return "is nested too deeply"
    return f"has {size:,} bytes, more than {MAX_SCHEMA_BYTES:,}" if size > MAX_SCHEMA_BYTES else ""


# -- names


def tool_call_name(server: str, tool: str) -> str:
    """`server__tool` if both are plain, else their readable characters and a hash.

    A plain name contains exactly one double underscore, a name with a hash none, so they never collide.
    """
    plain = f"{server}__{tool}"
    if _is_plain(server) and _is_plain(tool) and len(plain) <= MAX_CALL_NAME:
        return plain
    digest = hashlib.sha256(json.dumps([server, tool]).encode()).hexdigest()[:8]
    words = "".join(char if char in _READABLE else "_" for char in f"{server}_{tool}").split("_")
    readable = "_".join(filter(None, words))[: MAX_CALL_NAME - len(digest) - 1].rstrip("_")
    return f"{readable}_{digest}" if readable else digest


def _is_plain(name: str) -> bool:
    return bool(name) and _READABLE.union("_").issuperset(name) and "__" not in name and name.strip("_") == name


# -- the cache

SERVERS_FOLDER = "servers"
MAX_LIST_AGE_S = 24 * 60 * 60.0


class _CachedList(Struct):
    format: Literal[1]
    at: float
    tools: tuple[ListedTool, ...]
    notes: tuple[str, ...]


class ToolListCache:
    def __init__(self, home: Path) -> None:
        self._folder = home / SERVERS_FOLDER

    def read(self, key: str) -> ToolList | None:
        """The cached list; None if there is none, or it is older than a day."""
        with suppress(OSError, msgspec.MsgspecError, ValueError, RecursionError):
            cached = msgspec.json.decode((self._folder / f"{key}.json").read_bytes(), type=_CachedList)
            if 0 <= time.time() - cached.at < MAX_LIST_AGE_S:
                return ToolList(cached.tools, cached.notes)
        return None

    def write(self, key: str, tool_list: ToolList) -> None:
        cached = _CachedList(1, time.time(), tool_list.tools, tool_list.notes)
        with suppress(OSError):  # a full disk makes the next start slower; it must not fail this turn
            write_json(self._folder / f"{key}.json", msgspec.to_builtins(cached))

    def forget(self, key: str) -> None:
        with suppress(OSError):
            (self._folder / f"{key}.json").unlink(missing_ok=True)
