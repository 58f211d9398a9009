"""A server at an address, over streamable HTTP, with a bound on what one answer may hold. Imported only with a
server at hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client.streamable_http import streamable_http_client

from recto.servers.pipe import LONGEST, too_large
from recto.servers.reach import Reach
from recto.servers.seen import Seen
from recto.servers.sifted import Streams

CONNECT_S = 30.0


@asynccontextmanager
async def http(reach: Reach, seen: Seen) -> AsyncIterator[Streams]:
    async def bound(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            said = f"HTTP {response.status_code} {response.reason_phrase}".strip()
            seen.failure = said if response.is_error else ""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.StreamError("the answer is compressed, which was not asked for: its size has no bound")
        if "text/event-stream" not in response.headers.get("content-type", ""):
            response.stream = _Bounded(response.stream)

    # how long an answer may take is said per call, not here
    timeout = httpx2.Timeout(CONNECT_S, read=None)
    hooks = {"response": [bound]}
    headers = {"accept-encoding": "identity"} | dict(reach.headers)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(reach.url, http_client=client, max_sse_event_size=LONGEST) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: object) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            read += len(chunk)
            if read > LONGEST:
                raise httpx2.StreamError(too_large())
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
