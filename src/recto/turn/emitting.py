"""Events: whoever works tells them with `await emit(event)`, and whoever listens reads them one after another."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from recto.events import Event, Working

log = logging.getLogger(__name__)

T = TypeVar("T")
Emit = Callable[[Event], Awaitable[None]]
"""Comes back when the event was read, and the next one is asked for."""
PATIENCE_S = 0.5


async def told(work: Callable[[Emit], Coroutine[Any, Any, object]]) -> AsyncGenerator[Event, None]:
    """The events of some work. Closing it cancels the work, and waits until that has put everything in order."""
    told, read = asyncio.Queue[Event | None](), asyncio.Semaphore(0)

    async def emit(event: Event) -> None:
        told.put_nowait(event)
        await read.acquire()

    task = asyncio.create_task(work(emit))
    task.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (event := await told.get()) is not None:
            yield event
            read.release()
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and (why := task.exception()):  # nobody is there to hear of it
                log.error("what was left in the middle could not be ended well", exc_info=why)


async def patiently(work: Coroutine[Any, Any, T], emit: Emit, tell: Callable[[], Working]) -> T:
    """Does some work, and says what is done once it takes long. `tell` may read files: it runs in a thread."""
    task = asyncio.ensure_future(work)
    try:
        if not (await asyncio.wait([task], timeout=PATIENCE_S))[0]:
            await emit(await asyncio.to_thread(tell))
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
