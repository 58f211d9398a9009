"""The transports between sessions and servers. ConnectionState sees every message first.

Over stdin and stdout of a process, with limits that the SDK's transport lacks, or to a URL over streamable HTTP.
Imported only when a server is used, because the SDK is slow to load.
"""

import asyncio
import json
import logging
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Self

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from msgspec import Struct

from recto.base.text import clean
from recto.mcp.connection_state import ConnectionState
from recto.mcp.server_target import ServerTarget

Streams = tuple[Any, Any]

log = logging.getLogger(__name__)
CONNECT_TIMEOUT_S = 30.0
MAX_MESSAGE_BYTES = 160_000_000
"""The longest line: 50 MB of text twice, because many servers send it as text and as structured content, plus the rest.
A line without an end stops the server at twice this size."""
END_BYTES = 4_096
"""Bytes at each end of a long line that are searched for its id."""
EXIT_TIMEOUT_S = 1.0
"""For each step of stopping a process: close stdin, terminate, kill."""
OWN_ERROR = "recto"
"""Marks an error that Recto answers in the server's place."""
INVALID_MESSAGE = "the server's answer does not follow the protocol"
INVALID_ARGUMENTS = "the arguments contain something that JSON cannot carry, or are nested too deeply"
_CHUNK_BYTES = 1 << 20


# -- every message


@asynccontextmanager
async def filtered_transport(
    target: ServerTarget, environment: Mapping[str, str], state: ConnectionState
) -> AsyncIterator[Streams]:
    transport = _stdio_transport(target, environment, state) if target.command else _http_transport(target, state)
    async with transport as (read, write):
        yield _Incoming(read, state), _Outgoing(write, state)


async def cancel_tasks(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks, wait for them, and log their errors."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("a task of an MCP connection failed", exc_info=result)


class _Stream(AbstractAsyncContextManager["_Stream"]):
    def __init__(self, stream: Any, state: ConnectionState) -> None:
        self._stream, self._state = stream, state

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aexit__(self, *_: object) -> None:
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
        state = self._state
        while not state.violation:
            try:
                item = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                break
            is_passed = isinstance(item, SessionMessage)
            match item.message if is_passed else item:
                case JSONRPCNotification(method=method):
                    is_passed = state.on_notification(method)
                case JSONRPCRequest(id=id, method=method):
                    state.on_request_received(id, method)
                case JSONRPCResponse() as response:
                    response.result = state.on_result(response.id, response.result)
                case Exception() as problem:
                    state.skip_line(str(problem))
            if is_passed and not state.violation:
                return item  # type: ignore[no-any-return]
            await state.throttle()
        state.closed.set()
        raise anyio.EndOfStream

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


# -- HTTP


@asynccontextmanager
async def _http_transport(target: ServerTarget, state: ConnectionState) -> AsyncIterator[Streams]:
    async def check(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            status = f"HTTP {response.status_code} {response.reason_phrase}".strip()
            state.http_error = status if response.is_error else ""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.StreamError("the response is compressed although Recto asked for none: its size has no limit")
        if "text/event-stream" not in response.headers.get("content-type", ""):
            response.stream = _LimitedStream(response.stream)

    # each call has its own read timeout
    timeout = httpx2.Timeout(CONNECT_TIMEOUT_S, read=None)
    headers = {"accept-encoding": "identity"} | dict(target.headers)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [check]}) as client,
        streamable_http_client(target.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: object) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError(too_large_text())
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


# -- stdio: lines that are too long

_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")\s*'
_RESULT = rb'"(?:result|error)"\s*:'
# An id inside a result belongs to something else, so only the places where the response's own id can be are searched.
_ID_FIRST = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b,\s*(?:%b,\s*)?%b" % (_VERSION, _ID, _VERSION, _RESULT))
_RESULT_FIRST = re.compile(rb"\s*\{\s*(?:%b,\s*)?%b" % (_VERSION, _RESULT))
_ID_LAST = re.compile(rb",\s*%b(?:,\s*%b)?\}\s*\Z" % (_ID, _VERSION))


class LongLine(Struct):
    head: bytes
    tail: bytes
    size: int

    @classmethod
    def of(cls, line: bytes | bytearray) -> Self:
        return cls(bytes(line[:END_BYTES]), bytes(line[-END_BYTES:]), len(line))

    def __len__(self) -> int:
        return self.size

    def extend(self, more: bytes) -> None:
        self.tail = (self.tail + more[-END_BYTES:])[-END_BYTES:]
        self.size += len(more)


def error_message(id: int | str, text: str) -> SessionMessage:
    return SessionMessage(
        JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=INTERNAL_ERROR, message=text, data=OWN_ERROR))
    )


def error_for_long_line(line: LongLine, text: str) -> SessionMessage | None:
    """An error instead of a result that was not read; None if its id cannot be found."""
    match = _ID_FIRST.match(line.head)
    if match is None and _RESULT_FIRST.match(line.head):
        match = _ID_LAST.search(line.tail)
    return error_message(json.loads(match[1]), text) if match else None


def too_large_text() -> str:
    return f"the result is larger than {MAX_MESSAGE_BYTES // 1_000_000} MB"


# -- stdio: the process


