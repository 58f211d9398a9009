"""Matrix: the vectors of a shelf in memory, in the order of its passages, and which of them are near to a question.

What comes later stands behind, as a rule: there is spare room at the end, and nothing is copied for it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recto.search.rank import CLOSE

Numbers = NDArray[np.int64]
Rows = NDArray[np.float32]

SPARE = 1.25
# So many nearest are told, and so many are looked at with their neighbours: what is farther off does not come near
# enough by them.
NEAREST, LOOKED_AT = 1500, 6000


class Matrix:
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
        """Vectors as they are kept, by their numbers."""
        if not numbers:
            return
        fresh: Numbers = np.fromiter(numbers, np.int64, len(numbers))
        rows = np.frombuffer(b"".join(packed), np.float16).reshape(len(numbers), self.length)
        order = np.argsort(fresh, kind="stable")
        is_behind = not self._size or int(fresh[order[0]]) > int(self._numbers[self._size - 1])
        self._reserve(self._size + len(numbers))
        end = self._size + len(numbers)
        self._numbers[self._size : end] = fresh[order]
        self._rows[self._size : end] = rows[order]
        self._size = end
        if not is_behind:
            whole = np.argsort(self.numbers, kind="stable")
            self._numbers[:end], self._rows[:end] = self.numbers[whole], self.rows[whole]

    def _reserve(self, size: int) -> None:
        if size <= len(self._numbers):
            return
        room = int(size * SPARE) + 1
        numbers, rows = np.empty(room, np.int64), np.empty((room, self.length), np.float32)
        numbers[: self._size], rows[: self._size] = self.numbers, self.rows
        self._numbers, self._rows = numbers, rows

    def nearest(self, asked: Rows) -> dict[int, float]:
        """How near the nearest are, with a part of their neighbours' nearness."""
        near = self.rows @ asked
        some = _top(near, LOOKED_AT)
        smooth = _smoothed(self.numbers, near, some)
        best = _top(smooth, NEAREST)
        return dict(zip(self.numbers[some[best]].tolist(), smooth[best].tolist(), strict=True))


def _top(values: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Where the largest stand; in no order."""
    if len(values) <= most:
        return np.arange(len(values))
    return np.argpartition(values, len(values) - most)[len(values) - most :]


def _smoothed(numbers: Numbers, near: Rows, some: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each with a part of its neighbours': the mean, weighted by how close they stand."""
    total, weights = near[some].astype(np.float64) * CLOSE[0], np.full(len(some), CLOSE[0])
    own = numbers[some]
    for distance, part in enumerate(CLOSE[1:], 1):
        for step in (number for number in range(-distance, distance + 1) if number):
            place = some + step
            inside = (place >= 0) & (place < len(numbers))
            place = np.where(inside, place, 0)
            beside = inside & (np.abs(numbers[place] - own) == distance)
            total += np.where(beside, part * near[place], 0.0)
            weights += np.where(beside, part, 0.0)
    return np.asarray(total / weights)
