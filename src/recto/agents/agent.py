"""Agent: a model, instructions, settings and the sources a conversation may use.

A plain value. `agents.py` reads it from files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recto.sources.server_config import ServerConfig
from recto.sources.source import DEFAULT_AGENT, Reference, Rule, SourceId


@dataclass(frozen=True, slots=True)
class MemorySwitches:
    facts: bool = True
    """The agent sees remembered facts and may add to them."""
    files: bool = True
    """The agent's memory files are read."""


@dataclass(frozen=True, slots=True)
class Agent:
    name: str = DEFAULT_AGENT
    description: str = ""
    model: str = ""
    """As provider:model; empty uses the model of the settings."""
    system_prompt: str | None = None
    """None uses the system prompt of the settings."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """The agent's own settings by dotted key (`context.strategy`, …), already checked."""
    memory: MemorySwitches = MemorySwitches()
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
    """Which file sets a key: `model`, `system_prompt`, `context.strategy`, `memory.facts`, …"""

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
