"""Agent: a model, instructions, settings and the sources a conversation may use. A plain value, read by
`agents.py`.

Its settings override the user's. Conflicting settings are ignored with a note, so that no agent file can end a chat. An
agent has a layer from the user's home and one from the project, which overrides the user's key by key and source by
source.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from recto.agents.agent_file import (
    BUILT_IN_TOOLS,
    EMPTY_FILE,
    PROMPT_KEYS,
    AgentFile,
    SourceFile,
    name_key,
    parse_include_key,
)
from recto.agents.server_table import merge_server_table
from recto.base.text import clean
from recto.errors import Invalid
from recto.settings import settings as configuration
from recto.settings.settings import Settings
from recto.sources.server_config import ServerConfig
from recto.sources.source import BUILT_IN_SERVER, DEFAULT_AGENT, Reference, Rule, SourceId, TextSource


class Agent(Struct, frozen=True):
    name: str = DEFAULT_AGENT
    description: str = ""
    model: str = ""
    """As provider:model; empty uses the model of the settings."""
    system_prompt: str | None = None
    """None uses the system prompt of the settings."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """The agent's checked settings by dotted key (`context.strategy`, …)."""
    rules: tuple[Rule, ...] = ()
    """Rules and references with their effective include modes, highest priority first; including disabled ones."""
    references: tuple[Reference, ...] = ()
    servers: tuple[ServerConfig, ...] = ()
    """Servers with their effective include modes; one named `recto` configures the built-in tools."""
    notes: tuple[str, ...] = ()
    """Problems in its files, one sentence each. Everything else still works."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What its agent.toml files say, by dotted key, without the context settings."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The file that sets each key: `model`, `system_prompt`, `context.strategy`, …"""

    @property
    def texts(self) -> tuple[Rule | Reference, ...]:
        return (*self.rules, *self.references)

    @property
    def enabled_texts(self) -> Iterator[Rule | Reference]:
        return (source for source in self.texts if source.enabled)

    def find(self, id: SourceId) -> Rule | Reference | None:
        return next((source for source in self.texts if source.id == id), None)

    def server(self, name: str) -> ServerConfig | None:
        return next((server for server in self.servers if server.name == name), None)


def apply_agent(settings: Settings, agent: Agent) -> Settings:
    """The settings with the agent's on top. Options still win; conflicting settings are ignored."""
    return with_agent_settings(settings, without_conflicts(settings, agent))


def with_conversation_settings(
    settings: Settings, chosen: Mapping[str, Any], name: str = "this conversation"
) -> tuple[Settings, tuple[str, ...]]:
    """The settings with those of a conversation on top. Options still win. Conflicting ones are ignored with a note, so
    that a conversation can always continue."""
    own = {key: value for key, value in chosen.items() if settings.origin(key) != "option"}
    try:
        return configuration.changed(settings, own, name) if own else settings, ()
    except Invalid as why:
        return settings, (f"the settings of {name} are ignored: {why.message}",)


def without_conflicts(settings: Settings, agent: Agent) -> Agent:
    """The agent without conflicting settings, and a note for each."""
    own, notes = _own_settings(settings, agent), list[str]()

    while own and (error := _conflict(settings, agent, own)):
        rivals: list[str] = error.data.get("rivals") or []  # type: ignore[assignment]
        key = next((key for key in (str(error.data.get("key")), *rivals) if key in own), next(iter(own)))
        notes.append(f"{error.message}; the agent's {key} is ignored")
        del own[key]
    if not notes:
        return agent
    left = {key: value for key, value in agent.context.items() if key in own or settings.origin(key) == "option"}
    return replace(agent, context=left, notes=(*agent.notes, *notes))


def with_agent_settings(settings: Settings, agent: Agent, own: Mapping[str, Any] | None = None) -> Settings:
    """The settings with the agent's (or `own`) on top. Options still win. Raises Invalid if they conflict."""
    own = _own_settings(settings, agent) if own is None else own
    return configuration.changed(settings, own, {key: _origin(agent, key) for key in own})


def _own_settings(settings: Settings, agent: Agent) -> dict[str, Any]:
    return {key: value for key, value in agent.context.items() if settings.origin(key) != "option"}


def _origin(agent: Agent, key: str) -> str:
    return agent.origins.get(key, f"agent {agent.name}")


