"""What a client may hold open before it has shown a valid key. The server is real, its limits are small."""

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from recto.serve.connections import (
    HEADER_BYTES,
    ConnectionLimits,
    Connections,
    OncePerMinute,
    bounded_config,
    note_valid_key,
    open_connections,
)
from recto.serve.server import bound_socket

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
WHOLE = b"GET /?key=%s HTTP/1.1\r\nHost: x\r\n%s\r\n"
Connect = Callable[[], socket.socket]
StartServer = Callable[..., Connect]
stopped = threading.Event()
"""An endless reply has come to its end."""


async def answer(request: Request) -> PlainTextResponse | StreamingResponse:
    if "valid" in request.url.query:
        note_valid_key(request.scope)
    if request.url.path == "/body":
        await request.body()
    if request.url.path == "/endless":

        async def chunks() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 65536
                    await asyncio.sleep(0)
            finally:
                stopped.set()

        return StreamingResponse(chunks())
    return PlainTextResponse("fine")


@pytest.fixture
def start() -> Iterator[StartServer]:
    running: list[tuple[uvicorn.Server, threading.Thread]] = []
    opened: list[socket.socket] = []

    def start(proxies: tuple[str, ...] = (), **limits: float) -> Connect:
        app = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
        connections = Connections(ConnectionLimits(**limits), proxies)  # type: ignore[arg-type]
        server = uvicorn.Server(bounded_config(app, connections))
        bound = bound_socket("127.0.0.1", 0)
        port = bound.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([bound])))
        thread.start()
        running.append((server, thread))

        def connect() -> socket.socket:
            opened.append(made := socket.create_connection(("127.0.0.1", port), timeout=30))
            return made

        return connect

    yield start
    for each in opened:
        each.close()
    for server, thread in running:
        server.should_exit = True
        thread.join()


def is_ended(connection: socket.socket) -> bool:
    """Waits for the server to end it."""
    try:
        while connection.recv(1 << 20):
            pass
    except ConnectionResetError:
        pass
    return True


def ask(connection: socket.socket, key: bytes = b"", header: bytes = b"") -> bytes:
    connection.sendall(WHOLE % (key, header))
    return reply(connection)


def reply(connection: socket.socket) -> bytes:
    """Up to the end of the body."""
    found = b""
    while not found.endswith(b"fine") and (more := connection.recv(4096)):
        found += more
    return found


def test_a_flood_of_half_sent_headers_costs_the_oldest_their_place_and_nobody_else(start: StartServer) -> None:
    connect = start(per_address=4)
    known = connect()
    assert b"200 OK" in ask(known, b"valid")
    flood = [connect() for _ in range(12)]
    for each in flood:
        with suppress(OSError):  # it may be ended by now
            each.sendall(HALF)
    assert all(is_ended(each) for each in flood[:8])
    assert b"200 OK" in ask(connect())
    assert b"200 OK" in ask(known)


def test_more_connections_than_the_server_takes_end_those_without_a_key(start: StartServer) -> None:
    connect = start(total=4)
    known = [connect() for _ in range(3)]
    assert all(b"200 OK" in ask(each, b"valid") for each in known)
    stranger, other = connect(), connect()
    assert is_ended(stranger)
    assert b"200 OK" in ask(other, b"valid")
    assert is_ended(connect())
    assert all(b"200 OK" in ask(each) for each in (*known, other))


@pytest.mark.parametrize(
    "sent",
    [HALF, b"", b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nhalf", WHOLE % (b"", b"") + HALF],
    ids=["half a header", "nothing", "half a body", "half a header after a reply"],
)
def test_a_client_that_stops_sending_is_ended(start: StartServer, sent: bytes) -> None:
    connection = start(header_s=0.05, body_s=0.05)()
    connection.sendall(sent)
    assert is_ended(connection)


def test_a_body_nobody_reads_does_not_keep_a_connection(start: StartServer) -> None:
    connection = start(body_s=0.05, body_bytes=1)()
    connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
    assert b"200 OK" in reply(connection)
    assert is_ended(connection)


def test_a_request_that_was_answered_before_its_body_came_is_followed_by_others(start: StartServer) -> None:
    """As where a key is wrong. The server once span for ever on what followed."""
    connection, size = start()(), 2 * HEADER_BYTES
    early = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
    for _ in range(3):
        connection.sendall(early + b"x" * (size - 1))
        assert b"200 OK" in reply(connection)
        connection.sendall(b"x")
        assert b"200 OK" in ask(connection)


def test_empty_lines_before_a_request_do_not_go_on_for_ever(start: StartServer) -> None:
    connection = start()()
    with suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(HEADER_BYTES // 100):
            connection.sendall(b"\r\n" * 100)
    assert is_ended(connection)


def test_a_client_that_reads_nothing_is_ended(start: StartServer) -> None:
    connection = start(write_s=0.05)()
    connection.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    connection.recv(1)
    assert stopped.wait(30)


@pytest.mark.parametrize("chunk", [1000, 1 << 20])
def test_a_header_has_at_most_64_kilobytes(start: StartServer, chunk: int) -> None:
    connect = start()
    fits = b"X-Large: " + b"a" * (HEADER_BYTES - 100) + b"\r\n"
    assert b"200 OK" in ask(connect(), header=fits)
    connection, large = connect(), WHOLE % (b"", fits + fits)
    try:
        for at in range(0, len(large), chunk):
            connection.sendall(large[at : at + chunk])
        assert b"200 OK" not in connection.recv(4096)
    except (BrokenPipeError, ConnectionResetError):
        pass


def test_behind_a_proxy_the_forwarded_address_counts(start: StartServer) -> None:
    connect = start(("127.0.0.1",), per_address=1)
    idle = [connect() for _ in range(4)]
    forwarded = b"X-Forwarded-For: 192.0.2.9, 192.0.2.%d, 127.0.0.1\r\n"
    assert all(b"200 OK" in ask(each, header=forwarded % number) for number, each in enumerate(idle))
    sending = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n" + forwarded % 1 + b"\r\n"
    for each in idle[:2]:
        each.sendall(sending)
    assert is_ended(idle[0])
    assert b"200 OK" in ask(idle[2], header=forwarded % 2)


def test_a_kind_of_record_is_logged_once_a_minute() -> None:
    once = OncePerMinute()
    records = [logging.LogRecord("n", logging.WARNING, "", 0, text, (1,), None) for text in ("a %d", "a %d", "b %d")]
    assert [once.filter(each) for each in records] == [True, False, True]


def test_every_log_of_a_server_is_limited() -> None:
    handler = logging.StreamHandler()
    logging.getLogger("recto").addHandler(handler)
    try:
        open_connections("")
        open_connections("")
        assert [type(each) for each in handler.filters] == [OncePerMinute]
    finally:
        logging.getLogger("recto").removeHandler(handler)
