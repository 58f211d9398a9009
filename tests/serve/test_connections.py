"""What a client may hold open. The server is real, its limits are small."""

import asyncio
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

from recto.serve import connections
from recto.serve.connections import HEADER_BYTES, bounded_config
from recto.serve.server import bound_socket

HALF = b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n%s\r\n"
Connect = Callable[[], socket.socket]
StartServer = Callable[..., Connect]
stopped = threading.Event()
"""An endless reply has come to its end."""


async def answer(request: Request) -> PlainTextResponse | StreamingResponse:
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
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[StartServer]:
    running: list[tuple[uvicorn.Server, threading.Thread]] = []
    opened: list[socket.socket] = []

    def start(look_s: float = 20.0) -> Connect:
        monkeypatch.setattr(connections, "LOOK_S", look_s)
        app = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
        server = uvicorn.Server(bounded_config(app))
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


def ask(connection: socket.socket, header: bytes = b"") -> bytes:
    connection.sendall(WHOLE % header)
    return reply(connection)


def reply(connection: socket.socket) -> bytes:
    """Up to the end of the body."""
    found = b""
    while not found.endswith(b"fine") and (more := connection.recv(4096)):
        found += more
    return found


def test_connections_beyond_the_most_are_ended(start: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_most_connections", lambda: 2)
    connect = start()
    known = [connect() for _ in range(2)]
    assert all(b"200 OK" in ask(each) for each in known)
    assert is_ended(connect())
    assert all(b"200 OK" in ask(each) for each in known)


@pytest.mark.parametrize(
    "sent",
    [HALF, b"", b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nhalf", WHOLE % b"" + HALF],
    ids=["half a header", "nothing", "half a body", "half a header after a reply"],
)
def test_a_client_that_stops_sending_is_ended(start: StartServer, sent: bytes) -> None:
    connection = start(0.05)()
    connection.sendall(sent)
    assert is_ended(connection)


def test_a_body_nobody_reads_does_not_keep_a_connection(start: StartServer) -> None:
    connection = start(0.05)()
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


def test_a_client_that_reads_nothing_is_ended(start: StartServer) -> None:
    connection = start(0.05)()
    connection.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
    connection.recv(1)
    assert stopped.wait(30)


def test_a_header_has_at_most_64_kilobytes(start: StartServer) -> None:
    connect = start()
    fits = b"X-Large: " + b"a" * (HEADER_BYTES - 100) + b"\r\n"
    assert b"200 OK" in ask(connect(), fits)
    connection, large = connect(), WHOLE % (fits + fits)
    with suppress(BrokenPipeError, ConnectionResetError):
        for at in range(0, len(large), 1000):
            connection.sendall(large[at : at + 1000])
        assert b"200 OK" not in connection.recv(4096)
