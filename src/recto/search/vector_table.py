"""Vectors in memory: the matrix of a partition's passages, in order. Imported late for numpy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recto.search.ranking import SIMILARITY_WEIGHTS

Row = NDArray[np.float32]
Rows = NDArray[np.float32]
Numbers = NDArray[np.int64]

# The number of nearest passages returned, and the larger number smoothed to find them: smoothing does not bring more
# distant ones near enough.
MAX_NEAREST, MAX_SMOOTHED = 1500, 6000
# BLAS does this many multiplications in one thread. It splits larger products, and on a busy machine waits for the
# slowest thread, a hundred times as long as the work takes.
_BLOCK_PRODUCTS = 100_000


def compare(rows: NDArray[Any], question: Row) -> Row:
    """The cosine of each row."""
    similarity: Row = np.empty(len(rows), np.float32)
    step = max(1, _BLOCK_PRODUCTS // max(1, len(question)))
    for at in range(0, len(rows), step):
        block = rows[at : at + step].astype(np.float32, copy=False)
        np.dot(block, question, out=similarity[at : at + step])
    return similarity


class VectorMatrix:
    """The vectors of a partition's passages, in the order of their numbers, with the precision of the file."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.numbers: Numbers = np.empty(0, np.int64)
        self.rows: NDArray[np.float16] = np.empty((0, length), np.float16)

    def put(self, numbers: Sequence[int], packed: Sequence[bytes]) -> None:
        if not numbers:
            return
        fresh = np.frombuffer(b"".join(packed), np.float16).reshape(-1, self.length)
        joined = np.concatenate((self.numbers, np.array(numbers, np.int64)))
        order = np.argsort(joined, kind="stable")
        self.numbers, self.rows = joined[order], np.concatenate((self.rows, fresh))[order]

    def nearest(self, question: Row) -> dict[int, float]:
        """The similarity of the nearest passages, smoothed with their neighbours; nearest first, among equals the
        newest."""
        similarity = compare(self.rows, question)
        top = _top(similarity, MAX_SMOOTHED)
        smooth = _smooth(self.numbers, similarity, top)
        nearest = _top(smooth, MAX_NEAREST)[::-1]
        best = nearest[np.argsort(-smooth[nearest], kind="stable")]
        return dict(zip(self.numbers[top[best]].tolist(), smooth[best].tolist(), strict=True))


def _top(values: NDArray[Any], limit: int) -> Numbers:
    if len(values) <= limit:
        return np.arange(len(values))
    return np.sort(np.argpartition(values, len(values) - limit)[len(values) - limit :])


def _smooth(numbers: Numbers, similarity: Row, at: Numbers) -> NDArray[np.float64]:
    """The mean similarity of the passages at these positions and of their neighbours, weighted by distance."""
    own, total = numbers[at], similarity[at].astype(np.float64)
    weights = np.full(len(at), SIMILARITY_WEIGHTS[0])
    for distance, part in enumerate(SIMILARITY_WEIGHTS[1:], 1):
        # fewer steps than the distance: a passage between them was removed
        for step in (*range(-distance, 0), *range(1, distance + 1)):
            other = at + step
            is_there = (other >= 0) & (other < len(numbers))
            other = np.where(is_there, other, 0)
            is_neighbour = is_there & (numbers[other] - own == (distance if step > 0 else -distance))
            total += np.where(is_neighbour, part * similarity[other], 0.0)
            weights += np.where(is_neighbour, part, 0.0)
    return np.asarray(total / weights)
