"""ServerConfig: what is said about an MCP server: how it is reached, and what may be done with its tools. A value;
nothing is started here."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recto.sources.source import Approval, Include


@dataclass(frozen=True, slots=True)
class ToolConfig:
    """What is said about one tool; None leaves it to its server."""

    include: Include | None = None
    approval: Approval | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ServerConfig:
    name: str
    command: str = ""
    """A program that speaks MCP over stdin and stdout; or, in its place, a `url`."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """All that its environment holds besides PATH, HOME and the like."""
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    include: Include | None = None
    approval: Approval | None = None
    enabled: bool = True
    timeout_s: float | None = None
    """Longest run of one call; None leaves it to the settings."""
    tools: Mapping[str, ToolConfig] = field(default_factory=dict)
    origin: str = ""
    """The file that says so."""
    is_yours: bool = True
    """It is in the user's own home: what comes with a project is not started before the user trusts it."""

    def tool(self, name: str) -> ToolConfig:
        return self.tools.get(name, ToolConfig())

    def include_of(self, tool: str) -> Include:
        """The tool's own setting, then its server's, then `always`."""
        return self.tool(tool).include or self.include or "always"

    def approval_of(self, tool: str) -> Approval:
        return self.tool(tool).approval or self.approval or "ask"

    def to_json(self) -> dict[str, Any]:
        """What is said, without what says nothing; where it stands is no part of it."""
        out: dict[str, Any] = {}
        for name in ("command", "cwd", "url", "include", "approval", "timeout_s"):
            if value := getattr(self, name):
                out[name] = value
        if self.args:
            out["args"] = list(self.args)
        for name in ("env", "headers"):
            if value := getattr(self, name):
                out[name] = dict(value)
        if not self.enabled:
            out["enabled"] = False
        if self.tools:
            out["tools"] = {name: _tool_to_json(each) for name, each in self.tools.items()}
        return out

    @property
    def sha256(self) -> str:
        """Of all that is said but when its tools are included, which is no right: what the user trusts is this, and
        not what the name may mean tomorrow."""
        bare = replace(self, include=None, tools=_rights(self.tools))
        told = json.dumps([self.name, bare.to_json()], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(told.encode()).hexdigest()


def _rights(tools: Mapping[str, ToolConfig]) -> dict[str, ToolConfig]:
    bare = {name: replace(each, include=None) for name, each in tools.items()}
    return {name: each for name, each in bare.items() if each != ToolConfig()}


def _tool_to_json(config: ToolConfig) -> dict[str, Any]:
    out = {"include": config.include, "approval": config.approval, "enabled": None if config.enabled else False}
    return {name: value for name, value in out.items() if value is not None}
