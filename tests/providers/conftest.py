"""A real HTTP server on loopback that answers as it is told: any status, any cut of the bytes, any bad end."""

import asyncio
import inspect
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

import pytest

from recto.errors import NotFound
from recto.providers.model import Model
from recto.wire import Json, dumps

End = Literal["whole", "closed", "aborted", "hanging", "whole, then closed"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request. Without a status it does not answer at all before its end."""

    status: int | None = 200
    headers: dict[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    end: End = "whole"
    again: bytes = b""
    """Sent again and again until the client leaves."""


@dataclass(frozen=True, slots=True)
class Received:
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


class Loopback:
    """Gives its answers in order, the last one again and again; of `routes` those of the path, in the same way."""

    def __init__(self, *answers: Answer, routes: dict[str, list[Answer]] | None = None) -> None:
        self.answers, self.routes = answers, routes
        self.received: list[Received] = []
        self.left = threading.Event()
        """A client closed its connection before the answer had ended."""
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @staticmethod
    def events(*payloads: Json, end: End = "whole") -> Answer:
        """Server-sent events, one for each payload; a text stands as it is, anything else as JSON."""
        datas = [payload if isinstance(payload, str) else dumps(payload) for payload in payloads]
        return Loopback.stream(*(f"data: {data}\n\n".encode() for data in datas), end=end)

    @staticmethod
    def stream(*chunks: bytes, end: End = "whole") -> Answer:
        return Answer(200, {"content-type": "text/event-stream"}, chunks, end)

    @staticmethod
    def error(status: int, payload: Json, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Answer(status, {"content-type": "application/json", **named}, (dumps(payload).encode(),))

    @staticmethod
    def whole(payload: Json) -> Answer:
        """An answer that is no stream."""
        return Loopback.error(200, payload)

    @staticmethod
    def page(status: int, text: str) -> Answer:
        return Answer(status, {"content-type": "text/html"}, (text.encode(),))

    @staticmethod
    def nothing(end: End) -> Answer:
        return Answer(None, end=end)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def stop_listening(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        self._tasks.add(asyncio.create_task(self._serve(reader, writer, self._connections)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        try:
            while await self._one(reader, writer, connection):
                pass
        except (ConnectionError, asyncio.IncompleteReadError) as why:
            if isinstance(why, ConnectionError):
                self.left.set()
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> bool:
        """True when the connection may serve another request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request, *lines = head.rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        answer = self._next(request.split()[1])
        self.received.append(Received(request.split()[1], headers, body, connection))
        await self._answer(writer, answer)
        if answer.end == "hanging":
            await asyncio.Event().wait()
        if answer.end == "aborted":
            writer.transport.abort()
        return answer.end == "whole"

    def _next(self, target: str) -> Answer:
        """Where there are routes, a path that is none of them and is only read is not known."""
        targets = [each.target for each in self.received]
        if self.routes is None:
            return self.answers[min(len(targets), len(self.answers) - 1)]
        chats = ("/v1/chat/completions", "/v1/messages")
        answers = self.routes.get(target) or (self.answers if target in chats else [Loopback.error(404, {})])
        place = sum(each in chats if target in chats else each == target for each in targets)
        return answers[min(place, len(answers) - 1)]

    async def _answer(self, writer: asyncio.StreamWriter, answer: Answer) -> None:
        if answer.status is None:
            return
        headers = {"transfer-encoding": "chunked", **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} Told", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for chunk in answer.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)  # so that the client may read them one by one
        while answer.again:
            writer.write(f"{len(answer.again):x}\r\n".encode() + answer.again + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
        if answer.end.startswith("whole"):
            writer.write(b"0\r\n\r\n")
        await writer.drain()


class OneModel:
    """The smallest catalog there is."""

    def find(self, provider: str, id: str) -> Model:
        if id == "unknown":
            raise NotFound(f"{provider} has no model {id}")
        return Model(f"{provider}:{id}", provider, id, 128_000, "built in", exact=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs tests that are coroutines, each in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True
