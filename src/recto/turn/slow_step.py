"""SlowStep: a step of a turn that says what it does once it takes long."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Generic, TypeVar

from recto.events import Working

T = TypeVar("T")
PATIENCE_S = 0.5


class SlowStep(Generic[T]):
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
