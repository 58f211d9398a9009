"""Connections: limits on what a client may hold open and send, and for how long; and an orderly shutdown.

One protocol for the endpoint and for the page. Headers must arrive within seconds and within 64 kB, a body must keep
coming, and a client must read what it is sent. Too many connections without a valid key, from one address or in all,
close the oldest of them, so that new clients are served even during a flood. Knows no keys: the app calls
`note_valid_key`.
"""

import asyncio
import logging
import signal
import socket
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from functools import partial
from types import FrameType
from typing import Any, TypeVar, cast

import h11
import uvicorn
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from recto.errors import Invalid

log = logging.getLogger(__name__)
T = TypeVar("T")
CONNECTION = "recto.connection"
"""The name of the connection in the state of a request."""
HEADER_BYTES = 64 * 1024
# Connections accepted in one step of the loop. It takes several steps to close one.
BACKLOG = 32
# Connections waiting in the kernel. uvicorn's `backlog` also limits how many are accepted at once.
QUEUED = 2048
# File descriptors for databases, providers, files and closing connections.
RESERVED_FILES = 384
MOST_FILES = 8192


class ConnectionLimits(Struct, frozen=True):
    total: int = 4096
    per_address: int = 256
    header_s: float = 20.0
    body_s: float = 20.0
    """A body brings `body_bytes` in this time, unless the server itself is not reading."""
    body_bytes: int = 20_000
    write_s: float = 60.0
    """How long a client may leave sent data unread."""


class Connections:
    def __init__(self, limits: ConnectionLimits = ConnectionLimits(), proxies: Collection[str] = ()) -> None:  # noqa: B008  frozen
        self.limits, self.proxies = limits, frozenset(proxies)
        self._all: set[BoundedConnection] = set()
        self._strangers: dict[str, dict[BoundedConnection, None]] = {}
        """Connections without a valid key by address, oldest first."""

    def enter(self, connection: "BoundedConnection") -> None:
        self._all.add(connection)
        if len(self._all) > self.limits.total:
            most = max(self._strangers.values(), key=len, default=None)
            log.warning("more than %d connections: the oldest without a valid key ends", self.limits.total)
            self._end(_oldest(most) if most else connection)

    def leave(self, connection: "BoundedConnection") -> None:
        self._all.discard(connection)
        self.admit(connection)

    def admit(self, connection: "BoundedConnection") -> None:
        if (known := self._strangers.get(connection.address)) is not None:
            known.pop(connection, None)
            if not known:
                del self._strangers[connection.address]

    def count(self, connection: "BoundedConnection") -> None:
        known = self._strangers.setdefault(connection.address, {})
        known[connection] = None
        if len(known) > self.limits.per_address:
            address, most = connection.address, self.limits.per_address
            log.warning("%s has more than %d connections without a valid key: the oldest ends", address, most)
            self._end(_oldest(known))

    def _end(self, connection: "BoundedConnection") -> None:
        self.leave(connection)
        connection.transport.abort()


def _oldest(connections: "dict[BoundedConnection, None]") -> "BoundedConnection":
    """The oldest that waits for its client, or else the oldest of all."""
    return next((each for each in connections if not each.is_answering), next(iter(connections)))


