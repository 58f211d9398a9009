"""Sifted: a transport of the SDK with everything that passes seen first. Imported only with a server at hand, for the
SDK is slow to load."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from recto.servers.seen import Seen

Streams = tuple[Any, Any]


@asynccontextmanager
async def sifted(transport: AbstractAsyncContextManager[Streams], seen: Seen) -> AsyncIterator[Streams]:
    async with transport as (read, write):
        yield _Incoming(read, seen), _Outgoing(write, seen)


class _End:
    """One end of a transport."""

    def __init__(self, stream: Any, seen: Seen) -> None:
        self._stream, self._seen = stream, seen

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, type: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Incoming(_End):
    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage:
        while not self._seen.broken:
            try:
                item = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                break
            if isinstance(item, SessionMessage) and self._passes(item.message):
                return item
            if isinstance(item, Exception):
                self._seen.garbage(str(item))
            await self._seen.breathe()
        self._seen.gone.set()
        raise anyio.EndOfStream

    def _passes(self, message: JSONRPCMessage) -> bool:
        match message:
            case JSONRPCNotification():
                return self._seen.notified(message.method)
            case JSONRPCRequest():
                self._seen.asked(message.id, message.method)
            case JSONRPCResponse():
                message.result = self._seen.result(message.id, message.result)
        return not self._seen.broken

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)


class _Outgoing(_End):
    async def send(self, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            self._seen.requested(message.id, message.method)
        await self._stream.send(item)
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._seen.answered(message.id)
