"""A session with an MCP server over the SDK: its transport, its list of tools, calls.

Over stdin and stdout of a process, or to a URL over streamable HTTP. Imported late: the SDK is slow to load.
"""

import asyncio
import base64
import binascii
import json
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp.types import (
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    EmptyResult,
    Implementation,
    PaginatedRequestParams,
    PingRequest,
    Tool,
    ToolListChangedNotification,
    jsonrpc_message_adapter,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import to_json

from mcp import Client, MCPError
from recto.base.text import clean
from recto.errors import RectoError
from recto.mcp.server_connection import Connection
from recto.mcp.server_target import ServerTarget
from recto.mcp.tool_list import MAX_LISTED_TOOLS, ToolList, check_tools
from recto.sources.tools import Arguments, Media, ToolOutput

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

MAX_PAGES = 200
CONNECT_TIMEOUT_S = 30.0
MAX_MESSAGE_BYTES = 160_000_000
"""The longest message: 50 MB of text twice, because many servers send it as text and as structured content, plus the
rest."""
EXIT_TIMEOUT_S = 1.0
"""For each step of stopping a process: close stdin, terminate, kill."""
INVALID_ARGUMENTS = "the arguments contain something that JSON cannot carry, or are nested too deeply"
CLIENT_INFO = Implementation(name="recto", version="0.1.0")
OCTET_STREAM = "application/octet-stream"

# The SDK logs servers' faults, which Python would print on the terminal; Recto reports them itself.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class ServerGone(Exception):
    """The server ended before it answered."""


@asynccontextmanager
async def open_session(
    target: ServerTarget, environment: Mapping[str, str], connection: Connection
) -> AsyncIterator[Client]:
    """Open a session that offers the server nothing: no sampling, no elicitation, no roots."""

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            connection.on_tools_changed()

    async def listen() -> None:
        with suppress(MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    connection.on_tools_changed()

    transport = _transport(target, environment, connection)
    async with Client(transport, client_info=CLIENT_INFO, cache=None, message_handler=on_message) as client:
        tools, listening = client.server_capabilities.tools, None
        # servers of protocol 2026 announce changes of the tool list only to subscribers
        if client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools and tools.list_changed:
            listening = asyncio.create_task(listen())
        try:
            yield client
        finally:
            if listening:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)


async def list_tools(client: Client, name: str) -> ToolList:
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        try:
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        except MCPError as why:
            if why.code == METHOD_NOT_FOUND and not found:
                return ToolList()
            raise
        found += page.tools
        if not page.next_cursor or page.next_cursor == cursor or len(found) > MAX_LISTED_TOOLS:
            break
        cursor = page.next_cursor
    return check_tools(name, [(each.name, each.description or each.title or "", each.input_schema) for each in found])


async def call_tool(client: Client, connection: Connection, tool: str, arguments: Arguments) -> ToolOutput:
    """Call a tool. Raises ServerGone if the server ended; any other failure is a result that the model reads."""
    name = connection.name
    try:  # arguments that JSON cannot encode, such as lone surrogates, would end the connection and its other calls
        to_json(dict(arguments))
    except (ValueError, RecursionError):
        return ToolOutput(f"the call was not sent to the MCP server {name}: {INVALID_ARGUMENTS}", is_error=True)
    try:
        return tool_output(await client.call_tool(tool, dict(arguments)))
    except MCPError as why:
        # before 2026 a failed call has HTTP status 200: an error status means that the server forgot the session
        is_forgotten = connection.http_error and client.protocol_version not in MODERN_PROTOCOL_VERSIONS
        if is_disconnect(why) or is_forgotten:
            raise ServerGone from why
        problem = f"the MCP server {name} answered with an error: {why.error.message}"
    except ValidationError as why:
        problem = f"the MCP server {name} sent a result that is not valid: {_first_error(why)}"
    except RuntimeError as why:
        problem = f"the call failed on the MCP server {name}: {why}"
    return ToolOutput(problem, is_error=True)


def is_disconnect(why: MCPError) -> bool:
    """True for the SDK's own disconnect messages: servers use its error code for many things."""
    return why.error.message in ("Connection closed", "Session terminated")


async def is_alive(client: Client, timeout_s: float) -> bool:
    """True if the server answers a ping, even with an error."""
    try:
        async with asyncio.timeout(timeout_s):
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                await client.session.send_discover(client.protocol_version)
            else:
                await client.session.send_request(PingRequest(), EmptyResult)
    except MCPError as why:
        return why.code != REQUEST_TIMEOUT and not is_disconnect(why)
    except TimeoutError:
        return False
    except ValidationError:
        pass
    return True


def error_text(why: BaseException) -> str:
    while isinstance(why, BaseExceptionGroup):
        why = why.exceptions[0]
    match why:
        case FileNotFoundError() | NotADirectoryError():
            return f"there is no {why.filename}"
        case PermissionError():
            return f"{why.filename} cannot be executed"
        case MCPError():
            return why.error.message
        case ValidationError():
            return f"its response is not valid: {_first_error(why)}"
        case RectoError():
            return why.message
    return str(why) or type(why).__name__


def _first_error(why: ValidationError) -> str:
    error: Any = why.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}" if error["loc"] else str(error["msg"])


