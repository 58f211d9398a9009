"""Embedder: turns texts into vectors of their meaning. `normalize_vectors` checks every vector before it is used."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from recto.errors import NoVectors, RectoError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

log = logging.getLogger(__name__)

NONE = "none"
LOCAL = "local"
MINILM = "minilm"
MULTILINGUAL = "multilingual"
# The pause after a failure.
RETRY_AFTER_S = 60.0


class Embedder(Protocol):
    """Thread-safe. Loads whatever it needs on first use. One that knows only some languages has `familiarity` too."""

    @property
    def name(self) -> str:
        """The name as configured."""

    @property
    def key(self) -> str:
        """Name and version. Vectors of different keys are never compared."""

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """One row per text, of length 1, or all zeros for a text without content. Raises NoVectors on failure."""

    def close(self) -> None: ...


def familiarity(embedder: Embedder, text: str) -> float:
    """How far the similarity of a text counts: from 0, for a text in an unknown language or script, to 1. Embedders
    that do not tell are taken to know every language. Raises NoVectors on failure."""
    known: Callable[[str], float] | None = getattr(embedder, "familiarity", None)
    return known(text) if known else 1.0


class EmbedderPause:
    """After a failure an embedder is not called for a minute, and searches say why."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self._until, self._problem = embedder, 0.0, ""

    @property
    def problem(self) -> str:
        """The last failure; empty once the embedder may be called again."""
        return self._problem if time.monotonic() < self._until else ""

    def begin(self, why: Exception) -> str:
        if isinstance(why, RectoError):
            problem = why.message
        else:
            log.error("%s failed", self._embedder.name, exc_info=why)
            problem = f"{self._embedder.name} failed ({type(why).__name__}: {why})"
        self._until, self._problem = time.monotonic() + RETRY_AFTER_S, problem.rstrip(".")
        return self._problem

    def end(self) -> None:
        self._until = 0.0


def normalize_vectors(vectors: object, texts: Sequence[str]) -> "Vectors":
    """Scales the vectors to length 1, as float32; zeros stay. Raises NoVectors if they are malformed."""
    import numpy as np  # takes a tenth of a second

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
    # dividing by the largest entry first keeps the squares in range
    largest = np.abs(rows).max(1, keepdims=True, initial=0)
    rows = rows / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    normalized: Vectors = (rows / np.where(length > 0, length, 1)).astype(np.float32)
    return normalized
