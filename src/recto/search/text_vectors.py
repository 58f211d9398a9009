"""TextVectors: vectors of short texts, each made once and stored by its hash, and of recent questions.

Embedders differ in their range of cosines. Calibration measures that range with a few questions and answers, and puts
the cosines of all embedders on one scale.
"""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from recto.base.background import BackgroundWorker
from recto.base.concurrency import FileLock, WorkerThread
from recto.errors import NoVectors, RectoError, StoreError
from recto.search.embedder import Embedder, EmbedderPause, familiarity
from recto.search.index_file import IndexFile
from recto.search.vector_index import VectorStore

if TYPE_CHECKING:
    from recto.search.vector_table import Row, Rows

# Texts per call of the embedder, which is also the longest a question waits.
BATCH = 8
MAX_QUESTIONS = 256
# The number of vectors held in memory: sixty megabytes.
MAX_IN_MEMORY = 40_000


class HashedTexts(Struct, frozen=True):
    texts: tuple[str, ...] = ()
    hashes: tuple[bytes, ...] = ()

    @staticmethod
    def of(texts: Iterable[str]) -> "HashedTexts":
        # a lone surrogate, which JSON may contain, can be neither hashed nor embedded
        raw = [each.encode("utf-8", "replace") for each in texts]
        return HashedTexts(tuple(each.decode() for each in raw), tuple(hashlib.sha256(each).digest() for each in raw))

    @staticmethod
    def join(parts: Iterable["HashedTexts"]) -> "HashedTexts":
        all_parts = list(parts)
        texts = chain.from_iterable(each.texts for each in all_parts)
        return HashedTexts(tuple(texts), tuple(chain.from_iterable(each.hashes for each in all_parts)))

    def __len__(self) -> int:
        return len(self.texts)


NO_TEXTS = HashedTexts()


class Similarities(Struct, frozen=True):
    cosines: "Rows | None" = None
    """One row per text, one column per question, and one for their mean if there are several; NaN if a text has no
    vector yet. None if there are no vectors at all, or the embedder knows none of the questions' languages."""
    others: "Rows | None" = None
    """The same for the other texts."""
    missing: int = 0
    """The number of texts without a vector, not counting those that the embedder rejected."""
    warning: str = ""