class BoundedConnection(H11Protocol):
    """A connection with a deadline for each thing its client has to do."""

    def __init__(
        self,
        connections: Connections,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._connections, self._limits = connections, connections.limits
        self.address, self._is_of_proxy = "", False
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._header_bytes = self._body_bytes = 0
        self._is_in_body = False

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def admit(self) -> None:
        self._connections.admit(self)

    # -- called by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._is_of_proxy = self.address in self._connections.proxies
        self._connections.enter(self)
        if not self._is_of_proxy and not transport.is_closing():
            self._connections.count(self)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget()

    def data_received(self, data: bytes) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._body_bytes += len(data)
            super().data_received(data)
            return
        if self._reading is None:
            self._expect_headers()
        # h11 rejects an overlong header only while it is incomplete, so it never gets more than this
        most = HEADER_BYTES + 1 - self._header_bytes
        if most <= 0:  # h11 does not count empty lines before a request, and takes empty data for the end
            self._give_up("sent a header that is too long")
            return
        self._header_bytes += len(data[:most])
        super().data_received(data[:most])
        if len(data) > most and not self.transport.is_closing() and self.transport.get_protocol() is self:
            self.data_received(data[most:])

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._count_forwarded()
            self._stop_reading()
            self._expect_body()
        # after an early answer the rest of the body still counts as the same request
        if self.conn.their_state is not (h11.SEND_BODY if self._is_in_body else h11.IDLE):
            self._stop_reading()
        if self.conn.their_state is h11.IDLE and self._reading is None and self.conn.trailing_data[0]:
            self._expect_headers()  # they came with the previous request

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop_reading()
        self._count_forwarded()
        super().handle_websocket_upgrade(event)
        socket = self.transport.get_protocol()
        lost = socket.connection_lost

        def connection_lost(exc: Exception | None) -> None:
            lost(exc)
            self._forget()

        socket.connection_lost = connection_lost  # type: ignore[method-assign]  # it is the transport's protocol now

    def on_response_complete(self) -> None:
        if self._is_of_proxy:  # the next request may be another client's
            self._connections.admit(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self._writing or self.loop.call_later(self._limits.write_s, self._give_up, "reads nothing")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_writing()

    # -- deadlines

    def _expect_headers(self) -> None:
        self._header_bytes, self._is_in_body = 0, False
        self._reading = self.loop.call_later(self._limits.header_s, self._give_up, "sent no whole header in time")

    def _expect_body(self) -> None:
        self._body_bytes, self._is_in_body = 0, True
        self._reading = self.loop.call_later(self._limits.body_s, self._check_body)

    def _check_body(self) -> None:
        is_sending = self._body_bytes >= self._limits.body_bytes and self.is_answering
        if is_sending or self.flow.read_paused:
            self._expect_body()
        else:
            self._give_up("sent no body in time")

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading.cancel()
            self._reading = None

    def _stop_writing(self) -> None:
        if self._writing:
            self._writing.cancel()
            self._writing = None

    def _give_up(self, what: str) -> None:
        log.warning("a connection was ended: its client %s", what)
        self.transport.abort()

    def _forget(self) -> None:
        self._connections.leave(self)
        self._stop_reading()
        self._stop_writing()

    def _count_forwarded(self) -> None:
        if not self._is_of_proxy:
            return
        named = b",".join(value for name, value in self.headers if name == b"x-forwarded-for").decode("latin-1")
        others = [each for part in named.split(",") if (each := part.strip()) not in self._connections.proxies]
        self.address = others[-1] if others else ""
        self._connections.count(self)


def note_valid_key(scope: Scope) -> None:
    """Records that the client of this request has a valid key."""
    connection = scope.get("state", {}).get(CONNECTION)
    if connection is not None:
        connection.admit()


# -- the server


class OrderlyServer(uvicorn.Server):
    """Shuts down cleanly at the first signal; uvicorn's own server then raises the signal again, as if it had
    failed."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(QUEUED)


def bounded_config(app: ASGIApp, connections: Connections, **options: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(BoundedConnection, connections)),
        h11_max_incomplete_event_size=HEADER_BYTES,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,  # addresses may contain queries
        server_header=False,
        ws_max_size=2 << 20,
        **options,
    )


def open_connections(proxies: str) -> Connections:
    """As many connections as this process may open files, minus those needed elsewhere. `proxies`: addresses separated
    by commas."""
    files = _raised_file_limit()
    total = min(ConnectionLimits().total, max(files - RESERVED_FILES, files // 4))
    for name in (__name__, "uvicorn.error", "asyncio"):
        _quieten(logging.getLogger(name))
    for handler in (logging.lastResort, *logging.getLogger("recto").handlers):
        if handler:
            _quieten(handler, logging.WARNING)
    return Connections(ConnectionLimits(total=total), [each.strip() for each in proxies.split(",") if each.strip()])


def _raised_file_limit() -> int:
    try:
        import resource  # not on Windows
    except ImportError:
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted) if soft != resource.RLIM_INFINITY else MOST_FILES


class OncePerMinute(logging.Filter):
    """Passes one record of a kind per minute: clients must not be able to fill a disk with our log."""

    def __init__(self, least: int = logging.NOTSET) -> None:
        """Records below the level `least` all pass."""
        super().__init__()
        self._least = least
        self._next: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < self._least:
            return True
        kind = record.msg.partition("\n")[0] if isinstance(record.msg, str) else type(record.msg)
        error = record.exc_info[1] if record.exc_info else None
        key = kind, type(error), _place(error)
        now = time.monotonic()
        if now < self._next.get(key, 0.0):
            return False
        self._next[key] = now + 60.0
        return True


def _quieten(noisy: logging.Logger | logging.Handler, least: int = logging.NOTSET) -> None:
    if not any(isinstance(each, OncePerMinute) for each in noisy.filters):
        noisy.addFilter(OncePerMinute(least))


def _place(error: BaseException | None) -> tuple[str, int] | None:
    if error is None or error.__traceback__ is None:
        return None
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename, line


# -- request bodies and responses


class BodyLimits(Struct, frozen=True):
    body_bytes: int = 32 * 1024 * 1024
    read_s: float = 60.0
    """How long a client may take to send its request."""


class BodyTooLarge(Invalid):
    """The body of a request is larger than the server accepts."""


class IncomingBody:
    """The body of a request as it arrives, within its limits."""

    def __init__(self, request: Request, limits: BodyLimits) -> None:
        self._limits, self._parts = limits, request.stream()
        self._begun: list[bytes] = []
        length = request.headers.get("content-length", "")
        self.declared = int(length) if length.isdecimal() else None

    async def is_larger_than(self, size: int) -> bool:
        """Reads only as much as necessary."""
        if self.declared is not None:
            return self.declared > size
        began = 0
        async for part in self.parts():
            self._begun.append(part)
            began += len(part)
            if began > size:
                return True
        return False

    async def whole(self) -> bytes:
        return b"".join([part async for part in self.parts()])

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Raises BodyTooLarge for more than is allowed, Invalid if the client takes too long."""
        most, within_s = self._limits.body_bytes, self._limits.read_s
        too_large = BodyTooLarge(f"The request is larger than the {most:,} bytes that this server accepts.", field="")
        if self.declared is not None and self.declared > most:
            raise too_large
        while self._begun:
            yield self._begun.pop(0)
        size, waited_s = 0, 0.0
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(within_s - waited_s):
                    part = await anext(self._parts, None)
            except TimeoutError as why:
                raise Invalid(f"The request did not arrive within {within_s:g} s.", field="") from why
            waited_s += time.monotonic() - began
            if part is None:
                return
            size += len(part)
            if size > most:
                raise too_large
            yield part


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
