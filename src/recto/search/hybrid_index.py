"""HybridIndex: a keyword index with its finder, and with vectors and translations if there are embedders."""

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from recto.base.background import in_background
from recto.errors import RectoError
from recto.search.embedder import MULTILINGUAL, Embedder, LocalEmbedder
from recto.search.finder import Finder
from recto.search.keyword_index import KeywordIndex, text_hash
from recto.search.terms import STOP_WORDS, folded_text
from recto.search.vector_index import ReadTexts, VectorIndex, VectorStore

if TYPE_CHECKING:
    from recto.search.embedder import Vectors

PROGRESS_INTERVAL_S = 0.1
# Vectors are made on up to this many processors, at a lower priority than turns.
THREADS = min(os.cpu_count() or 1, 8)

OpenEmbedder = Callable[[], Embedder | None]
Progress = Callable[[int, int], object]
"""Called with the number done and the total."""


class HybridIndex:
    def __init__(
        self, path: Path, embedder: OpenEmbedder, read: ReadTexts, *, timeout_s: float, keeps_texts: bool = False
    ) -> None:
        self.keywords = KeywordIndex(path, keeps_texts=keeps_texts)
        self.finder = Finder(self.keywords)
        self.problem = ""
        self._embedder, self._read, self._timeout_s = embedder, read, timeout_s
        self._multilingual: Embedder | None = None
        self._lexicon: Lexicon | None = None
        self._is_open = False
        self._opening = threading.Lock()

    @property
    def vectors(self) -> VectorIndex | None:
        self.open()
        return self.finder.vectors

    def open(self) -> None:
        """Open the embedder once. Without one, only words are searched, and `problem` says why."""
        with self._opening:
            if self._is_open:
                return
            self._is_open = True
            try:
                embedder = self._embedder()
            except RectoError as why:
                self.problem = f"{why.message.rstrip('.')}: searching by words only"
                return
            if embedder is not None:
                self._use(embedder)

    def _use(self, embedder: Embedder) -> None:
        parts = embedder.parts if isinstance(embedder, LocalEmbedder) else (embedder,)
        self._multilingual = next((each for each in parts if each.name == MULTILINGUAL), None)
        if self._multilingual and self.keywords.keeps_texts:
            self._lexicon = Lexicon(self.keywords, self._multilingual)
        vectors: VectorIndex | None = None
        for part in reversed(parts):
            vectors = VectorIndex(self.keywords, part, self._read, timeout_s=self._timeout_s, beside=vectors)
        self.finder.vectors = vectors

    def translations(self, words: Sequence[str], likely: Sequence[str], within_s: float) -> dict[str, str]:
        """Translate words into words of the index; empty without the multilingual encoder."""
        self.open()
        try:
            return self._lexicon.translations(words, likely, within_s) if self._lexicon else {}
        except RectoError:  # the search says why
            return {}

    def similarities(self, question: str, texts: Sequence[str]) -> list[float]:
        """The similarity of texts to a question in any language, by the multilingual encoder; empty without it."""
        self.open()
        if self._multilingual is None or not texts:
            return []
        try:
            asked, *rows = self._multilingual.embed([question, *texts])
        except RectoError:  # the search says why
            return []
        return [float(asked @ row) for row in rows]

    @property
    def passages(self) -> int:
        return self.keywords.extent(None).passages

    @property
    def rebuild_reason(self) -> str:
        return self.keywords.file.rebuild_reason

    def make_vectors(self, progress: Progress | None = None) -> None:
        """Make all missing vectors now. Stops at a failure, which `vectors.problem` describes."""
        vectors, reported = self.vectors, 0.0
        with in_background():  # give way to turns in other threads
            while vectors is not None and vectors.make_batch(THREADS):
                # counting the waiting passages is too slow to do for every batch
                if progress and time.monotonic() - reported > PROGRESS_INTERVAL_S:
                    progress(self.passages - vectors.waiting, self.passages)
                    reported = time.monotonic()

    def stop(self) -> None:
        """Stop making vectors, after the current text of a running batch."""
        if self.finder.vectors:
            self.finder.vectors.close()

    def close(self) -> None:
        self.stop()
        self.keywords.close()


