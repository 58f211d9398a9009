"""VectorIndex: finds passages by meaning. Vectors are made in the background in batches, and stored by hash.

Searches do not wait for them: while passages that match a query have no vector, words alone decide (finder.py). Of two
embedders, the first is fast and knows many languages, so its vectors come first. The second is better at English: until
its vectors are complete, the first counts alone.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.background import in_background
from recto.base.concurrency import WorkerThread
from recto.errors import NoVectors, RectoError
from recto.search.embedder import (
    LOCAL,
    MINILM,
    MULTILINGUAL,
    MULTILINGUAL_STRETCH,
    Embedder,
    EmbedderPause,
    familiarity,
)
from recto.search.index_file import IndexFile
from recto.search.keyword_index import KeywordIndex, Passage, embedded_text, keep_recent

if TYPE_CHECKING:
    from recto.search.vector_table import Row, Rows, VectorMatrix

# Texts per call of the embedder, and the most that a failure or a stop loses.
BATCH = 32
# A search everywhere skips vectors beyond this: they would take more than 150 megabytes of memory.
MAX_PASSAGES_EVERYWHERE = 100_000
# With fewer than one vector per this many passages, none are read.
MIN_SHARE = 4
# While more passages than this wait for vectors, as after an import, questions are not embedded either.
MANY_WAITING = 2000
# Vectors are stored as float16.
BYTES_PER_NUMBER = 2
# Every build of SQLite accepts this many parameters.
_MAX_PARAMETERS = 500
# Reading all vectors takes half as long as reading most of them one by one.
_MIN_FULL_READ, _READ_AT_ONCE = 2000, 4000
_OWN = "FROM vectors WHERE embedder = (SELECT n FROM embedders WHERE key = ?)"
_DONE = "coalesce((SELECT done FROM embedders WHERE key = ?), 0)"

ReadTexts = Callable[[Sequence[Passage]], Mapping[int, str]]


class VectorStore:
    """The vectors of an embedder as bytes, by the hashes of their texts; none is made twice."""

    def __init__(self, file: IndexFile, embedder: str) -> None:
        self._file, self._key = file, embedder

    def get(self, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors of these hashes, and maybe others; empty bytes for a text that could not be embedded."""
        return dict(chain.from_iterable(batch.items() for batch in self.batches(hashes)))

    def batches(self, hashes: Sequence[bytes]) -> Iterator[dict[bytes, bytes]]:
        """The same in parts, so that vectors to be converted are not all held twice."""
        if len(hashes) > _MIN_FULL_READ and len(hashes) * 2 > self.count:
            query, last = f"SELECT sha, vector {_OWN} AND sha > ? ORDER BY sha LIMIT ?", b""
            while rows := self._file.read(query, (self._key, last, _READ_AT_ONCE)):
                yield dict(rows)
                last = rows[-1][0]
            return
        for start in range(0, len(hashes), _MAX_PARAMETERS):
            batch = hashes[start : start + _MAX_PARAMETERS]
            query = f"SELECT sha, vector {_OWN} AND sha IN ({','.join('?' * len(batch))})"
            yield dict(self._file.read(query, (self._key, *batch)))

    @property
    def count(self) -> int:
        return int(self._file.read(f"SELECT count(*) {_OWN}", (self._key,))[0][0])

    def has_at_least(self, count: int) -> bool:
        """The same as comparing `count`, without counting all."""
        return count <= 0 or bool(self._file.read(f"SELECT 1 {_OWN} LIMIT 1 OFFSET ?", (self._key, count - 1)))

    @property
    def waiting(self) -> int:
        """The number of passages that the embedder has not seen."""
        return max(0, int(self._file.read(f"SELECT coalesce(max(n), 0) - {_DONE} FROM queue", (self._key,))[0][0]))

    def next_passages(self, limit: int) -> tuple[list[int], int]:
        """The oldest passages that the embedder has not seen, and the queue number to pass to `put`; 0 if nothing is
        waiting."""
        query = f"SELECT n, passage FROM queue WHERE n > {_DONE} ORDER BY n LIMIT ?"
        queued = self._file.read(query, (self._key, limit))
        return [passage for _, passage in queued], queued[-1][0] if queued else 0

    def put(self, vectors: Mapping[bytes, bytes], done: int = 0) -> None:
        """Store vectors by the hashes of their texts, and the queue number up to which the embedder is done."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR IGNORE INTO embedders (key) VALUES (?)", (self._key,))
            number = db.execute("SELECT n FROM embedders WHERE key = ?", (self._key,)).fetchone()[0]
            rows = [(number, sha, vector) for sha, vector in vectors.items()]
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            db.execute("UPDATE embedders SET done = max(done, ?) WHERE n = ?", (done, number))

        self._file.write(write)

    def forget(self) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute(f"DELETE {_OWN}", (self._key,))
            db.execute("UPDATE embedders SET done = 0 WHERE key = ?", (self._key,))

        self._file.write(write)


class Nearest(Struct, frozen=True):
    similarity: Mapping[int, float] = {}
    """Of the nearest passages, nearest first."""
    warning: str = ""
    missing: Collection[int] = ()
    progress: str = ""
    """The number of vectors made, shown if the missing ones matter; empty while only a few are missing."""
    known: float = 1.0
    """How well the embedder knows the language of the query, from 0 to 1; already applied to the similarity."""
    beside: "Nearest | None" = None
    """The same by a second embedder, which knows fewer languages."""

    def complete_for(self, passages: Collection[int]) -> "Nearest":
        """Drop embedders that have not seen all of these passages: others would win just by having vectors."""
        beside = self.beside.complete_for(passages) if self.beside else None
        if not self.similarity or not any(each in self.missing for each in passages):
            return replace(self, beside=beside)
        return beside if beside and beside.similarity else Nearest(warning=self.progress)

    def in_language(self, known: float, unknown: Collection[int] = ()) -> Mapping[int, float]:
        """The similarity among texts whose language the last embedder knows to this degree, nearest first; `unknown`
        are its passages in languages that it does not know. The second embedder counts as far as it knows the
        languages of query and texts."""
        if self.beside is None:
            if known == 1:
                return self.similarity
            return {each: known * near for each, near in self.similarity.items()} if known else {}
        first, second, share = self.similarity, self.beside.similarity, known * self.beside.known
        if not (share and second):
            return first
        # a passage missing among the nearest of one embedder is at most as near as the last of them
        lowest, lowest_second = min(first.values()), min(second.values())
        joined = {
            each: (first.get(each, lowest) + known * second.get(each, lowest_second)) / (1 + share)
            for each in {**first, **second}
        } | {each: first[each] for each in unknown}
        return dict(sorted(joined.items(), key=lambda pair: -pair[1]))


VectorAnswer = Callable[[], Nearest]


class PartitionVectors(Struct):
    matrix: "VectorMatrix | None" = None
    """None until a passage has a vector."""
    change_id: str = ""
    queue_end: int = 0
    removal_id: str = ""
    missing: dict[int, bytes] = field(default_factory=dict)
    """Passages without a vector and their hashes, except those that the embedder rejected."""


class VectorIndex:
    """Counts and problems are those of the first embedder, which searches need."""

    def __init__(
        self,
        index: KeywordIndex,
        embedder: Embedder,
        read: ReadTexts,
        *,
        timeout_s: float = 2.0,
        beside: "VectorIndex | None" = None,
    ) -> None:
        """`beside` has the vectors of the second embedder."""
        self._index, self._embedder, self._read = index, embedder, read
        self._beside, self._timeout_s = beside, timeout_s
        self._store, self._pause = VectorStore(index.file, embedder.key), EmbedderPause()
        self._thread = WorkerThread("recto-meaning")
        self._running: Future[Nearest] | None = None
        self._partitions: dict[int | None, PartitionVectors] = {}

    @property
    def name(self) -> str:
        return LOCAL if self._beside else self._embedder.name

    @property
    def waiting(self) -> int:
        return self._store.waiting

    @property
    def to_make(self) -> int:
        """The number of vectors left to make, including those that no search waits for."""
        return self.waiting + (self._beside.to_make if self._beside else 0)

    @property
    def count(self) -> int:
        return self._store.count

    @property
    def problem(self) -> str:
        return self._pause.problem

    def check(self) -> str:
        """Call all embedders, even after failures. Returns a problem, or an empty text."""
        try:
            self._embedder.embed(["."])
        except RectoError as why:
            self._pause.begin(self._embedder.name, why)
        else:
            self._pause.end()
        beside = self._beside.check() if self._beside else ""
        return self.problem or beside

    # -- searching

    def nearest(self, text: str, partition: int | None) -> VectorAnswer:
        """Start immediately; the answer waits for the similarity of the nearest passages, or says why there is none."""
        answer = self._nearest(text, partition)
        if self._beside is None:
            return answer
        beside = self._beside.nearest(text, partition)

        def both() -> Nearest:
            found, other = answer(), beside()
            if found.similarity:
                return replace(found, beside=other)
            return other if other.similarity else found

        return both

    def _nearest(self, text: str, partition: int | None) -> VectorAnswer:
        if problem := self._pause.problem:
            return lambda: _by_words(problem)
        if self._running is not None and not self._running.done():
            return lambda: _by_words(f"{self._embedder.name} is still busy with an earlier question")
        if partition is None and self._index.queue_end > MAX_PASSAGES_EVERYWHERE:
            return lambda: _by_words(f"there are more than {MAX_PASSAGES_EVERYWHERE:,} passages")
        began = time.monotonic()
        running = self._running = self._thread.submit(lambda: self._find_nearest(text, partition))
        return lambda: self._wait(running, self._timeout_s - (time.monotonic() - began))

    def familiarity(self, text: str) -> float:
        """How much similarity counts for texts in the language of this one; of two embedders, for the second."""
        return self._beside.familiarity(text) if self._beside else familiarity(self._embedder, text)

    def _wait(self, running: "Future[Nearest]", timeout_s: float) -> Nearest:
        try:
            return running.result(max(0.0, timeout_s))
        except TooLate:
            return _by_words(f"{self._embedder.name} did not answer within {self._timeout_s:g} s")
        except Exception as why:  # words still give an answer
            return _by_words(self._pause.begin(self._embedder.name, why))

    @property
    def progress(self) -> str:
        """The number of vectors made, as a text; empty while only a few are missing."""
        waiting, count = self.waiting, self._index.extent(None).passages
        if waiting <= BATCH:
            return ""
        return f"search uses words only until vectors are ready: {max(0, count - waiting):,} of {count:,}"

    def _find_nearest(self, text: str, partition: int | None) -> Nearest:
        known = familiarity(self._embedder, text)
        if self._waits_for_many(partition):
            return Nearest(warning=self.progress if known else "")
        # embed first, so that a failure shows even if there is nothing to compare yet
        question = self._question(text)
        if not known:
            return Nearest()
        progress = self.progress
        if self._has_few(partition):
            return Nearest(warning=progress)
        vectors = self._index.file.run(lambda: self._read_partition(partition))
        if vectors.matrix is None:
            return Nearest(warning=progress)
        if vectors.matrix.length != len(question):
            self._store.forget()
            self._partitions.clear()
            name = self._embedder.name
            raise NoVectors(f"{name} now returns vectors of another length; all vectors are being rebuilt")
        # similarity means nothing in a language that the embedder does not know
        stretch = MULTILINGUAL_STRETCH if self._embedder.name == MULTILINGUAL else 1.0
        near = vectors.matrix.nearest((question * (known * stretch)).astype("float32"))
        return Nearest(near, missing=vectors.missing, progress=progress, known=known)

    def _waits_for_many(self, partition: int | None) -> bool:
        """True if a question need not be embedded: most passages, and very many, wait for their vectors."""
        return self.waiting > MANY_WAITING and self._has_few(partition)

    def _has_few(self, partition: int | None) -> bool:
        """True if most passages certainly lack vectors, so that none need be read."""
        if partition in self._partitions:
            return False
        count = self._index.extent(partition).passages
        return 2 * self.waiting > count and not self._store.has_at_least(count // MIN_SHARE)

    def _question(self, text: str) -> "Row":
        question: Row = self._embedder.embed([text])[0]
        return question

    def _read_partition(self, partition: int | None) -> PartitionVectors:
        """The vectors in memory, extended by those added since the last call."""
        change_id, cached = self._index.file.change_id, self._partitions.get(partition) or PartitionVectors()
        if cached.change_id != change_id:
            removal_id, queue_end = self._index.mark("removed"), self._index.queue_end
            if cached.change_id and removal_id != cached.removal_id:
                cached = PartitionVectors()
            with self._index.file.interpreting():
                # a new mapping: an answer may hold the old one
                cached.missing = cached.missing | dict(self._index.hashes(partition, cached.queue_end))
                self._extend(cached)
            cached.change_id, cached.queue_end, cached.removal_id = change_id, queue_end, removal_id
        keep_recent(self._partitions, partition, cached)
        return cached

    def _extend(self, cached: PartitionVectors) -> None:
        """Add the vectors that passages have got since."""
        from recto.search.vector_table import VectorMatrix  # imports numpy

        numbers: dict[bytes, list[int]] = {}
        for number, sha in cached.missing.items():
            numbers.setdefault(sha, []).append(number)
        for found in self._store.batches(list(numbers)):
            vectors = [(sha, vector) for sha, vector in found.items() if vector and sha in numbers]
            if vectors and cached.matrix is None:
                length = max(len(vector) for _, vector in vectors) // BYTES_PER_NUMBER
                cached.matrix = VectorMatrix(length, len(cached.missing))
            if cached.matrix is not None:
                size = cached.matrix.length * BYTES_PER_NUMBER
                ready = {number: vec for sha, vec in vectors if len(vec) == size for number in numbers[sha]}
                cached.matrix.put(list(ready), list(ready.values()))
                for number in ready:
                    del cached.missing[number]
            # a text that the embedder rejects never gets a vector: waiting for it would disable similarity for good
            for number in (each for sha, vector in found.items() if not vector for each in numbers.get(sha, ())):
                del cached.missing[number]

    # -- making vectors

    def make_batch(self, threads: int = 1) -> int:
        """Make a batch of vectors, on several processors if somebody waits; of the second embedder once the first has
        seen everything. Returns 0 if nothing is left or the embedder fails. Never raises."""
        made = 0
        if not self._pause.problem:
            try:
                made = self._make_batch(threads)
            except Exception as why:  # this runs in a background thread
                self._pause.begin(self._embedder.name, why)
        return made or (self._beside.make_batch(threads) if self._beside else 0)

    def _make_batch(self, threads: int) -> int:
        passages, done = self._index.file.run(self._waiting)
        if not done:
            return 0
        read = self._read(passages)
        texts = {each.sha: embedded_text(read[each.number], each.speaker) for each in passages if each.number in read}
        self._store.put(self._embed(texts, threads), done)
        return max(1, len(texts))

    def _waiting(self) -> tuple[list[Passage], int]:
        """The oldest passages that the embedder has not seen, except those with a vector."""
        with self._index.file.interpreting():
            numbers, done = self._store.next_passages(BATCH)
            passages = self._index.passages(numbers).values()
            known = self._store.get(list({passage.sha for passage in passages}))
            return [each for each in passages if each.sha not in known], done

    def _embed(self, texts: Mapping[bytes, str], threads: int) -> dict[bytes, bytes]:
        """Retry a failed batch text by text, so that one bad text does not hold up the others."""
        with suppress(RectoError):
            rows = self._rows(list(texts.values()), threads) if texts else []
            return {sha: _pack(row) for sha, row in zip(texts, rows, strict=True)}
        # Empty bytes mark a text that fails while others do not. If the embedder itself fails, the vectors made so far
        # are stored, and the rest must wait.
        made: dict[bytes, bytes] = {}
        for sha, text in texts.items():
            try:
                made[sha] = _pack(self._embedder.embed([text])[0])
            except RectoError:
                made[sha] = b""
                try:
                    self._embedder.embed(["."])
                except RectoError:
                    self._store.put({key: row for key, row in made.items() if row})
                    raise
        return made

    def _rows(self, texts: Sequence[str], threads: int) -> "Sequence[Row]":
        """Send a server a single request: it divides the work itself."""
        threads = min(threads, len(texts))
        if threads == 1 or self._embedder.name not in (MINILM, MULTILINGUAL):
            return list(self._embedder.embed(texts))

        def part(start: int) -> "Rows":
            with in_background():
                return self._embedder.embed(texts[start::threads])

        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(part, range(threads)))
        return [parts[place % threads][place // threads] for place in range(len(texts))]

    def close(self) -> None:
        self._thread.close()
        self._embedder.close()
        if self._beside:
            self._beside.close()


def _by_words(why: str) -> Nearest:
    return Nearest(warning=f"{why}: searched by words only")


def _pack(row: "Row") -> bytes:
    return row.astype("float16").tobytes()
