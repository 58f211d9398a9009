"""ServerTable: what one file says about an MCP server, in the format that other tools use; and tables of several
files laid over each other. A project may make what the user has said stricter, never looser."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from recto.errors import Invalid
from recto.sources.server import ServerConfig, ToolConfig
from recto.sources.source import APPROVALS, INCLUDES, OWN, Approval
from recto.text import clean

REACHED = ("command", "args", "env", "cwd", "url", "headers")
"""How it is reached; the rest is what may be done with it."""
KEYS = (*REACHED, "type", "disabled", "enabled", "include", "approval", "timeout_s", "tools")
TOOL_KEYS = ("include", "approval", "enabled")
LONGEST_S = 3600
_NAME = re.compile(r"\w[\w. -]{0,63}")
_TYPES = {"stdio": "command", "http": "url", "streamablehttp": "url"}
_SWITCH = "true or false"


@dataclass(frozen=True, slots=True)
class ServerTable:
    name: str
    said: Mapping[str, Any]
    """By the names of ServerConfig's fields; a tool's part is a mapping of its own."""
    origin: str
    is_yours: bool
    notes: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """It says how the server is reached, and so takes the place of whatever was said before."""
        return bool(self.said.get("command") or self.said.get("url"))


def read_tables(
    data: Any, origin: str, *, is_yours: bool, is_ours: bool
) -> tuple[tuple[ServerTable, ...], tuple[str, ...]]:
    """The servers of an `mcpServers` table; `is_ours`: the file is Recto's alone, and a key that nobody knows is an
    error in it rather than another tool's."""
    if not isinstance(data, Mapping):
        return (), (f"{origin}: mcpServers must be a table of servers by name",)
    tables, notes = [], []
    for name, entry in data.items():
        try:
            tables.append(_table(str(name), entry, origin, is_yours, is_ours))
        except Invalid as why:
            notes.append(f"{origin}: the server {name} is left out: {why.message}")
    return tuple(tables), tuple(notes)


def _table(name: str, entry: Any, origin: str, is_yours: bool, is_ours: bool) -> ServerTable:
    if not _NAME.fullmatch(name) or name != name.strip():
        raise Invalid("a name takes letters, digits, spaces, _, . and -, at most 64 of them")
    if not isinstance(entry, Mapping):
        raise Invalid("it must be a table with a command or a url")
    notes: list[str] = []
    where = f"{origin}: mcpServers.{name}"
    if is_ours:
        notes += _unknown(entry, KEYS, where)
    said = {**_reached(name, entry), **_ruled(entry, where, notes)}
    if "tools" in entry:
        said["tools"] = _tools(entry["tools"], where, notes)
    return ServerTable(name, said, origin, is_yours, tuple(notes))


def _unknown(entry: Mapping[str, Any], known: tuple[str, ...], where: str) -> list[str]:
    notes = []
    for key in entry:
        if key not in known:
            near = get_close_matches(str(key), known, 1)
            notes.append(f"{where}: there is no {key}" + (f"; did you mean {near[0]}?" if near else ""))
    return notes


