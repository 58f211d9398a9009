"""Meaning: which passages are near to a question, by vectors that are made behind, text by text, and kept by hash.

Never waited for: what has no vector yet is found by its words. Numpy is imported where vectors are compared, nowhere
else.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recto.errors import NoVectors, RectoError
from recto.search.aside import Aside
from recto.search.embedder import Embedder
from recto.search.index import Index, Passage, spoken
from recto.search.rank import CLOSE
from recto.search.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np

# So many texts go to the embedder at once: a batch that fails, or that is stopped, is all that is lost.
BATCH = 32
# So many nearest are told.
NEAREST = 1500
# After a failure nobody is asked for so long.
REST_S = 60.0

Read = Callable[[Sequence[Passage]], Mapping[int, str]]
"""The texts of passages, by their numbers: an index holds none."""


@dataclass(slots=True)
class Shelf:
    """The vectors of a shelf, in the order of its passages."""

    numbers: "np.ndarray"
    vectors: "np.ndarray"
    seen: str
    """What the index's `changes` were when it was read."""


class Meaning:
    def __init__(self, index: Index, embedder: Embedder, read: Read, *, timeout_s: float = 2.0) -> None:
        self._index, self._embedder, self._read = index, embedder, read
        self._kept = Vectors(index.file)
        self._timeout_s = timeout_s
        self._aside = Aside("recto-meaning")
        self._asked: Future[Mapping[int, float]] | None = None
        self._shelves: dict[int | None, Shelf] = {}
        self._rests_until = 0.0
        self._why = ""

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def waiting(self) -> int:
        """How many passages have not been looked at yet."""
        return self._kept.behind(self._embedder.key)

    @property
    def made(self) -> int:
        return self._kept.counts().get(self._embedder.key, 0)

    @property
    def why(self) -> str:
        """What failed last; empty when it is asked again."""
        return self._why if time.monotonic() < self._rests_until else ""

    def check(self) -> str:
        """Asks for a vector, whatever failed before; empty when it came, else why it did not."""
        try:
            self._embedder.embed(["."])
        except RectoError as why:
            self._rest(why.message)
        else:
            self._rests_until = 0.0
        return self.why

    # -- asking

    def near(self, text: str, shelf: int | None) -> tuple[Mapping[int, float], str]:
        """How near the nearest passages are, with a part of what their neighbours are; or why nobody can tell."""
        if time.monotonic() < self._rests_until:
            return {}, f"{self._why}: words alone were searched"
        if self._asked is not None and not self._asked.done():
            return {}, f"{self.name} is still busy with an earlier question: words alone were searched"
        try:
            self._asked = self._aside.submit(lambda: self._near(text, shelf))
            return self._asked.result(self._timeout_s), ""
        except TooLate:
            return {}, f"{self.name} did not answer within {self._timeout_s:g} s: words alone were searched"
        except RectoError as why:
            self._rest(why.message)
            return {}, f"{self._why}: words alone were searched"

    def _rest(self, why: str) -> None:
        self._rests_until = time.monotonic() + REST_S
        self._why = why.rstrip(".")

    def _near(self, text: str, shelf: int | None) -> Mapping[int, float]:
        import numpy as np  # a tenth of a second

        known = self._on_shelf(shelf)
        if not len(known.numbers):
            return {}
        asked = np.asarray(self._embedder.embed([text])[0], dtype=np.float32)
        if known.vectors.shape[1] != len(asked):
            return {}
        near = _smoothed(known.numbers, known.vectors @ asked)
        best = np.argpartition(-near, NEAREST)[:NEAREST] if len(near) > NEAREST else np.arange(len(near))
        return dict(zip(known.numbers[best].tolist(), near[best].tolist(), strict=True))

    def _on_shelf(self, shelf: int | None) -> Shelf:
        """As it was read before, with what has come since."""
        import numpy as np

        changes, known = self._index.file.changes, self._shelves.get(shelf)
        if known is not None and known.seen == changes:
            return known
        had = {} if known is None else dict(zip(known.numbers.tolist(), known.vectors, strict=True))
        rows = self._index.hashes(shelf)
        fresh = {sha for number, sha in rows if number not in had}
        made = {sha: np.frombuffer(blob, np.float16) for sha, blob in self._vectors(list(fresh)).items() if blob}
        found = {number: had[number] if number in had else made.get(sha) for number, sha in rows}
        pairs = [(number, vector) for number, vector in found.items() if vector is not None]
        length = max((len(vector) for _, vector in pairs), default=0)
        pairs = [(number, vector) for number, vector in pairs if len(vector) == length]
        numbers = np.array([number for number, _ in pairs], dtype=np.int64)
        vectors = np.array([vector for _, vector in pairs], dtype=np.float32).reshape(len(pairs), length)
        self._shelves[shelf] = Shelf(numbers, vectors, changes)
        return self._shelves[shelf]

    def _vectors(self, hashes: Sequence[bytes]) -> Mapping[bytes, bytes]:
        return self._kept.get(self._embedder.key, hashes)

    # -- making

    def make_some(self) -> int:
        """Makes the vectors of one batch; 0 when there is nothing left to do, or nobody who could. Never raises."""
        if time.monotonic() < self._rests_until:
            return 0
        try:
            return self._make_some()
        except RectoError as why:
            self._rest(why.message)
            return 0

    def _make_some(self) -> int:
        passages, done = self._kept.waiting(self._embedder.key, BATCH)
        if not done:
            return 0
        texts = self._read(passages)
        wanted = {each.sha: spoken(texts[each.n], each.who) for each in passages if each.n in texts}
        self._kept.keep(self._embedder.key, self._embedded(wanted), done)
        return max(1, len(wanted))

    def _embedded(self, wanted: Mapping[bytes, str]) -> dict[bytes, bytes]:
        """A batch that fails is tried text by text: one that cannot be embedded must not keep back the others."""
        if not wanted:
            return {}
        try:
            rows = self._embedder.embed(list(wanted.values()))
        except RectoError:
            return self._one_by_one(wanted)
        return {sha: _packed(row) for sha, row in zip(wanted, rows, strict=True)}

    def _one_by_one(self, wanted: Mapping[bytes, str]) -> dict[bytes, bytes]:
        """Empty bytes for a text that fails while others do not. Where nothing is embedded any more, what was is kept,
        and the rest waits."""
        made: dict[bytes, bytes] = {}
        for sha, text in wanted.items():
            try:
                made[sha] = _packed(self._embedder.embed([text])[0])
            except RectoError:
                made[sha] = b""
                if why := self.check():
                    self._kept.keep(self._embedder.key, {key: row for key, row in made.items() if row}, 0)
                    raise NoVectors(why) from None
        return made

    def close(self) -> None:
        self._aside.close()
        self._embedder.close()


def _packed(row: "np.ndarray") -> bytes:
    return row.astype("float16").tobytes()


def _smoothed(numbers: "np.ndarray", near: "np.ndarray") -> "np.ndarray":
    """Each with a part of its neighbours': the mean, weighted by how close they stand."""
    import numpy as np

    total, weights = near.astype(np.float64) * CLOSE[0], np.full(len(near), CLOSE[0])
    for distance, part in enumerate(CLOSE[1:], 1):
        for step in range(1, distance + 1):
            if step >= len(numbers):
                break
            beside = numbers[step:] - numbers[:-step] == distance
            total[step:][beside] += part * near[:-step][beside]
            total[:-step][beside] += part * near[step:][beside]
            weights[step:][beside] += part
            weights[:-step][beside] += part
    return np.asarray(total / weights)
