"""TextVectors: the vectors of short texts, each made once and kept by its hash; and those of questions, for a moment.

Nobody waits longer than said: what takes more is made behind, and what fails is told. numpy is imported where vectors
are compared, nowhere else.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recto.errors import NoVectors, RectoError, StoreError
from recto.search.aside import Aside
from recto.search.behind import Behind
from recto.search.embedder import Embedder
from recto.search.file import IndexFile
from recto.search.filing import Filing
from recto.search.texts import NO_TEXTS, Texts
from recto.search.vectors import Vectors

if TYPE_CHECKING:
    from recto.search.rows import Row, Rows

# So many texts go to the embedder at once: whoever comes with a question waits for no more.
BATCH = 8
# After a failure nobody is asked for so long.
REST_S = 60.0
# Questions of the last moments are not embedded twice.
MOST_QUESTIONS = 256
# More are not held in memory: sixty megabytes.
MOST_HELD = 40_000


@dataclass(frozen=True, slots=True)
class Near:
    """How near texts are to questions."""

    cosines: "Row | None" = None
    """A row for each text, a column for each question and, where they are several, one for their middle; NaN where a
    text has no vector yet. None where nobody can tell."""
    others: "Row | None" = None
    """Of other texts the same."""
    missing: int = 0
    note: str = ""


class TextVectors:
    def __init__(self, path: Path, embedder: Callable[[], Embedder | None], *, timeout_s: float) -> None:
        self._file, self._filing = IndexFile(path), Filing()
        self._kept = Vectors(self._file)
        self._open, self._timeout_s = embedder, timeout_s
        self._embedder: Embedder | None = None
        self._is_open = self._is_closed = False
        self._aside = Aside("recto-sources")
        self._behind = Behind(self._make_behind, "recto-source-vectors")
        self._stuck: Future[Row] | None = None
        self._lock = threading.RLock()
        self._wanted: dict[bytes, str] = {}
        self._underway: dict[bytes, str] = {}
        self._hopeless: set[bytes] = set()
        self._rows: Rows | None = None
        self._questions: OrderedDict[str, Row] = OrderedDict()
        self._rests_until, self._why = 0.0, ""

    @property
    def name(self) -> str:
        """Of the embedder that was asked; empty when none was."""
        return self._embedder.name if self._embedder is not None else ""

    # -- asking

    def near(self, questions: Sequence[str], texts: Texts, others: Texts = NO_TEXTS) -> Near:
        """Never raises; the texts that have no vector are made as long as there is time, and then behind."""
        until = time.monotonic() + self._timeout_s
        try:
            embedder = self._opened()
        except RectoError as why:
            return Near(note=why.message.rstrip("."))
        if embedder is None:
            return Near()
        if time.monotonic() < self._rests_until:
            return Near(note=self._why)
        if self._stuck is not None and not self._stuck.done():
            return Near(note=f"{embedder.name} is still busy with an earlier question")
        return self._near(embedder, questions, (texts, others), until)

    def _near(self, embedder: Embedder, questions: Sequence[str], both: tuple[Texts, Texts], until: float) -> Near:
        asked = self._aside.submit(lambda: self._asked(embedder, questions))
        try:
            rows = asked.result(_left(until))
            self._provide(embedder, both, until)
            return self._compared(embedder, rows, both)
        except TooLate:
            self._stuck = asked
            return Near(note=f"{embedder.name} did not answer within {self._timeout_s:g} s")
        except Exception as why:  # whatever goes wrong in there, words still answer
            self._rest(embedder, why)
            return Near(note=self._why)

    def _opened(self) -> Embedder | None:
        with self._lock:
            if not self._is_open:
                self._embedder, self._is_open = self._open(), True
            return self._embedder

    def _rest(self, embedder: Embedder, why: Exception) -> None:
        said = why.message if isinstance(why, RectoError) else f"{embedder.name} failed ({type(why).__name__}: {why})"
        self._rests_until, self._why = time.monotonic() + REST_S, said.rstrip(".")

    def _asked(self, embedder: Embedder, questions: Sequence[str]) -> "Row":
        import numpy as np  # a tenth of a second

        new = [each for each in dict.fromkeys(questions) if each not in self._questions]
        made = dict(zip(new, _halved(embedder.embed(new)), strict=True)) if new else {}
        with self._lock:
            rows = [made[each] if each in made else self._questions[each] for each in questions]
            self._questions.update(made)
            while len(self._questions) > MOST_QUESTIONS:
                self._questions.popitem(last=False)
        return np.stack(rows if len(rows) == 1 else [*rows, _middle(rows)])

    def _compared(self, embedder: Embedder, asked: "Row", both: tuple[Texts, Texts]) -> Near:
        with self._lock:
            if self._rows is None:
                return Near(missing=sum(map(len, both)))
            if self._rows.width != asked.shape[1]:
                self._begin_anew(embedder)
            every = self._rows.compared(asked)
            texts, others = (self._rows.taken(every, each.hashes) for each in both)
        missing = texts.missing + others.missing
        if missing and self._hopeless:
            missing -= sum(sha in self._hopeless for each in both for sha in each.hashes)
        return Near(texts.cosines, others.cosines, missing)

    # -- making

    def _provide(self, embedder: Embedder, both: tuple[Texts, Texts], until: float) -> None:
        with self._lock:
            if not self._want(both):
                return
        making = self._aside.submit(lambda: self._make_until(embedder, until))
        with suppress(TooLate):
            making.result(_left(until))
        if self._wanted:
            self._behind.stir()

    def _want(self, both: tuple[Texts, Texts]) -> bool:
        """Whether anything is to be made."""
        if self._rows is not None and len(self._rows) > MOST_HELD + sum(map(len, both)):
            self._rows = None  # what is still needed is read again
        new_to_us = [each for each in both if self._rows is None or not self._rows.holds_all(each.hashes)]
        pairs = ((sha, said) for each in new_to_us for sha, said in zip(each.hashes, each.said, strict=True))
        known = self._hopeless | self._underway.keys()
        new = {sha: said for sha, said in pairs if sha not in known and (self._rows is None or sha not in self._rows)}
        self._wanted |= new
        return bool(new)

    def _make_until(self, embedder: Embedder, until: float) -> None:
        self._load(embedder)
        while self._wanted and time.monotonic() < until and not self._is_closed:
            self._make(embedder)

    def _make_behind(self) -> bool:
        embedder = self._embedder
        if embedder is None or self._is_closed or time.monotonic() < self._rests_until:
            return False
        try:
            self._make(embedder)
        except Exception as why:  # nobody would hear it in the thread where this runs
            self._rest(embedder, why)
            return False
        return bool(self._wanted)

    def _load(self, embedder: Embedder) -> None:
        """What was made before, by this process or another. A file that cannot be read only costs making it again."""
        import numpy as np  # a tenth of a second

        with self._lock:
            wanted = list(self._wanted)
        with self._filing as is_open, suppress(StoreError):
            found = self._kept.get(embedder.key, wanted, whole=True) if is_open else {}
            rows = {sha: np.frombuffer(found[sha], np.float16) for sha in wanted if found.get(sha)}
            self._put({sha: row.astype(np.float32) for sha, row in rows.items()})

    def _make(self, embedder: Embedder) -> None:
        with self._lock:
            some = dict(list(self._wanted.items())[:BATCH])
            for sha in some:
                del self._wanted[sha]
            self._underway |= some
        try:
            made = self._embedded(embedder, some) if some else {}
            if made and self._rows is not None and self._rows.width != len(next(iter(made.values()))):
                self._begin_anew(embedder)
        except BaseException:
            self._wanted |= some
            raise
        finally:
            with self._lock:
                for sha in some:
                    del self._underway[sha]
        self._put(made)
        self._hopeless |= some.keys() - made.keys()
        with self._filing as is_open, suppress(StoreError):
            if is_open:
                self._kept.keep(embedder.key, {sha: row.astype("float16").tobytes() for sha, row in made.items()}, 0)

    def _embedded(self, embedder: Embedder, some: Mapping[bytes, str]) -> "dict[bytes, Row]":
        """A batch that fails is tried text by text: one that cannot be embedded must not keep back the others."""
        known = {sha: row for sha, text in some.items() if (row := self._questions.get(text)) is not None}
        rest = {sha: text for sha, text in some.items() if sha not in known}
        try:
            made = dict(zip(rest, _halved(embedder.embed(list(rest.values()))), strict=True)) if rest else {}
        except RectoError:
            made = self._one_by_one(embedder, rest)
        return known | made

    def _one_by_one(self, embedder: Embedder, some: Mapping[bytes, str]) -> "dict[bytes, Row]":
        made: dict[bytes, Row] = {}
        why: RectoError | None = None
        for sha, text in some.items():
            try:
                made[sha] = _halved(embedder.embed([text]))[0]
            except RectoError as failed:
                why = failed
        if why is not None and not made:
            raise why
        return made

    def _begin_anew(self, embedder: Embedder) -> None:
        with self._lock:
            self._rows = None
            self._questions.clear()
        with self._filing as is_open, suppress(StoreError):
            if is_open:
                self._kept.forget(embedder.key)
        raise NoVectors(f"{embedder.name} gives vectors of another length than before, and all are made anew")

    def _put(self, made: "Mapping[bytes, Row]") -> None:
        from recto.search.rows import Rows  # numpy: a tenth of a second

        with self._lock:
            if made and self._rows is None:
                self._rows = Rows(len(next(iter(made.values()))))
            if self._rows is not None:
                self._rows.put(made)
            for sha in made:
                self._wanted.pop(sha, None)

    def settle(self, timeout_s: float) -> bool:
        """Waits until everything that was asked for has its vector; whether it has."""
        until = time.monotonic() + timeout_s
        while (self._wanted or self._underway) and max(time.monotonic(), self._rests_until) < until:
            time.sleep(0.005)
        return not self._wanted and not self._underway

    def close(self) -> None:
        self._is_closed = True
        self._aside.close()
        if self._embedder is not None:
            self._embedder.close()
        self._behind.close()
        with self._filing.shut():
            self._file.close()


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _middle(rows: "Sequence[Row]") -> "Row":
    import numpy as np  # a tenth of a second

    whole: Row = np.sum(rows, axis=0)
    return whole / max(float(np.linalg.norm(whole)), 1e-9)


def _halved(rows: "Row") -> "Row":
    """As they are kept: a vector is the same today and tomorrow."""
    return rows.astype("float16").astype("float32")
