"""Layers: what the user's files and the project's say about one agent, put together: the project's wins, key by key,
source by source. Knows no disk."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from recto.agents.agent import Agent, MemorySwitches
from recto.agents.agent_file import PROMPTS, SILENT, AgentFile
from recto.agents.agent_text import meant
from recto.agents.built_in import BUILT_IN
from recto.agents.front import Sheet, key_of
from recto.agents.server_table import lay
from recto.sources.server import ServerConfig
from recto.sources.source import OWN, Include, Reference, Rule, SourceId, Written
from recto.text import clean

W = TypeVar("W", bound=Written)
_LONGEST_NOTE = 800


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says: the user's home, or the project."""

    file: AgentFile = SILENT
    shared: AgentFile = SILENT
    """The .mcp.json beside it, which is for all agents."""
    prompt: str | None = None
    """What its system_prompt_file holds."""
    rules: tuple[Sheet, ...] = ()
    references: tuple[Sheet, ...] = ()
    notes: tuple[str, ...] = ()


def assemble(name: str, layers: Sequence[Layer]) -> Agent:
    """The agent of this name as its layers say, the strongest last."""
    notes = [note for layer in layers for note in _notes(layer)]
    values, origins = _values(layers)
    rules = _merged(Rule, [layer.rules for layer in layers], notes)
    references = _merged(Reference, [layer.references for layer in layers], notes)
    servers: dict[str, ServerConfig] = {}
    for file in (*(layer.shared for layer in layers), *(layer.file for layer in layers)):
        for table in file.servers:
            lay(servers, table, notes)
    modes = _Modes(rules, references, servers, notes)
    for layer in layers:
        modes.put(layer.file)
    return Agent(
        name,
        values.get("description", ""),
        values.get("model", ""),
        values.get("system_prompt"),
        {key: value for key, value in values.items() if key.startswith("context.")},
        MemorySwitches(values.get("memory.facts", True), values.get("memory.files", True)),
        _sorted(modes.rules.values()),
        _sorted(modes.references.values()),
        tuple(modes.servers.values()),
        tuple(dict.fromkeys(map(_bounded, notes))),
        tuple(Path(layer.file.path) for layer in layers if layer.file.path),
        origins,
    )


def _notes(layer: Layer) -> Iterable[str]:
    sheets = (note for sheet in (*layer.rules, *layer.references) for note in sheet.notes)
    return (*layer.file.notes, *layer.shared.notes, *layer.notes, *sheets)


def _bounded(note: str) -> str:
    """A value may be a whole file; what is wrong with it is said before and behind it."""
    text = clean(note)[0]
    return text if len(text) <= _LONGEST_NOTE else f"{text[: _LONGEST_NOTE - 200]} … {text[-200:]}"


def _values(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """By dotted key, each with the file that says it. A prompt is one thing, whichever way it is given."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        said = {key: value for key, value in layer.file.values.items() if key != "system_prompt_file"}
        if layer.prompt is not None:
            said["system_prompt"] = layer.prompt
        values |= said
        origins |= dict.fromkeys(said, layer.file.path)
        if layer.prompt is not None:
            origins["system_prompt_file"] = layer.file.path
        elif "system_prompt" in said:
            origins.pop(PROMPTS[1], None)
    return values, origins


def _merged(kind: type[W], sheets: Sequence[Sequence[Sheet]], notes: list[str]) -> dict[str, W]:
    """By name, without regard to case. Of two in one folder the first counts."""
    merged: dict[str, W] = {}
    for folder in sheets:
        here: dict[str, W] = {}
        found = [sheet.source for sheet in folder if isinstance(sheet.source, kind)]
        for source in sorted(found, key=lambda each: (each.name.casefold(), each.name)):
            first = here.setdefault(key_of(source.name), source)
            if first is not source:
                notes.append(f"{source.path}: there is a {kind.kind} {first.name} already, which counts: {first.path}")
        merged |= here
    return merged


def _sorted(sources: Iterable[W]) -> tuple[W, ...]:
    return tuple(sorted(sources, key=lambda each: (-each.priority, each.name.casefold(), each.name)))


class _Modes:
    """Sources with the include modes that agent.toml gives them."""

    def __init__(
        self,
        rules: dict[str, Rule],
        references: dict[str, Reference],
        servers: dict[str, ServerConfig],
        notes: list[str],
    ) -> None:
        self.rules, self.references, self.servers = rules, references, servers
        self._notes = notes

    def put(self, file: AgentFile) -> None:
        for written, include in file.include.items():
            id = meant(written, {OWN, *self.servers})
            known = self._put(id, include)
            if known is not None:
                near = get_close_matches(id.name if id.server in ("", OWN) else id.server, known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self._notes.append(f"{file.path}: include: there is no {written}{hint}")

    def _put(self, id: SourceId, include: Include) -> list[str] | None:
        """None when it was done; else the names that there are."""
        if id.kind == "rule":
            return _put_written(self.rules, id.name, include)
        if id.kind == "reference":
            return _put_written(self.references, id.name, include)
        if id.server != OWN and id.server not in self.servers:
            return list(self.servers)
        if id.server == OWN and id.name and id.name not in BUILT_IN:
            return [*BUILT_IN, *self.servers]
        server = self._server(id.server)
        if id.name:
            tool = replace(server.tool(id.name), include=include)
            self.servers[id.server] = replace(server, tools={**server.tools, id.name: tool})
        else:
            self.servers[id.server] = replace(server, include=include)
        return None

    def _server(self, name: str) -> ServerConfig:
        return self.servers.get(name) or ServerConfig(name)


def _put_written(sources: dict[str, W], name: str, include: Include) -> list[str] | None:
    key = key_of(name)
    if key not in sources:
        return [each.name for each in sources.values()]
    sources[key] = replace(sources[key], include=include)
    return None
