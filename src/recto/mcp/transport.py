"""A filter around a transport of the SDK: ConnectionState sees every message first.

Imported only when a server is used, because the SDK is slow to load.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from recto.mcp.connection_state import ConnectionState

Streams = tuple[Any, Any]

log = logging.getLogger(__name__)


@asynccontextmanager
async def filter_transport(
    transport: AbstractAsyncContextManager[Streams], state: ConnectionState
) -> AsyncIterator[Streams]:
    async with transport as (read, write):
        yield _Incoming(read, state), _Outgoing(write, state)


async def cancel_tasks(*tasks: asyncio.Task[None]) -> None:
    """Cancels tasks, waits for them, and logs the errors of those that failed."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("a task of an MCP connection failed", exc_info=result)


class _Stream:
    """One direction of a transport."""

    def __init__(self, stream: Any, state: ConnectionState) -> None:
        self._stream, self._state = stream, state

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Incoming(_Stream):
    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage:
        while not self._state.violation:
            try:
                item = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                break
            if isinstance(item, SessionMessage) and self._passes(item.message):
                return item
            if isinstance(item, Exception):
                self._state.skip_line(str(item))
            await self._state.throttle()
        self._state.closed.set()
        raise anyio.EndOfStream

    def _passes(self, message: JSONRPCMessage) -> bool:
        match message:
            case JSONRPCNotification():
                return self._state.on_notification(message.method)
            case JSONRPCRequest():
                self._state.on_request_received(message.id, message.method)
            case JSONRPCResponse():
                message.result = self._state.on_result(message.id, message.result)
        return not self._state.violation

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)


class _Outgoing(_Stream):
    async def send(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._state.on_request_sent(message.id, message.method)
        await self._stream.send(item)
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._state.on_response_sent(message.id)
