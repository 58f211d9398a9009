"""ServerTarget: how a server is reached, with the variables of its config filled in: a command to run, or a URL."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from recto.errors import Invalid
from recto.sources.server_config import ServerConfig

PROJECT_VARIABLE = "RECTO_PROJECT"
"""A variable for the project's folder, where there is a project."""
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HEADER = re.compile(r"[\x20-\x7e]*")


class ServerTarget(Struct, frozen=True):
    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Equal for configs that differ only in what the tools may do: one process serves both."""
        parts = [self.name, self.command, self.args, dict(self.env), self.cwd, self.url, dict(self.headers)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def server_target(
    config: ServerConfig, project: Path | None, environment: Mapping[str, str], neutral_folder: Path
) -> ServerTarget:
    """Fills in the variables of a config. `neutral_folder` is a folder of Recto. Raises Invalid in one sentence."""
    if bool(config.command) == bool(config.url):
        has = "both a command and a url" if config.url else "neither a command nor a url"
        raise Invalid(f"the MCP server {config.name} has {has}: set one of them", name=config.name)
    variables = _Variables({**environment, PROJECT_VARIABLE: str(project)} if project else environment)
    target = ServerTarget(
        name=config.name,
        command=_program(variables.fill_path(config.command), config),
        args=tuple(map(variables.fill, config.args)),
        env={name: variables.fill(value) for name, value in config.env.items()},
        cwd=_folder(variables.fill_path(config.cwd), config, project, neutral_folder) if config.command else "",
        url=variables.fill(config.url),
        headers={name: variables.fill(value) for name, value in config.headers.items()},
    )
    if variables.missing:
        names = list(dict.fromkeys(variables.missing))
        are = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set in the environment"
        raise Invalid(f"the MCP server {config.name} was not started: {are}", names=names)
    _check_http(target)
    return target


def _check_http(target: ServerTarget) -> None:
    if target.url and not target.url.startswith(("http://", "https://")):
        raise Invalid(f"the url of the MCP server {target.name} must begin with http:// or https://", name=target.name)
    for name, value in target.headers.items():
        if not _HEADER.fullmatch(name + value):
            raise Invalid(f"the header {name!r} of the MCP server {target.name} has a character that is not allowed")


def _folder(cwd: str, config: ServerConfig, project: Path | None, neutral_folder: Path) -> str:
    """The folder to start in. A relative one is relative to the project.

    Many programs run code from their working folder (`npx` looks for `node_modules`, `python -m` for modules). So the
    user's own servers do not start in a project, which may be copied from anywhere, unless the config says so.
    """
    if config.is_yours and not cwd:
        return str(neutral_folder.absolute())
    return str(project / cwd) if project else cwd


def _program(command: str, config: ServerConfig) -> str:
    """A relative command of the user is relative to the file that sets it, never to the current folder."""
    if not config.is_yours or "/" not in command or command.startswith("/"):
        return command
    if not config.origin:
        raise Invalid(f"the MCP server {config.name} has a relative command, {command}: use an absolute path")
    return str(Path(config.origin).absolute().parent / command)


class _Variables:
    """Fills in `${NAME}`, `${env:NAME}` and `${NAME:-default}`, and collects the names that are not set."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.missing: list[str] = []

    def fill(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def fill_path(self, text: str) -> str:
        path = self.fill(text)
        home = self._environment.get("HOME") or str(Path.home())
        return home + path[1:] if path == "~" or path.startswith("~/") else path

    def _value(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        # as in a shell, a default also replaces an empty value
        value = self._environment.get(name)
        if default is not None:
            return value or default
        if value is None:
            self.missing.append(name)
            return ""
        return value
