"""Filing: who uses a file: one thread at a time, and none any more once it is closed.

A SQLite connection that is closed under a thread takes the whole process with it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Filing:
    def __init__(self) -> None:
        self._lock, self._is_open = threading.Lock(), True

    def __enter__(self) -> bool:
        """Whether it may still be used."""
        self._lock.acquire()
        return self._is_open

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @contextmanager
    def shut(self) -> Iterator[None]:
        with self._lock:
            self._is_open = False
            yield
