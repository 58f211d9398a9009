"""Vectors in memory: a table of texts by hash, and a matrix of passages in order. Imported late for numpy."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recto.search.ranking import SIMILARITY_WEIGHTS

Row = NDArray[np.float32]
Rows = NDArray[np.float32]
Numbers = NDArray[np.int64]

GROWTH = 1.5
# BLAS does this many multiplications in one thread. It splits larger products, and on a busy machine waits for the
# slowest thread, a hundred times as long as the work takes.
MAX_SINGLE_THREAD_PRODUCTS = 64 * 64 * 64


class VectorTable:
    """Not thread-safe."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._matrix: Rows = np.zeros((64, width), np.float32)
        self._row_of: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, sha: bytes) -> bool:
        return sha in self._row_of

    def put(self, vectors: Mapping[bytes, Row]) -> None:
        """Add vectors that are new and of the right width."""
        for sha, vector in vectors.items():
            if sha in self._row_of or len(vector) != self.width:
                continue
            at = len(self._row_of)
            if at == len(self._matrix):
                self._matrix = np.resize(self._matrix, (int(at * GROWTH), self.width))
            self._matrix[at], self._row_of[sha] = vector, at

    def compare(self, questions: Rows) -> Rows:
        """Cosines: one row per text in the table, one column per question."""
        # a single column would use another routine, which splits its work sooner
        columns = np.ascontiguousarray(np.vstack([questions] * (1 + (len(questions) == 1))).T)
        cosines: Rows = np.empty((len(self._row_of), columns.shape[1]), np.float32)
        step = max(1, MAX_SINGLE_THREAD_PRODUCTS // columns.size)
        for at in range(0, len(cosines), step):
            np.dot(self._matrix[at : min(at + step, len(cosines))], columns, out=cosines[at : at + step])
        return cosines[:, : len(questions)]

    def select(self, cosines: Rows, hashes: Sequence[bytes]) -> tuple[Rows, int]:
        """The rows of `compare` for these texts, in order, with NaN for those without a vector; and how many have
        none."""
        rows = np.fromiter((self._row_of.get(sha, -1) for sha in hashes), np.int64, len(hashes))
        selected = cosines[rows] if len(cosines) else np.zeros((len(hashes), cosines.shape[1]), np.float32)
        selected[rows < 0] = np.nan
        return selected, int((rows < 0).sum())


# The number of nearest passages returned, and the larger number smoothed to find them: smoothing does not bring more
# distant ones near enough.
MAX_NEAREST, MAX_SMOOTHED = 1500, 6000
# Above this number, vectors are held as bytes: a quarter of the memory, and a change in similarity of 0.0005.
MAX_PRECISE, MAX_BYTE = 10_000, 127
# Large sets are first compared by signs. The rows with the most signs in common, one in CANDIDATE_SHARE and at least
# MIN_CANDIDATES, are then compared in full. That misses one in forty of the nearest 0.6 %, and hardly any of the
# nearest 0.2 %.
CANDIDATE_SHARE, MIN_CANDIDATES = 25, 2500
# The number smoothed of a large set, since their neighbours must be compared too: more than are fused.
MAX_NEAREST_OF_MANY = 600
_CODE_BITS = 64
# Rows per block: few enough for one thread of BLAS and for the processor's cache.
_BLOCK_PRODUCTS, _SORTED_COLUMNS = 100_000, 64


class VectorMatrix:
    """The vectors of a partition's passages, in the order of their numbers."""

    def __init__(self, length: int, expected: int = 0) -> None:
        """`expected` is the likely number of vectors."""
        self.length, self._expected = length, expected
        self._numbers: Numbers = np.empty(0, np.int64)
        self._rows: NDArray[Any] = np.empty((0, length), np.float32)
        self._scales: Row = np.empty(0, np.float32)
        self._codes: NDArray[np.uint64] = np.empty((-(-length // _CODE_BITS), 0), np.uint64)
        """The signs of the rows, one column each."""
        self._size = 0
        self._is_sorted = True

    def __len__(self) -> int:
        return self._size

    @property
    def numbers(self) -> Numbers:
        self._sort()
        return self._numbers[: self._size]

    @property
    def rows(self) -> Rows:
        self._sort()
        return self._rows[: self._size] * self._scales[: self._size, None]

    @property
    def _is_bytes(self) -> bool:
        return self._rows.dtype == np.int8

    def put(self, numbers: Sequence[int], packed: Sequence[bytes]) -> None:
        if not numbers:
            return
        fresh = np.frombuffer(b"".join(packed), np.float16).reshape(-1, self.length)
        size, end = self._size, self._size + len(numbers)
        self._reserve(end)
        self._numbers[size:end] = numbers
        if self._is_bytes:
            self._rows[size:end], self._scales[size:end] = _to_bytes(fresh)
            self._codes[:, size:end] = _signs(fresh)
        else:
            self._rows[size:end], self._scales[size:end] = fresh, 1.0
        self._size = end
        added = self._numbers[max(0, size - 1) : end]
        self._is_sorted = self._is_sorted and bool((added[1:] > added[:-1]).all())

    def _reserve(self, size: int) -> None:
        if size <= len(self._numbers):
            return
        capacity = self._expected if MAX_PRECISE < size <= self._expected else int(size * GROWTH) + 1
        if size > MAX_PRECISE and not self._is_bytes:
            self._codes = _signs(self._rows[: self._size])
            self._rows, self._scales = _to_bytes(self._rows[: self._size])
        if self._is_bytes:
            self._codes = _resized(self._codes.T, self._size, capacity).T
        self._numbers, self._scales, self._rows = (
            _resized(each, self._size, capacity) for each in (self._numbers, self._scales, self._rows)
        )

    def _sort(self) -> None:
        if self._is_sorted:
            return
        order = np.argsort(self._numbers[: self._size], kind="stable")
        for values in (self._numbers, self._scales, *(self._codes if self._is_bytes else ())):
            values[: self._size] = values[order]
        # a few columns at a time: a copy of all rows would double the memory
        for start in range(0, self.length, _SORTED_COLUMNS):
            columns = self._rows[: self._size, start : start + _SORTED_COLUMNS]
            columns[:] = columns[order]
        self._is_sorted = True

    def nearest(self, question: Row) -> dict[int, float]:
        """The similarity of the nearest passages, smoothed with their neighbours; nearest first, among equals the
        newest."""
        numbers, similarity = self.numbers, np.empty(self._size, np.float32)
        top = self._candidates(question) if self._is_bytes else np.arange(self._size)
        similarity[top] = self._compare(question, top)
        if len(top) < self._size:
            top = top[_top(similarity[top], MAX_NEAREST_OF_MANY)]
            others = np.setdiff1d(_around(top, self._size), top, assume_unique=True)
            similarity[others] = self._compare(question, others)
        else:
            top = _top(similarity, MAX_SMOOTHED)
        smooth = _smooth(numbers, similarity, top)
        nearest = _top(smooth, MAX_NEAREST)[::-1]
        best = nearest[np.argsort(-smooth[nearest], kind="stable")]
        return dict(zip(numbers[top[best]].tolist(), smooth[best].tolist(), strict=True))

    def _candidates(self, question: Row) -> Numbers:
        """The rows with the most signs in common with the question, in order."""
        enough = max(MIN_CANDIDATES, self._size // CANDIDATE_SHARE)
        if self._size <= enough:
            return np.arange(self._size)
        different = np.zeros(self._size, np.uint16)
        for signs, own in zip(self._codes, _signs(question[None])[:, 0], strict=True):
            different += np.bitwise_count(signs[: self._size] ^ own)
        most = np.searchsorted(np.cumsum(np.bincount(different)), enough)
        return np.flatnonzero(different <= most)

    def _compare(self, question: Row, at: Numbers) -> Row:
        step = max(1, _BLOCK_PRODUCTS // self.length)
        similarity: Row = np.empty(len(at), np.float32)
        is_all = len(at) == self._size
        for start in range(0, len(at), step):
            end = min(start + step, len(at))
            rows = self._rows[start:end] if is_all else self._rows[at[start:end]]
            np.dot(rows.astype(np.float32, copy=False), question, out=similarity[start:end])
        return similarity * self._scales[at]


def _resized(values: NDArray[Any], size: int, capacity: int) -> NDArray[Any]:
    longer = np.empty((capacity, *values.shape[1:]), values.dtype)
    longer[:size] = values[:size]
    return longer


def _to_bytes(rows: NDArray[Any]) -> tuple[NDArray[np.int8], Row]:
    """Each row as bytes, and its factor."""
    floats = rows.astype(np.float32)
    scales = np.abs(floats).max(1, initial=0) / np.float32(MAX_BYTE)
    floats /= np.where(scales > 0, scales, np.float32(1))[:, None]
    return np.rint(floats, out=floats).astype(np.int8), scales


def _signs(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """The signs of each row as bits, one column per row."""
    missing = -rows.shape[1] % _CODE_BITS
    bits = np.pad(rows > 0, ((0, 0), (0, missing)))
    return np.ascontiguousarray(np.packbits(bits, axis=1).view(np.uint64).T)


def _around(at: Numbers, count: int) -> Numbers:
    """These rows and their possible neighbours, in order."""
    reach = len(SIMILARITY_WEIGHTS) - 1
    is_near = np.zeros(count + 2 * reach, bool)
    for step in range(2 * reach + 1):
        is_near[at + step] = True
    return np.flatnonzero(is_near[reach : reach + count])


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
