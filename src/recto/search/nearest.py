"""Nearest: what vectors say about a query, and VectorSearch, which finds that. Knows no index."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace


class Nearest(Struct, frozen=True):
    similarity: Mapping[int, float] = {}
    """Of the nearest passages, the nearest first."""
    warning: str = ""
    """Why there is none."""
    missing: Collection[int] = ()
    """Passages that have no vector yet."""
    progress: str = ""
    """How many vectors are made, to be shown where the missing ones matter; empty while only a few are missing."""
    known: float = 1.0
    """How far the embedder knows the language of the query, from 0 to 1. The similarity holds it already."""
    beside: "Nearest | None" = None
    """The same by a second embedder, which knows fewer languages."""

    def complete_for(self, passages: Collection[int]) -> "Nearest":
        """Without the embedders that have not seen all of these: others would come first only because they were."""
        beside = self.beside.complete_for(passages) if self.beside else None
        if not self.similarity or not any(each in self.missing for each in passages):
            return replace(self, beside=beside)
        return beside if beside and beside.similarity else Nearest(warning=self.progress)

    def in_language(self, known: float, unknown: Collection[int] = ()) -> Mapping[int, float]:
        """The similarity among texts whose language the last embedder knows so far, the nearest first; `unknown` are
        those of its passages whose language it does not know."""
        if self.beside is None and known == 1:
            return self.similarity
        if self.beside is None:
            return {each: known * near for each, near in self.similarity.items()} if known else {}
        return _mean(self.similarity, self.beside.similarity, known, known * self.beside.known, unknown)


def _mean(
    first: Mapping[int, float], second: Mapping[int, float], known: float, share: float, unknown: Collection[int]
) -> Mapping[int, float]:
    """The second one counts as far as it knows the languages of query and texts."""
    if not (share and second):
        return first
    if not first:
        return second
    # what is not among the nearest of one is at most as near as the last of them
    lowest, lowest_second = min(first.values()), min(second.values())
    joined = {
        each: (first.get(each, lowest) + known * second.get(each, lowest_second)) / (1 + share)
        for each in {**first, **second}
    } | {each: first[each] for each in unknown}
    return dict(sorted(joined.items(), key=lambda pair: -pair[1]))


VectorAnswer = Callable[[], Nearest]
"""Waits for the similarity of passages."""
NO_VECTORS: VectorAnswer = Nearest


class VectorSearch(Protocol):
    """Finds passages by similarity. Starts at once; the result is there when the answer is called."""

    def prepare(self, text: Callable[[], str]) -> None: ...

    def nearest(self, text: str, partition: int | None) -> VectorAnswer: ...

    def familiarity(self, text: str) -> float:
        """How far similarity counts among texts in the language of this one; of two embedders, that of the second."""
