"""Embedders by name: those that run here, alone or together, those of a server, and those of plugins. Each is imported
only when it is opened.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recto.errors import BrokenPlugin, Invalid, NoVectors
from recto.plugins import find_plugin, is_plugin
from recto.search.embedder import LOCAL, MINILM, MULTILINGUAL, NONE, Embedder, familiarity, normalize_vectors
from recto.search.embedding_endpoint import EmbeddingAddress, EmbeddingEndpoint
from recto.search.ranking import MULTILINGUAL_STRETCH

if TYPE_CHECKING:
    from recto.search.embedder import Vectors


class SharedEmbedder:
    """Opens an embedder when it is first needed, once for all who ask: its weights are large."""

    def __init__(self, name: str, home: Path, find_address: Callable[[str], EmbeddingAddress]) -> None:
        self._name, self._home, self._find_address = name, home, find_address
        self._opened: Embedder | None = None
        self._opening = threading.Lock()

    def __call__(self) -> Embedder | None:
        with self._opening:
            if self._opened is None:
                address = self._find_address(self._name) if ":" in self._name else None
                self._opened = open_embedder(self._name, home=self._home, address=address)
            return self._opened


def open_embedder(name: str, *, home: Path, address: EmbeddingAddress | None = None) -> Embedder | None:
    """Opens an embedder by name; None for `none`. A `provider:model` needs an `address`."""
    if name == NONE:
        return None
    if weights_of(name):
        return _open_local(name)
    if address is not None:
        return EmbeddingEndpoint(name, address)
    if not is_plugin("embedder", name):
        raise Invalid(
            f"{name!r} is not an embedder; use {LOCAL}, {MULTILINGUAL}, {MINILM}, {NONE} or provider:model.", name=name
        )
    try:  # what the entry point names is called with the home
        return find_plugin("embedder", name).use(lambda maker: PluginEmbedder(name, maker(home)))
    except BrokenPlugin as why:
        return BrokenEmbedder(name, why.message)


def _open_local(name: str) -> Embedder:
    """One of the embedders that run here; for `local` both, or the one that is installed."""
    from recto.search.onnx_embedder import MiniLM, MultilingualEncoder  # only these need it

    if name != LOCAL:
        return MiniLM() if name == MINILM else MultilingualEncoder()
    installed: list[Embedder] = [each() for each in (MultilingualEncoder, MiniLM) if each.missing() is None]
    if len(installed) == 2:
        return LocalEmbedder(*installed)
    return installed[0] if installed else MultilingualEncoder()


def weights_of(name: str) -> tuple[str, ...]:
    """The models that an embedder runs here."""
    if name == LOCAL:
        return (MULTILINGUAL, MINILM)
    return (name,) if name in (MULTILINGUAL, MINILM) else ()


class LocalEmbedder:
    """Both embedders that run here as one. The first knows many languages, the second English better.

    An index of passages keeps their vectors apart. For short texts, which are few, each vector holds both.
    """

    name = LOCAL

    def __init__(self, first: Embedder, second: Embedder) -> None:
        self.parts = first, second
        self.key = f"{first.key}+{second.key}"

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """The dot product of two rows is the mean of both similarities on the scale of MiniLM, and that of the first
        alone where the second does not know the language."""
        import numpy as np  # takes a tenth of a second

        first, second = self.parts
        known = np.array([[familiarity(second, text)] for text in texts], np.float32).reshape(-1, 1)
        wide = first.embed(texts) * np.sqrt(MULTILINGUAL_STRETCH / (1 + known))
        joined: Vectors = np.hstack([wide, second.embed(texts) * np.sqrt(known / (1 + known))])
        return joined

    def close(self) -> None:
        for each in self.parts:
            each.close()


class PluginEmbedder:
    """An embedder of another package. Its vectors are checked, and what it raises is NoVectors."""

    def __init__(self, name: str, embedder: Any) -> None:
        self.name, self.key, self._embedder = name, f"{name}/{embedder.key}", embedder

    def embed(self, texts: Sequence[str]) -> "Vectors":
        try:
            return normalize_vectors(self._embedder.embed(texts), texts)
        except NoVectors:
            raise
        except Exception as why:
            raise NoVectors(f"The embedder {self.name} failed ({type(why).__name__}: {why}).") from why

    def close(self) -> None:
        self._embedder.close()


class BrokenEmbedder:
    """Stands for a plugin that cannot be used, and says why."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self.key, self._why = name, f"{name}/broken", why

    def embed(self, texts: Sequence[str]) -> "Vectors":
        raise NoVectors(self._why)

    def close(self) -> None:
        return None
