"""Embedder: turns texts into vectors of their meaning. `normalize_vectors` checks all vectors before use.

Embedders run locally (alone or as a pair), on a server, or come from plugins. Each is imported only when it is opened.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from recto.errors import BrokenPlugin, Invalid, NoVectors, RectoError
from recto.plugins import find_plugin, is_plugin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recto.search.embedding_endpoint import EmbeddingAddress

    Vectors = NDArray[np.float32]

log = logging.getLogger(__name__)

NONE = "none"
LOCAL = "local"
MINILM = "minilm"
MULTILINGUAL = "multilingual"
RETRY_AFTER_S = 60.0
# Scales the cosines of the multilingual encoder to those of MiniLM, for which weights and thresholds are set.
MULTILINGUAL_STRETCH = 1.3


class Embedder(Protocol):
    """Thread-safe; loads what it needs on first use. An embedder with limited languages also has `familiarity`."""

    @property
    def name(self) -> str:
        """The name as configured."""

    @property
    def key(self) -> str:
        """Name and version. Vectors with different keys are never compared."""

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return one row per text, of length 1, or all zeros for an empty text. Raises NoVectors on failure."""

    def close(self) -> None: ...


def familiarity(embedder: Embedder, text: str) -> float:
    """How much the similarity of a text counts, from 0 for an unknown language or script to 1. Embedders without
    `familiarity` are assumed to know every language. Raises NoVectors on failure."""
    known: Callable[[str], float] | None = getattr(embedder, "familiarity", None)
    return known(text) if known else 1.0


def language_factor(embedder: Embedder, question: str, sample: str) -> float:
    """How much the similarity of a question counts for texts in the language of a sample."""
    if not isinstance(embedder, LocalEmbedder):
        return familiarity(embedder, sample)
    # where the second embedder knows only one of the languages, its part of both vectors is missing
    known, told = (familiarity(embedder.parts[1], each) for each in (question, sample))
    return float(((1 + known) * (1 + told)) ** 0.5 / (1 + known * told))


class EmbedderPause:
    """Blocks calls to an embedder for a minute after a failure, so that searches can say why."""

    def __init__(self) -> None:
        self._until, self._problem = 0.0, ""

    @property
    def problem(self) -> str:
        """Empty once the embedder may be called again."""
        return self._problem if time.monotonic() < self._until else ""

    def begin(self, name: str, why: Exception) -> str:
        if isinstance(why, RectoError):
            problem = why.message
        else:
            log.error("%s failed", name, exc_info=why)
            problem = f"{name} failed ({type(why).__name__}: {why})"
        self._until, self._problem = time.monotonic() + RETRY_AFTER_S, problem.rstrip(".")
        return self._problem

    def end(self) -> None:
        self._until = 0.0


def normalize_vectors(vectors: object, texts: Sequence[str]) -> "Vectors":
    """Scale the vectors to length 1, as float32; zeros stay. Raises NoVectors if they are malformed."""
    import numpy as np  # slow import

    try:
        rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError) as why:
        raise NoVectors(
            "The embedder returned something that is not a vector of numbers, or vectors of different lengths."
        ) from why
    if rows.ndim != 2 or len(rows) != len(texts):
        returned = f"{len(rows)} vectors" if rows.ndim == 2 else "something else"
        raise NoVectors(f"The embedder returned {returned} for {len(texts)} texts instead of one vector each.")
    if not np.isfinite(rows).all():
        bad = int(np.argmin(np.isfinite(rows).all(1)))
        raise NoVectors(f"The embedder returned NaN or infinity for text {bad + 1}.")
    # divide by the largest entry first to keep the squares in range
    largest = np.abs(rows).max(1, keepdims=True, initial=0)
    rows = rows / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    normalized: Vectors = (rows / np.where(length > 0, length, 1)).astype(np.float32)
    return normalized


# -- by name


class SharedEmbedder:
    """Opens an embedder on first use and shares it, because its weights are large."""

    def __init__(self, name: str, home: Path, find_address: Callable[[str], "EmbeddingAddress"]) -> None:
        self._name, self._home, self._find_address = name, home, find_address
        self._opened: Embedder | None = None
        self._opening = threading.Lock()

    def __call__(self) -> Embedder | None:
        with self._opening:
            if self._opened is None:
                address = self._find_address(self._name) if ":" in self._name else None
                self._opened = open_embedder(self._name, home=self._home, address=address)
            return self._opened


def open_embedder(name: str, *, home: Path, address: "EmbeddingAddress | None" = None) -> Embedder | None:
    """None for `none`. A `provider:model` needs an `address`."""
    if name == NONE:
        return None
    if weights_of(name):
        return _open_local(name)
    if address is not None:
        from recto.search.embedding_endpoint import EmbeddingEndpoint  # only needed for a server

        return EmbeddingEndpoint(name, address)
    if not is_plugin("embedder", name):
        raise Invalid(
            f"{name!r} is not an embedder; use {LOCAL}, {MULTILINGUAL}, {MINILM}, {NONE} or provider:model.", name=name
        )
    try:  # the entry point is called with the home
        return find_plugin("embedder", name).use(lambda maker: PluginEmbedder(name, maker(home)))
    except BrokenPlugin as why:
        return PluginEmbedder(name, None, why.message)


def _open_local(name: str) -> Embedder:
    """`local` means both, or whichever is installed."""
    from recto.search.onnx_embedder import MiniLM, MultilingualEncoder  # only these need it

    if name != LOCAL:
        return MiniLM() if name == MINILM else MultilingualEncoder()
    installed: list[Embedder] = [each() for each in (MultilingualEncoder, MiniLM) if each.missing() is None]
    if len(installed) == 2:
        return LocalEmbedder(*installed)
    return installed[0] if installed else MultilingualEncoder()


def weights_of(name: str) -> tuple[str, ...]:
    """The models that an embedder runs locally."""
    if name == LOCAL:
        return (MULTILINGUAL, MINILM)
    return (name,) if name in (MULTILINGUAL, MINILM) else ()


class LocalEmbedder:
    """Both local embedders as one: each vector holds both. The first knows many languages, the second is better at
    English."""

    name = LOCAL

    def __init__(self, first: Embedder, second: Embedder) -> None:
        self.parts = first, second
        self.key = f"{first.key}+{second.key}"

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """The dot product of two rows is the mean of both similarities on MiniLM's scale, or only the first similarity
        where the second embedder does not know the language."""
        import numpy as np  # slow import

        first, second = self.parts
        known = np.array([[familiarity(second, text)] for text in texts], np.float32).reshape(-1, 1)
        wide = first.embed(texts) * np.sqrt(MULTILINGUAL_STRETCH / (1 + known))
        joined: Vectors = np.hstack([wide, second.embed(texts) * np.sqrt(known / (1 + known))])
        return joined

    def close(self) -> None:
        for each in self.parts:
            each.close()


class PluginEmbedder:
    """An embedder from another package. Its vectors are checked, and its exceptions become NoVectors."""

    def __init__(self, name: str, embedder: Any, problem: str = "") -> None:
        """`problem` says why the plugin cannot be used."""
        self.name, self.key = name, f"{name}/{'broken' if problem else embedder.key}"
        self._embedder, self._problem = embedder, problem

    def embed(self, texts: Sequence[str]) -> "Vectors":
        if self._problem:
            raise NoVectors(self._problem)
        try:
            return normalize_vectors(self._embedder.embed(texts), texts)
        except NoVectors:
            raise
        except Exception as why:
            raise NoVectors(f"The embedder {self.name} failed ({type(why).__name__}: {why}).") from why

    def close(self) -> None:
        if not self._problem:
            self._embedder.close()
