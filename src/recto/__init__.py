"""Recto is the page the model reads; verso is everything kept behind it."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from recto.desk import Desk, Reply, Talk
    from recto.desk import open_desk as open
    from recto.errors import RectoError

__all__ = ["Desk", "RectoError", "Reply", "Talk", "__version__", "open"]

_PLACES = {"open": ("recto.desk", "open_desk"), "RectoError": ("recto.errors", "RectoError")}


def __getattr__(name: str) -> Any:
    # `import recto` must stay cheap: the command line shows its help without the store
    if name not in __all__:
        raise AttributeError(f"module recto has no attribute {name}")
    import importlib

    module, attribute = _PLACES.get(name, ("recto.desk", name))
    return getattr(importlib.import_module(module), attribute)
