"""Clerk: the one thread through which asynchronous code reaches the store, so that writes keep their order."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Clerk:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recto-store")

    async def do(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Does the work in its turn. Once handed over it is done to the end, even if the caller is cancelled."""
        return await to_its_end(asyncio.get_running_loop().run_in_executor(self._thread, partial(work, *args, **named)))

    def close(self) -> None:
        self._thread.shutdown()


async def to_its_end(begun: asyncio.Future[T]) -> T:
    """Waits for it, also where the caller is cancelled meanwhile, who hears of that only then."""
    try:
        return await asyncio.shield(begun)
    except asyncio.CancelledError:
        await asyncio.wait([begun])
        raise
