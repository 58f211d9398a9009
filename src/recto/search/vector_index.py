"""VectorIndex: finds passages by meaning. Vectors are made in the background, batch by batch, and stored by hash.

Nothing waits for them: while passages that match a query have no vector, words alone decide (finder.py). Numpy is
imported only where vectors are compared.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from typing import TYPE_CHECKING

from msgspec import Struct, field

from recto.base.background import in_background
from recto.base.concurrency import WorkerThread
from recto.errors import NoVectors, RectoError
from recto.search.embedder import MINILM, MULTILINGUAL, Embedder, familiarity
from recto.search.index_item import HASH_BYTES, embedded_text
from recto.search.keyword_index import KeywordIndex, Passage
from recto.search.nearest import Nearest, VectorAnswer
from recto.search.partition import MAX_CACHED_PARTITIONS, keep_recent
from recto.search.ranking import MULTILINGUAL_STRETCH
from recto.search.vector_store import VectorStore

if TYPE_CHECKING:
    import numpy as np

    from recto.search.vector_table import VectorMatrix

log = logging.getLogger(__name__)

# Texts per call of the embedder: a batch that fails or is stopped is all that is lost.
BATCH = 32
# The pause after a failure.
RETRY_AFTER_S = 60.0
# A search everywhere skips vectors beyond this: they would take more than 150 megabytes of memory.
MAX_PASSAGES_EVERYWHERE = 100_000
# One vector for so many passages is too few to read any.
MIN_SHARE = 4
# Where more passages than these wait for their vectors, as after an import, a question is not embedded either.
MANY_WAITING = 2000
# A vector is stored in two bytes per number.
BYTES_PER_NUMBER = 2

ReadTexts = Callable[[Sequence[Passage]], Mapping[int, str]]
"""Provides the texts of passages, by their numbers: an index holds none."""


class PartitionVectors(Struct):
    """A partition's vectors in memory."""

    matrix: "VectorMatrix | None" = None
    """None as long as no passage has a vector."""
    change_id: str = ""
    queue_end: int = 0
    removal_id: str = ""
    missing: dict[int, bytes] = field(default_factory=dict)
    """Passages that have no vector yet, and their hashes; without those that the embedder rejected."""


