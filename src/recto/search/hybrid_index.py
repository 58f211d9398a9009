"""HybridIndex: a keyword index with its finder, and with vectors if there is an embedder."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recto.base.background import in_background
from recto.errors import RectoError
from recto.search.embedder import MULTILINGUAL, Embedder, LocalEmbedder
from recto.search.finder import Finder
from recto.search.keyword_index import KeywordIndex
from recto.search.vector_index import ReadTexts, VectorIndex

if TYPE_CHECKING:
    pass

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
        self.finder.vectors = VectorIndex(self.keywords, embedder, self._read, timeout_s=self._timeout_s)

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
