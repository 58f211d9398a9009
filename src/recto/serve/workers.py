"""Workers: processes that answer requests with large bodies, so that one client's work does not block others.

Parsing, storing, counting and condensing megabytes of text blocks a Python process in any thread. A worker is a copy of
the server, for this machine alone, with the same home and store (`run_worker` in `server.py`). The server passes on a
large body as it arrives, without reading it, and passes the reply back.

There are two, by size, so that a long conversation does not wait for a huge one. Each key may send the second worker
one body at a time: others wait before they are read. A worker starts with its first request, and ends after some idle
time or with the server. If a worker dies, its requests get a 503 and the next one starts another.
"""

import asyncio
import logging
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from recto.errors import Busy
from recto.serve.connections import BodyLimits, DeliveredStream, IncomingBody, while_there
from recto.serve.telemetry import Collector, Metrics

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from httpx2 import Response as WorkerReply

log = logging.getLogger(__name__)
Mode = Literal["manage", "record", "passthrough"]
Disconnect = Literal["finish", "stop"]
# The server itself answers bodies up to this size. Not measured at this size: of 250 kB, 1,400 small images took two
# seconds of CPU time, and 5,500 short messages one.
SMALL_BYTES = 64 * 1024
# Bodies up to this size have their own worker.
MEDIUM_BYTES = 1024 * 1024
IDLE_S = 120.0
ENDS_WITHIN_S = 35.0
SECRET_HEADER = "x-recto-worker"
# They belong to one connection, or are set by the server that answers.
HOP_HEADERS = {"host", "connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "expect", "date"}
FAILED = "The server could not answer this request because its worker process ended. Try again."


class ServeOptions(Struct, frozen=True):
    mode: Mode = "manage"
    needs_key: bool = True
    fallbacks: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By model, the models that answer if it fails; `*` for all others."""
    on_disconnect: Disconnect = "finish"
    """What happens to a reply whose client has gone."""
    limits: BodyLimits = BodyLimits()
    collector: Collector | None = None
    is_worker: bool = False
    """Another server has counted the requests."""


class WorkerPlan(Struct, frozen=True):
    home: str
    project: str | None
    model: str | None
    settings: dict[str, Any]
    options: ServeOptions
    secret: str = msgspec.field(default_factory=partial(secrets.token_urlsafe, 32))


class Workers:
    def __init__(self, plan: WorkerPlan, metrics: Metrics) -> None:
        self._medium, self._large = _Worker(plan, metrics), _Worker(plan, metrics)
        self._turns: dict[str, asyncio.Lock] = {}

    async def answer(self, owner: str, request: Request, body: IncomingBody) -> Response | None:
        """The reply of a worker, as it comes; None if the server itself is to answer. Raises Busy if the worker fails.

        Once a key has sent a body to the worker for the largest, that worker answers all of its requests while it runs,
        since its stored conversation is large too.
        """
        is_known = owner in self._turns and self._large.is_running
        if not await body.is_larger_than(SMALL_BYTES):
            return await self._large.answer(request, body) if is_known else None
        if body.declared is not None and body.declared <= MEDIUM_BYTES:
            return await (self._large if is_known else self._medium).answer(request, body)
        async with self._turns.setdefault(owner, asyncio.Lock()):
            return await self._large.answer(request, body)

    async def close(self) -> None:
        await asyncio.gather(self._medium.end(), self._large.end())


class _Worker:
    def __init__(self, plan: WorkerPlan, metrics: Metrics) -> None:
        self._plan, self._metrics = plan, metrics
        self._starting, self._ending = asyncio.Lock(), asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._client: AsyncClient | None = None
        self._listening: asyncio.Task[None] | None = None
        self._running = 0
        self._idle: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def answer(self, request: Request, body: IncomingBody) -> Response:
        import httpx2  # slow, and only for large bodies

        async with AsyncExitStack() as stack:
            try:
                client = await stack.enter_async_context(self._in_use())
                reply = await _sent(client, request, body)
            except (httpx2.HTTPError, OSError) as why:
                log.error("a worker failed: %s", repr(why))
                raise Busy(FAILED) from why
            if reply is None:
                return Response(status_code=499)
            stack.push_async_callback(reply.aclose)
            headers = {name: value for name, value in reply.headers.items() if name not in HOP_HEADERS}
            return DeliveredStream(_chunks(reply), stack.pop_all().aclose, headers, reply.status_code)

    @asynccontextmanager
    async def _in_use(self) -> AsyncIterator["AsyncClient"]:
        if self._idle:
            self._idle.cancel()
        self._running += 1
        try:
            async with self._starting:
                client = await self._started()
            yield client
        finally:
            self._running -= 1
            if not self._running:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end_soon)

    async def _started(self) -> "AsyncClient":
        import httpx2  # slow, and only for large bodies

        if self._client and self.is_running:
            return self._client
        await self.end()
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "recto.serve.server")
        # in its own session: Ctrl-C is for the server, which lets replies finish
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
        assert process.stdin
        assert process.stdout
        process.stdin.write(msgspec.json.encode(self._plan) + b"\n")
        port = (await process.stdout.readline()).strip()
        if not port.isdigit():
            await process.wait()
            raise OSError("it did not start")
        self._client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port.decode()}",
            headers={SECRET_HEADER: self._plan.secret},
            timeout=None,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            trust_env=False,
        )
        self._process = process
        self._listening = asyncio.create_task(self._listen(process.stdout))
        return self._client

    async def _listen(self, lines: asyncio.StreamReader) -> None:
        """Adds the figures that a worker prints as it goes."""
        with suppress(ValueError, msgspec.MsgspecError):
            async for line in lines:
                self._metrics.add(line)

    def _end_soon(self) -> None:
        if not self._running:
            self._last_end = asyncio.create_task(self.end())

    async def end(self) -> None:
        """Closes the worker's input, which ends it after its replies."""
        async with self._ending:
            process, client, listening = self._process, self._client, self._listening
            self._process = self._client = self._listening = None
            if self._idle:
                self._idle.cancel()
            if client:
                await client.aclose()
            if process and process.stdin:
                process.stdin.close()
                try:
                    await asyncio.wait_for(process.wait(), ENDS_WITHIN_S)
                except TimeoutError:
                    process.kill()
                    await process.wait()
            if listening:
                await listening


async def _sent(client: "AsyncClient", request: Request, body: IncomingBody) -> "WorkerReply | None":
    """The worker's reply, once it begins; None if the client left before."""
    is_read = asyncio.Event()

    async def parts() -> AsyncGenerator[bytes, None]:
        async for part in body.parts():
            yield part
        is_read.set()

    # as they came: not every byte of a header is a character
    headers = [(name, value) for name, value in request.headers.raw if name.decode("latin-1") not in HOP_HEADERS]
    made = client.build_request("POST", request.url.path, headers=headers, content=parts())
    sending, reading = asyncio.ensure_future(client.send(made, stream=True)), asyncio.ensure_future(is_read.wait())
    try:
        await asyncio.wait([sending, reading], return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            return sending.result()
        return await while_there(request, sending)  # only now, since nobody else listens to the client any longer
    finally:
        reading.cancel()
        if not sending.done():
            sending.cancel()
            await asyncio.wait([sending])


async def _chunks(reply: "WorkerReply") -> AsyncGenerator[bytes, None]:
    async for chunk in reply.aiter_raw():
        yield chunk
