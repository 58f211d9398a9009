"""AgentLayer: what the user's home or the project says about an agent; and layers merged into an Agent.

The project overrides the user key by key and source by source. Reads no files.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from recto.agents.agent import Agent
from recto.agents.agent_file import BUILT_IN_TOOLS, EMPTY_FILE, PROMPT_KEYS, AgentFile, parse_include_key
from recto.agents.server_table import merge_server_table
from recto.agents.source_file import SourceFile, name_key
from recto.base.text import clean
from recto.sources.server_config import ServerConfig
from recto.sources.source import BUILT_IN_SERVER, Include, Reference, Rule, SourceId, TextSource

TextSourceT = TypeVar("TextSourceT", bound=TextSource)
_MAX_NOTE_CHARS = 800


class AgentLayer(Struct, frozen=True):
    """What one place says: the user's home, or the project."""

    file: AgentFile = EMPTY_FILE
    mcp_file: AgentFile = EMPTY_FILE
    """The .mcp.json of the place, which applies to all agents."""
    prompt: str | None = None
    """The content of its system_prompt_file."""
    rules: tuple[SourceFile, ...] = ()
    references: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()


def merge_layers(name: str, layers: Sequence[AgentLayer]) -> Agent:
    """Merges layers into an agent; later layers override earlier ones."""
    notes = [note for layer in layers for note in _layer_notes(layer)]
    values, origins = _merge_values(layers)
    rules = _merge_sources(Rule, [layer.rules for layer in layers], notes)
    references = _merge_sources(Reference, [layer.references for layer in layers], notes)
    servers: dict[str, ServerConfig] = {}
    for file in (*(layer.mcp_file for layer in layers), *(layer.file for layer in layers)):
        for table in file.servers:
            merge_server_table(servers, table, notes)
    modes = _IncludeModes(rules, references, servers, notes)
    for layer in layers:
        modes.apply(layer.file)
    return Agent(
        name,
        values.get("description", ""),
        values.get("model", ""),
        values.get("system_prompt"),
        {key: value for key, value in values.items() if key.startswith("context.")},
        _by_priority(modes.rules.values()),
        _by_priority(modes.references.values()),
        tuple(modes.servers.values()),
        tuple(dict.fromkeys(map(_shorten, notes))),
        tuple(Path(layer.file.path) for layer in layers if layer.file.path),
        origins,
    )


def _layer_notes(layer: AgentLayer) -> Iterable[str]:
    source_notes = (note for file in (*layer.rules, *layer.references) for note in file.notes)
    return (*layer.file.notes, *layer.mcp_file.notes, *layer.notes, *source_notes)


def _shorten(note: str) -> str:
    """A note may quote a whole file; its beginning and its end say what is wrong."""
    text = clean(note)[0]
    return text if len(text) <= _MAX_NOTE_CHARS else f"{text[: _MAX_NOTE_CHARS - 200]} … {text[-200:]}"


def _merge_values(layers: Sequence[AgentLayer]) -> tuple[dict[str, Any], dict[str, str]]:
    """Values by dotted key, and the file that sets each. The two prompt keys set the same value."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        own = {key: value for key, value in layer.file.values.items() if key != "system_prompt_file"}
        if layer.prompt is not None:
            own["system_prompt"] = layer.prompt
        values |= own
        origins |= dict.fromkeys(own, layer.file.path)
        if layer.prompt is not None:
            origins["system_prompt_file"] = layer.file.path
        elif "system_prompt" in own:
            origins.pop(PROMPT_KEYS[1], None)
    return values, origins


def _merge_sources(
    kind: type[TextSourceT], layers: Sequence[Sequence[SourceFile]], notes: list[str]
) -> dict[str, TextSourceT]:
    """Sources by case-insensitive name. Of two in one folder the first is used."""
    merged: dict[str, TextSourceT] = {}
    for files in layers:
        own: dict[str, TextSourceT] = {}
        found = [file.source for file in files if isinstance(file.source, kind)]
        for source in sorted(found, key=lambda source: (source.name.casefold(), source.name)):
            first = own.setdefault(name_key(source.name), source)
            if first is not source:
                notes.append(f"{source.path} is ignored: {first.path} is already the {kind.kind} {first.name}")
        merged |= own
    return merged


def _by_priority(sources: Iterable[TextSourceT]) -> tuple[TextSourceT, ...]:
    return tuple(sorted(sources, key=lambda source: (-source.priority, source.name.casefold(), source.name)))


class _IncludeModes:
    """Applies the include modes of agent.toml to sources."""

    def __init__(
        self,
        rules: dict[str, Rule],
        references: dict[str, Reference],
        servers: dict[str, ServerConfig],
        notes: list[str],
    ) -> None:
        self.rules, self.references, self.servers = rules, references, servers
        self._notes = notes

    def apply(self, file: AgentFile) -> None:
        for key, include in file.include.items():
            id = parse_include_key(key, {BUILT_IN_SERVER, *self.servers})
            known = self._set(id, include)
            if known is not None:
                near = get_close_matches(id.name if id.server in ("", BUILT_IN_SERVER) else id.server, known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self._notes.append(f"{file.path}: include: there is no {key}{hint}")

    def _set(self, id: SourceId, include: Include) -> list[str] | None:
        """Returns None on success, else the names that exist."""
        if id.kind == "rule":
            return _set_include(self.rules, id.name, include)
        if id.kind == "reference":
            return _set_include(self.references, id.name, include)
        if id.server != BUILT_IN_SERVER and id.server not in self.servers:
            return list(self.servers)
        if id.server == BUILT_IN_SERVER and id.name and id.name not in BUILT_IN_TOOLS:
            return [*BUILT_IN_TOOLS, *self.servers]
        server = self.servers.get(id.server) or ServerConfig(id.server)
        if id.name:
            tool = replace(server.tool(id.name), include=include)
            self.servers[id.server] = replace(server, tools={**server.tools, id.name: tool})
        else:
            self.servers[id.server] = replace(server, include=include)
        return None


def _set_include(sources: dict[str, TextSourceT], name: str, include: Include) -> list[str] | None:
    key = name_key(name)
    if key not in sources:
        return [source.name for source in sources.values()]
    sources[key] = replace(sources[key], include=include)
    return None
