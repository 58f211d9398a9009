"""Files about servers in the user's home: cached tool lists, and which servers of projects the user trusts."""

import hashlib
import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from recto.errors import RectoError
from recto.mcp.server_target import PROJECT_VARIABLE
from recto.mcp.tool_list import ListedTool, ToolList
from recto.sources.server_config import ServerConfig

SERVERS_FOLDER, LIST_FORMAT = "servers", 1
TRUST_FILE, TRUST_FORMAT = "trusted.json", 1
MAX_LIST_AGE_S = 24 * 60 * 60.0
_TARGET_FIELDS = ("command", "args", "env", "cwd", "url", "headers")


def make_private_folder(folder: Path) -> Path:
    """Creates a folder that only the user can open. A failure shows when the folder is used."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """Empty where the file is missing or unreadable: its content can be restored."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replaces the file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False, encoding="utf-8") as file:
        try:
            json.dump(value, file, ensure_ascii=False)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def cache_key(config: ServerConfig, project: Path | None) -> str:
    """Identifies a server by how it is reached, not by what its tools may do.

    A server that comes with a project, or runs in it, has a key of its own for each project.
    """
    data = config.to_json()
    target = {name: data[name] for name in _TARGET_FIELDS if name in data}
    is_relative = bool(config.cwd) and not config.cwd.startswith(("/", "~"))
    uses_project = is_relative or PROJECT_VARIABLE in json.dumps(target)
    scope = str(project.resolve()) if project and (uses_project or not config.is_yours) else ""
    return hashlib.sha256(json.dumps([config.name, scope, target], sort_keys=True).encode()).hexdigest()


class ToolListCache:
    def __init__(self, home: Path) -> None:
        self._folder = home / SERVERS_FOLDER

    def read(self, key: str) -> ToolList | None:
        """None where nothing is cached, or it is older than a day."""
        data = read_json(self._folder / f"{key}.json")
        at = data.get("at")
        is_fresh = isinstance(at, int | float) and 0 <= time.time() - at < MAX_LIST_AGE_S
        if data.get("format") != LIST_FORMAT or not is_fresh:
            return None
        try:
            return ToolList(tuple(map(_tool_from_json, data["tools"])), tuple(map(str, data["notes"])))
        except (KeyError, TypeError):
            return None

    def write(self, key: str, tool_list: ToolList) -> None:
        tools = [tool.to_json() for tool in tool_list.tools]
        data = {"format": LIST_FORMAT, "at": time.time(), "tools": tools, "notes": list(tool_list.notes)}
        try:
            write_json(self._folder / f"{key}.json", data)
        except OSError:
            return  # a full disk makes the next start slower; it must not fail this turn

    def forget(self, key: str) -> None:
        try:
            (self._folder / f"{key}.json").unlink(missing_ok=True)
        except OSError:
            return


def _tool_from_json(data: dict[str, Any]) -> ListedTool:
    name, description, schema = data["name"], data["description"], data["schema"]
    if not isinstance(name, str) or not isinstance(description, str) or not isinstance(schema, dict):
        raise TypeError
    return ListedTool(name, description, schema)


class Trust:
    """Which servers of which projects the user trusts, each by the hash of its config."""

    def __init__(self, home: Path) -> None:
        self._path = home / TRUST_FILE

    def is_trusted(self, config: ServerConfig, project: Path | None) -> bool:
        return config.is_yours or _servers_of(self._read(), project).get(config.name) == config.sha256

    def trust(self, config: ServerConfig, project: Path | None) -> None:
        projects = self._read()
        servers = {**_servers_of(projects, project), config.name: config.sha256}
        self._write(projects | {_project_key(project): servers})

    def distrust(self, name: str, project: Path | None) -> None:
        """Revokes the trust; does nothing where there was none."""
        projects = self._read()
        left = {server: sha for server, sha in _servers_of(projects, project).items() if server != name}
        others = {key: servers for key, servers in projects.items() if key != _project_key(project)}
        self._write(others | ({_project_key(project): left} if left else {}))

    def _read(self) -> dict[str, Any]:
        data = read_json(self._path)
        projects = data.get("projects")
        return projects if data.get("format") == TRUST_FORMAT and isinstance(projects, dict) else {}

    def _write(self, projects: dict[str, Any]) -> None:
        try:
            write_json(self._path, {"format": TRUST_FORMAT, "projects": projects})
        except OSError as why:
            raise RectoError(f"cannot write {self._path}: {why.strerror or why}", path=str(self._path)) from why


def _servers_of(projects: dict[str, Any], project: Path | None) -> dict[str, Any]:
    servers = projects.get(_project_key(project))
    return servers if isinstance(servers, dict) else {}


def _project_key(project: Path | None) -> str:
    return str(project.resolve()) if project else ""