# -- words of other languages

# The most common words of an index get vectors, in batches.
MAX_WORDS, BATCH = 8_000, 128
# The number of nearest neighbours for CSLS, and of words that they are taken from.
NEIGHBOURS, MAX_COMPARED = 10, 2_000
# Measured with 40 words in five languages over notes about a boat: words that the notes hold scored 0.09 to 0.57, with
# one exception; the others at most 0.07, with two exceptions.
LEAST, LEAST_COSINE = 0.08, 0.55
_WORD = re.compile(r"[^\W\d_]{3,40}")


class Lexicon:
    """Finds words of an index that mean the same as words of another language.

    Every word of the indexed texts has a vector of the multilingual encoder. Some words, hardly known to it, are near
    to everything, so a similarity counts only as far as it exceeds what both words share with their neighbours (CSLS).
    """

    def __init__(self, index: KeywordIndex, embedder: Embedder) -> None:
        self._index, self._embedder = index, embedder
        self._store = VectorStore(index.file, f"{embedder.key}/words")
        self._state = ""
        self._vectors: dict[str, bytes] = {}
        self._missing: list[str] = []

    def translations(self, words: Sequence[str], likely: Iterable[str], within_s: float) -> dict[str, str]:
        """Map words to their translations in the index, where there are any. If there is no time for all vectors, the
        words of the `likely` texts come first."""
        self._read()
        first = set(_words(likely))
        self._missing.sort(key=lambda word: word not in first)
        until = time.monotonic() + within_s
        while self._missing and time.monotonic() < until:
            batch, self._missing = self._missing[:BATCH], self._missing[BATCH:]
            with ThreadPoolExecutor(THREADS) as pool:
                rows = list(pool.map(lambda word: self._embedder.embed([word])[0], batch))
            made = {word: row.astype("float16").tobytes() for word, row in zip(batch, rows, strict=True)}
            self._store.put({text_hash(word): row for word, row in made.items()})
            self._vectors |= made
        return self._nearest(words) if words and self._vectors else {}

    def _read(self) -> None:
        if self._state == (state := f"{self._index.queue_end} {self._index.mark('removed')}"):
            return
        counts = Counter(word for text in self._index.every_text() for word in set(_words([text])))
        words = [word for word, _ in counts.most_common(MAX_WORDS)]
        hashes = {text_hash(word): word for word in words}
        stored = self._store.get(list(hashes))
        self._vectors = {hashes[sha]: row for sha, row in stored.items() if sha in hashes}
        self._missing = [word for word in words if word not in self._vectors]
        self._state = state

    def _nearest(self, words: Sequence[str]) -> dict[str, str]:
        import numpy as np  # slow import

        names = list(self._vectors)
        rows = np.frombuffer(b"".join(self._vectors.values()), np.float16).reshape(len(names), -1).astype(np.float32)
        compared = rows[:MAX_COMPARED]
        asked = self._embedder.embed(words)
        near = asked @ rows.T
        scores = 2 * near - _common(asked @ compared.T)[:, None] - _common(rows @ compared.T, own=True)
        scores[near < LEAST_COSINE] = -1
        best = scores.argmax(1).tolist()
        return {word: names[at] for word, at, line in zip(words, best, scores, strict=True) if line[at] >= LEAST}


def _common(near: "Vectors", *, own: bool = False) -> "Vectors":
    """The mean similarity of each row's nearest neighbours, excluding itself."""
    count = min(NEIGHBOURS + own, near.shape[1])
    near.partition(near.shape[1] - count, axis=1)
    top = near[:, near.shape[1] - count :]
    total: Vectors = (top.sum(1) - top.max(1)) / max(1, count - 1) if own else top.mean(1)
    return total


def _words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in _WORD.findall(folded_text(text)) if word not in STOP_WORDS]
