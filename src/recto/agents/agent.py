"""Agent: a model, instructions, settings and the sources a conversation may use.

A plain value. `agents.py` reads it from files.

An agent's settings laid over the user's. Settings that conflict are ignored with a note, so that no agent file can
end a chat.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from recto.errors import Invalid
from recto.settings import settings as configuration
from recto.settings.settings import Settings
from recto.sources.server_config import ServerConfig
from recto.sources.source import DEFAULT_AGENT, Reference, Rule, SourceId


class Agent(Struct, frozen=True):
    name: str = DEFAULT_AGENT
    description: str = ""
    model: str = ""
    """As provider:model; empty uses the model of the settings."""
    system_prompt: str | None = None
    """None uses the system prompt of the settings."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """The agent's own settings by dotted key (`context.strategy`, …), already checked."""
    rules: tuple[Rule, ...] = ()
    """With their effective include modes, highest priority first; disabled ones are listed too."""
    references: tuple[Reference, ...] = ()
    servers: tuple[ServerConfig, ...] = ()
    """With their effective include modes; one named `recto` configures the built-in tools."""
    notes: tuple[str, ...] = ()
    """Problems found in its files, one sentence each. Everything else still works."""
    files: tuple[Path, ...] = ()
    """The agent.toml files that were read, the user's before the project's."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Which file sets a key: `model`, `system_prompt`, `context.strategy`, …"""

    @property
    def enabled_texts(self) -> Iterator[Rule | Reference]:
        """The enabled rules and references."""
        return (source for source in self._texts if source.enabled)

    def find(self, id: SourceId) -> Rule | Reference | None:
        return next((source for source in self._texts if source.id == id), None)

    @property
    def _texts(self) -> tuple[Rule | Reference, ...]:
        return (*self.rules, *self.references)

    def server(self, name: str) -> ServerConfig | None:
        return next((server for server in self.servers if server.name == name), None)


def apply_agent(settings: Settings, agent: Agent) -> Settings:
    """The settings with the agent's on top. Options still win; conflicting settings are ignored."""
    return with_agent_settings(settings, without_conflicts(settings, agent))


def with_conversation_settings(
    settings: Settings, chosen: Mapping[str, Any], name: str = "this conversation"
) -> tuple[Settings, tuple[str, ...]]:
    """The settings with those of a conversation on top. Options still win. What no longer fits the others is ignored,
    with a note: a conversation can always go on."""
    own = {key: value for key, value in chosen.items() if settings.origin(key) != "option"}
    try:
        return configuration.changed(settings, own, name) if own else settings, ()
    except Invalid as why:
        return settings, (f"the settings of {name} are ignored: {why.message}",)


def without_conflicts(settings: Settings, agent: Agent) -> Agent:
    """The agent without the settings that conflict with these or with each other, and a note for each."""
    own, notes = _own_settings(settings, agent), list[str]()
    while own and (error := _conflict(settings, agent, own)):
        key = _culprit(settings, agent, own, error)
        notes.append(_describe(settings, agent, own, key, error))
        own = _without(own, key)
    if not notes:
        return agent
    left = {key: value for key, value in agent.context.items() if key in own or settings.origin(key) == "option"}
    return replace(agent, context=left, notes=(*agent.notes, *notes))


def with_agent_settings(settings: Settings, agent: Agent) -> Settings:
    """The settings with the agent's on top. Options still win. Raises Invalid where they conflict."""
    return _merge(settings, agent, _own_settings(settings, agent))


def _own_settings(settings: Settings, agent: Agent) -> dict[str, Any]:
    return {key: value for key, value in agent.context.items() if settings.origin(key) != "option"}


def _merge(settings: Settings, agent: Agent, own: Mapping[str, Any]) -> Settings:
    return configuration.changed(settings, own, {key: _origin(agent, key) for key in own})


def _origin(agent: Agent, key: str) -> str:
    return agent.origins.get(key, f"agent {agent.name}")


def _conflict(settings: Settings, agent: Agent, own: Mapping[str, Any]) -> Invalid | None:
    try:
        _merge(settings, agent, own)
    except Invalid as error:
        return error
    return None


def _culprit(settings: Settings, agent: Agent, own: Mapping[str, Any], error: Invalid) -> str:
    """The setting of the agent whose removal resolves this error.

    Prefers the one that the error names; where that does not help, one that it conflicts with.
    """
    named = error.data.get("key")
    ordered = sorted(own, key=lambda key: key != named)
    for key in ordered:
        rest = _conflict(settings, agent, _without(own, key))
        if rest is None or rest.data.get("key") != named:
            return key
    return ordered[0]


def _describe(settings: Settings, agent: Agent, own: Mapping[str, Any], key: str, error: Invalid) -> str:
    named = error.data.get("key")
    if key == named or not isinstance(named, str):
        return f"{error.message}; it is ignored"
    value, origin = (
        (own[named], _origin(agent, named)) if named in own else (settings.get(named), settings.origin(named))
    )
    set_by = "the default" if origin == "default" else f"set by {origin}"
    return f"{_origin(agent, key)}: {key} = {own[key]!r} conflicts with {named} = {value!r} ({set_by}); it is ignored"


def _without(own: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in own.items() if name != key}