class VectorIndex:
    def __init__(self, index: KeywordIndex, embedder: Embedder, read: ReadTexts, *, timeout_s: float = 2.0) -> None:
        self._index, self._embedder, self._read = index, embedder, read
        self._store = VectorStore(index.file)
        self._timeout_s = timeout_s
        self._thread = WorkerThread("recto-meaning")
        self._running: Future[Nearest] | None = None
        self._prepared: Future[tuple[str, np.ndarray]] | None = None
        self._partitions: dict[int | None, PartitionVectors] = {}
        self._paused_until = 0.0
        self._problem = ""

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def waiting(self) -> int:
        """How many passages the embedder has not seen yet."""
        return self._store.waiting_count(self._embedder.key)

    @property
    def to_make(self) -> int:
        """How many vectors are left to make, whether searches wait for them or not."""
        return self.waiting

    @property
    def count(self) -> int:
        """How many vectors there are."""
        return self._store.counts().get(self._embedder.key, 0)

    @property
    def problem(self) -> str:
        """The last failure; empty once the embedder may be called again."""
        return self._problem if time.monotonic() < self._paused_until else ""

    def check(self) -> str:
        """Calls the embedder, whatever failed before. Returns the problem, or an empty text."""
        try:
            self._embedder.embed(["."])
        except RectoError as why:
            self._pause(why.message)
        else:
            self._paused_until = 0.0
        return self.problem

    # -- searching

    def prepare(self, text: Callable[[], str]) -> None:
        """Embeds a question in the background, before its search begins."""
        if time.monotonic() >= self._paused_until:
            self._prepared = self._thread.submit(lambda: self._embedded_ahead(text))

    def _embedded_ahead(self, text: Callable[[], str]) -> "tuple[str, np.ndarray]":
        if self._waits_for_many(None):
            raise NoVectors("most passages wait for their vectors")
        return self._embedded(text())

    def _embedded(self, text: str) -> "tuple[str, np.ndarray]":
        return text, self._embedder.embed([text])[0]

    def nearest(self, text: str, partition: int | None) -> VectorAnswer:
        """Starts at once; the answer waits for the similarity of the nearest passages, or says why there is none."""
        if time.monotonic() < self._paused_until:
            return lambda: _by_words(self._problem)
        if self._running is not None and not self._running.done():
            return lambda: _by_words(f"{self.name} is still busy with an earlier question")
        if partition is None and self._index.queue_end > MAX_PASSAGES_EVERYWHERE:
            return lambda: _by_words(f"there are more than {MAX_PASSAGES_EVERYWHERE:,} passages")
        began = time.monotonic()
        running = self._running = self._thread.submit(lambda: self._find_nearest(text, partition))
        return lambda: self._wait(running, self._timeout_s - (time.monotonic() - began))

    def familiarity(self, text: str) -> float:
        """How far the embedder knows the language of a text, from 0 to 1."""
        return familiarity(self._embedder, text)

    def _wait(self, running: "Future[Nearest]", timeout_s: float) -> Nearest:
        try:
            return running.result(max(0.0, timeout_s))
        except TooLate:
            return _by_words(f"{self.name} did not answer within {self._timeout_s:g} s")
        except RectoError as why:
            self._pause(why.message)
        except Exception as why:  # words still give an answer
            log.exception("searching by meaning failed")
            self._pause(f"{self.name} failed ({type(why).__name__}: {why})")
        return _by_words(self._problem)

    def _pause(self, problem: str) -> None:
        self._paused_until = time.monotonic() + RETRY_AFTER_S
        self._problem = problem.rstrip(".")

    @property
    def progress(self) -> str:
        """How many vectors are made, in words; empty while only a few are missing."""
        waiting, count = self.waiting, self._index.extent(None).passages
        if waiting <= BATCH:
            return ""
        return f"search uses words only until vectors are ready: {max(0, count - waiting):,} of {count:,}"

    def _find_nearest(self, text: str, partition: int | None) -> Nearest:
        import numpy as np  # takes a tenth of a second

        known = familiarity(self._embedder, text)
        if self._waits_for_many(partition):
            return Nearest(warning=self.progress if known else "")
        # the embedder before the vectors: its failure should show even if there is nothing to compare yet
        question = np.asarray(self._question(text), dtype=np.float32)
        if not known:
            return Nearest()
        progress = self.progress
        if self._has_few(partition):
            return Nearest(warning=progress)
        vectors = self._index.file.run(lambda: self._read_partition(partition))
        if vectors.matrix is None:
            return Nearest(warning=progress)
        if vectors.matrix.length != len(question):
            self._store.forget(self._embedder.key)
            self._partitions.clear()
            raise NoVectors(f"{self.name} now makes vectors of another length; all are being made again")
        # in a language that the embedder does not know, what is near means nothing
        stretch = MULTILINGUAL_STRETCH if self.name == MULTILINGUAL else 1.0
        near = vectors.matrix.nearest(question * np.float32(known * stretch))
        return Nearest(near, missing=vectors.missing, progress=progress, known=known)

    def _waits_for_many(self, partition: int | None) -> bool:
        """Whether a question need not be embedded: most passages wait for their vectors, and there are very many."""
        return self.waiting > MANY_WAITING and self._has_few(partition)

    def _has_few(self, partition: int | None) -> bool:
        """Whether most passages certainly wait for their vectors, so that none need be read."""
        if partition in self._partitions:
            return False
        count = self._index.extent(partition).passages
        return 2 * self.waiting > count and not self._store.has_at_least(self._embedder.key, count // MIN_SHARE)

    def _question(self, text: str) -> "np.ndarray":
        prepared, self._prepared = self._prepared, None
        # made in this thread, so it is done
        if prepared is not None and prepared.exception() is None and prepared.result()[0] == text:
            return prepared.result()[1]
        return self._embedded(text)[1]

    def _read_partition(self, partition: int | None) -> PartitionVectors:
        """The vectors in memory, extended by what was added or got its vector since the last time."""
        change_id, cached = self._index.file.change_id, self._partitions.get(partition) or PartitionVectors()
        keep_recent(self._partitions, partition, cached, MAX_CACHED_PARTITIONS)
        if cached.change_id == change_id:
            return cached
        removal_id, queue_end = self._index.mark("removed"), self._index.queue_end
        if cached.queue_end and removal_id != cached.removal_id:
            cached = self._partitions[partition] = PartitionVectors()
        with self._index.file.interpreting():
            if cached.queue_end or not self._load(cached, partition):
                # a new one: an answer may hold the other
                cached.missing = cached.missing | dict(self._index.hashes(partition, cached.queue_end))
            self._extend(cached)
        cached.change_id, cached.queue_end, cached.removal_id = change_id, queue_end, removal_id
        return cached

    def _load(self, cached: PartitionVectors, partition: int | None) -> bool:
        """Reads all vectors at once. False where single ones are faster: most of the vectors belong elsewhere."""
        from recto.search.vector_table import HashTable, VectorMatrix, unpack  # imports numpy

        numbers, hashes = self._index.packed_hashes(partition)
        count = numbers.count(",") + 1
        is_most = 2 * count > self._index.queue_end
        if not numbers or not is_most or len(hashes) != count * HASH_BYTES:
            return False
        table = HashTable(numbers, hashes)
        for found in self._store.packed(self._embedder.key):
            cached.matrix = cached.matrix or VectorMatrix(found.size // BYTES_PER_NUMBER, count)
            own, places = table.take(found.hashes)
            cached.matrix.put_rows(own, unpack(found.vectors, cached.matrix.length)[places])
        cached.missing = table.left
        return True

    def _extend(self, cached: PartitionVectors) -> None:
        """Adds the vectors of the passages without one, as far as there are any."""
        from recto.search.vector_table import VectorMatrix  # imports numpy: takes a tenth of a second

        numbers: dict[bytes, list[int]] = {}
        for number, sha in cached.missing.items():
            numbers.setdefault(sha, []).append(number)
        for found in self._store.batches(self._embedder.key, list(numbers), prefer_full_read=cached.matrix is None):
            vectors = [(sha, vector) for sha, vector in found.items() if vector and sha in numbers]
            if vectors and cached.matrix is None:
                cached.matrix = VectorMatrix(max(len(vector) for _, vector in vectors) // BYTES_PER_NUMBER)
            if cached.matrix is not None:
                size = cached.matrix.length * BYTES_PER_NUMBER
                ready = [(number, vec) for sha, vec in vectors if len(vec) == size for number in numbers[sha]]
                cached.matrix.put([number for number, _ in ready], [vector for _, vector in ready])
                for number, _ in ready:
                    del cached.missing[number]
            # a text that the embedder rejects never gets a vector: waiting for it would turn similarity off for good
            for number in (each for sha, vector in found.items() if not vector for each in numbers.get(sha, ())):
                del cached.missing[number]

    # -- making vectors

    def make_batch(self, threads: int = 1) -> int:
        """Makes one batch of vectors, on several processors if somebody waits for it. Returns 0 if nothing is left, or
        if the embedder fails. Never raises."""
        if time.monotonic() < self._paused_until:
            return 0
        try:
            return self._make_batch(threads)
        except RectoError as why:
            self._pause(why.message)
        except Exception as why:  # this runs in a background thread
            log.exception("making vectors failed")
            self._pause(f"{self.name} failed ({type(why).__name__}: {why})")
        return 0

    def _make_batch(self, threads: int) -> int:
        passages, done = self._index.file.run(self._waiting)
        if not done:
            return 0
        read = self._read(passages)
        texts = {each.sha: embedded_text(read[each.number], each.speaker) for each in passages if each.number in read}
        self._store.put(self._embedder.key, self._embed(texts, threads), done)
        return max(1, len(texts))

    def _waiting(self) -> tuple[list[Passage], int]:
        with self._index.file.interpreting():
            return self._store.waiting(self._embedder.key, BATCH)

    def _embed(self, texts: Mapping[bytes, str], threads: int) -> dict[bytes, bytes]:
        """Retries a failed batch text by text, so that one bad text does not hold up the others."""
        if not texts:
            return {}
        try:
            rows = self._rows(list(texts.values()), threads)
        except RectoError:
            return self._embed_one_by_one(texts)
        return {sha: _pack(row) for sha, row in zip(texts, rows, strict=True)}

    def _rows(self, texts: Sequence[str], threads: int) -> "Sequence[np.ndarray]":
        """A server is asked once: it divides the work itself."""
        threads = min(threads, len(texts))
        if threads == 1 or self.name not in (MINILM, MULTILINGUAL):
            return list(self._embedder.embed(texts))
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(self._part, (texts[start::threads] for start in range(threads))))
        return [parts[place % threads][place // threads] for place in range(len(texts))]

    def _part(self, texts: Sequence[str]) -> "np.ndarray":
        with in_background():
            return self._embedder.embed(texts)

    def _embed_one_by_one(self, texts: Mapping[bytes, str]) -> dict[bytes, bytes]:
        """Empty bytes for a text that fails while others do not. If the embedder itself fails, the vectors made so far
        are stored, and the rest has to wait."""
        made: dict[bytes, bytes] = {}
        for sha, text in texts.items():
            try:
                made[sha] = _pack(self._embedder.embed([text])[0])
            except RectoError:
                made[sha] = b""
                if problem := self.check():
                    self._store.put(self._embedder.key, {key: row for key, row in made.items() if row}, 0)
                    raise NoVectors(problem) from None
        return made

    def close(self) -> None:
        self._thread.close()
        self._embedder.close()


def _by_words(why: str) -> Nearest:
    return Nearest(warning=f"{why}: words alone were searched")


def _pack(row: "np.ndarray") -> bytes:
    return row.astype("float16").tobytes()
