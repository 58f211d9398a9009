"""Meaning: which passages are near to a question, by vectors that are made behind, text by text, and kept by hash.

Never waited for: what has no vector yet is found by its words. Numpy is imported where vectors are compared, nowhere
else.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recto.errors import NoVectors, RectoError
from recto.search.aside import Aside
from recto.search.embedder import Embedder
from recto.search.finder import Answer
from recto.search.index import Index, Passage, spoken
from recto.search.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np

    from recto.search.matrix import Matrix

# So many texts go to the embedder at once: a batch that fails, or that is stopped, is all that is lost.
BATCH = 32
# After a failure nobody is asked for so long.
REST_S = 60.0

# Everywhere, more are not compared: their vectors would take more than 150 megabytes of memory.
MOST_EVERYWHERE = 100_000

# A vector is kept in two bytes a number.
HALF = 2

Read = Callable[[Sequence[Passage]], Mapping[int, str]]
"""The texts of passages, by their numbers: an index holds none."""


@dataclass(slots=True)
class Held:
    """What is in memory of a shelf."""

    matrix: "Matrix | None" = None
    """None as long as nothing on it has a vector."""
    seen: str = ""
    """What the index's `changes` were when it was read."""
    came: int = 0
    """How many passages had come to all shelves then."""
    removed: str = ""
    without: dict[int, bytes] = field(default_factory=dict)
    """What had no vector yet."""


class Meaning:
    def __init__(self, index: Index, embedder: Embedder, read: Read, *, timeout_s: float = 2.0) -> None:
        self._index, self._embedder, self._read = index, embedder, read
        self._kept = Vectors(index.file)
        self._timeout_s = timeout_s
        self._aside = Aside("recto-meaning")
        self._asked: Future[Mapping[int, float]] | None = None
        self._shelves: dict[int | None, Held] = {}
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

    def near(self, text: str, shelf: int | None) -> Answer:
        """Asks at once, and answers when called: how near the nearest passages are, with a part of their neighbours'
        nearness; or why nobody can tell."""
        if time.monotonic() < self._rests_until:
            return lambda: ({}, f"{self._why}: words alone were searched")
        if self._asked is not None and not self._asked.done():
            return lambda: ({}, f"{self.name} is still busy with an earlier question: words alone were searched")
        if shelf is None and self._index.came > MOST_EVERYWHERE:
            return lambda: ({}, f"there are more than {MOST_EVERYWHERE:,} passages: words alone were searched")
        began = time.monotonic()
        asked = self._asked = self._aside.submit(lambda: self._near(text, shelf))
        return lambda: self._answer(asked, self._timeout_s - (time.monotonic() - began))

    def _answer(self, asked: "Future[Mapping[int, float]]", timeout_s: float) -> tuple[Mapping[int, float], str]:
        try:
            return asked.result(max(0.0, timeout_s)), ""
        except TooLate:
            return {}, f"{self.name} did not answer within {self._timeout_s:g} s: words alone were searched"
        except RectoError as why:
            self._rest(why.message)
        except Exception as why:  # whatever goes wrong in there, words still answer
            self._rest(f"{self.name} failed ({type(why).__name__}: {why})")
        return {}, f"{self._why}: words alone were searched"

    def _rest(self, why: str) -> None:
        self._rests_until = time.monotonic() + REST_S
        self._why = why.rstrip(".")

    def _near(self, text: str, shelf: int | None) -> Mapping[int, float]:
        import numpy as np  # a tenth of a second

        # asked first: whether it can be asked at all is worth knowing, also where nothing can be compared yet
        asked = np.asarray(self._embedder.embed([text])[0], dtype=np.float32)
        known = self._on_shelf(shelf)
        # while most have no vector yet, those that happen to have one would be favoured
        if known.matrix is None or len(known.matrix) < len(known.without):
            return {}
        if known.matrix.length != len(asked):
            self._kept.forget(self._embedder.key)
            self._shelves.clear()
            raise NoVectors(f"{self.name} gives vectors of another length than before, and all are made anew")
        return known.matrix.nearest(asked)

    def _on_shelf(self, shelf: int | None) -> Held:
        """As it was read before, with what has come since, and what has got its vector since."""
        from recto.search.matrix import Matrix  # numpy: a tenth of a second

        changes, known = self._index.file.changes, self._shelves.setdefault(shelf, Held())
        if known.seen == changes:
            return known
        removed, came = self._index.mark("removed"), self._index.came
        if known.came and removed != known.removed:
            known = self._shelves[shelf] = Held()
        wanted = known.without | dict(self._index.hashes(shelf, known.came))
        made = self._kept.get(self._embedder.key, list(set(wanted.values())), whole=not known.came)
        ready = {number: vector for number, sha in wanted.items() if (vector := made.get(sha))}
        if ready and known.matrix is None:
            known.matrix = Matrix(max(map(len, ready.values())) // HALF)
        if known.matrix is not None:
            ready = {number: vector for number, vector in ready.items() if len(vector) == known.matrix.length * HALF}
            known.matrix.put(list(ready), list(ready.values()))
        known.without = {number: sha for number, sha in wanted.items() if number not in ready}
        known.seen, known.came, known.removed = changes, came, removed
        return known

    # -- making

    def make_some(self) -> int:
        """Makes the vectors of one batch; 0 when there is nothing left to do, or nobody who could. Never raises."""
        if time.monotonic() < self._rests_until:
            return 0
        try:
            return self._make_some()
        except RectoError as why:
            self._rest(why.message)
        except Exception as why:  # nobody would hear it in the thread where this runs
            self._rest(f"{self.name} failed ({type(why).__name__}: {why})")
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
