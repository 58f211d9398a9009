"""Connections: limits on what a client may hold open and send, and for how long; and an orderly shutdown.

For the endpoint and for the page. Limits per address are the task of a reverse proxy.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import cache
from types import FrameType
from typing import Any, TypeVar

import h11
import uvicorn
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from recto.errors import Invalid

T = TypeVar("T")
HEADER_BYTES = 64 * 1024
# A client that has something to send or to read moves this much between two looks at its connection.
LOOK_S, LEAST_BYTES = 20.0, 20_000
# Connections waiting in the kernel.
QUEUED = 2048
# File descriptors for databases, providers, files and closing connections.
RESERVED_FILES = 384
MOST_FILES = 8192


class BoundedConnection(H11Protocol):
    """Ends if its client stops in the middle of a request, or does not read the reply."""

    _timer: asyncio.TimerHandle | None = None
    _is_due, _moved = False, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > _most_connections():
            transport.abort()
        self._timer = self.loop.call_later(LOOK_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._moved += len(data)
        super().data_received(data)

    def resume_writing(self) -> None:
        self._moved += LEAST_BYTES
        super().resume_writing()

    def _look(self) -> None:
        if self.transport.get_protocol() is not self:  # it is a WebSocket now
            return
        state, flow = self.conn.their_state, self.flow
        owes_header = state is h11.IDLE and (self.cycle is None or bool(self.conn.trailing_data[0]))
        owes_body = state is h11.SEND_BODY and not flow.read_paused
        is_due = owes_header or owes_body or flow.write_paused
        if is_due and self._is_due and self._moved < LEAST_BYTES:
            self.transport.abort()
            return
        self._is_due, self._moved = is_due, 0
        self._timer = self.loop.call_later(LOOK_S, self._look)


class OrderlyServer(uvicorn.Server):
    """Shuts down cleanly at the first signal; uvicorn's own server then raises the signal again, as if it had
    failed."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def bounded_config(app: ASGIApp, **options: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedConnection,
        h11_max_incomplete_event_size=HEADER_BYTES,
        backlog=QUEUED,
        log_config=None,
        log_level="error",  # clients cause its warnings, and must not be able to fill a disk
        access_log=False,  # addresses may contain queries
        server_header=False,
        ws_max_size=2 << 20,
        **options,
    )


@cache
def _most_connections() -> int:
    """As many as this process may open files, minus those needed elsewhere."""
    try:
        import resource  # not on Windows
    except ImportError:
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (soft, hard) and soft < min(hard, MOST_FILES):
        soft = min(hard, MOST_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    files = MOST_FILES if soft == resource.RLIM_INFINITY else soft
    return max(files - RESERVED_FILES, files // 4)


# -- request bodies and responses


class BodyLimits(Struct, frozen=True):
    body_bytes: int = 32 * 1024 * 1024
    read_s: float = 60.0
    """How long a client may take to send its request."""


class BodyTooLarge(Invalid):
    """The body of a request is larger than the server accepts."""


async def read_body(request: Request, limits: BodyLimits) -> bytes:
    """Raises BodyTooLarge for more than is allowed, Invalid if the client takes too long."""
    too_large = BodyTooLarge(f"The request is larger than the {limits.body_bytes:,} bytes accepted here.", field="")
    if declared_size(request) > limits.body_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.read_s):
            async for part in request.stream():
                body += part
                if len(body) > limits.body_bytes:
                    raise too_large
    except TimeoutError as why:
        raise Invalid(f"The request did not arrive within {limits.read_s:g} s.", field="") from why
    return bytes(body)


def declared_size(request: Request) -> int:
    """0 if the request does not tell its size in advance."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


async def while_there(request: Request, work: Awaitable[T]) -> T | None:
    """The result of the work; None if the client left first."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class DeliveredStream(StreamingResponse):
    """A stream that always calls `ended`, even if its client left before anything was sent: a generator that was never
    started has no `finally`."""

    def __init__(
        self,
        content: AsyncGenerator[bytes, None],
        ended: Callable[[], Awaitable[object]],
        headers: Mapping[str, str],
        status: int = 200,
        media_type: str | None = None,
    ) -> None:
        super().__init__(content, status, headers, media_type)
        self._content, self._ended = content, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            try:
                await self._content.aclose()
            finally:
                await self._ended()
