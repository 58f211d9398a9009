"""Embedder: who turns texts into vectors of their meaning. Every vector passes `checked` before anybody compares it.

numpy is imported where it is used: most commands never see a vector.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from recto.errors import NoVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

NONE = "none"
MINILM = "minilm"
EXTRA = "`pip install 'recto[meaning]'`"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a provider makes vectors: the root of its OpenAI-compatible endpoint, its key and where that was sought."""

    url: str
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None


class Embedder(Protocol):
    """Can be asked from several threads at once; opens whatever it needs when it is first asked."""

    @property
    def name(self) -> str:
        """As configured."""

    @property
    def key(self) -> str:
        """What the vectors depend on, name and version: those of another key are never compared with these."""

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """One row for each text, of length 1, or all zeros for a text that says nothing; NoVectors if it cannot."""

    def close(self) -> None: ...


def checked(vectors: object, texts: Sequence[str]) -> "Vectors":
    """The vectors as float32 rows of length 1, zeros left as they are; NoVectors names what is wrong with them."""
    np = load_numpy()
    try:
        rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError) as why:
        raise NoVectors(
            "The embedder gave something that is no vector of numbers, or vectors that differ in length."
        ) from why
    if rows.ndim != 2 or len(rows) != len(texts):
        raise NoVectors(f"The embedder gave {_shape(rows.shape)} for {len(texts)} texts, not one vector for each.")
    if not np.isfinite(rows).all():
        bad = int(np.argmin(np.isfinite(rows).all(1)))
        raise NoVectors(f"The embedder gave a vector that is not finite (NaN or infinity), for text {bad + 1}.")
    # by the largest entry first, so that squares of very large or small ones stay in range
    largest = np.abs(rows).max(1, keepdims=True, initial=0)
    rows = rows / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    made: Vectors = (rows / np.where(length > 0, length, 1)).astype(np.float32)
    return made


def load_numpy() -> Any:
    """numpy, or NoVectors with what brings it."""
    try:
        import numpy  # a tenth of a second
    except ImportError as why:
        raise NoVectors(f"Vectors need numpy, which cannot be used ({why}); {EXTRA} brings it.") from why
    return numpy


def _shape(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} vectors" if len(shape) == 2 else "something else"
