"""Recto is the page the model reads; verso is everything kept behind it."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.desk import open_desk as open
    from recto.errors import RectoError
    from recto.talk import Reply, Talk

__all__ = ["Desk", "RectoError", "Reply", "Talk", "__version__", "open"]

_PLACES = {
    "open": ("recto.desk", "open_desk"),
    "Desk": ("recto.desk", "Desk"),
    "Reply": ("recto.talk", "Reply"),
    "Talk": ("recto.talk", "Talk"),
    "RectoError": ("recto.errors", "RectoError"),
}


def __getattr__(name: str) -> Any:
    # `import recto` must stay cheap: the command line shows its help without the store
    if name not in _PLACES:
        raise AttributeError(f"module recto has no attribute {name}")
    import importlib

    module, attribute = _PLACES[name]
    return getattr(importlib.import_module(module), attribute)
