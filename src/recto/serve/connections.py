"""Connections: what a client may hold open, and for how long, before it has shown a valid key.

One protocol for the endpoint and for the page. Headers must come within seconds and within 64 kB, a body must keep
coming, and a client must read what it is sent. Too many connections without a valid key, from one address or in all,
cost the oldest of them its place, so that a client that asks at once is served during a flood. Knows no key: the app
calls `note_valid_key`.
"""

import asyncio
import logging
import time
import traceback
from collections.abc import Collection
from functools import partial
from typing import Any, cast

import h11
import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

log = logging.getLogger(__name__)
CONNECTION = "recto.connection"
"""Where the state of a request carries its connection."""
HEADER_BYTES = 64 * 1024
# Connections that are accepted in one step of the loop. It takes some steps until one that must end is closed.
BACKLOG = 32
# File descriptors for that, and for databases, providers and files.
RESERVED_FILES = 384
MOST_FILES = 8192


class ConnectionLimits(Struct, frozen=True):
    total: int = 4096
    per_address: int = 256
    """Connections without a valid key from one address."""
    header_s: float = 20.0
    body_s: float = 20.0
    """A body brings `body_bytes` in this time, unless the server itself is not reading."""
    body_bytes: int = 20_000
    write_s: float = 60.0
    """The longest that a client may leave what it is sent unread."""


class Connections:
    """The open connections of a server."""

    def __init__(self, limits: ConnectionLimits = ConnectionLimits(), proxies: Collection[str] = ()) -> None:  # noqa: B008  frozen
        self.limits, self.proxies = limits, frozenset(proxies)
        self._all: set[BoundedConnection] = set()
        self._strangers: dict[str, dict[BoundedConnection, None]] = {}
        """Connections without a valid key by address, oldest first."""

    def enter(self, connection: "BoundedConnection") -> None:
        self._all.add(connection)
        if len(self._all) > self.limits.total:
            most = max(self._strangers.values(), key=len, default=None)
            log.warning("there are more than %d connections: the oldest without a valid key ends", self.limits.total)
            self._end(_oldest(most) if most else connection)

    def leave(self, connection: "BoundedConnection") -> None:
        self._all.discard(connection)
        self.admit(connection)

    def admit(self, connection: "BoundedConnection") -> None:
        """The connection counts no longer for its address."""
        if (known := self._strangers.get(connection.address)) is not None:
            known.pop(connection, None)
            if not known:
                del self._strangers[connection.address]

    def count(self, connection: "BoundedConnection") -> None:
        """The connection counts for its address."""
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
    """The oldest that waits for its client, or the oldest of all."""
    return next((each for each in connections if not each.is_answering), next(iter(connections)))


class BoundedConnection(H11Protocol):
    """A connection with a deadline for whatever its client has to do next."""

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
        self.address, self._is_of_proxy, self._is_admitted = "", False, False
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._header_bytes = self._body_bytes = 0
        self._is_in_body = False

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def admit(self) -> None:
        """Its client has shown a valid key."""
        self._is_admitted = True
        self._connections.admit(self)

    # -- what the transport calls

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
        # h11 refuses a header that is too long while it is incomplete: no more is given to it at once
        most = HEADER_BYTES + 1 - self._header_bytes
        if most <= 0:  # empty lines before a request do not count for h11, and to give it nothing means the end
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
            self._begin_request()
        # a request that was answered early ends with the next one awaited
        if self.conn.their_state is not (h11.SEND_BODY if self._is_in_body else h11.IDLE):
            self._stop_reading()
        if self.conn.their_state is h11.IDLE and self._reading is None and self.conn.trailing_data[0]:
            self._expect_headers()  # of what came with the request before

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
        if self._writing:
            self._writing.cancel()
            self._writing = None

    # -- deadlines

    def _expect_headers(self) -> None:
        self._header_bytes, self._is_in_body = 0, False
        self._reading = self.loop.call_later(self._limits.header_s, self._give_up, "sent no whole header in time")

    def _begin_request(self) -> None:
        self._count_forwarded()
        self._stop_reading()
        self._expect_body()

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

    def _give_up(self, what: str) -> None:
        log.warning("a connection was ended: its client %s", what)
        self.transport.abort()

    def _forget(self) -> None:
        self._connections.leave(self)
        self._stop_reading()
        if self._writing:
            self._writing.cancel()

    def _count_forwarded(self) -> None:
        """A request that a proxy passes on counts for the address that the proxy names."""
        if not self._is_of_proxy:
            return
        named = b",".join(value for name, value in self.headers if name == b"x-forwarded-for").decode("latin-1")
        others = [each for part in named.split(",") if (each := part.strip()) not in self._connections.proxies]
        self.address = others[-1] if others else ""
        self._connections.count(self)


def note_valid_key(scope: Scope) -> None:
    """The client of this request has shown a valid key."""
    connection = scope.get("state", {}).get(CONNECTION)
    if connection is not None:
        connection.admit()


# -- the server's configuration


def bounded_config(app: ASGIApp, connections: Connections, **options: Any) -> uvicorn.Config:
    protocol = cast("type[asyncio.Protocol]", partial(BoundedConnection, connections))
    return uvicorn.Config(
        app,
        http=protocol,
        h11_max_incomplete_event_size=HEADER_BYTES,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,  # addresses may hold what was asked
        server_header=False,
        ws_max_size=2 << 20,
        **options,
    )


def open_connections(proxies: str) -> Connections:
    """As many as this process may have files, without those that everything else needs. `proxies` are addresses,
    separated by commas."""
    files = _raised_file_limit()
    total = min(ConnectionLimits().total, max(files - RESERVED_FILES, files // 4))
    for name in (__name__, "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        if not any(isinstance(each, OncePerMinute) for each in logger.filters):
            logger.addFilter(OncePerMinute())
    for handler in (logging.lastResort, *logging.getLogger("recto").handlers):
        if handler and not any(isinstance(each, OncePerMinute) for each in handler.filters):
            handler.addFilter(OncePerMinute(logging.WARNING))
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


def _place(error: BaseException | None) -> tuple[str, int] | None:
    """Where an error was raised."""
    if error is None or error.__traceback__ is None:
        return None
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename, line


class OncePerMinute(logging.Filter):
    """Passes one record of a kind in a minute: clients must not be able to fill a disk with our log."""

    def __init__(self, least: int = logging.NOTSET) -> None:
        """What is below the level `least` passes."""
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
