"""Loop: runs asynchronous work for blocking code, in the background, started when first needed.

`in_thread` and `in_store`: blocking methods for asynchronous code."""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import aclosing
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from recto.events import Event, Question
from recto.store.store import Store

P = ParamSpec("P")
T = TypeVar("T")
BATCH = 200
Box = queue.SimpleQueue[Event | BaseException | None]


class _HasStore(Protocol):
    _store: Store


S = TypeVar("S", bound=_HasStore)


def in_thread(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A decorator: the method is awaited, and runs in another thread."""

    @wraps(method)
    async def wait(*args: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(method, *args, **named)

    return wait


def in_store(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A decorator: the method is awaited, and runs in the store's thread, after all earlier work."""

    @wraps(method)
    async def wait(self: S, /, *args: P.args, **named: P.kwargs) -> T:
        return await self._store.do(method, self, *args, **named)

    return wait


class Loop:
    """A separate loop also works inside a running one (Jupyter)."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._started()).result()

    def stream(self, events: AsyncGenerator[Event, None]) -> Generator[Event]:
        """Leaving early (or Ctrl-C) stops the reply and keeps what arrived."""
        box: Box = queue.SimpleQueue()
        task = asyncio.run_coroutine_threadsafe(_pump(events, box), self._started())
        ended = False
        try:
            while not (ended := (item := box.get()) is None):
                if isinstance(item, BaseException):
                    raise item
                yield item
                if isinstance(item, Question):
                    item.settle()
        finally:
            if not ended:
                task.cancel()
                while (left := box.get()) is not None:
                    if isinstance(left, Question):  # nobody is there to answer it
                        left.settle()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Fetches items in batches: a hop between threads costs more than reading one."""
        while batch := self.run(_next_items(items)):
            yield from batch

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="recto-loop", daemon=True)
            self._thread.start()
        return self._loop

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None


async def _next_items(items: AsyncIterator[T]) -> list[T]:
    batch: list[T] = []
    async for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            break
    return batch


async def _pump(events: AsyncGenerator[Event, None], box: Box) -> None:
    try:
        async with aclosing(events):
            async for event in events:
                box.put(event)
                if isinstance(event, Question):
                    await event.settled()
    except Exception as why:
        box.put(why)
    finally:
        box.put(None)
