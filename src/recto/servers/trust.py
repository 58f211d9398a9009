"""Trust: which servers that come with a project the user lets run: each by the hash of all that is said about it, so
that a server which changes asks again."""

from pathlib import Path
from typing import Any

from recto.errors import RectoError
from recto.servers.files import read_json, write_json
from recto.sources.server import ServerConfig

FILE, FORMAT = "trusted.json", 1


class Trust:
    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def is_trusted(self, config: ServerConfig, project: Path | None) -> bool:
        return config.is_yours or self._of(self._read(), project).get(config.name) == config.sha256

    def trust(self, config: ServerConfig, project: Path | None) -> None:
        projects = self._read()
        self._write(projects | {_key(project): {**self._of(projects, project), config.name: config.sha256}})

    def distrust(self, name: str, project: Path | None) -> None:
        """Takes the trust back; nothing where there was none."""
        projects = self._read()
        left = {each: sha for each, sha in self._of(projects, project).items() if each != name}
        others = {key: names for key, names in projects.items() if key != _key(project)}
        self._write(others | ({_key(project): left} if left else {}))

    def _of(self, projects: dict[str, Any], project: Path | None) -> dict[str, Any]:
        names = projects.get(_key(project))
        return names if isinstance(names, dict) else {}

    def _read(self) -> dict[str, Any]:
        read = read_json(self._path)
        projects = read.get("projects")
        return projects if read.get("format") == FORMAT and isinstance(projects, dict) else {}

    def _write(self, projects: dict[str, Any]) -> None:
        try:
            write_json(self._path, {"format": FORMAT, "projects": projects})
        except OSError as why:
            raise RectoError(f"cannot write {self._path}: {why.strerror or why}", path=str(self._path)) from why


def _key(project: Path | None) -> str:
    return str(project.resolve()) if project else ""