class TextVectors:
    def __init__(self, path: Path, embedder: Callable[[], Embedder | None], *, timeout_s: float) -> None:
        self._file, self._file_lock = IndexFile(path), FileLock()
        self._open, self._timeout_s = embedder, timeout_s
        self._embedder: Embedder | None = None
        self._pause, self._is_closed = EmbedderPause(), False
        self._thread = WorkerThread("recto-sources")
        self._worker = BackgroundWorker(self._make_in_background, "recto-source-vectors")
        self._stuck: Future[Rows] | None = None
        self._lock, self._making = threading.RLock(), threading.Lock()
        """`_making`: no text is embedded twice."""
        self._pending: dict[bytes, str] = {}
        self._failed: set[bytes] = set()
        self._rows: dict[bytes, Row] = {}
        self._questions: OrderedDict[str, Row] = OrderedDict()

    @property
    def name(self) -> str:
        """The name of the embedder; empty if there is none, or before its first use."""
        return self._embedder.name if self._embedder is not None else ""

    # -- comparing

    def compare(self, questions: Sequence[str], texts: HashedTexts, others: HashedTexts = NO_TEXTS) -> Similarities:
        """Never raises. Makes missing vectors while time allows, and the rest in the background."""
        until = time.monotonic() + self._timeout_s
        try:
            with self._lock:
                embedder = self._embedder = self._embedder or self._open()
        except RectoError as why:
            return Similarities(warning=why.message.rstrip("."))
        if embedder is None:
            return Similarities()
        if problem := self._pause.problem:
            return Similarities(warning=problem)
        if self._stuck is not None and not self._stuck.done():
            return Similarities(warning=f"{embedder.name} is still busy with an earlier question")
        embedding = self._thread.submit(lambda: self._embed_questions(embedder, questions))
        try:
            rows = embedding.result(_time_left(until))
            if not any(familiarity(embedder, question) for question in questions):
                return Similarities()  # similarity means nothing in an unknown language
            self._provide(embedder, HashedTexts.join((texts, others)), until)
            return self._similarities(embedder, rows, texts, others)
        except TooLate:
            self._stuck = embedding
            return Similarities(warning=f"{embedder.name} did not answer within {self._timeout_s:g} s")
        except Exception as why:  # words still give an answer
            return Similarities(warning=self._pause.begin(embedder.name, why))

    def _embed_questions(self, embedder: Embedder, questions: Sequence[str]) -> "Rows":
        import numpy as np  # slow import

        new = [each for each in dict.fromkeys(questions) if each not in self._questions]
        made = dict(zip(new, _round_to_half(embedder.embed(new)), strict=True)) if new else {}
        with self._lock:
            rows = [made[each] if each in made else self._questions[each] for each in questions]
            self._questions.update(made)
            while len(self._questions) > MAX_QUESTIONS:
                self._questions.popitem(last=False)
        if len(rows) > 1:
            total: Row = np.sum(rows, axis=0)
            rows.append(total / max(float(np.linalg.norm(total)), 1e-9))
        return np.stack(rows)

    def _similarities(
        self, embedder: Embedder, questions: "Rows", texts: HashedTexts, others: HashedTexts
    ) -> Similarities:
        with self._lock:
            found, beside = (self._compare(embedder, questions, each.hashes) for each in (texts, others))
            missing = sum(sha not in self._rows and sha not in self._failed for sha in texts.hashes)
            return Similarities(found, beside, missing) if self._rows else Similarities(missing=missing)

    def _compare(self, embedder: Embedder, questions: "Rows", hashes: Sequence[bytes]) -> "Rows":
        import numpy as np  # slow import

        from recto.search.vector_table import compare

        cosines: Rows = np.full((len(hashes), len(questions)), np.nan, np.float32)
        if known := [at for at, sha in enumerate(hashes) if sha in self._rows]:
            rows = [self._rows[hashes[at]] for at in known]
            if {len(row) for row in rows} != {questions.shape[1]}:
                self._start_over(embedder)
            stacked = np.stack(rows)
            cosines[known] = np.stack([compare(stacked, question) for question in questions], axis=1)
        return cosines

    # -- making vectors

    def _provide(self, embedder: Embedder, texts: HashedTexts, until: float) -> None:
        with self._lock:
            if len(self._rows) > MAX_IN_MEMORY + len(texts):
                self._rows = {}  # read again if still needed
            pairs = zip(texts.hashes, texts.texts, strict=True)
            new = {sha: text for sha, text in pairs if sha not in self._rows and sha not in self._failed}
            self._pending |= new
        if not new:
            return
        making = self._thread.submit(lambda: self._make_until(embedder, until))
        with suppress(TooLate):
            making.result(_time_left(until))
        if self._pending:
            self._worker.wake()

    def _make_until(self, embedder: Embedder, until: float) -> None:
        self._load(embedder)
        while self._pending and time.monotonic() < until and not self._is_closed:
            self._make_batch(embedder)

    def _make_in_background(self) -> bool:
        embedder = self._embedder
        if embedder is None or self._is_closed or self._pause.problem:
            return False
        try:
            self._make_batch(embedder)
        except Exception as why:  # this runs in a background thread
            self._pause.begin(embedder.name, why)
            return False
        return bool(self._pending)

    def _load(self, embedder: Embedder) -> None:
        """Read stored vectors, written by any process. If the file cannot be read, they are made again."""
        with self._lock:
            pending = list(self._pending)
        with self._file_lock as is_open, suppress(StoreError):
            if is_open:
                found = self._file.run(lambda: self._stored(embedder, pending))
                self._put(found, found)

    def _stored(self, embedder: Embedder, hashes: Sequence[bytes]) -> "dict[bytes, Row]":
        import numpy as np  # slow import

        with self._file.interpreting():
            found = VectorStore(self._file, embedder.key).get(hashes)
            return {sha: np.frombuffer(found[sha], np.float16).astype(np.float32) for sha in hashes if found.get(sha)}

    def _make_batch(self, embedder: Embedder) -> None:
        with self._making:
            with self._lock:
                batch = dict(islice(self._pending.items(), BATCH))
            if not batch:
                return
            made = self._embed(embedder, batch)
            self._failed |= batch.keys() - made.keys()
            self._put(made, batch)
            with self._file_lock as is_open, suppress(StoreError):
                if is_open:
                    packed = {sha: row.astype("float16").tobytes() for sha, row in made.items()}
                    VectorStore(self._file, embedder.key).put(packed)

    def _embed(self, embedder: Embedder, batch: Mapping[bytes, str]) -> "dict[bytes, Row]":
        """Retry a failed batch text by text, so that one bad text does not hold up the others."""
        made = {sha: row for sha, text in batch.items() if (row := self._questions.get(text)) is not None}
        rest = {sha: text for sha, text in batch.items() if sha not in made}
        if not rest:
            return made
        with suppress(RectoError):
            return made | dict(zip(rest, _round_to_half(embedder.embed(list(rest.values()))), strict=True))
        failure: RectoError | None = None
        for sha, text in rest.items():
            try:
                made[sha] = _round_to_half(embedder.embed([text]))[0]
            except RectoError as why:
                failure = why
        if failure is not None and made.keys().isdisjoint(rest):
            raise failure
        return made

    def _start_over(self, embedder: Embedder) -> None:
        with self._lock:
            self._rows = {}
            self._questions.clear()
        with self._file_lock as is_open, suppress(StoreError):
            if is_open:
                VectorStore(self._file, embedder.key).forget()
        raise NoVectors(f"{embedder.name} now returns vectors of another length; all vectors are being rebuilt")

    def _put(self, made: "Mapping[bytes, Row]", done: Iterable[bytes]) -> None:
        with self._lock:
            self._rows |= made
            for sha in done:
                self._pending.pop(sha, None)

    def settle(self, timeout_s: float) -> bool:
        """Wait until every requested vector is made; return True if that happened in time."""
        until = time.monotonic() + timeout_s
        while self._pending and not self._pause.problem and time.monotonic() < until:
            time.sleep(0.005)
        return not self._pending

    def close(self) -> None:
        self._is_closed = True
        self._thread.close()
        if self._embedder is not None:
            self._embedder.close()
        self._worker.close()
        with self._file_lock.shut():
            self._file.close()


