"""Embedder: turns texts into vectors of their meaning. `normalize_vectors` checks every vector before it is used.

Embedders by name, each imported only when it is opened.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from recto.errors import BrokenPlugin, Invalid, NoVectors
from recto.plugins import find_plugin, is_plugin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


NONE = "none"
LOCAL = "local"
MINILM = "minilm"
MULTILINGUAL = "multilingual"
INSTALL_EXTRA = "`pip install 'recto-context[meaning]'`"


@dataclass(frozen=True, slots=True)
class EmbeddingAddress:
    """The root of a provider's OpenAI-compatible endpoint, its key, and the variable that the key comes from."""

    url: str
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None


class Embedder(Protocol):
    """Thread-safe. Loads whatever it needs on first use."""

    @property
    def name(self) -> str:
        """The name as configured."""

    @property
    def key(self) -> str:
        """Name and version. Vectors of different keys are never compared."""

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """One row per text, of length 1, or all zeros for a text without content. Raises NoVectors on failure."""

    def close(self) -> None: ...


@runtime_checkable
class KnowsLanguages(Protocol):
    """An embedder that can tell which languages it knows."""

    def familiarity(self, text: str) -> float:
        """From 0, for a text in an unknown language or script, to 1. Raises NoVectors on failure."""


def familiarity(embedder: Embedder, text: str) -> float:
    """How far the similarity of a text counts. Embedders that do not tell are taken to know every language."""
    return embedder.familiarity(text) if isinstance(embedder, KnowsLanguages) else 1.0


def normalize_vectors(vectors: object, texts: Sequence[str]) -> "Vectors":
    """Scales the vectors to length 1, as float32; zeros stay. Raises NoVectors if they are malformed."""
    np = load_numpy()
    try:
        rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError) as why:
        raise NoVectors(
            "The embedder returned something that is not a vector of numbers, or vectors of different lengths."
        ) from why
    if rows.ndim != 2 or len(rows) != len(texts):
        raise NoVectors(
            f"The embedder returned {_describe_shape(rows.shape)} for {len(texts)} texts instead of one vector each."
        )
    if not np.isfinite(rows).all():
        bad = int(np.argmin(np.isfinite(rows).all(1)))
        raise NoVectors(f"The embedder returned NaN or infinity for text {bad + 1}.")
    # dividing by the largest entry first keeps the squares in range
    largest = np.abs(rows).max(1, keepdims=True, initial=0)
    rows = rows / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    normalized: Vectors = (rows / np.where(length > 0, length, 1)).astype(np.float32)
    return normalized


def load_numpy() -> Any:
    """Imports numpy. Raises NoVectors with the command that installs it."""
    try:
        import numpy  # takes a tenth of a second
    except ImportError as why:
        raise NoVectors(f"Vectors need numpy, which cannot be loaded ({why}); run {INSTALL_EXTRA}.") from why
    return numpy


def _describe_shape(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} vectors" if len(shape) == 2 else "something else"


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
    if name == LOCAL:
        return _open_local()
    if name == MINILM:
        from recto.search.minilm import MiniLM  # only this embedder needs it

        return MiniLM()
    if name == MULTILINGUAL:
        from recto.search.multilingual import MultilingualEncoder

        return MultilingualEncoder()
    if address is None and is_plugin("embedder", name):
        return _open_plugin(name, home)
    if address is None:
        raise Invalid(
            f"{name!r} is not an embedder; use {LOCAL}, {MULTILINGUAL}, {MINILM}, {NONE} or provider:model.", name=name
        )
    from recto.search.embedding_endpoint import EmbeddingEndpoint  # only a server needs it

    return EmbeddingEndpoint(name, address)


def _open_local() -> Embedder:
    """Both embedders that run here, or the one that is installed."""
    from recto.search.local_embedder import LocalEmbedder  # only these need them
    from recto.search.minilm import MiniLM
    from recto.search.multilingual import MultilingualEncoder

    installed: list[Embedder] = [each() for each in (MultilingualEncoder, MiniLM) if each.missing() is None]
    if len(installed) == 2:
        return LocalEmbedder(*installed)
    return installed[0] if installed else MultilingualEncoder()


def weights_of(name: str) -> tuple[str, ...]:
    """The models that an embedder runs here."""
    if name == LOCAL:
        return (MULTILINGUAL, MINILM)
    return (name,) if name in (MULTILINGUAL, MINILM) else ()


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


def _open_plugin(name: str, home: Path) -> Embedder:
    """What the entry point names is called with the home."""
    try:
        return find_plugin("embedder", name).use(lambda maker: PluginEmbedder(name, maker(home)))
    except BrokenPlugin as why:
        return BrokenEmbedder(name, why.message)
