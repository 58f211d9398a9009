"""Reach: how a server is reached, as its config says with variables filled in: a command to start, or an address."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recto.errors import Invalid
from recto.sources.server import ServerConfig

PROJECT = "RECTO_PROJECT"
"""Stands for the project's folder in a config, where there is one."""
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HEADER = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Reach:
    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The same for two configs that differ only in what may be done with the tools: one process serves both."""
        parts = [self.name, self.command, self.args, dict(self.env), self.cwd, self.url, dict(self.headers)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def reach_of(config: ServerConfig, project: Path | None, environment: Mapping[str, str], neutral: Path) -> Reach:
    """`neutral` is a folder of ours. Raises Invalid, in one sentence, where it cannot be reached as it is said."""
    if bool(config.command) == bool(config.url):
        has = "both a command and a url" if config.url else "neither a command nor a url"
        raise Invalid(f"the MCP server {config.name} has {has}: give it one of them", name=config.name)
    filled = _Filled({**environment, PROJECT: str(project)} if project else environment)
    reach = Reach(
        name=config.name,
        command=_program(filled.path(config.command), config),
        args=tuple(map(filled.text, config.args)),
        env={name: filled.text(value) for name, value in config.env.items()},
        cwd=_folder(filled.path(config.cwd), config, project, neutral) if config.command else "",
        url=filled.text(config.url),
        headers={name: filled.text(value) for name, value in config.headers.items()},
    )
    if filled.missing:
        names = list(dict.fromkeys(filled.missing))
        are = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set in the environment"
        raise Invalid(f"the MCP server {config.name} was not started: {are}", names=names)
    if reach.url and not reach.url.startswith(("http://", "https://")):
        raise Invalid(f"the url of the MCP server {config.name} must begin with http:// or https://", name=config.name)
    for name, value in reach.headers.items():
        if not _HEADER.fullmatch(name + value):
            raise Invalid(f"the header {name!r} of the MCP server {config.name} has a character that none may hold")
    return reach


def _folder(cwd: str, config: ServerConfig, project: Path | None, neutral: Path) -> str:
    """A relative one is the project's. Many programs run what lies where they are started (`npx` looks for
    `node_modules`, `python -m` for modules): so what is the user's own is not started in a folder that may have been
    copied from anywhere, unless the user says so."""
    if config.is_yours and not cwd:
        return str(neutral.absolute())
    return str(project / cwd) if project else cwd


def _program(command: str, config: ServerConfig) -> str:
    """Of the user's own, a relative one lies beside the file that says so: never in whatever folder one is in."""
    if not config.is_yours or "/" not in command or command.startswith("/"):
        return command
    if not config.origin:
        raise Invalid(f"the MCP server {config.name} has a relative command, {command}: give the whole path")
    return str(Path(config.origin).absolute().parent / command)


class _Filled:
    """Texts with `${NAME}`, `${env:NAME}` and `${NAME:-default}` filled in; remembers what was missing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.missing: list[str] = []

    def text(self, text: str) -> str:
        return _VARIABLE.sub(self._value, text)

    def path(self, text: str) -> str:
        filled = self.text(text)
        home = self._environment.get("HOME") or str(Path.home())
        return home + filled[1:] if filled == "~" or filled.startswith("~/") else filled

    def _value(self, found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        # as a shell has it: an empty value counts as none where there is a default
        value = self._environment.get(name)
        if default is not None:
            return value or default
        if value is None:
            self.missing.append(name)
            return ""
        return value
