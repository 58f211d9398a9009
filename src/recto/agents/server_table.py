"""ServerTable: one file's entry for an MCP server, in the `mcpServers` format of other tools; and merging the tables of
several files. A project may tighten what the user allows, never loosen it."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

from recto.base.text import clean
from recto.errors import Invalid
from recto.sources.server_config import TARGET_FIELDS, ServerConfig
from recto.sources.source import APPROVALS, BUILT_IN_SERVER, INCLUDES, Approval, Include

SERVER_KEYS = (*TARGET_FIELDS, "type", "disabled", "enabled", "include", "approval", "timeout_s", "tools")
TOOL_KEYS = ("include", "approval", "enabled")
MAX_TIMEOUT_S = 3600
_PERMISSIONS: dict[str, tuple[Any, str]] = {
    "include": (Include, " or ".join(INCLUDES)),
    "approval": (Approval, " or ".join(APPROVALS)),
    "enabled": (bool, "true or false"),
    "disabled": (bool, "true or false"),
    "timeout_s": (Annotated[float, Meta(ge=1, le=MAX_TIMEOUT_S)], f"a number from 1 to {MAX_TIMEOUT_S:,}"),
}
_TRANSPORTS = {"stdio": "command", "http": "url", "streamablehttp": "url"}
# From loose to strict.
_STRICTNESS: tuple[Approval, ...] = ("allow", "ask", "deny")


class ServerTable(Struct, frozen=True):
    name: str
    values: Mapping[str, Any]
    """By the field names of ServerConfig; `tools` maps each tool to its own values."""
    origin: str
    is_yours: bool
    notes: tuple[str, ...] = ()


# -- reading


def read_server_tables(
    data: Any, origin: str, *, is_yours: bool, strict: bool
) -> tuple[tuple[ServerTable, ...], tuple[str, ...]]:
    """Read an `mcpServers` table. `strict` reports unknown keys, which may belong to other tools in a shared file."""
    if not isinstance(data, Mapping):
        return (), (f"{origin}: mcpServers must be a table of servers by name",)
    tables, notes = [], []
    for name, entry in data.items():
        try:
            tables.append(_read_table(str(name), entry, origin, is_yours, strict))
        except Invalid as why:
            notes.append(f"{origin}: the server {name} is ignored: {why.message}")
    return tuple(tables), tuple(notes)


def _read_table(name: str, entry: Any, origin: str, is_yours: bool, strict: bool) -> ServerTable:
    is_allowed = len(name) <= 64 and all(each.isalnum() or each in "_. -" for each in name)
    if not is_allowed or name[:1] in ("", *". -") or name.endswith(" "):
        raise Invalid("use letters, digits, spaces, _, . and - in its name, at most 64 characters")
    if not isinstance(entry, Mapping):
        raise Invalid("it must be a table with a command or a url")
    where = f"{origin}: mcpServers.{name}"
    notes = _unknown_keys(entry, SERVER_KEYS, where) if strict else []
    values = {**_read_target(name, entry), **_read_permissions(entry, where, notes)}
    if "tools" in entry:
        values["tools"] = _read_tools(entry["tools"], where, notes)
    return ServerTable(name, values, origin, is_yours, tuple(notes))


def _unknown_keys(entry: Mapping[str, Any], known: tuple[str, ...], where: str) -> list[str]:
    notes = []
    for key in entry:
        if key not in known:
            near = get_close_matches(str(key), known, 1)
            notes.append(f"{where}: unknown key {key}" + (f"; did you mean {near[0]}?" if near else ""))
    return notes


def _read_target(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Read how to reach the server. Any problem is an error: the server would not start as intended. Errors quote no
    values, which may be secret."""
    values: dict[str, Any] = {key: entry[key] for key in ("command", "cwd", "url") if entry.get(key)}
    if wrong := next((key for key, value in values.items() if not isinstance(value, str)), None):
        raise Invalid(f"its {wrong} must be a string")
    values = {key: clean(value)[0] for key, value in values.items()}
    if "args" in entry:
        if typed(entry["args"], list[str]) is None:
            raise Invalid("its args must be a list of strings")
        values["args"] = tuple(clean(arg)[0] for arg in entry["args"])
    values |= {key: _string_table(key, entry[key]) for key in ("env", "headers") if key in entry}
    targets = [key for key in ("command", "url") if key in values]
    if name == BUILT_IN_SERVER and values:
        raise Invalid(f"{BUILT_IN_SERVER} is the name of the built-in tools; choose another name")
    if len(targets) == 2:
        raise Invalid("it has both a command and a url; remove one of them")
    if (kind := entry.get("type")) is not None:
        needed = _TRANSPORTS.get(str(kind).lower().replace("-", "").replace("_", ""))
        if needed is None:
            raise Invalid(f"type = {kind!r} is not allowed; it takes stdio or http (streamable)")
        if targets and needed not in targets:
            raise Invalid(f"type = {kind!r} needs a {needed}")
    return values


