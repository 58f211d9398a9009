"""AgentFile: the content of an agent.toml or .mcp.json file. SourceFile: a file of rules/ or references/ as a source.

Files are read and checked with one sentence per problem; the rest of the file is used. An agent.toml is changed without
losing its comments.
"""

import json
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from recto.agents.server_table import ServerTable, read_server_tables
from recto.base import toml_file
from recto.base.text import clean, closest_key
from recto.errors import Invalid
from recto.settings import settings
from recto.settings.names import hint
from recto.settings.spec import Spec
from recto.sources.source import INCLUDES, MAX_PRIORITY, Include, SourceId, TextSource
from recto.vault.decoding import decode_text
from recto.vault.document import Document, note_name, parse_note
from recto.vault.links import front_matter

PROMPT_KEYS = ("system_prompt", "system_prompt_file")
STRATEGY_KEY = "context.strategy"
TABLES = ("context", "include", "mcpServers")
CHANGED_ELSEWHERE = {
    "include": "change include modes with `recto sources mode`",
    "mcpServers": "edit servers in agent.toml, which `recto agent config NAME --edit` opens",
    "context": "set one of its keys, such as context.strategy",
}
"""Tables that are not settings themselves, and what to do instead."""
AGENT_SPECS = (
    Spec("description", "", "what the agent is for, in a sentence", None, None, ()),
    Spec("model", "", "the model that answers, as provider:model; empty uses the one of the settings", None, None, ()),
    Spec("system_prompt", "", "the system prompt", None, None, ()),
    Spec("system_prompt_file", "", "a file in its folder that holds the prompt, read at every turn", None, None, ()),
)
BUILT_IN_TOOLS = (
    *("read_document", "find_excerpts", "find_documents", "list_documents", "find_backlinks", "find_forward_links"),
    *("resolve_wikilink", "write_document", "rename_document", "delete_document"),
    *("recall", "remember", "recall_facts", "forget_fact"),
)


class AgentFile(Struct, frozen=True):
    path: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Checked values by dotted key: `model`, `context.strategy`, …"""
    include: Mapping[str, Include] = field(default_factory=dict)
    """Include modes by the key as written: `rule:style`, `tool:github`. The source may not exist."""
    servers: tuple[ServerTable, ...] = ()
    notes: tuple[str, ...] = ()


EMPTY_FILE = AgentFile()
"""Stands for a file that does not exist."""


# -- settings


def agent_specs() -> Iterator[Spec]:
    """Every setting of an agent, except its sources."""
    yield from AGENT_SPECS
    yield from (spec for spec in settings.specs() if spec.key.startswith("context."))


def agent_spec(key: str, where: str) -> Spec:
    """Finds a setting by its full or short name. Raises Invalid with the closest match."""
    known = {name: spec for spec in agent_specs() for name in spec.names}
    full = STRATEGY_KEY if key == "strategy" else key
    if full in known:
        return known[full]
    names = {name: spec.key for name, spec in known.items()}
    raise Invalid(f"{where}: an agent has no setting {key}{_hint(key, names)}", key=key)


def _hint(key: str, known: dict[str, str]) -> str:
    table = key.partition(".")[0]
    tables = {name: name for name in (TABLES if table not in TABLES else ())}
    if key in CHANGED_ELSEWHERE:
        return f"; {CHANGED_ELSEWHERE[key]}"
    if (own := hint(key)) in known:
        return f"; use {own}"
    if near := closest_key(key, known | {"strategy": "strategy"} | tables):
        return f"; did you mean {near}?"
    if table in CHANGED_ELSEWHERE:
        return f"; {CHANGED_ELSEWHERE[table]}"
    top_level = [name for name, own in known.items() if name == own and "." not in name]
    return f"; it has {', '.join([*top_level, 'strategy', *TABLES])}"


def parse_agent_setting(key: str, value: Any, where: str) -> tuple[str, Any]:
    """Returns the full key and the typed value. Raises Invalid with the allowed values."""
    spec = agent_spec(key, where)
    return spec.key, spec.read(value, where)


# -- reading


def read_agent_file(path: str, raw: bytes | str, *, is_yours: bool) -> AgentFile:
    """`raw` is the content of the file, or a sentence that says why it cannot be read."""
    try:
        data = tomllib.loads(_decode(path, raw))
    except Invalid as why:
        return AgentFile(path, notes=(why.message,))
    except (ValueError, RecursionError) as why:
        return AgentFile(path, notes=(f"{path} is not valid TOML: {why}",))
    notes: list[str] = []
    values = _read_values(path, data, notes)
    include = _read_include(path, data.get("include", {}), notes)
    servers, problems = read_server_tables(data.get("mcpServers", {}), path, is_yours=is_yours, strict=True)
    return AgentFile(path, values, include, servers, (*notes, *problems))


def read_mcp_file(path: str, raw: bytes | str, *, is_yours: bool) -> AgentFile:
    """Reads a .mcp.json file, which holds servers only."""
    try:
        data = json.loads(_decode(path, raw))
    except Invalid as why:
        return AgentFile(path, notes=(why.message,))
    except (ValueError, RecursionError) as why:
        return AgentFile(path, notes=(f"{path} is not valid JSON: {why}",))
    if not isinstance(data, dict) or "mcpServers" not in data:
        return AgentFile(path, notes=(f'{path} has no servers; write {{"mcpServers": {{NAME: {{…}}}}}}',))
    servers, notes = read_server_tables(data["mcpServers"], path, is_yours=is_yours, strict=False)
    return AgentFile(path, servers=servers, notes=notes)


def _decode(path: str, raw: bytes | str) -> str:
    if isinstance(raw, str):
        raise Invalid(raw)
    return decode_text(raw, path)


def _read_values(path: str, data: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for key, value in _flatten(path, data, notes):
        try:
            full, typed = parse_agent_setting(key, value, path)
        except Invalid as why:
            notes.append(why.message)
            continue
        if full in names:
            used = full if full in (key, names[full]) else names[full]
            unused = names[full] if used == key else key
            notes.append(f"{path}: {unused} and {used} are both set; {used} is used")
            if used != key:
                continue
        names[full] = key
        values[full] = clean(typed)[0] if isinstance(typed, str) else typed
    if all(key in values for key in PROMPT_KEYS):
        del values["system_prompt"]
        notes.append(f"{path}: system_prompt and system_prompt_file are both set; the file is used")
    if "description" in values:
        values["description"] = " ".join(values["description"].split())
    return values


def _flatten(path: str, data: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yields values by dotted key; `strategy` comes first, so that context.strategy overrides it."""
    for key, value in sorted(data.items(), key=lambda item: item[0] != "strategy"):
        if key == "context" and not isinstance(value, dict):
            notes.append(f"{path}: context must be a table: [context]")
        elif key == "context":
            yield from settings.flat({key: value})
        elif key not in TABLES:
            yield key, value


