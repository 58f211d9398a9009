"""ToolList: the checked tools of a server, and the names under which a model calls them."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recto.text import clean

MAX_DESCRIPTION_CHARS = 8_000
MAX_SCHEMA_BYTES = 100_000
MAX_LISTED_TOOLS = 2_000
"""More than any real server has; an endless list must end somewhere."""
MAX_CALL_NAME = 64
_MAX_NAME_CHARS = 1_000
_MAX_NOTES = 5
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool under its server's own name."""

    name: str
    description: str
    schema: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "schema": self.schema}


@dataclass(frozen=True, slots=True)
class ToolList:
    tools: tuple[ListedTool, ...] = ()
    notes: tuple[str, ...] = ()


def check_tools(server: str, raw: Sequence[object]) -> ToolList:
    """The valid tools, in the server's order, and a note for each problem."""
    tools: dict[str, ListedTool] = {}
    notes: list[str] = []
    for number, item in enumerate(raw[:MAX_LISTED_TOOLS], 1):
        tool, problem = _check_tool(item, number)
        if tool and tools.setdefault(tool.name, tool) is not tool:
            problem = f"{tool.name} is listed twice, and the first is used"
        if problem:
            notes.append(f"MCP server {server}: tool {problem}")
    if len(raw) > MAX_LISTED_TOOLS:
        notes.append(f"the MCP server {server} has {len(raw):,} tools: the first {MAX_LISTED_TOOLS:,} are offered")
    return ToolList(tuple(tools.values()), _limit_notes(server, notes))


def _check_tool(raw: object, number: int) -> tuple[ListedTool | None, str]:
    """The tool, if it is valid, and the problem, if there is one."""
    if not isinstance(raw, dict):
        return None, f"number {number} is ignored: it is not an object"
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        return None, f"number {number} is ignored: it has no name"
    name, replaced = clean(name)
    if replaced or len(name) > _MAX_NAME_CHARS:
        return None, f"number {number} is ignored: its name has invalid characters or is too long"
    schema = raw.get("inputSchema")
    if not isinstance(schema, dict):
        return None, f"{name} is ignored: its schema is not an object"
    if problem := _schema_problem(schema):
        return None, f"{name} is ignored: its schema {problem}"
    return ListedTool(name, _description(raw), schema), ""


def _schema_problem(schema: dict[str, Any]) -> str:
    try:
        size = len(json.dumps(schema, ensure_ascii=False, allow_nan=False).encode())
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return "is not valid JSON"
    return f"has {size:,} bytes, more than {MAX_SCHEMA_BYTES:,}" if size > MAX_SCHEMA_BYTES else ""


def _description(raw: dict[str, Any]) -> str:
    value = raw.get("description") or raw.get("title") or ""
    text = clean(value)[0].strip() if isinstance(value, str) else ""
    return text if len(text) <= MAX_DESCRIPTION_CHARS else text[: MAX_DESCRIPTION_CHARS - 1] + "…"


def _limit_notes(server: str, notes: list[str]) -> tuple[str, ...]:
    more = len(notes) - _MAX_NOTES
    if more <= 0:
        return tuple(notes)
    problems = "1 more problem" if more == 1 else f"{more:,} more problems"
    return (*notes[:_MAX_NOTES], f"MCP server {server}: {problems} with its tools")


def tool_call_name(server: str, tool: str) -> str:
    """`server__tool` where both are plain, else their readable characters and a hash.

    A plain name contains a double underscore exactly once, a name with a hash never does: so the two never collide.
    """
    plain = f"{server}__{tool}"
    if _is_plain(server) and _is_plain(tool) and len(plain) <= MAX_CALL_NAME:
        return plain
    digest = hashlib.sha256(json.dumps([server, tool]).encode()).hexdigest()[:8]
    readable = _OTHER.sub("_", f"{server}_{tool}").strip("_")[: MAX_CALL_NAME - len(digest) - 1].rstrip("_")
    return f"{readable}_{digest}" if readable else digest


def _is_plain(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None and "__" not in name and name.strip("_") == name
