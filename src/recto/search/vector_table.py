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
Halves = NDArray[np.float16]
Positions = NDArray[np.int64]

MATRIX_GROWTH = 1.25
# How many of the nearest passages are returned.
MAX_NEAREST = 1500
# Up to so many passages all are compared. Of more, the signs of their numbers choose those that are compared: of the
# 400 nearest, which are all that is used, three in a hundred are missed, and of the nearest fifty one in 300.
MAX_COMPARED, MAX_CHOSEN = 10_000, 2000
# Shorter vectors have too few signs to choose by, and are compared soon.
MIN_SIGNS = 256
# Rows that are compared at once: few enough for one thread of BLAS, and for the cache of a processor.
_BLOCK_PRODUCTS = 100_000
_SIGNED_AT_ONCE, _SORTED_COLUMNS = 4096, 64
# A half-precision number, moved by 13 bits, is a single-precision one divided by 2 ** 112, with copies of its sign.
_MOVED_BITS, _SIGN_COPIES, _SCALE = 13, ~0x70000000, np.float32(2.0**112)


class VectorMatrix:
    """The vectors of a partition's passages, in the order of their numbers. Holds them in the precision that they are
    stored in: half as much memory as numpy needs to multiply them."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._numbers: Numbers = np.empty(0, np.int64)
        self._rows: Halves = np.empty((0, length), np.float16)
        self._size = 0
        self._signs = _Signs(length)
        self._is_sorted = True

    def __len__(self) -> int:
        return self._size

    @property
    def numbers(self) -> Numbers:
        self._sort()
        return self._numbers[: self._size]

    @property
    def rows(self) -> Halves:
        self._sort()
        return self._rows[: self._size]

    def put(self, numbers: Sequence[int], packed: Sequence[bytes]) -> None:
        """Adds vectors, packed as they are stored."""
        if not numbers:
            return
        size, end = self._size, self._size + len(numbers)
        self._reserve(end)
        self._numbers[size:end] = numbers
        for at, row in enumerate(packed, size):
            self._rows[at] = np.frombuffer(row, np.float16)
        self._size = end
        fresh = self._numbers[max(0, size - 1) : end]
        self._is_sorted = self._is_sorted and bool((fresh[1:] > fresh[:-1]).all())

    def _reserve(self, size: int) -> None:
        if size <= len(self._numbers):
            return
        capacity = int(size * MATRIX_GROWTH) + 1
        numbers, rows = np.empty(capacity, np.int64), np.empty((capacity, self.length), np.float16)
        numbers[: self._size], rows[: self._size] = self._numbers[: self._size], self._rows[: self._size]
        self._numbers, self._rows = numbers, rows

    def _sort(self) -> None:
        if self._is_sorted:
            return
        numbers, rows = self._numbers[: self._size], self._rows[: self._size]
        order = np.argsort(numbers, kind="stable")
        numbers[:] = numbers[order]
        # a few columns at a time: a copy of all rows would take as much memory again
        for start in range(0, self.length, _SORTED_COLUMNS):
            columns = rows[:, start : start + _SORTED_COLUMNS]
            columns[:] = columns[order]
        self._signs, self._is_sorted = _Signs(self.length), True

    def nearest(self, question: Rows) -> dict[int, float]:
        """The similarity of the nearest passages, smoothed with their neighbours: the nearest first, among equals the
        newest."""
        if self._size <= MAX_COMPARED or self.length < MIN_SIGNS:
            numbers, smooth = self.numbers, _smooth(self.numbers, self._compare(question))
        else:
            chosen = self._choose(question)
            near = _with_neighbours(chosen, self._size)
            smooth = _smooth(self.numbers[near], self._compare(question, near))[np.searchsorted(near, chosen)]
            numbers = self.numbers[chosen]
        best = _best(smooth)
        return dict(zip(numbers[best].tolist(), smooth[best].tolist(), strict=True))

    def _compare(self, question: Rows, at: Positions | None = None) -> Rows:
        """The similarity of the rows at these positions, or of all."""
        bits, size = self.rows.view(np.int16), self._size if at is None else len(at)
        step = max(1, _BLOCK_PRODUCTS // self.length)
        moved = np.empty((min(step, size), self.length), np.int32)
        similarity: Rows = np.empty(size, np.float32)
        scaled = question * _SCALE
        for start in range(0, size, step):
            some = bits[start : start + step] if at is None else bits[at[start : start + step]]
            block = moved[: len(some)]
            np.copyto(block, some)
            # numpy itself takes five times as long to convert them
            block <<= _MOVED_BITS
            block &= _SIGN_COPIES
            np.dot(block.view(np.float32), scaled, out=similarity[start : start + step])
        return similarity

    def _choose(self, question: Rows) -> Positions:
        """The positions of passages that may be among the nearest, in order."""
        self._signs.extend(self.rows)
        equal = self._signs.count_equal(question)
        total, weights = equal.copy(), np.ones(len(equal), np.float32)
        for distance, part in enumerate(SIMILARITY_WEIGHTS[1:], 1):
            shares = (self.numbers[distance:] - self.numbers[:-distance] == distance) * np.float32(part)
            total[distance:] += shares * equal[:-distance]
            total[:-distance] += shares * equal[distance:]
            weights[distance:] += shares
            weights[:-distance] += shares
        return _top(total / weights, MAX_CHOSEN)


class _Signs:
    """The signs of all numbers of the vectors, as bits: comparing them takes a twentieth of the time."""

    def __init__(self, length: int) -> None:
        self._bits: NDArray[np.uint64] = np.empty((-(-length // 64), 0), np.uint64)
        self._size = 0

    def extend(self, rows: Halves) -> None:
        """Adds the rows that are new."""
        if len(rows) > self._bits.shape[1]:
            grown = np.empty((len(self._bits), int(len(rows) * MATRIX_GROWTH)), np.uint64)
            grown[:, : self._size] = self._bits[:, : self._size]
            self._bits = grown
        for start in range(self._size, len(rows), _SIGNED_AT_ONCE):
            some = rows[start : start + _SIGNED_AT_ONCE]
            self._bits[:, start : start + len(some)] = self._pack(some).T
        self._size = len(rows)

    def count_equal(self, question: Rows) -> Rows:
        """For each row, the number of signs that are those of the question."""
        differing: NDArray[np.uint16] = np.zeros(self._size, np.uint16)
        for column, own in zip(self._bits[:, : self._size], self._pack(question[None])[0], strict=True):
            differing += np.bitwise_count(column ^ own)
        return np.float32(question.size) - differing.astype(np.float32)

    def _pack(self, rows: NDArray[Any]) -> NDArray[np.uint64]:
        bits = np.packbits(rows > 0, axis=1)
        padded = np.zeros((len(rows), 8 * len(self._bits)), np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64)


def _top(values: NDArray[Any], limit: int) -> Positions:
    """The positions of the largest values, in order."""
    if len(values) <= limit:
        return np.arange(len(values))
    return np.sort(np.argpartition(values, len(values) - limit)[len(values) - limit :])


def _best(values: NDArray[np.float64]) -> Positions:
    """The positions of the MAX_NEAREST largest values, the largest first, among equals the last."""
    top = _top(values, MAX_NEAREST)[::-1]
    return top[np.argsort(-values[top], kind="stable")]


def _with_neighbours(positions: Positions, size: int) -> Positions:
    """These positions, and those near enough to matter for smoothing, in order."""
    is_near = np.zeros(size, bool)
    for step in range(1 - len(SIMILARITY_WEIGHTS), len(SIMILARITY_WEIGHTS)):
        is_near[np.clip(positions + step, 0, size - 1)] = True
    return np.flatnonzero(is_near)


def _smooth(numbers: Numbers, similarity: Rows) -> NDArray[np.float64]:
    """The mean similarity of each passage and its neighbours, weighted by distance."""
    total = similarity.astype(np.float64)
    weights = np.full(len(similarity), SIMILARITY_WEIGHTS[0])
    for distance, part in enumerate(SIMILARITY_WEIGHTS[1:], 1):
        scaled = part * similarity
        # fewer steps than the distance: a passage between them is gone
        for step in (*range(-distance, 0), *range(1, distance + 1)):
            own, other = _pairs(len(numbers), step)
            is_neighbour = numbers[other] - numbers[own] == (distance if step > 0 else -distance)
            total[own] += np.where(is_neighbour, scaled[other], 0.0)
            weights[own] += np.where(is_neighbour, part, 0.0)
    return np.asarray(total / weights)


def _pairs(size: int, step: int) -> tuple[slice, slice]:
    """The positions that have another one so many steps away, and those others."""
    ahead, behind = slice(0, max(0, size - abs(step))), slice(min(abs(step), size), size)
    return (ahead, behind) if step > 0 else (behind, ahead)
