"""ServerTable: one file's entry for an MCP server, in the `mcpServers` format of other tools; and merging the tables of
several files. A project may tighten what the user allows, never loosen it."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert
from msgspec.structs import asdict, replace

from recto.base.text import clean
from recto.errors import Invalid
from recto.sources.server_config import TARGET_FIELDS, ServerConfig
from recto.sources.source import BUILT_IN_SERVER, Approval, Include

MAX_TIMEOUT_S = 3600
_TRANSPORTS = {"stdio": "command", "http": "url", "streamablehttp": "url"}
# From loose to strict.
_STRICTNESS: tuple[Approval, ...] = ("allow", "ask", "deny")


class ServerTable(Struct, frozen=True):
    name: str
    values: Mapping[str, Any]
    """By the field names of ServerConfig; `tools` maps each tool to its own values."""
    origin: str
    is_yours: bool


# -- reading


class _ToolEntry(Struct):
    include: Include | UnsetType = UNSET
    approval: Approval | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class ServerEntry(_ToolEntry):
    """A server in a file, in the form that other tools read too."""

    command: str | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    args: tuple[str, ...] | UnsetType = UNSET
    env: dict[str, str | int] | UnsetType = UNSET
    """People write ports as numbers; the environment takes strings."""
    headers: dict[str, str | int] | UnsetType = UNSET
    type: str | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    timeout_s: Annotated[float, Meta(ge=1, le=MAX_TIMEOUT_S)] | UnsetType = UNSET
    tools: dict[str, _ToolEntry] | UnsetType = UNSET


def read_server_tables(
    data: Any, origin: str, *, is_yours: bool, strict: bool
) -> tuple[tuple[ServerTable, ...], tuple[str, ...]]:
    """Read an `mcpServers` table. `strict` reports unknown keys, which may belong to other tools in a shared file. An
    entry that cannot be read disables its server: a typo must not fall back to what is allowed elsewhere."""
    if not isinstance(data, Mapping):
        return (), (f"{origin}: mcpServers must be a table of servers by name",)
    tables, notes = [], []
    for name, entry in data.items():
        is_allowed = len(name) <= 64 and all(each.isalnum() or each in "_. -" for each in name)
        if not is_allowed or name[:1] in ("", *". -") or name.endswith(" "):
            why = "use letters, digits, spaces, _, . and - in its name, at most 64 characters"
            notes.append(f"{origin}: the server {name} is ignored: {why}")
            continue
        try:
            values, wrong = _read_entry(name, entry, strict=strict), tuple(_unknown_keys(entry) if strict else ())
        except (ValidationError, Invalid) as why:
            values, wrong = {"enabled": False}, (f"it is disabled: {why}",)
        notes += [f"{origin}: mcpServers.{name}: {each}" for each in wrong]
        tables.append(ServerTable(name, values, origin, is_yours))
    return tuple(tables), tuple(notes)


def _read_entry(name: str, entry: Any, *, strict: bool) -> dict[str, Any]:
    """Values by the field names of ServerConfig. Raises ValidationError or Invalid, without quoting values, which may
    be secret."""
    if not strict and isinstance(entry, Mapping) and not isinstance(entry.get("tools"), Mapping):
        entry = {key: value for key, value in entry.items() if key != "tools"}  # other programs keep a list of names
    values = {key: value for key, value in asdict(convert(_cleaned(entry), ServerEntry)).items() if value is not UNSET}
    values |= {key: {k: str(v) for k, v in values[key].items()} for key in ("env", "headers") if key in values}
    if "tools" in values:
        given = {tool: asdict(each).items() for tool, each in values["tools"].items()}
        values["tools"] = {tool: {k: v for k, v in items if v is not UNSET} for tool, items in given.items()}
    values = {key: value for key, value in values.items() if value or key not in ("command", "cwd", "url")}
    targets = [key for key in ("command", "url") if values.get(key)]
    if name == BUILT_IN_SERVER and values.keys() & {*TARGET_FIELDS}:
        raise Invalid(f"{BUILT_IN_SERVER} is the name of the built-in tools; choose another name")
    if len(targets) == 2:
        raise Invalid("it has both a command and a url; remove one of them")
    if (kind := values.pop("type", None)) is not None:
        needed = _TRANSPORTS.get(kind.lower().replace("-", "").replace("_", ""))
        if needed is None or needed not in (targets or [needed]):
            raise Invalid("its type does not fit: stdio needs a command, and http (streamable) a url")
    if values.pop("disabled", False):
        values["enabled"] = False
    return values


def _cleaned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {clean(str(key))[0]: _cleaned(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return clean(value)[0] if isinstance(value, str) else value


def _unknown_keys(entry: Mapping[str, Any]) -> Iterator[str]:
    tools = entry.get("tools", {})
    parts = [(ServerEntry, "", entry), *((_ToolEntry, f"tools.{name}: ", own) for name, own in tools.items())]
    for kind, place, table in parts:
        for key in (key for key in table if key not in kind.__struct_fields__):
            near = get_close_matches(key, kind.__struct_fields__, 1)
            yield f"{place}unknown key {key}" + (f"; did you mean {near[0]}?" if near else "")


def typed(value: Any, kind: Any) -> Any:
    """Convert a file's value to this type within its limits; None if it does not fit."""
    try:
        return convert(value, kind)
    except ValidationError:
        return None


# -- merging


def merge_server_table(servers: dict[str, ServerConfig], table: ServerTable, notes: list[str]) -> None:
    """Merge a table into the servers of earlier files: a table with a target replaces a server, any other overrides it
    key by key."""
    base, values = servers.get(table.name), table.values
    if values.get("command") or values.get("url"):
        base = ServerConfig(table.name, origin=table.origin, is_yours=table.is_yours)
    elif base is None and table.name == BUILT_IN_SERVER:
        base = ServerConfig(BUILT_IN_SERVER, origin=table.origin)
    elif base is None and values == {"enabled": False}:
        return
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