def _conflict(settings: Settings, agent: Agent, own: Mapping[str, Any]) -> Invalid | None:
    try:
        with_agent_settings(settings, agent, own)
    except Invalid as error:
        return error
    return None


# -- layers

TextSourceT = TypeVar("TextSourceT", bound=TextSource)
_MAX_NOTE_CHARS = 800


class AgentLayer(Struct, frozen=True):
    file: AgentFile = EMPTY_FILE
    mcp_file: AgentFile = EMPTY_FILE
    """The .mcp.json of the place, which applies to all agents."""
    prompt: str | None = None
    rules: tuple[SourceFile, ...] = ()
    references: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()


def merge_layers(name: str, layers: Sequence[AgentLayer]) -> Agent:
    """Merges layers into an agent; later layers override earlier ones."""
    notes: list[str] = []
    for layer in layers:
        parts: list[AgentFile | AgentLayer | SourceFile] = [layer.file, layer.mcp_file, layer]
        parts += (*layer.rules, *layer.references)
        notes += (note for part in parts for note in part.notes)
    values, origins, prompt = _merge_values(layers)
    rules = _merge_sources(Rule, [layer.rules for layer in layers], notes)
    references = _merge_sources(Reference, [layer.references for layer in layers], notes)
    servers: dict[str, ServerConfig] = {}
    for file in (*(layer.mcp_file for layer in layers), *(layer.file for layer in layers)):
        for table in file.servers:
            merge_server_table(servers, table, notes)
    for layer in layers:
        _apply_include(layer.file, {"rule": rules, "reference": references}, servers, notes)
    return Agent(
        name,
        values.get("description", ""),
        values.get("model", ""),
        prompt,
        {key: value for key, value in values.items() if key.startswith("context.")},
        _by_priority(rules.values()),
        _by_priority(references.values()),
        tuple(servers.values()),
        tuple(dict.fromkeys(map(_shorten, notes))),
        {key: value for key, value in values.items() if not key.startswith("context.")},
        origins,
    )


def _shorten(note: str) -> str:
    """Shorten a note that may quote a whole file to its beginning and end."""
    text = clean(note)[0]
    return text if len(text) <= _MAX_NOTE_CHARS else f"{text[: _MAX_NOTE_CHARS - 200]} … {text[-200:]}"


def _merge_values(layers: Sequence[AgentLayer]) -> tuple[dict[str, Any], dict[str, str], str | None]:
    """Values by dotted key, the file that sets each, and the system prompt, which two keys set."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    prompt = None
    for layer in layers:
        own = layer.file.values
        if any(key in own for key in PROMPT_KEYS):
            values = {key: value for key, value in values.items() if key not in PROMPT_KEYS}
            prompt = own.get("system_prompt", layer.prompt)
        values |= own
        origins |= dict.fromkeys(own, layer.file.path)
    return values, {key: path for key, path in origins.items() if key in values}, prompt


def _merge_sources(
    kind: type[TextSourceT], layers: Sequence[Sequence[SourceFile]], notes: list[str]
) -> dict[str, TextSourceT]:
    """Sources by case-insensitive name. The first of two in one folder wins."""
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


def _apply_include(
    file: AgentFile, texts: Mapping[str, dict[str, Any]], servers: dict[str, ServerConfig], notes: list[str]
) -> None:
    """Apply the include modes of an agent.toml; `texts` are rules and references by kind and key."""
    for key, include in file.include.items():
        id = parse_include_key(key, {BUILT_IN_SERVER, *servers})
        own, name = texts.get(id.kind, {}), name_key(id.name)
        is_built_in, wanted = id.server == BUILT_IN_SERVER, id.name
        if id.kind != "tool":
            known = [source.name for source in own.values()]
            if name in own:
                own[name] = replace(own[name], include=include)
                continue
        elif is_built_in and id.name and id.name not in BUILT_IN_TOOLS:
            known = [*BUILT_IN_TOOLS, *servers]
        elif is_built_in or id.server in servers:
            server = servers.get(id.server) or ServerConfig(id.server)
            tools = {**server.tools, id.name: replace(server.tool(id.name), include=include)} if id.name else None
            servers[id.server] = replace(server, include=include) if tools is None else replace(server, tools=tools)
            continue
        else:
            known, wanted = list(servers), id.server
        near = get_close_matches(wanted, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        notes.append(f"{file.path}: include: there is no {key}{hint}")
