"""Steps of a turn: a step tells its events while it runs, then has a result."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from msgspec import Struct

from recto.events import Event, Working

T = TypeVar("T")
PATIENCE_S = 0.5


class StepResult(Struct, Generic[T], frozen=True):
    """The last thing that a step yields."""

    result: T


class Step(Generic[T]):
    def __init__(self, work: AsyncGenerator[Event | StepResult[T], None]) -> None:
        self._work = work
        self._done: StepResult[T] | None = None

    async def events(self) -> AsyncGenerator[Event, None]:
        async with aclosing(self._work) as events:
            async for event in events:
                if isinstance(event, StepResult):
                    self._done = event
                else:
                    yield event

    @property
    def result(self) -> T:
        """After its events."""
        assert self._done is not None
        return self._done.result


class SlowStep(Generic[T]):
    """A step without events of its own, which says what it does once it takes long."""

    def __init__(self, work: Coroutine[Any, Any, T], tell: Callable[[], Working]) -> None:
        """`tell` may read files: it runs in a thread."""
        self._work, self._tell = asyncio.ensure_future(work), tell

    async def events(self) -> AsyncGenerator[Working, None]:
        """Waits for the step. Whoever leaves early ends it."""
        try:
            done, _ = await asyncio.wait([self._work], timeout=PATIENCE_S)
            if not done:
                yield await asyncio.to_thread(self._tell)
                await asyncio.wait([self._work])
        finally:
            if not self._work.done():
                self._work.cancel()
                await asyncio.wait([self._work])

    @property
    def result(self) -> T:
        """After its events. Raises what the step raised."""
        return self._work.result()
