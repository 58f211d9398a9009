"""Nearest: what vectors say about a query, and VectorSearch, which finds that. Knows no index."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from msgspec import Struct


class Nearest(Struct, frozen=True):
    similarity: Mapping[int, float] = {}
    """Of the nearest passages, the nearest first."""
    warning: str = ""
    """Why there is none."""
    missing: Collection[int] = ()
    """Passages that have no vector yet."""
    progress: str = ""
    """How many vectors are made, to be shown where the missing ones matter; empty while only a few are missing."""


VectorAnswer = Callable[[], Nearest]
"""Waits for the similarity of passages."""
NO_VECTORS: VectorAnswer = Nearest


class VectorSearch(Protocol):
    """Finds passages by similarity. Starts at once; the result is there when the answer is called."""

    def prepare(self, text: Callable[[], str]) -> None: ...

    def nearest(self, text: str, partition: int | None) -> VectorAnswer: ...

    def familiarity(self, text: str) -> float:
        """How far similarity counts among texts in the language of this one."""