def _reached(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """How the server is reached; with anything wrong in this it cannot be started as it was meant."""
    said: dict[str, Any] = {key: _text(key, entry[key]) for key in ("command", "cwd", "url") if entry.get(key)}
    if "args" in entry:
        said["args"] = _texts(entry["args"])
    said |= {key: _pairs(key, entry[key]) for key in ("env", "headers") if key in entry}
    is_reached = [key for key in ("command", "url") if key in said]
    if name == OWN and said:
        raise Invalid(f"{OWN} is the name of the tools that are built in; give it another one")
    if len(is_reached) == 2:
        raise Invalid("it has both a command and a url; give one of them")
    _check_type(entry.get("type"), is_reached)
    return said


def _check_type(type: Any, is_reached: Sequence[str]) -> None:
    if type is None:
        return
    needed = _TYPES.get(str(type).lower().replace("-", "").replace("_", ""))
    if needed is None:
        raise Invalid(f"type = {type!r} is not allowed; it takes stdio or http (streamable)")
    if is_reached and needed not in is_reached:
        raise Invalid(f"type = {type!r} needs a {needed}")


def _text(key: str, value: Any) -> str:
    """What is wrong is told without the value, here and below: it may be secret."""
    if not isinstance(value, str):
        raise Invalid(f"its {key} is not allowed as it is written; it takes a text")
    return clean(value)[0]


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Invalid("its args are not allowed as they are written; they take a list of texts")
    return tuple(clean(each)[0] for each in value)


def _pairs(key: str, value: Any) -> dict[str, str]:
    """Names and texts."""
    pairs = value if isinstance(value, Mapping) else {"": None}
    # a port is a number to everyone but the environment
    texts = {clean(str(name))[0]: str(each) if type(each) is int else each for name, each in pairs.items()}
    wrong = [name for name, each in texts.items() if not isinstance(each, str)]
    if wrong:
        raise Invalid(f"{key}{f'.{wrong[0]}' if wrong[0] else ''} is not allowed; it takes names with a text each")
    return {name: clean(str(each))[0] for name, each in texts.items()}


def _ruled(entry: Mapping[str, Any], where: str, notes: list[str]) -> dict[str, Any]:
    """What may be done with it; what is wrong is noted, and the default stays."""
    said: dict[str, Any] = {}
    for key, among in (("include", INCLUDES), ("approval", APPROVALS)):
        if key in entry and entry[key] in among:
            said[key] = entry[key]
        elif key in entry:
            notes.append(_wrong(where, key, entry[key], " or ".join(among)))
            # a wrong word must not fall back to an `allow` of the server: who wrote it wanted something else
            said |= {"approval": "ask"} if key == "approval" else {}
    said |= _switched(entry, where, notes)
    if "timeout_s" in entry:
        said |= _patience(entry["timeout_s"], where, notes)
    return said


def _switched(entry: Mapping[str, Any], where: str, notes: list[str]) -> dict[str, bool]:
    found = {key: entry[key] for key in ("enabled", "disabled") if key in entry}
    for key, value in found.items():
        if not isinstance(value, bool):
            notes.append(_wrong(where, key, value, _SWITCH))
    right = {key: value for key, value in found.items() if isinstance(value, bool)}
    if right.get("disabled") and right.get("enabled"):
        notes.append(f"{where}: it is both enabled and disabled: it stays off")
    return {"enabled": not right.get("disabled", False) and right.get("enabled", True)} if right else {}


def _patience(value: Any, where: str, notes: list[str]) -> dict[str, float]:
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= LONGEST_S:
        return {"timeout_s": float(value)}
    notes.append(_wrong(where, "timeout_s", value, f"a number from 1 to {LONGEST_S:,}"))
    return {}


def _wrong(where: str, key: str, value: Any, allowed: str) -> str:
    return f"{where}: {key} = {value!r} is not allowed; it takes {allowed}"


def _tools(data: Any, where: str, notes: list[str]) -> dict[str, dict[str, Any]]:
    if not isinstance(data, Mapping):
        # other tools keep a list of names here, which says nothing about how they come in
        notes.append(f"{where}: tools must be a table of tools by name")
        return {}
    said = {}
    for name, entry in data.items():
        place = f"{where}.tools.{name}"
        if not isinstance(entry, Mapping):
            notes.append(f"{place} must be a table: it takes {', '.join(TOOL_KEYS)}")
            continue
        notes += _unknown(entry, TOOL_KEYS, place)
        said[clean(str(name))[0]] = _ruled({key: entry[key] for key in TOOL_KEYS if key in entry}, place, notes)
    return said


# -- several files


def lay(servers: dict[str, ServerConfig], table: ServerTable, notes: list[str]) -> None:
    """Puts what a table says on top of what was said before: all anew where it says how the server is reached, else
    key by key."""
    notes += table.notes
    below = servers.get(table.name)
    if table.is_whole:
        below = ServerConfig(table.name, origin=table.origin, is_yours=table.is_yours)
    elif below is None and table.name == OWN:
        below = ServerConfig(OWN, origin=table.origin)
    elif below is None:
        notes.append(f"{table.origin}: the server {table.name} is left out: it has neither a command nor a url")
        return
    said = table.said if table.is_yours or not below.is_yours else _stricter(below, table, notes)
    servers[table.name] = _laid(below, said, table)


def _laid(below: ServerConfig, said: Mapping[str, Any], table: ServerTable) -> ServerConfig:
    plain = {key: value for key, value in said.items() if key not in ("env", "headers", "tools")}
    merged: dict[str, Any] = {key: {**getattr(below, key), **said[key]} for key in ("env", "headers") if key in said}
    tools = dict(below.tools)
    for name, each in said.get("tools", {}).items():
        tools[name] = replace(tools.get(name, ToolConfig()), **each)
    if any(key in said for key in REACHED) and not table.is_yours:
        plain |= {"origin": table.origin, "is_yours": False}
    return replace(below, **plain, **merged, tools=tools)


def _stricter(below: ServerConfig, table: ServerTable, notes: list[str]) -> dict[str, Any]:
    """What a project may say about a server of the user."""
    where = f"{table.origin}: mcpServers.{table.name}"
    said = _tightened(table.said, below.approval or "ask", below.enabled, where, notes)
    if "tools" in said:
        said["tools"] = {
            name: _tightened(each, below.approval_of(name), below.tool(name).enabled, f"{where}.tools.{name}", notes)
            for name, each in said["tools"].items()
        }
    return said


def _tightened(
    said: Mapping[str, Any], approval: Approval, enabled: bool, where: str, notes: list[str]
) -> dict[str, Any]:
    kept = dict(said)
    order = ("allow", "ask", "deny")
    if "approval" in kept and order.index(kept["approval"]) < order.index(approval):
        notes.append(f"{where}: approval = {kept.pop('approval')!r} is for you alone to say, in RECTO_HOME")
    if kept.get("enabled") and not enabled:
        del kept["enabled"]
        notes.append(f"{where}: enabled = True is for you alone to say, in RECTO_HOME: you have switched it off")
    return kept
