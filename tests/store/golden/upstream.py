"""Providers on loopback that answer as they are told."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.providers.conftest import Loopback


@contextmanager
def running(server: Loopback) -> Iterator[str]:
    """Runs a server in a thread of its own; gives its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server.url
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
