"""AgentFile: what one agent.toml, or one .mcp.json, says: checked, with a sentence for everything that is wrong.

Knows no folder: it is given a text, and where that is from.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from recto import settings
from recto.agents.server_table import ServerTable, read_tables
from recto.errors import Invalid
from recto.settings import Spec
from recto.sources.source import INCLUDES, Include, SourceId
from recto.text import clean
from recto.vault.decoding import text_of

PROMPTS = ("system_prompt", "system_prompt_file")
STRATEGY = "context.strategy"
TABLES = ("context", "memory", "include", "mcpServers")
ELSEWHERE = {
    "include": "how a source comes in is changed with `recto sources mode`",
    "mcpServers": "servers are changed in agent.toml itself, which `recto agent config NAME --edit` opens",
    "context": "give one of the group, such as context.strategy",
    "memory": "give memory.facts or memory.files",
}
"""What is no setting by itself, and what to do instead."""
OWN_SPECS = (
    Spec("description", "", "what the agent is for, in a sentence", None, None, ()),
    Spec("model", "", "who answers, as provider:model; empty leaves it to the settings", None, None, ()),
    Spec("system_prompt", "", "what the model is told first", None, None, ()),
    Spec("system_prompt_file", "", "a file of its folder that holds it instead, read at every turn", None, None, ()),
    Spec("memory.facts", True, "what was remembered is told to it, and it may remember", None, None, ()),
    Spec("memory.files", True, "its memory files are read", None, None, ()),
)


@dataclass(frozen=True, slots=True)
class AgentFile:
    path: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    """By dotted key, checked: `model`, `memory.facts`, `context.strategy`, …"""
    include: Mapping[str, Include] = field(default_factory=dict)
    """By what is written: `rule:style`, `tool:github`; whether there is such a source is not known here."""
    servers: tuple[ServerTable, ...] = ()
    notes: tuple[str, ...] = ()


SILENT = AgentFile()
"""A file that is not there."""


def specs() -> Iterator[Spec]:
    """All that can be set for an agent, its sources aside."""
    yield from OWN_SPECS
    yield from (spec for spec in settings.specs() if spec.key.startswith("context."))


def spec_of(key: str, where: str) -> Spec:
    """What is known about a setting, also by its short name; Invalid names the nearest."""
    known = {spec.key: spec for spec in specs()}
    full = STRATEGY if key == "strategy" else key
    if full in known:
        return known[full]
    raise Invalid(f"{where}: an agent has no setting {key}{_hint(key, list(known))}", key=key)


def _hint(key: str, known: list[str]) -> str:
    table = key.partition(".")[0]
    if near := get_close_matches(key, [*known, "strategy", *(TABLES if table not in TABLES else ())], 1):
        return f"; did you mean {near[0]}?"
    plain = [name for name in known if "." not in name]
    return f"; {ELSEWHERE[table]}" if table in ELSEWHERE else f"; there are: {', '.join([*plain, 'strategy', *TABLES])}"


def check(key: str, value: Any, where: str) -> tuple[str, Any]:
    """The key in full and the value as it would be set; Invalid names what is allowed."""
    spec = spec_of(key, where)
    return spec.key, spec.read(value, where)


def read_agent_file(path: str, raw: bytes | str, *, is_yours: bool) -> AgentFile:
    """`raw` is what the file holds, or a sentence that says why that cannot be had."""
    try:
        data = tomllib.loads(_text(path, raw))
    except Invalid as why:
        return AgentFile(path, notes=(why.message,))
    except (tomllib.TOMLDecodeError, RecursionError) as why:
        return AgentFile(path, notes=(f"{path} is not valid TOML: {why}",))
    notes: list[str] = []
    values = _values(path, data, notes)
    include = _include(path, data.get("include", {}), notes)
    servers, wrong = read_tables(data.get("mcpServers", {}), path, is_yours=is_yours, is_ours=True)
    return AgentFile(path, values, include, servers, (*notes, *wrong))


def read_mcp_file(path: str, raw: bytes | str, *, is_yours: bool) -> AgentFile:
    """A .mcp.json: servers alone."""
    try:
        data = json.loads(_text(path, raw))
    except Invalid as why:
        return AgentFile(path, notes=(why.message,))
    except (ValueError, RecursionError) as why:
        return AgentFile(path, notes=(f"{path} is not valid JSON: {why}",))
    if not isinstance(data, dict) or "mcpServers" not in data:
        return AgentFile(path, notes=(f'{path} has no servers: it takes {{"mcpServers": {{NAME: {{…}}}}}}',))
    servers, notes = read_tables(data["mcpServers"], path, is_yours=is_yours, is_ours=False)
    return AgentFile(path, servers=servers, notes=notes)


def _text(path: str, raw: bytes | str) -> str:
    if isinstance(raw, str):
        raise Invalid(raw)
    return text_of(raw, path)


def _values(path: str, data: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in _flat(path, data, notes):
        try:
            full, typed = check(key, value, path)
        except Invalid as why:
            notes.append(why.message)
            continue
        if full in values:
            notes.append(f"{path}: strategy and context.strategy are both given: context.strategy counts")
        values[full] = clean(typed)[0] if isinstance(typed, str) else typed
    if all(key in values for key in PROMPTS):
        del values["system_prompt"]
        notes.append(f"{path}: system_prompt and system_prompt_file are both given: the file counts")
    if "description" in values:
        values["description"] = " ".join(values["description"].split())
    return values


def _flat(path: str, data: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """What is set, by dotted key; `strategy` first, so that the longer name comes second."""
    for key, value in sorted(data.items(), key=lambda item: item[0] != "strategy"):
        if key in ("context", "memory") and not isinstance(value, dict):
            notes.append(f"{path}: {key} must be a table: [{key}]")
        elif key == "context":
            yield from settings.flat({key: value})
        elif key == "memory":
            yield from ((f"memory.{name}", each) for name, each in value.items())
        elif key not in TABLES:
            yield key, value


def _include(path: str, table: Any, notes: list[str]) -> dict[str, Include]:
    if not isinstance(table, dict):
        notes.append(f"{path}: include must be a table: [include]")
        return {}
    said: dict[str, Include] = {}
    for key, value in table.items():
        try:
            SourceId.parse(key)
        except Invalid as why:
            notes.append(f"{path}: include: {why.message}")
            continue
        if value in INCLUDES:
            said[key] = value
        else:
            notes.append(f"{path}: include: {key} = {value!r} is not allowed; it takes {' or '.join(INCLUDES)}")
    return said