# -- transports


@asynccontextmanager
async def _transport(
    target: ServerTarget, environment: Mapping[str, str], connection: Connection
) -> AsyncIterator[tuple[Any, Any]]:
    transport = _stdio(target, environment, connection) if target.command else _http(target, connection)
    async with transport as (read, write):
        yield _Incoming(read, connection), write


class _Incoming(AbstractAsyncContextManager["_Incoming"]):
    """The messages of a server; notices their end."""

    def __init__(self, stream: Any, connection: Connection) -> None:
        self._stream, self._connection = stream, connection

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._connection.closed.set()
            raise anyio.EndOfStream from None

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def _stdio(
    target: ServerTarget, environment: Mapping[str, str], connection: Connection
) -> AsyncIterator[tuple[Any, Any]]:
    """The SDK's own transport limits no line, and leaves children of a server that has ended."""
    inherited = {name: environment[name] for name in DEFAULT_INHERITED_ENV_VARS if name in environment}
    with connection.log.opened() as errors:
        process = await asyncio.create_subprocess_exec(
            target.command,
            *target.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            limit=MAX_MESSAGE_BYTES,
            env=inherited | dict(target.env),
            cwd=target.cwd or None,
            # a separate process group: Ctrl-C does not reach it, and its children end with it
            start_new_session=True,
        )
    assert process.stdin
    assert process.stdout
    received, incoming = anyio.create_memory_object_stream[SessionMessage](0)
    outgoing, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process.stdout, received, connection)),
        asyncio.create_task(_write(process.stdin, to_send, received)),
    ]
    try:
        yield incoming, outgoing
    finally:
        try:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _stop(process)
        finally:
            _signal(process, signal.SIGKILL)
            for stream in (received, incoming, outgoing, to_send):
                stream.close()


async def _read(
    stream: asyncio.StreamReader, received: MemoryObjectSendStream[SessionMessage], connection: Connection
) -> None:
    with received, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        try:
            while line := await stream.readline():
                if message := _parse(line):
                    await received.send(message)
        except ValueError:
            connection.violation = f"it sent a line of more than {MAX_MESSAGE_BYTES // 1_000_000} MB"


def _parse(line: bytes) -> SessionMessage | None:
    """Parse a line, replacing lone surrogates, which strings of JavaScript may hold; None if it is not valid."""
    with suppress(ValueError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    with suppress(ValueError, RecursionError):
        text = clean(json.dumps(json.loads(clean(line)[0]), ensure_ascii=False))[0]
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    return None


async def _write(
    stream: asyncio.StreamWriter,
    to_send: MemoryObjectReceiveStream[SessionMessage],
    received: MemoryObjectSendStream[SessionMessage],
) -> None:
    with to_send, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        try:
            async for item in to_send:
                stream.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stream.drain()
        except OSError:
            received.close()  # a server that no longer reads will not answer either


async def _stop(process: Process) -> None:
    """Stop the process and its children in the steps of the protocol: close stdin, terminate, kill."""
    assert process.stdin
    with suppress(OSError):
        process.stdin.close()
    for step in (signal.SIGTERM, signal.SIGKILL):
        if not await _exited(process):
            _signal(process, step)
    await _exited(process)
    # closes pipes that a child outside the process group may still hold
    process._transport.close()  # type: ignore[attr-defined]


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


@asynccontextmanager
async def _http(target: ServerTarget, connection: Connection) -> AsyncIterator[tuple[Any, Any]]:
    async def check(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            status = f"HTTP {response.status_code} {response.reason_phrase}".strip()
            connection.http_error = status if response.is_error else ""
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
                raise httpx2.StreamError(f"the result is larger than {MAX_MESSAGE_BYTES // 1_000_000} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


# -- results


def tool_output(result: "CallToolResult") -> ToolOutput:
    blocks = [_convert(block) for block in result.content]
    texts = [text for text, _ in blocks if text]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    media = tuple(item for _, item in blocks if item)
    return ToolOutput("\n\n".join(texts), result.is_error, media)


def _convert(block: "ContentBlock") -> tuple[str, Media | None]:
    match block.type:
        case "text":
            return block.text, None
        case "image" | "audio":
            return _convert_media(block.type, block.mime_type, block.data)
        case "resource":
            resource = block.resource
            if (text := getattr(resource, "text", None)) is not None:
                return f"{resource.uri}\n{text}", None
            encoded = getattr(resource, "blob", "")
            return _convert_media(f"file {resource.uri}", resource.mime_type or OCTET_STREAM, encoded)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource: {block.title or block.name}, {block.uri}{about}]", None


def _convert_media(label: str, media_type: str, encoded: str) -> tuple[str, Media | None]:
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return f"[{label}: {media_type}, not valid base64, left out]", None
    return f"[{label}: {media_type}, {len(data):,} bytes, kept]", Media(media_type, data)
