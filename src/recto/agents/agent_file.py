"""AgentFile: the content of an agent.toml or .mcp.json file. SourceFile: a file of rules/ or references/ as a source.

Each problem in a file becomes a sentence; the rest of the file is used. Changes keep the comments of an agent.toml.
"""

import json
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from recto.agents.server_table import ServerTable, read_server_tables, typed
from recto.base import toml_file
from recto.base.text import clean, closest_key
from recto.errors import Invalid
from recto.settings import settings
from recto.settings.spec import Spec, hint
from recto.sources.source import INCLUDES, MAX_PRIORITY, Include, SourceId, TextSource
from recto.vault.decoding import decoded
from recto.vault.document import Document, note_name, parse_note
from recto.vault.links import front_matter

PROMPT_KEYS = ("system_prompt", "system_prompt_file")
TABLES = ("context", "include", "mcpServers")
CHANGED_ELSEWHERE = {
    "include": "change include modes with `recto sources mode`",
    "mcpServers": "edit servers in agent.toml",
    "context": "set one of its keys, such as context.strategy",
}
"""Tables that are not settings, and what to do instead."""
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
    """Include modes by the key as written (`rule:style`, `tool:github`). The source may not exist."""
    servers: tuple[ServerTable, ...] = ()
    notes: tuple[str, ...] = ()


EMPTY_FILE = AgentFile()


# -- settings


def agent_specs() -> Iterator[Spec]:
    yield from AGENT_SPECS
    yield from (spec for spec in settings.specs() if spec.key.startswith("context."))


def agent_spec(key: str, where: str) -> Spec:
    """Find a setting by its full or short name. Raises Invalid with the closest match."""
    known = {name: spec for spec in agent_specs() for name in spec.names}
    if key in known:
        return known[key]
    if key not in CHANGED_ELSEWHERE and (own := hint(key)) in known:
        raise Invalid(f"{where}: Unknown setting {key}. Use {own}.", key=key)
    names = {name: spec.key for name, spec in known.items()}
    raise Invalid(f"{where}: an agent has no setting {key}{_hint(key, names)}", key=key)


def _hint(key: str, known: dict[str, str]) -> str:
    table = key.partition(".")[0]
    tables = {name: name for name in (TABLES if table not in TABLES else ())}
    if key in CHANGED_ELSEWHERE:
        return f"; {CHANGED_ELSEWHERE[key]}"
    if near := closest_key(key, known | tables):
        return f"; did you mean {near}?"
    if table in CHANGED_ELSEWHERE:
        return f"; {CHANGED_ELSEWHERE[table]}"
    top_level = [name for name, own in known.items() if name == own and "." not in name]
    return f"; it has {', '.join([*top_level, *TABLES])}"


def parse_agent_setting(key: str, value: Any, where: str) -> tuple[str, Any]:
    """Return the full key and the typed value. Raises Invalid with the allowed values."""
    spec = agent_spec(key, where)
    return spec.key, spec.read(value, where)


# -- reading


def read_agent_file(path: str, raw: bytes | str, *, is_yours: bool) -> AgentFile:
    """`raw` is the content of the file, or why it cannot be read."""
    data, problem = _parsed(path, raw, "TOML", tomllib.loads)
    if problem:
        return AgentFile(path, notes=(problem,))
    notes: list[str] = []
    values = _read_values(path, data, notes)
    include = _read_include(path, data.get("include", {}), notes)
    servers, problems = read_server_tables(data.get("mcpServers", {}), path, is_yours=is_yours, strict=True)
    return AgentFile(path, values, include, servers, (*notes, *problems))


def read_mcp_file(path: str, raw: bytes | str, *, is_yours: bool) -> AgentFile:
    data, problem = _parsed(path, raw, "JSON", json.loads)
    if not problem and (not isinstance(data, dict) or "mcpServers" not in data):
        problem = f'{path} has no servers; write {{"mcpServers": {{NAME: {{…}}}}}}'
    if problem:
        return AgentFile(path, notes=(problem,))
    servers, notes = read_server_tables(data["mcpServers"], path, is_yours=is_yours, strict=False)
    return AgentFile(path, servers=servers, notes=notes)


def _parsed(path: str, raw: bytes | str, form: str, parse: Callable[[str], Any]) -> tuple[Any, str]:
    """The data of a file, and the problem if it cannot be read."""
    text, problem = decoded(path, raw)
    try:
        return (None, problem) if problem else (parse(text), "")
    except (ValueError, RecursionError) as why:
        return None, f"{path} is not valid {form}: {why}"


