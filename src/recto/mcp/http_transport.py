"""The HTTP transport: an MCP server at a URL over streamable HTTP, with a limit on the size of a response.

Imported only when a server is used, because the SDK is slow to load.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from recto.mcp.connection_state import ConnectionState
from recto.mcp.server_target import ServerTarget
from recto.mcp.stdio import MAX_MESSAGE_BYTES, too_large_text
from recto.mcp.transport import Streams

CONNECT_TIMEOUT_S = 30.0


@asynccontextmanager
async def http_transport(target: ServerTarget, state: ConnectionState) -> AsyncIterator[Streams]:
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
    hooks = {"response": [check]}
    headers = {"accept-encoding": "identity"} | dict(target.headers)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
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
