"""Events: whoever works tells them with `await emit(event)`, and whoever listens reads them one after another."""

import asyncio
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

from recto.events import Event, Question, Working
from recto.turn.event_log import log_event

T = TypeVar("T")
Emit = Callable[[Event], Awaitable[None]]
"""Comes back when the event was read, and the next one is asked for."""
PATIENCE_S = 0.5


class _Telling:
    """What `emit` waits for, in place of a future: it goes up to whoever drives the work."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def __await__(self) -> Generator["_Telling", None, None]:
        yield self


async def _emit(event: Event) -> None:
    await _Telling(event)


@types.coroutine
def _waited_for(future: Any) -> Generator[Any, None, None]:
    """Passes on to the loop what the work waits for."""
    yield future


async def events_of(work: Callable[[Emit], Coroutine[Any, Any, object]]) -> AsyncGenerator[Event, None]:
    """The events of some work, for a reader who answers a question before taking the next event. Closing the generator
    cancels the work, and waits until that has put everything in order.

    The work is driven by hand, in the task of the reader: a task of its own would switch twice for each event, which
    made a turn a quarter slower. So `emit` must not be called in a task that the work starts.
    """
    coroutine = work(_emit)
    step: Callable[[], Any] = partial(coroutine.send, None)
    left: BaseException | None = None  # nobody reads any more, because of this
    while True:
        try:
            waits_for = step()
        except StopIteration:
            break
        except asyncio.CancelledError:
            if left is None:
                raise
            break
        step = partial(coroutine.send, None)
        try:
            if not isinstance(waits_for, _Telling):
                await _waited_for(waits_for)
            elif left is None:
                event = waits_for.event
                log_event(event)
                yield event
                if isinstance(event, Question):
                    event.settle()
        except GeneratorExit as why:
            left, step = why, partial(coroutine.throw, asyncio.CancelledError())
        except BaseException as why:
            left, step = left and why, partial(coroutine.throw, why)
    if left is not None:
        raise left


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
