"""Aside: a thread that does one thing at a time, for whoever waits no longer than a moment for it.

A pool would do, but Python waits at its end for all pools: a server that hangs would hold every command.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Aside:
    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self._work.put((future, work))
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return future

    def _run(self) -> None:
        while (given := self._work.get()) is not None:
            future, work = given
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as why:  # whoever asked hears it
                    future.set_exception(why)

    def close(self) -> None:
        """What is being done is not waited for."""
        self._work.put(None)
