"""Rows: vectors in memory by the hashes of their texts, compared with questions all at once."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]

SPARE = 1.5
# So many multiplications are done by one thread: more would be shared out, and on a busy machine each waits for the
# slowest, a hundred times as long as the work takes.
ALONE = 64 * 64 * 64
# From so many texts on it is worth knowing where they are: those of the last few questions.
_MANY, _LATELY = 32, 4


@dataclass(frozen=True, slots=True)
class Taken:
    cosines: Row
    """NaN for a text without a vector."""
    missing: int


class Rows:
    """Not for two threads at once."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._matrix: Row = np.zeros((64, width), np.float32)
        self._places: dict[bytes, int] = {}
        self._same: OrderedDict[int, tuple[Sequence[bytes], NDArray[np.int64]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, sha: bytes) -> bool:
        return sha in self._places

    def holds_all(self, hashes: Sequence[bytes]) -> bool:
        """Whether these very hashes were all there lately; False also when nobody knows."""
        return id(hashes) in self._same

    def put(self, rows: Mapping[bytes, Row]) -> None:
        """Those of another length are left out, and those that are there already."""
        for sha, row in rows.items():
            if sha in self._places or len(row) != self.width:
                continue
            at = len(self._places)
            if at == len(self._matrix):
                grown = np.zeros((int(at * SPARE), self.width), np.float32)
                grown[:at] = self._matrix
                self._matrix = grown
            self._matrix[at], self._places[sha] = row, at

    def compared(self, questions: Row) -> Row:
        """A row for each that is here, a column for each question."""
        # one column would be another routine, which shares out its work sooner
        columns = np.ascontiguousarray(np.vstack([questions] * (1 + (len(questions) == 1))).T)
        every: Row = np.empty((len(self._places), columns.shape[1]), np.float32)
        step = max(1, ALONE // columns.size)
        for at in range(0, len(every), step):
            np.dot(self._matrix[at : min(at + step, len(every))], columns, out=every[at : at + step])
        return every[:, : len(questions)]

    def taken(self, every: Row, hashes: Sequence[bytes]) -> Taken:
        """Of what was `compared`, in the order of these hashes."""
        if (same := self._same.get(id(hashes))) is not None:
            return Taken(every[same[1]], 0)
        places = np.fromiter((self._places.get(sha, -1) for sha in hashes), np.int64, len(hashes))
        missing = int((places < 0).sum())
        cosines = every[places] if len(every) else np.zeros((len(hashes), every.shape[1]), np.float32)
        cosines[places < 0] = np.nan
        if not missing and len(hashes) > _MANY:
            self._same[id(hashes)] = hashes, places
            if len(self._same) > _LATELY:
                self._same.popitem(last=False)
        return Taken(cosines, missing)