def _read_include(path: str, table: Any, notes: list[str]) -> dict[str, Include]:
    if not isinstance(table, dict):
        notes.append(f"{path}: include must be a table: [include]")
        return {}
    modes: dict[str, Include] = {}
    for key, value in table.items():
        try:
            SourceId.parse(key)
        except Invalid as why:
            notes.append(f"{path}: include: {why.message}")
            continue
        if value in INCLUDES:
            modes[key] = value
        else:
            notes.append(f"{path}: include: {key} = {value!r} is not allowed; it takes {' or '.join(INCLUDES)}")
    return modes


# -- changing

# Two names for one setting: a change goes to the one that the file already has.
_SHORT_NAMES = {STRATEGY_KEY: "strategy"}
_TABLE_HEADER = re.compile(r"^(?:#[ \t]*)?\[", re.MULTILINE)


def with_setting(text: str, path: Path, key: str, value: Any) -> str:
    """Returns the text with a setting changed. Raises Invalid with the allowed values."""
    key, typed = parse_agent_setting(key, value, str(path))
    data = _parse_toml(text, path)
    name = _name_in_file(key, data)
    if key in PROMPT_KEYS:
        # the two keys set the same thing, so the other one goes
        text = _remove(text, path, PROMPT_KEYS[1 - PROMPT_KEYS.index(key)])
        data = _parse_toml(text, path)
    in_place = _insert_in_place(text, data, name, typed) if name not in data and "." not in name else None
    return in_place or toml_file.with_value(text, path, name.split("."), typed)


def _name_in_file(key: str, data: dict[str, Any]) -> str:
    """The name under which the file has the setting; the long one where it has both."""
    short, table = _SHORT_NAMES.get(key), data.get("context")
    has_long = isinstance(table, dict) and key.removeprefix("context.") in table
    return short if short in data and short and not has_long else key


def _insert_in_place(text: str, data: dict[str, Any], name: str, value: Any) -> str | None:
    """Puts a top-level key where a commented line shows it as an example, or before commented-out tables.

    After those tables, the first one to be uncommented would swallow the key. None where there is no such place.
    """
    import tomlkit  # only to write a file

    line = f"{name} = {tomlkit.item(value).as_string()}"
    table = _TABLE_HEADER.search(text)
    end = table.start() if table else len(text)
    example = re.compile(rf"^#[ \t]*{name}[ \t]*=.*$", re.MULTILINE).search(text, 0, end)
    if example is None and (table is None or text[end] != "#"):
        return None
    place = example.span() if example else (end, end)
    changed = f"{text[: place[0]]}{line}{'' if example else chr(10) * 2}{text[place[1] :]}"
    try:
        return changed if tomllib.loads(changed) == {**data, name: value} else None
    except tomllib.TOMLDecodeError:  # the line was part of a text, not an example
        return None


