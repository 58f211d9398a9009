"""Vectors in memory: a table of texts by hash, and a matrix of passages in order. Imported late for numpy."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recto.search.ranking import SIMILARITY_WEIGHTS

Row = NDArray[np.float32]

TABLE_GROWTH = 1.5
# BLAS does this many multiplications in one thread. It splits up more, and on a busy machine each part waits for the
# slowest thread, a hundred times as long as the work takes.
MAX_SINGLE_THREAD_PRODUCTS = 64 * 64 * 64
# The rows of this many texts or more are remembered, for this many of the latest sequences.
_MIN_REMEMBERED, _MAX_REMEMBERED = 32, 4


@dataclass(frozen=True, slots=True)
class Cosines:
    cosines: Row
    """NaN for a text without a vector."""
    missing: int


class VectorTable:
    """Not thread-safe."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._matrix: Row = np.zeros((64, width), np.float32)
        self._row_of: dict[bytes, int] = {}
        self._remembered: OrderedDict[int, tuple[Sequence[bytes], NDArray[np.int64]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, sha: bytes) -> bool:
        return sha in self._row_of

    def has_all(self, hashes: Sequence[bytes]) -> bool:
        """Whether all of these are here; False also if unknown. Recognizes only the same sequence object."""
        return id(hashes) in self._remembered

    def put(self, vectors: Mapping[bytes, Row]) -> None:
        """Adds vectors that are new and of the right width."""
        for sha, vector in vectors.items():
            if sha in self._row_of or len(vector) != self.width:
                continue
            at = len(self._row_of)
            if at == len(self._matrix):
                grown = np.zeros((int(at * TABLE_GROWTH), self.width), np.float32)
                grown[:at] = self._matrix
                self._matrix = grown
            self._matrix[at], self._row_of[sha] = vector, at

    def compare(self, questions: Row) -> Row:
        """Cosines: one row per text in the table, one column per question."""
        # a single column would use another routine, which splits its work sooner
        columns = np.ascontiguousarray(np.vstack([questions] * (1 + (len(questions) == 1))).T)
        cosines: Row = np.empty((len(self._row_of), columns.shape[1]), np.float32)
        step = max(1, MAX_SINGLE_THREAD_PRODUCTS // columns.size)
        for at in range(0, len(cosines), step):
            np.dot(self._matrix[at : min(at + step, len(cosines))], columns, out=cosines[at : at + step])
        return cosines[:, : len(questions)]

    def select(self, cosines: Row, hashes: Sequence[bytes]) -> Cosines:
        """The rows of `compare` for these texts, in their order."""
        if (remembered := self._remembered.get(id(hashes))) is not None:
            return Cosines(cosines[remembered[1]], 0)
        rows = np.fromiter((self._row_of.get(sha, -1) for sha in hashes), np.int64, len(hashes))
        missing = int((rows < 0).sum())
        selected = cosines[rows] if len(cosines) else np.zeros((len(hashes), cosines.shape[1]), np.float32)
        selected[rows < 0] = np.nan
        if not missing and len(hashes) > _MIN_REMEMBERED:
            # the sequence is stored too, so that its id stays its own
            self._remembered[id(hashes)] = hashes, rows
            if len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        return Cosines(selected, missing)


Numbers = NDArray[np.int64]
Rows = NDArray[np.float32]

MATRIX_GROWTH = 1.25
# How many of the nearest passages are returned, and how many are smoothed with their neighbours to find those: what is
# farther off does not get near enough by smoothing.
MAX_NEAREST, MAX_SMOOTHED = 1500, 6000


class VectorMatrix:
    """The vectors of a partition's passages, in the order of their numbers."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._numbers: Numbers = np.empty(0, np.int64)
        self._rows: Rows = np.empty((0, length), np.float32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def numbers(self) -> Numbers:
        return self._numbers[: self._size]

    @property
    def rows(self) -> Rows:
        return self._rows[: self._size]

    def put(self, numbers: Sequence[int], packed: Sequence[bytes]) -> None:
        """Adds vectors, packed as they are stored."""
        if not numbers:
            return
        fresh: Numbers = np.fromiter(numbers, np.int64, len(numbers))
        rows = np.frombuffer(b"".join(packed), np.float16).reshape(len(numbers), self.length)
        order = np.argsort(fresh, kind="stable")
        is_newer = not self._size or int(fresh[order[0]]) > int(self._numbers[self._size - 1])
        self._reserve(self._size + len(numbers))
        end = self._size + len(numbers)
        self._numbers[self._size : end] = fresh[order]
        self._rows[self._size : end] = rows[order]
        self._size = end
        if not is_newer:
            order = np.argsort(self.numbers, kind="stable")
            self._numbers[:end], self._rows[:end] = self.numbers[order], self.rows[order]

    def _reserve(self, size: int) -> None:
        if size <= len(self._numbers):
            return
        capacity = int(size * MATRIX_GROWTH) + 1
        numbers, rows = np.empty(capacity, np.int64), np.empty((capacity, self.length), np.float32)
        numbers[: self._size], rows[: self._size] = self.numbers, self.rows
        self._numbers, self._rows = numbers, rows

    def nearest(self, question: Rows) -> dict[int, float]:
        """The similarity of the nearest passages, smoothed with their neighbours."""
        similarity = self.rows @ question
        top = _top(similarity, MAX_SMOOTHED)
        smooth = _smooth(self.numbers, similarity, top)
        best = _top(smooth, MAX_NEAREST)
        return dict(zip(self.numbers[top[best]].tolist(), smooth[best].tolist(), strict=True))


def _top(values: NDArray[Any], limit: int) -> NDArray[np.int64]:
    """The positions of the largest values, in no order."""
    if len(values) <= limit:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - limit)[len(values) - limit :]


def _smooth(numbers: Numbers, similarity: Rows, top: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean similarity of each passage and its neighbours, weighted by distance."""
    total = similarity[top].astype(np.float64) * SIMILARITY_WEIGHTS[0]
    weights = np.full(len(top), SIMILARITY_WEIGHTS[0])
    own = numbers[top]
    for distance, part in enumerate(SIMILARITY_WEIGHTS[1:], 1):
        for step in (number for number in range(-distance, distance + 1) if number):
            at = top + step
            in_range = (at >= 0) & (at < len(numbers))
            at = np.where(in_range, at, 0)
            is_neighbour = in_range & (np.abs(numbers[at] - own) == distance)
            total += np.where(is_neighbour, part * similarity[at], 0.0)
            weights += np.where(is_neighbour, part, 0.0)
    return np.asarray(total / weights)
