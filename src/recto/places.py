"""Where things lie: the home with the store, and the project one works in. Every command asks: it imports nothing."""

import os
from collections.abc import Mapping
from pathlib import Path

STORE_FILE = "recto.db"
SEARCH_FILE = "search.db"
"""The index in which things are found; can be thrown away."""


def find_home(environment: Mapping[str, str] = os.environ) -> Path:
    return Path(environment.get("RECTO_HOME") or "~/.recto").expanduser()


def find_project(start: Path) -> Path | None:
    """The nearest folder upwards that holds a `.recto` folder; the home itself is no project."""
    for folder in (start, *start.parents):
        if (folder / ".recto").is_dir() and folder != Path.home():
            return folder
    return None
