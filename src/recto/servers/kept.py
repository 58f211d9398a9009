"""Kept lists: the tools that a server had when it was last asked, so that a turn which calls none
of them starts no server."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

from recto.servers.files import read_json, write_json
from recto.servers.listing import Listed, Listing
from recto.servers.reach import PROJECT
from recto.sources.server import ServerConfig

FOLDER, FORMAT = "servers", 1
YOUNG_S = 24 * 60 * 60.0
_REACHED_BY = ("command", "args", "env", "cwd", "url", "headers")


def key_of(config: ServerConfig, project: Path | None) -> str:
    """By how it is reached, not by what may be done with its tools; what comes with a project, or runs in it, is that
    project's own."""
    said = config.to_json()
    reached = {name: said[name] for name in _REACHED_BY if name in said}
    runs_there = (config.cwd and not config.cwd.startswith(("/", "~"))) or PROJECT in json.dumps(reached)
    whose = str(project.resolve()) if project and (runs_there or not config.is_yours) else ""
    return hashlib.sha256(json.dumps([config.name, whose, reached], sort_keys=True).encode()).hexdigest()


class Kept:
    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def read(self, key: str) -> Listing | None:
        """None where there is none, or it is older than a day."""
        read = read_json(self._folder / f"{key}.json")
        at = read.get("at")
        if read.get("format") != FORMAT or not isinstance(at, int | float) or not 0 <= time.time() - at < YOUNG_S:
            return None
        try:
            return Listing(tuple(map(_listed, read["tools"])), tuple(map(str, read["notes"])))
        except (KeyError, TypeError):
            return None

    def write(self, key: str, listing: Listing) -> None:
        tools = [tool.to_json() for tool in listing.tools]
        told = {"format": FORMAT, "at": time.time(), "tools": tools, "notes": list(listing.notes)}
        try:
            write_json(self._folder / f"{key}.json", told)
        except OSError:
            return  # a full disk costs the next start some time, not this turn

    def forget(self, key: str) -> None:
        try:
            (self._folder / f"{key}.json").unlink(missing_ok=True)
        except OSError:
            return


def _listed(raw: dict[str, Any]) -> Listed:
    if (
        not isinstance(raw["name"], str)
        or not isinstance(raw["description"], str)
        or not isinstance(raw["schema"], dict)
    ):
        raise TypeError
    return Listed(raw["name"], raw["description"], raw["schema"])