def _read_values(path: str, data: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in _flatten(path, data, notes):
        try:
            full, typed = parse_agent_setting(key, value, path)
        except Invalid as why:
            notes.append(why.message)
            continue
        values[full] = clean(typed)[0] if isinstance(typed, str) else typed
    if all(key in values for key in PROMPT_KEYS):
        del values["system_prompt"]
        notes.append(f"{path}: system_prompt and system_prompt_file are both set; the file is used")
    if "description" in values:
        values["description"] = " ".join(values["description"].split())
    return values


def _flatten(path: str, data: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield values by dotted key."""
    for key, value in data.items():
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


def with_setting(text: str, path: Path, key: str, value: Any) -> str:
    """Return the text with a setting changed. Raises Invalid with the allowed values."""
    key, typed_value = parse_agent_setting(key, value, str(path))
    if key in PROMPT_KEYS:
        # the two keys set the same thing, so remove the other one
        text = _remove(text, path, PROMPT_KEYS[1 - PROMPT_KEYS.index(key)])
    return toml_file.with_value(text, path, key.split("."), typed_value)


def without_setting(text: str, path: Path, key: str) -> str | None:
    """Return the text without a setting; None if the file does not set it."""
    return toml_file.without(text, path, key.split("."))


def with_include(text: str, path: Path, id: SourceId, include: Include, servers: Collection[str]) -> str:
    """Return the text with an include mode changed, replacing an existing line for the source.

    An `id` without a name means a whole server.
    """

    def is_same(key: str) -> bool:
        try:
            other = parse_include_key(key, servers)
        except Invalid:
            return False
        is_named_alike = other.kind == id.kind and name_key(other.name) == name_key(id.name)
        return other == id if id.kind == "tool" else is_named_alike

    table = _parse_toml(text, path).get("include")
    first, *more = [*filter(is_same, table if isinstance(table, dict) else ()), str(id).rstrip("/")]
    for duplicate in more[:-1]:
        text = _remove(text, path, "include", duplicate)
    return toml_file.with_value(text, path, ["include", first], include)


def parse_include_key(key: str, servers: Collection[str]) -> SourceId:
    """The source named by a key of [include]. `tool:NAME` is the server of that name, or else a built-in tool."""
    id = SourceId.parse(key)
    name = key.partition(":")[2]
    return SourceId("tool", "", name) if id.kind == "tool" and name in servers else id


def _remove(text: str, path: Path, *keys: str) -> str:
    changed = toml_file.without(text, path, keys)
    return text if changed is None else changed


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as why:
        raise Invalid(f"{path} is not valid TOML: {why}; fix it first", file=str(path)) from why


# -- files of rules/ and references/

FRONT_MATTER_KEYS: dict[str, tuple[Any, str]] = {
    "description": (str, "a text"),
    "include": (Include, " or ".join(INCLUDES)),
    "priority": (Annotated[int, Meta(ge=0, le=MAX_PRIORITY)], f"a whole number from 0 to {MAX_PRIORITY}"),
    "enabled": (bool, "true or false"),
}
_MAX_DESCRIPTION_CHARS = 2000


class SourceFile(Struct, frozen=True):
    """The source in a file, if any, and its problems."""

    source: TextSource | None
    notes: tuple[str, ...] = ()


def read_source_file(kind: type[TextSource], path: str, raw: bytes | str) -> SourceFile:
    """`raw` is the content of the file, or why it cannot be read."""
    name = source_name(path)
    text, problem = decoded(path, raw)
    if not isinstance(raw, str) and (not name or not name.isprintable()):
        problem = f"{clean(path)[0]!r} has a name that cannot be printed and is ignored"
    if problem:
        return SourceFile(None, (problem,))
    properties, body, notes = _split(path, text)
    values = dict(_read_properties(path, properties, notes))
    if not body:
        return SourceFile(None, (*notes, f"{path} has no text, so the {kind.kind} is ignored"))
    return SourceFile(kind(name, body, path=path, **values), tuple(notes))


def source_name(path: str) -> str:
    """The file's name in composed form: some file systems store accents apart from their letters."""
    return unicodedata.normalize("NFC", note_name(path.replace("\\", "/"))).strip()


def name_key(name: str) -> str:
    """A key for comparing names regardless of case and the encoding of accents."""
    return unicodedata.normalize("NFC", name).casefold()


def _split(path: str, text: str) -> tuple[Mapping[str, Any], str, list[str]]:
    document, front = Document(path, text), front_matter(text)
    properties, start = document.head
    is_odd = start == 0 if front else text.startswith("---")
    problem = parse_note(text).problem if is_odd else None
    body = text[front[2] if front else 0 :].strip()
    return properties, body, [f"{path}: {problem}"] if problem else []


def _read_properties(path: str, properties: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the valid properties. A wrong value becomes a note, and the default applies."""
    for key, value in properties.items():
        if key not in FRONT_MATTER_KEYS:
            near = get_close_matches(key.lower(), FRONT_MATTER_KEYS, 1, 0.8)
            notes += [f"{path}: unknown property {key}; did you mean {near[0]}?"] if near else []
        elif value is not None and typed(value, FRONT_MATTER_KEYS[key][0]) is not None:
            yield key, " ".join(clean(value)[0].split())[:_MAX_DESCRIPTION_CHARS] if key == "description" else value
        elif value is not None:
            notes.append(f"{path}: {key} = {_repr(value)} is not allowed; it takes {FRONT_MATTER_KEYS[key][1]}")


def _repr(value: Any) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # a number with more digits than Python prints
        return "a very long number"
