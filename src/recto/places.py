"""Where things lie: the home with the store, and the project one works in. Every command asks: it imports nothing."""

import os
from collections.abc import Mapping
from pathlib import Path

STORE_FILE = "recto.db"
SEARCH_FILE = "search.db"
"""The index in which things are found; can be thrown away."""
SOURCES_FILE = "sources.db"
"""What rules, references and tools mean, as vectors; likewise."""
CATALOG_FILE = "catalog.db"
"""What a vault holds; can be thrown away too."""
GISTS_FILE = "gists.db"
"""What its notes are about, in a sentence each; likewise."""


def find_home(environment: Mapping[str, str] = os.environ) -> Path:
    return Path(environment.get("RECTO_HOME") or "~/.recto").expanduser()


def find_project(start: Path, home: Path | None = None) -> Path | None:
    """The nearest folder upwards that holds a `.recto` folder or an `.mcp.json`. The user's own folder is no project,
    nor is Recto's home, whose `.mcp.json` is the user's."""
    not_projects = [os.path.realpath(each) for each in (Path.home(), home or find_home())]
    for folder in (start, *start.parents):
        is_project = os.path.isdir(folder / ".recto") or os.path.isfile(folder / ".mcp.json")
        if is_project and os.path.realpath(folder) not in not_projects:
            return folder
    return None


def vault_folder(home: Path, root: Path) -> Path:
    """Where what is known of a vault is kept, outside of it: one folder for each."""
    import hashlib  # two milliseconds that most commands do not need
    import re

    real = root.expanduser().resolve()
    name = re.sub(r"[^a-z0-9]+", "-", real.name.lower()).strip("-")[:40] or "vault"
    return home / "vaults" / f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"
