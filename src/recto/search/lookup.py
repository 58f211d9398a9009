"""Lookup: an index with its finder, and meaning beside it once somebody makes vectors. Knows no messages or notes."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from recto.errors import RectoError
from recto.search.embedder import Embedder
from recto.search.finder import Finder
from recto.search.index import Index
from recto.search.meaning import Meaning, Read

TELLS_EVERY_S = 0.1

Open = Callable[[], Embedder | None]
Progress = Callable[[int, int], object]
"""So many are done, of so many."""


class Lookup:
    def __init__(self, path: Path, embedder: Open, read: Read, *, timeout_s: float) -> None:
        self.index = Index(path)
        self.finder = Finder(self.index)
        self.why = ""
        """Why there is no embedder."""
        self._embedder, self._read, self._timeout_s = embedder, read, timeout_s
        self._meaning: Meaning | None = None
        self._is_open = False
        self._opening = threading.Lock()

    @property
    def meaning(self) -> Meaning | None:
        self.open()
        return self._meaning

    def open(self) -> None:
        """The embedder is asked for once; without one words are all there is, and `why` tells the reason."""
        with self._opening:
            if not self._is_open:
                self._is_open = True
                self._open()

    def _open(self) -> None:
        try:
            embedder = self._embedder()
        except RectoError as why:
            self.why = f"{why.message.rstrip('.')}: words alone are searched"
            return
        if embedder is not None:
            self._meaning = Meaning(self.index, embedder, self._read, timeout_s=self._timeout_s)
            self.finder.meaning = self._meaning

    @property
    def passages(self) -> int:
        return self.index.extent(None).passages

    @property
    def was_renewed(self) -> str:
        """Why the index had to be begun anew; empty when it had not."""
        return self.index.file.was_renewed

    def make_vectors(self, progress: Progress | None = None) -> None:
        """All that are missing, now; where that fails it ends, and `meaning.why` says why."""
        meaning, told = self.meaning, 0.0
        while meaning is not None and meaning.make_some():
            # counting what waits takes longer than telling it is worth
            if progress and time.monotonic() - told > TELLS_EVERY_S:
                progress(self.passages - meaning.waiting, self.passages)
                told = time.monotonic()

    def stop(self) -> None:
        """A batch that is being made ends with the text that it is at."""
        if self._meaning:
            self._meaning.close()

    def close(self) -> None:
        self.stop()
        self.index.close()
