"""LocalEmbedder: both embedders that run here as one. The first knows many languages, the second English better.

An index of passages keeps their vectors apart (`VectorPair`). For short texts, which are few, each vector holds both.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recto.search.embedder import LOCAL, Embedder, familiarity, load_numpy
from recto.search.ranking import MULTILINGUAL_STRETCH

if TYPE_CHECKING:
    from recto.search.embedder import Vectors


class LocalEmbedder:
    name = LOCAL

    def __init__(self, first: Embedder, second: Embedder) -> None:
        self.parts = first, second
        self.key = f"{first.key}+{second.key}"

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """The dot product of two rows is the mean of both similarities on the scale of MiniLM, and that of the first
        alone where the second does not know the language."""
        np, (first, second) = load_numpy(), self.parts
        known = np.array([[familiarity(second, text)] for text in texts], np.float32).reshape(-1, 1)
        wide = first.embed(texts) * np.sqrt(MULTILINGUAL_STRETCH / (1 + known))
        joined: Vectors = np.hstack([wide, second.embed(texts) * np.sqrt(known / (1 + known))])
        return joined

    def close(self) -> None:
        for each in self.parts:
            each.close()
