"""ServerConfig: how to reach an MCP server, and what its tools may do. A plain value: it starts nothing.

Hides likely keys, tokens and passwords in the command lines and addresses of servers.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from recto.sources.source import Approval, Include
from recto.sources.tool_definition import ServerIdentity

TARGET_FIELDS = ("command", "args", "env", "cwd", "url", "headers")


class ToolConfig(Struct, frozen=True, omit_defaults=True):
    """The settings of one tool; None uses those of its server."""

    include: Include | None = None
    approval: Approval | None = None
    enabled: bool = True


class ServerConfig(Struct, frozen=True):
    name: str
    command: str = ""
    """A program that speaks MCP over stdin and stdout. A server has either this or a `url`."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Its environment, in addition to PATH, HOME and the like."""
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    include: Include | None = None
    approval: Approval | None = None
    enabled: bool = True
    timeout_s: float | None = None
    """The timeout of a call; None uses the setting."""
    tools: Mapping[str, ToolConfig] = field(default_factory=dict)
    origin: str = ""
    is_yours: bool = True
    """True if it is defined in the user's home. A project's server does not start before the user trusts it."""

    def tool(self, name: str) -> ToolConfig:
        return self.tools.get(name, ToolConfig())

    def include_of(self, tool: str) -> Include:
        """The tool's own setting, then its server's, then `always`."""
        return self.tool(tool).include or self.include or "always"

    def approval_of(self, tool: str) -> Approval:
        return self.tool(tool).approval or self.approval or "ask"

    @property
    def runs(self) -> str:
        """The command line or address, with the names of variables and headers. Likely keys are hidden."""
        url, *args = without_secrets((self.url, *self.args))
        if self.url:
            return f"{url} with the headers {', '.join(self.headers)}" if self.headers else url
        line = [*(f"{name}={HIDDEN}" for name in self.env), shlex.join((self.command, *args))]
        return " ".join([*line, "in", self.cwd] if self.cwd else line)

    def identity(self, project: Path | None) -> ServerIdentity:
        """The server's identity. Equal entries in two projects are different servers."""
        place = self.origin if self.is_yours or project is None else str(project.resolve())
        data = self.to_json()
        reached = ["" if self.is_yours else place, {name: data[name] for name in TARGET_FIELDS if name in data}]
        digest = hashlib.sha256(json.dumps(reached, sort_keys=True).encode()).hexdigest()
        return ServerIdentity(place, self.runs, digest)

    def to_json(self) -> dict[str, Any]:
        """The settings that are not empty, without the origin."""
        names = ("command", "cwd", "url", "include", "approval", "timeout_s", "args", "env", "headers")
        values: dict[str, Any] = {name: value for name in names if (value := getattr(self, name))}
        values |= ({} if self.enabled else {"enabled": False}) | ({"tools": self.tools} if self.tools else {})
        said: dict[str, Any] = to_builtins(values)
        return said

    @property
    def sha256(self) -> str:
        """The hash that the user trusts. It excludes include modes, which grant no rights."""
        tools = {name: replace(tool, include=None) for name, tool in self.tools.items()}
        permissions = {name: tool for name, tool in tools.items() if tool != ToolConfig()}
        bare = replace(self, include=None, tools=permissions)
        text = json.dumps([self.name, bare.to_json()], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


HIDDEN = "…"
_SECRET = r"(?>[\w-]*?(?:auth|key|password|secret|token))[\w-]*+"
_SECRET_OPTION = re.compile(rf"-{{1,2}}{_SECRET}", re.IGNORECASE)
_SECRET_VALUE = re.compile(rf"((?<![\w-]){_SECRET}\s*+[:=]\s*).+", re.IGNORECASE | re.DOTALL)
# The second form matches a part without a value.
_QUERY = re.compile(r"([?&][^=&#]++=)[^&#]+|[?&][^=&#]++")
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


def without_secrets(args: Sequence[str]) -> list[str]:
    """Arguments with keys and tokens hidden: `--token X`, `API_KEY=X`, `Authorization: Bearer X`."""
    shown, is_next = [], False
    for arg in args:
        shown.append(HIDDEN if is_next else _SECRET_VALUE.sub(rf"\1{HIDDEN}", without_secret_address(arg)))
        is_next = bool(_SECRET_OPTION.fullmatch(arg))
    return shown


def without_secret_address(url: str) -> str:
    """A URL without its password and without the values of its query."""
    if "://" not in url:
        return url
    return _QUERY.sub(lambda found: f"{found[1]}{HIDDEN}" if found[1] else found[0], _PASSWORD.sub(f"{HIDDEN}@", url))
