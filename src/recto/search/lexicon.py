"""Lexicon: finds the words of an index that say the same as words of another language.

Every word of the indexed texts has a vector of the multilingual encoder. Some words are near to anything that it hardly
knows; so a similarity counts as far as it exceeds what both words have in common with their neighbours anyway (CSLS).
"""

import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from recto.search.embedder import Embedder
from recto.search.index_item import text_hash
from recto.search.keyword_index import KeywordIndex
from recto.search.terms import STOP_WORDS, folded_text
from recto.search.vector_index import VectorStore

if TYPE_CHECKING:
    from recto.search.embedder import Vectors

# The commonest words of an index get vectors, a batch at a time.
MAX_WORDS, BATCH, MAX_THREADS = 8_000, 128, 8
# With how many of its neighbours, and among how many words, it is measured what a word has in common with others.
NEIGHBOURS, MAX_COMPARED = 10, 2_000
# Of 40 words in five languages over notes about a boat, those that the notes hold had 0.09 to 0.57, but for one; the
# others had at most 0.07, but for two.
LEAST, LEAST_COSINE = 0.08, 0.55
_WORD = re.compile(r"[^\W\d_]{3,40}")


class Lexicon:
    def __init__(self, index: KeywordIndex, embedder: Embedder) -> None:
        self._index, self._embedder = index, embedder
        self._store = VectorStore(index.file, f"{embedder.key}/words")
        self._state = ""
        self._vectors: dict[str, bytes] = {}
        self._missing: list[str] = []

    def translations(self, words: Sequence[str], likely: Iterable[str], within_s: float) -> dict[str, str]:
        """The words of the index for those of them that have some. `likely`: texts whose words get their vectors first,
        where there is no time for all."""
        self._read()
        first = set(_words(likely))
        self._missing.sort(key=lambda word: word not in first)
        until = time.monotonic() + within_s
        while self._missing and time.monotonic() < until:
            self._make_batch()
        return self._nearest(words) if words and self._vectors else {}

    def _make_batch(self) -> None:
        batch, self._missing = self._missing[:BATCH], self._missing[BATCH:]
        with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as pool:
            rows = list(pool.map(lambda word: self._embedder.embed([word])[0], batch))
        made = {word: row.astype("float16").tobytes() for word, row in zip(batch, rows, strict=True)}
        self._store.put({text_hash(word): row for word, row in made.items()})
        self._vectors |= made

    def _read(self) -> None:
        """The words of the index, with the vectors that were made before."""
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
        import numpy as np  # takes a tenth of a second

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
    """The mean similarity of each row's nearest neighbours, itself left out."""
    count = min(NEIGHBOURS + own, near.shape[1])
    near.partition(near.shape[1] - count, axis=1)
    top = near[:, near.shape[1] - count :]
    total: Vectors = (top.sum(1) - top.max(1)) / max(1, count - 1) if own else top.mean(1)
    return total


def _words(texts: Iterable[str]) -> Collection[str]:
    return [word for text in texts for word in _WORD.findall(folded_text(text)) if word not in STOP_WORDS]