@asynccontextmanager
async def _stdio_transport(
    target: ServerTarget, environment: Mapping[str, str], state: ConnectionState
) -> AsyncIterator[Streams]:
    process = await _start_process(target, environment)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    state.pid = process.pid
    received, incoming = anyio.create_memory_object_stream[SessionMessage](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    messaging = [
        asyncio.create_task(_read(process.stdout, received, state)),
        asyncio.create_task(_write(process.stdin, to_send, received)),
    ]
    draining = asyncio.create_task(state.stderr.drain(process.stderr))
    try:
        yield incoming, outgoing
    finally:
        try:
            await _stop(process, messaging, draining)
        finally:
            _signal(process, signal.SIGKILL)
            state.exit_code = process.returncode
            for stream in (received, incoming, outgoing, to_send):
                stream.close()


async def _start_process(target: ServerTarget, environment: Mapping[str, str]) -> Process:
    """Start the process. Finishes even if cancelled: it takes milliseconds, and the process would be lost otherwise."""
    inherited = {name: environment[name] for name in DEFAULT_INHERITED_ENV_VARS if name in environment}
    starting = asyncio.create_subprocess_exec(
        target.command,
        *target.args,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=_CHUNK_BYTES,
        env=inherited | dict(target.env),
        cwd=target.cwd or None,
        # a separate process group: Ctrl-C does not reach it, and its children end with it
        start_new_session=True,
    )
    task = asyncio.create_task(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(OSError):
            process = await task
            _signal(process, signal.SIGKILL)
            await _exited(process)
            process._transport.close()  # type: ignore[attr-defined]
        raise


# -- stdio: reading


async def _read(
    stream: asyncio.StreamReader, received: MemoryObjectSendStream[SessionMessage], state: ConnectionState
) -> None:
    with received, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for line in _read_lines(stream):
            if line is None:
                state.violation = f"it sent a line of more than {2 * MAX_MESSAGE_BYTES // 1_000_000} MB"
                return
            if isinstance(line, LongLine):
                message, start = error_for_long_line(line, too_large_text()), line.head
            elif line.strip():
                message, start = _parse(line), bytes(line[:200])
            else:
                continue
            if message:
                await received.send(message)
            else:
                state.skip_line(clean(start)[0])
                await state.throttle()


async def _read_lines(stream: asyncio.StreamReader) -> AsyncIterator[bytearray | bytes | LongLine | None]:
    """Yield each line; only the two ends of a too long one; None, as the last item, for one without an end.

    Searches only new bytes for a newline.
    """
    line: bytearray | LongLine = bytearray()
    while chunk := await stream.read(_CHUNK_BYTES):
        first, *more = chunk.split(b"\n")
        if isinstance(line, bytearray) and len(line) + len(first) > MAX_MESSAGE_BYTES:
            line = LongLine.of(line)
        line.extend(first)
        if len(line) > 2 * MAX_MESSAGE_BYTES:
            yield None
            return
        if more:
            yield line
            for whole in more[:-1]:
                yield whole
            line = bytearray(more[-1])


def _parse(line: bytearray | bytes) -> SessionMessage | None:
    """Parse a line, replacing lone surrogates, which JavaScript strings may hold. An invalid response is an error."""
    with suppress(ValueError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    with suppress(ValueError, RecursionError):
        data = json.loads(clean(bytes(line))[0])
        text = clean(json.dumps(data, ensure_ascii=False))[0]
        with suppress(ValueError):
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        id = data.get("id") if isinstance(data, dict) and "method" not in data else None
        if isinstance(id, int | str) and not isinstance(id, bool):
            return error_message(id, INVALID_MESSAGE)
    return error_for_long_line(LongLine.of(line), INVALID_MESSAGE)


# -- stdio: writing and stopping


async def _write(
    stream: asyncio.StreamWriter,
    to_send: MemoryObjectReceiveStream[SessionMessage],
    received: MemoryObjectSendStream[SessionMessage],
) -> None:
    with to_send:
        try:
            async for item in to_send:
                try:
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                except (ValueError, RecursionError):
                    if isinstance(item.message, JSONRPCRequest):
                        await received.send(error_message(item.message.id, INVALID_ARGUMENTS))
                    continue
                stream.write(line + b"\n")
                await stream.drain()
        except OSError:
            received.close()  # a server that no longer reads will not answer either
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def _stop(process: Process, messaging: list[asyncio.Task[None]], draining: asyncio.Task[None]) -> None:
    """Stop the process and its children in the steps of the protocol: close stdin, terminate, kill."""
    assert process.stdin
    assert process.stdout
    await cancel_tasks(*messaging)
    discarding = asyncio.create_task(_discard(process.stdout))
    with suppress(OSError):
        process.stdin.close()
    for step in (signal.SIGTERM, signal.SIGKILL):
        if not await _exited(process):
            _signal(process, step)
    await _exited(process)
    _signal(process, signal.SIGKILL)
    await asyncio.wait({draining}, timeout=0.2)  # for its last lines on stderr
    await cancel_tasks(discarding, draining)
    # closes pipes that a child outside the process group may still hold
    process._transport.close()  # type: ignore[attr-defined]
    await asyncio.sleep(0)


async def _discard(stream: asyncio.StreamReader) -> None:
    """Read the rest: a server that is still writing cannot end before."""
    while await stream.read(_CHUNK_BYTES):
        continue


async def _exited(process: Process) -> bool:
    """Wait for the exit by polling: `Process.wait` would also wait for children to close the pipes."""
    for _ in range(round(EXIT_TIMEOUT_S / 0.01)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(0.01)
    return False


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
