"""Files about servers in the user's home: cached tool lists, and which servers of projects the user trusts.

ToolList: the checked tools of a server, and the names under which a model calls them.
"""

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from recto.base.home_files import SERVERS, TrustFile, read_json, write_json
from recto.base.text import clean
from recto.mcp.server_target import PROJECT_VARIABLE
from recto.sources.server_config import TARGET_FIELDS, ServerConfig

MAX_DESCRIPTION_CHARS = 8_000
MAX_SCHEMA_BYTES = 100_000
MAX_SCHEMA_DEPTH = 100
"""Real ones have ten levels; a reader that calls itself for each level must not run out of stack."""
MAX_LISTED_TOOLS = 2_000
"""More than any real server has; an endless list must end somewhere."""
MAX_CALL_NAME = 64
_MAX_NAME_CHARS = 1_000
_MAX_NOTES = 5
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9-]+")


class ListedTool(Struct, frozen=True):
    """A tool under its server's own name."""

    name: str
    description: str
    schema: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "schema": self.schema}


class ToolList(Struct, frozen=True):
    tools: tuple[ListedTool, ...] = ()
    notes: tuple[str, ...] = ()

    def tool(self, name: str) -> ListedTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)


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
    if _is_deep(schema):
        return "is nested too deeply"
    return f"has {size:,} bytes, more than {MAX_SCHEMA_BYTES:,}" if size > MAX_SCHEMA_BYTES else ""


def _is_deep(schema: object) -> bool:
    level = [schema]
    for _ in range(MAX_SCHEMA_DEPTH):
        lists = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [item for items in lists for item in items]
    return bool(level)


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


SERVERS_FOLDER, LIST_FORMAT = "servers", 1
MAX_LIST_AGE_S = 24 * 60 * 60.0


def cache_key(config: ServerConfig, project: Path | None) -> str:
    """Identifies a server by how it is reached, not by what its tools may do.

    A server that comes with a project, or runs in it, has a key of its own for each project.
    """
    data = config.to_json()
    target = {name: data[name] for name in TARGET_FIELDS if name in data}
    is_relative = bool(config.cwd) and not config.cwd.startswith(("/", "~"))
    uses_project = is_relative or PROJECT_VARIABLE in json.dumps(target)
    scope = str(project.resolve()) if project and (uses_project or not config.is_yours) else ""
    return hashlib.sha256(json.dumps([config.name, scope, target], sort_keys=True).encode()).hexdigest()


class ToolListCache:
    def __init__(self, home: Path) -> None:
        self._folder = home / SERVERS_FOLDER

    def read(self, key: str) -> ToolList | None:
        """None where nothing is cached, or it is older than a day."""
        data = read_json(self._folder / f"{key}.json")
        at = data.get("at")
        is_fresh = isinstance(at, int | float) and 0 <= time.time() - at < MAX_LIST_AGE_S
        if data.get("format") != LIST_FORMAT or not is_fresh:
            return None
        try:
            return ToolList(tuple(map(_tool_from_json, data["tools"])), tuple(map(str, data["notes"])))
        except (KeyError, TypeError):
            return None

    def write(self, key: str, tool_list: ToolList) -> None:
        tools = [tool.to_json() for tool in tool_list.tools]
        data = {"format": LIST_FORMAT, "at": time.time(), "tools": tools, "notes": list(tool_list.notes)}
        try:
            write_json(self._folder / f"{key}.json", data)
        except OSError:
            return  # a full disk makes the next start slower; it must not fail this turn

    def forget(self, key: str) -> None:
        try:
            (self._folder / f"{key}.json").unlink(missing_ok=True)
        except OSError:
            return


def _tool_from_json(data: dict[str, Any]) -> ListedTool:
    name, description, schema = data["name"], data["description"], data["schema"]
    if not isinstance(name, str) or not isinstance(description, str) or not isinstance(schema, dict):
        raise TypeError
    return ListedTool(name, description, schema)


class Trust:
    """Which servers of which projects the user trusts, each by the hash of its config."""

    def __init__(self, home: Path) -> None:
        self._file = TrustFile(home, SERVERS)

    def is_trusted(self, config: ServerConfig, project: Path | None) -> bool:
        return config.is_yours or self._file.is_trusted(config.name, config.sha256, project)

    def trust(self, config: ServerConfig, project: Path | None) -> None:
        self._file.trust({config.name: config.sha256}, project)

    def distrust(self, name: str, project: Path | None) -> None:
        """Revokes the trust; does nothing where there was none."""
        self._file.distrust([name], project)