def without_setting(text: str, path: Path, key: str) -> str | None:
    """Returns the text without a setting; None when the file does not set it."""
    changed = None
    for name in filter(None, (key, _SHORT_NAMES.get(key))):
        shorter = toml_file.without(text if changed is None else changed, path, name.split("."))
        changed = shorter if shorter is not None else changed
    return changed


def with_include(text: str, path: Path, id: SourceId, include: Include, servers: Collection[str]) -> str:
    """Returns the text with an include mode changed; a line for the same source is changed, not doubled.

    An `id` without a name means a whole server.
    """
    table = _parse_toml(text, path).get("include")
    keys = [key for key in table if _is_same_source(key, id, servers)] if isinstance(table, dict) else []
    for duplicate in keys[1:]:
        text = _remove(text, path, "include", duplicate)
    return toml_file.with_value(text, path, ["include", keys[0] if keys else str(id).rstrip("/")], include)


def parse_include_key(key: str, servers: Collection[str]) -> SourceId:
    """The source that a key of [include] names. `tool:NAME` is the server of that name, or else a built-in tool."""
    id = SourceId.parse(key)
    name = key.partition(":")[2]
    return SourceId("tool", "", name) if id.kind == "tool" and name in servers else id


def _is_same_source(key: str, id: SourceId, servers: Collection[str]) -> bool:
    try:
        other = parse_include_key(key, servers)
    except Invalid:
        return False
    if id.kind == "tool":
        return other == id
    return other.kind == id.kind and name_key(other.name) == name_key(id.name)


def _remove(text: str, path: Path, *keys: str) -> str:
    changed = toml_file.without(text, path, keys)
    return text if changed is None else changed


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as why:
        raise Invalid(f"{path} is not valid TOML: {why}; fix it first", file=str(path)) from why


# -- files of rules/ and references/

FRONT_MATTER_KEYS = ("description", "include", "priority", "enabled")
_MAX_DESCRIPTION_CHARS = 2000


class SourceFile(Struct, frozen=True):
    """The source that a file holds, if any, and the problems found in it."""

    source: TextSource | None
    notes: tuple[str, ...] = ()


def read_source_file(kind: type[TextSource], path: str, raw: bytes | str) -> SourceFile:
    """`raw` is the content of the file, or a sentence that says why it cannot be read."""
    if isinstance(raw, str):
        return SourceFile(None, (raw,))
    name = source_name(path)
    if not name or not name.isprintable():
        return SourceFile(None, (f"{clean(path)[0]!r} has a name that cannot be printed and is ignored",))
    try:
        text = decode_text(raw, path)
    except Invalid as why:
        return SourceFile(None, (why.message,))
    properties, body, notes = _split(path, text)
    values = dict(_read_properties(path, properties, notes))
    if not body:
        return SourceFile(None, (*notes, f"{path} has no text, so the {kind.kind} is ignored"))
    return SourceFile(kind(name, body, path=path, **values), tuple(notes))


def source_name(path: str) -> str:
    """The file's name as people type it: some disks store an accent apart from its letter."""
    return unicodedata.normalize("NFC", note_name(path.replace("\\", "/"))).strip()


def name_key(name: str) -> str:
    """Names with the same key are the same: case and the encoding of accents do not matter."""
    return unicodedata.normalize("NFC", name).casefold()


def _split(path: str, text: str) -> tuple[Mapping[str, Any], str, list[str]]:
    """Properties, body and problems of a file."""
    document, front = Document(path, text), front_matter(text)
    properties, start = document.head
    is_odd = start == 0 if front else text.startswith("---")
    problem = parse_note(text).problem if is_odd else None
    body = text[front[2] if front else 0 :].strip()
    return properties, body, [f"{path}: {problem}"] if problem else []


def _read_properties(path: str, properties: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yields the valid properties. A wrong value becomes a note, and the default applies."""
    for key, value in properties.items():
        if key not in FRONT_MATTER_KEYS:
            near = get_close_matches(key.lower(), FRONT_MATTER_KEYS, 1, 0.8)
            notes += [f"{path}: unknown property {key}; did you mean {near[0]}?"] if near else []
        elif value is not None and _is_allowed(key, value):
            yield key, _one_line(value) if key == "description" else value
        elif value is not None:
            notes.append(f"{path}: {key} = {_repr(value)} is not allowed; it takes {_allowed_values(key)}")


def _is_allowed(key: str, value: Any) -> bool:
    if key == "priority":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PRIORITY
    if key == "enabled":
        return isinstance(value, bool)
    return isinstance(value, str) and (key == "description" or value in INCLUDES)


def _allowed_values(key: str) -> str:
    numbers = f"a whole number from 0 to {MAX_PRIORITY}"
    return {"include": " or ".join(INCLUDES), "priority": numbers, "enabled": "true or false"}.get(key, "a text")


def _one_line(text: str) -> str:
    return " ".join(clean(text)[0].split())[:_MAX_DESCRIPTION_CHARS]


def _repr(value: Any) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # a number with more digits than Python prints
        return "a very long number"