def _string_table(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise Invalid(f"{key} must be a table of strings by name")
    table: dict[str, str] = {}
    for name, item in value.items():
        if typed(item, str | int) is None:  # people write ports as numbers; the environment takes strings
            raise Invalid(f"{key}.{clean(str(name))[0]} must be a string")
        table[clean(str(name))[0]] = clean(str(item))[0]
    return table


def typed(value: Any, kind: Any) -> Any:
    """Convert a file's value to this type within its limits; None if it does not fit."""
    try:
        return convert(value, kind)
    except ValidationError:
        return None


def _read_permissions(entry: Mapping[str, Any], where: str, notes: list[str]) -> dict[str, Any]:
    """Read the permissions of a server or tool. A wrong value becomes a note, and the default applies."""
    values: dict[str, Any] = {}
    for key, (kind, allowed) in _PERMISSIONS.items():
        if key in entry and (value := typed(entry[key], kind)) is not None:
            values[key] = value
        elif key in entry:
            notes.append(f"{where}: {key} = {entry[key]!r} is not allowed; it takes {allowed}")
            # a typo must not fall back to an `allow` of the server
            values |= {"approval": "ask"} if key == "approval" else {}
    if "disabled" in values:
        is_disabled = values.pop("disabled")
        if is_disabled and values.get("enabled"):
            notes.append(f"{where}: it is both enabled and disabled; it stays disabled")
        values["enabled"] = not is_disabled and values.get("enabled", True)
    return values


def _read_tools(data: Any, where: str, notes: list[str]) -> dict[str, dict[str, Any]]:
    if not isinstance(data, Mapping):
        # other programs keep a list of names here
        notes.append(f"{where}: tools must be a table of tools by name")
        return {}
    tools = {}
    for name, entry in data.items():
        place = f"{where}.tools.{name}"
        if not isinstance(entry, Mapping):
            notes.append(f"{place} must be a table: it takes {', '.join(TOOL_KEYS)}")
            continue
        notes += _unknown_keys(entry, TOOL_KEYS, place)
        own = {key: entry[key] for key in TOOL_KEYS if key in entry}
        tools[clean(str(name))[0]] = _read_permissions(own, place, notes)
    return tools


# -- merging


def merge_server_table(servers: dict[str, ServerConfig], table: ServerTable, notes: list[str]) -> None:
    """Merge a table into the servers of earlier files: a table with a target replaces a server, any other overrides it
    key by key."""
    notes += table.notes
    base, values = servers.get(table.name), table.values
    if values.get("command") or values.get("url"):
        base = ServerConfig(table.name, origin=table.origin, is_yours=table.is_yours)
    elif base is None and table.name == BUILT_IN_SERVER:
        base = ServerConfig(BUILT_IN_SERVER, origin=table.origin)
    elif base is None:
        notes.append(f"{table.origin}: the server {table.name} is ignored: it has neither a command nor a url")
        return
    if base.is_yours and not table.is_yours:
        values = _tighten_server(base, table, notes)
    changed = {key: value for key, value in values.items() if key != "tools"}
    changed |= {key: {**getattr(base, key), **values[key]} for key in ("env", "headers") if key in values}
    if any(key in values for key in TARGET_FIELDS) and not table.is_yours:
        changed |= {"origin": table.origin, "is_yours": False}
    tools = {name: replace(base.tool(name), **tool) for name, tool in values.get("tools", {}).items()}
    servers[table.name] = replace(base, **changed, tools={**base.tools, **tools})


def _tighten_server(base: ServerConfig, table: ServerTable, notes: list[str]) -> dict[str, Any]:
    where = f"{table.origin}: mcpServers.{table.name}"
    values = _tighten(table.values, base.approval or "ask", base.enabled, where, notes)
    if "tools" in values:
        values["tools"] = {
            name: _tighten(tool, base.approval_of(name), base.tool(name).enabled, f"{where}.tools.{name}", notes)
            for name, tool in values["tools"].items()
        }
    return values


def _tighten(
    values: Mapping[str, Any], approval: Approval, enabled: bool, where: str, notes: list[str]
) -> dict[str, Any]:
    allowed = dict(values)
    if "approval" in allowed and _STRICTNESS.index(allowed["approval"]) < _STRICTNESS.index(approval):
        notes.append(f"{where}: approval = {allowed.pop('approval')!r} is ignored: only you can set it, in RECTO_HOME")
    if allowed.get("enabled") and not enabled:
        del allowed["enabled"]
        notes.append(f"{where}: enabled = True is ignored: only you can set it, in RECTO_HOME, where it is disabled")
    return allowed
