"""Aside: one thread with one loop, in which all servers live: turns have loops of their own and stop at any point."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from recto.errors import RectoError

T = TypeVar("T")
JOIN_S = 2.0


class Aside:
    """Started when first needed. Seen out before the program ends."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits in the loop that asks; being cancelled here cancels there."""
        try:
            return await asyncio.wrap_future(self.begin(work))
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if asking and asking.cancelling():
                raise
            raise RectoError("the MCP servers were stopped before an answer came") from None

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._started())

    def soon(self, work: Callable[[], None]) -> None:
        """Before everything that is begun after it; nothing where there is no loop any more."""
        with suppress(RuntimeError):
            if self._loop:
                self._loop.call_soon_threadsafe(work)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="recto-servers", daemon=True)
                self._thread.start()
                atexit.register(self._close)
            return self._loop

    def close(self, farewell: Coroutine[Any, Any, None], within_s: float) -> bool:
        """Ends the loop after the farewell, or without it when that takes too long; whether it came to its end."""
        loop = self._loop
        if loop is None:
            farewell.close()
            return True
        atexit.unregister(self._close)
        is_done = False
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_last(farewell), loop).result(within_s)
            is_done = True
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(JOIN_S)
        if not self._thread.is_alive():
            loop.close()
        self._loop = None
        return is_done


async def _last(farewell: Coroutine[Any, Any, None]) -> None:
    await farewell
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
