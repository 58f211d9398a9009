"""HybridIndex: a keyword index with its finder, and with vectors and translations as far as there are embedders."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from recto.base.background import in_background
from recto.errors import RectoError
from recto.search.embedder import MULTILINGUAL, Embedder
from recto.search.embedders import LocalEmbedder
from recto.search.finder import Finder
from recto.search.keyword_index import KeywordIndex
from recto.search.lexicon import Lexicon
from recto.search.vector_index import ReadTexts, VectorIndex

PROGRESS_INTERVAL_S = 0.1
# On so many processors vectors are made at once; they stand back from turns.
THREADS = min(os.cpu_count() or 1, 8)

OpenEmbedder = Callable[[], Embedder | None]
Progress = Callable[[int, int], object]
"""Called with how many are done, and how many there are."""


class HybridIndex:
    def __init__(
        self, path: Path, embedder: OpenEmbedder, read: ReadTexts, *, timeout_s: float, keeps_texts: bool = False
    ) -> None:
        self.keywords = KeywordIndex(path, keeps_texts=keeps_texts)
        self.finder = Finder(self.keywords)
        self.problem = ""
        """Why there is no embedder."""
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
        """Opens the embedder once. Without one only words are searched, and `problem` says why."""
        with self._opening:
            if not self._is_open:
                self._is_open = True
                self._open()

    def _open(self) -> None:
        try:
            embedder = self._embedder()
        except RectoError as why:
            self.problem = f"{why.message.rstrip('.')}: words alone are searched"
            return
        if embedder is None:
            return
        parts = embedder.parts if isinstance(embedder, LocalEmbedder) else (embedder,)
        self._multilingual = next((each for each in parts if each.name == MULTILINGUAL), None)
        if self._multilingual and self.keywords.keeps_texts:
            self._lexicon = Lexicon(self.keywords, self._multilingual)
        vectors: VectorIndex | None = None
        for part in reversed(parts):
            vectors = VectorIndex(self.keywords, part, self._read, timeout_s=self._timeout_s, beside=vectors)
        self.finder.vectors = vectors

    def translations(self, words: Sequence[str], likely: Sequence[str], within_s: float) -> dict[str, str]:
        """The words of the index that say the same in its language; empty without the multilingual encoder."""
        self.open()
        try:
            return self._lexicon.translations(words, likely, within_s) if self._lexicon else {}
        except RectoError:  # the search says why
            return {}

    def similarities(self, question: str, texts: Sequence[str]) -> list[float]:
        """How near texts are to a question in any language, by the multilingual encoder; empty without it."""
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
        """Why the index had to be rebuilt; empty if it was not."""
        return self.keywords.file.rebuild_reason

    def make_vectors(self, progress: Progress | None = None) -> None:
        """Makes all missing vectors now. Stops at a failure, which `vectors.problem` then describes."""
        vectors, reported = self.vectors, 0.0
        with in_background():  # whoever waits for it has more patience than a turn of another thread
            while vectors is not None and vectors.make_batch(THREADS):
                # counting the waiting passages is too slow to do for every batch
                if progress and time.monotonic() - reported > PROGRESS_INTERVAL_S:
                    progress(self.passages - vectors.waiting, self.passages)
                    reported = time.monotonic()

    def stop(self) -> None:
        """Makes no more vectors. A running batch stops after its current text."""
        self.finder.close()
        if self.finder.vectors:
            self.finder.vectors.close()

    def close(self) -> None:
        self.stop()
        self.keywords.close()
