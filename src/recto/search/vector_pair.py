"""VectorPair: two embedders for one index. The first knows many languages and is fast, so its vectors come first; the
second knows English better, and its vectors follow. While they are missing, the first counts alone.
"""

from collections.abc import Callable

from msgspec.structs import replace

from recto.search.embedder import LOCAL
from recto.search.nearest import Nearest, VectorAnswer
from recto.search.vector_index import VectorIndex


class VectorPair:
    """Counts and problems are those of the first, which searches need; `to_make` counts for both."""

    name = LOCAL

    def __init__(self, first: VectorIndex, second: VectorIndex) -> None:
        self._first, self._second = first, second

    @property
    def waiting(self) -> int:
        return self._first.waiting

    @property
    def to_make(self) -> int:
        return self._first.waiting + self._second.waiting

    @property
    def count(self) -> int:
        return self._first.count

    @property
    def problem(self) -> str:
        return self._first.problem

    def check(self) -> str:
        """Calls both embedders, whatever failed before. Returns a problem, or an empty text."""
        problems = [self._first.check(), self._second.check()]
        return next(filter(None, problems), "")

    def prepare(self, text: Callable[[], str]) -> None:
        self._first.prepare(text)
        self._second.prepare(text)

    def nearest(self, text: str, partition: int | None) -> VectorAnswer:
        answer, beside = self._first.nearest(text, partition), self._second.nearest(text, partition)

        def both() -> Nearest:
            found, other = answer(), beside()
            if found.similarity:
                return replace(found, beside=other)
            return other if other.similarity else found

        return both

    def familiarity(self, text: str) -> float:
        return self._second.familiarity(text)

    def make_batch(self, threads: int = 1) -> int:
        """Makes one batch, of the second embedder once the first has seen everything."""
        return self._first.make_batch(threads) or self._second.make_batch(threads)

    def close(self) -> None:
        self._first.close()
        self._second.close()
