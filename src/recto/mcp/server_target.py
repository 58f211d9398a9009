"""ServerTarget: the command or URL of a server, with the variables of its config filled in."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import asdict

from recto.errors import Invalid
from recto.sources.server_config import ServerConfig

PROJECT_VARIABLE = "RECTO_PROJECT"
# `${NAME}`, `${env:NAME}` and `${NAME:-default}`
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


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
        """A key without tool permissions: configs that differ only in these share a process and a cached list."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def server_target(
    config: ServerConfig, project: Path | None, environment: Mapping[str, str], neutral_folder: Path
) -> ServerTarget:
    """Fill in the variables of a config. `neutral_folder` is a folder of Recto. Raises Invalid."""
    if bool(config.command) == bool(config.url):
        has = "both a command and a url" if config.url else "neither a command nor a url"
        raise Invalid(f"the MCP server {config.name} has {has}: set one of them", name=config.name)
    known = {**environment, PROJECT_VARIABLE: str(project)} if project else environment
    missing: dict[str, None] = {}

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if default is not None:  # as in a shell, a default also replaces an empty value
            return known.get(name) or default
        if name not in known:
            missing[name] = None
        return known.get(name, "")

    def fill(text: str) -> str:
        return _VARIABLE.sub(value, text)

    def fill_path(text: str) -> str:
        path = fill(text)
        is_in_home = path == "~" or path.startswith("~/")
        return (known.get("HOME") or str(Path.home())) + path[1:] if is_in_home else path

    command, cwd = fill_path(config.command), ""
    if config.is_yours and "/" in command and not command.startswith("/"):
        # relative to the file that sets it, never to the current folder
        if not config.origin:
            raise Invalid(f"the MCP server {config.name} has a relative command, {command}: use an absolute path")
        command = str(Path(config.origin).absolute().parent / command)
    if config.command:
        # Many programs run code from their working folder (`npx` looks for `node_modules`, `python -m` for modules).
        # So the user's own servers start in a project, which may be copied from anywhere, only if the config says so.
        cwd = fill_path(config.cwd)
        is_neutral = config.is_yours and not cwd
        cwd = str(neutral_folder.absolute()) if is_neutral else str(project / cwd) if project else cwd
    target = ServerTarget(
        name=config.name,
        command=command,
        args=tuple(map(fill, config.args)),
        env={name: fill(text) for name, text in config.env.items()},
        cwd=cwd,
        url=fill(config.url),
        headers={name: fill(text) for name, text in config.headers.items()},
    )
    if missing:
        are = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set in the environment"
        raise Invalid(f"the MCP server {config.name} was not started: {are}", names=list(missing))
    if target.url and not target.url.startswith(("http://", "https://")):
        raise Invalid(f"the url of the MCP server {target.name} must begin with http:// or https://", name=target.name)
    for name, text in target.headers.items():
        if not (name + text).isascii() or not (name + text).isprintable():
            raise Invalid(f"the header {name!r} of the MCP server {target.name} has a character that is not allowed")
    return target