def _time_left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _round_to_half(rows: "Rows") -> "Rows":
    """Round to the stored precision, so that storing a vector does not change it."""
    return rows.astype("float16").astype("float32")


# Each question is answered by the text at the same position, and by no other.
SAMPLE_QUESTIONS = (
    "How do I cancel my train ticket?",
    "What is the temperature in the cellar?",
    "Send the report to my boss.",
    "Who painted the picture in the hall?",
    "Delete the photos from last summer.",
    "Which bus goes to the harbour?",
    "Translate the letter into Italian.",
    "How much sugar is in the jam?",
)
SAMPLE_TEXTS = (
    "Tickets for the railway can be returned up to a day before departure.",
    "Reads the thermometer of a room.",
    "Sends a file by mail to a person.",
    "Paintings of the collection, with the artist of each.",
    "Removes images from the album for good.",
    "Timetable of the buses with all stops at the port.",
    "Renders a text in another language.",
    "Recipes for preserves with the weight of each ingredient.",
)
# Embedders that hardly separate the samples are not rescaled.
_MIN_SPAN = 0.05


class Calibration(Struct, frozen=True):
    unrelated: float
    """The mean cosine of unrelated texts."""
    related: float
    """The mean cosine of a question and its answer."""

    def rescale(self, cosines: "Rows") -> "Rows":
        span = self.related - self.unrelated
        if span < _MIN_SPAN:
            return cosines
        stretch = (MINILM_CALIBRATION.related - MINILM_CALIBRATION.unrelated) / span
        return (cosines - self.unrelated) * stretch + MINILM_CALIBRATION.unrelated


def calibrate(cosines: "Rows") -> Calibration:
    """Calibrate an embedder by its sample cosines: one row per text, one column per question."""
    import numpy as np  # slow import

    size = len(SAMPLE_TEXTS)
    grid = cosines[:size, :size]
    same = np.eye(size, dtype=bool)
    return Calibration(float(grid[~same].mean()), float(grid[same].mean()))


MINILM_CALIBRATION = Calibration(unrelated=0.0428, related=0.4336)
