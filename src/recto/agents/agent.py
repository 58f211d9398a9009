"""Agent: who a conversation belongs to: a model, instructions, settings of its own, and the sources it may use.

A value, as its files say; `agents.py` reads them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recto.sources.server import ServerConfig
from recto.sources.source import Reference, Rule, SourceId

DEFAULT = "default"
"""The agent that is there without any file."""


@dataclass(frozen=True, slots=True)
class MemorySwitches:
    facts: bool = True
    """What was remembered may be told to this agent, and it may remember."""
    files: bool = True
    """Its memory files are read."""


@dataclass(frozen=True, slots=True)
class Agent:
    name: str = DEFAULT
    description: str = ""
    model: str = ""
    """Who answers, as provider:model; empty leaves it to the settings."""
    system_prompt: str | None = None
    """What the model is told first; None leaves it to the settings."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """Settings of its own by dotted key: `context.strategy`, …; checked."""
    memory: MemorySwitches = MemorySwitches()
    rules: tuple[Rule, ...] = ()
    """With the include modes in force, the highest priority first; those that are not enabled too."""
    references: tuple[Reference, ...] = ()
    servers: tuple[ServerConfig, ...] = ()
    """With the include modes in force; one named `recto` says what to do with the tools that are built in."""
    notes: tuple[str, ...] = ()
    """What is wrong with its files, a sentence each; the rest of it works."""
    files: tuple[Path, ...] = ()
    """The agent.toml files that were read, the user's before the project's."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Which of them says it, by dotted key: `model`, `system_prompt`, `context.strategy`, `memory.facts`, …"""

    @property
    def written(self) -> Iterator[Rule | Reference]:
        """What can be offered of rules and references."""
        return (each for each in self._all if each.enabled)

    def find(self, id: SourceId) -> Rule | Reference | None:
        return next((each for each in self._all if each.id == id), None)

    @property
    def _all(self) -> tuple[Rule | Reference, ...]:
        return (*self.rules, *self.references)

    def server(self, name: str) -> ServerConfig | None:
        return next((each for each in self.servers if each.name == name), None)
