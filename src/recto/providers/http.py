"""Transport: posts exact bytes to a provider, retries while no reply has begun, and yields the parts of the reply.

Knows no wire format; failure.py classifies failures.

Server-sent events: read from chunks of bytes, and written to bytes. Knows no wire format and no network.

httpx2 has its own reader, but that requires a content type that some servers omit, trusts their charset, and loses a
last event without its blank line, such as a final `[DONE]`.
"""

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from recto.providers.failure import AttemptFailed, RequestTarget, from_status, from_stream, unreachable
from recto.providers.model import Attempt, Done, ReplyPart
from recto.wire import Json, loads

if TYPE_CHECKING:
    from httpx2 import AsyncClient, HTTPError, Response

log = logging.getLogger(__name__)


FIELDS = frozenset({"data", "event", "id", "retry", "error", ""})  # the empty one is a comment
MAX_EVENT_BYTES = 32 * 1024 * 1024


class EventTooLarge(ValueError):
    """An event is larger than any real one, so this is not a stream of events."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    data: str
    name: str = "message"

    @property
    def encoded(self) -> bytes:
        """The bytes on the wire; the default name is left out."""
        named = "" if self.name == "message" else f"event: {self.name}\n"
        lines = "".join(f"data: {line}\n" for line in self.data.split("\n"))
        return f"{named}{lines}\n".encode()


class EventReader:
    """Takes chunks and returns complete events; `end` returns a last event without its blank line."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_return = False
        self._data: list[str] = []
        self._name = ""
        self._size = 0
        self.strange = False
        """True after a line that does not belong to a stream of events."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        self._rest += chunk
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return self._lines() if b"\n" in chunk or b"\r" in chunk else []

    def end(self) -> list[ServerEvent]:
        last = self._line(bytes(self._rest)) if self._rest else []
        self._rest.clear()
        return last + self._line(b"")

    def _lines(self) -> list[ServerEvent]:
        # bytes split at \n, \r and \r\n only, as the standard requires; str would split at U+2028 too
        lines = self._rest.splitlines(keepends=True)
        self._rest = bytearray() if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        return [event for line in lines for event in self._line(bytes(line).rstrip(b"\r\n"))]

    def _line(self, line: bytes) -> list[ServerEvent]:
        """Reads one complete line, so that no character is decoded in parts."""
        if not line:
            return self._dispatch()
        field, _, value = line.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field in ("data", "error"):  # llama.cpp reports errors in a field of that name
            self._data.append(value)
            self._size += len(line)
        if field in ("event", "error"):
            self._name = value if field == "event" else "error"
        self.strange = self.strange or field not in FIELDS
        return []

    def _dispatch(self) -> list[ServerEvent]:
        events = [ServerEvent("\n".join(self._data), self._name or "message")] if self._data else []
        self._data, self._name, self._size = [], "", 0
        return events


log = logging.getLogger(__name__)

MAX_ERROR_BYTES = 64 * 1024
FIRST_WAIT_S = 0.5
DRAIN_S = 0.1

_LOCAL = re.compile(r"http://(localhost|127\.[\d.]+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait for a provider, and how often to try."""

    tries: int = 4
    connect_s: float = 10.0
    read_s: float = 120.0
    """The longest silence between two chunks of an answer, and before the first."""
    longest_wait_s: float = 60.0


RETRY_POLICY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Call:
    """One request to send; `target` names it in error messages."""

    target: RequestTarget
    headers: Mapping[str, str]
    body: bytes


class MalformedReply(Exception):
    """The answer is unusable; the message completes the sentence "the provider …". `retryable` as in AttemptFailed."""

    def __init__(self, what: str, retryable: bool = False) -> None:
        super().__init__(what)
        self.retryable = retryable


class ReportedError(Exception):
    """The provider reports an error inside its stream."""

    def __init__(self, payload: Json) -> None:
        super().__init__(str(payload))
        self.payload = payload


class ReplyReader(Protocol):
    """Turns the events of one answer into parts. Raises MalformedReply or ReportedError."""

    def read(self, event: ServerEvent) -> list[ReplyPart]: ...

    def end(self) -> list[ReplyPart]:
        """The remaining parts when the stream ends: Done if the reply is complete, else nothing."""
        ...


class Transport:
    def __init__(self, retry_policy: RetryPolicy = RETRY_POLICY, sleep: Sleep = asyncio.sleep) -> None:
        self.retry_policy = retry_policy
        self._sleep = sleep
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, AsyncClient]] = WeakKeyDictionary()

    async def post_stream(self, call: Call, reader: Callable[[], ReplyReader]) -> AsyncGenerator[ReplyPart]:
        """Ends with Done or raises a ProviderError. Retries only while no ReplyPart has arrived."""
        number, started = 1, False
        while True:
            try:
                async with aclosing(self._once(call, reader())) as parts:
                    async for part in parts:
                        started = True
                        yield part
                return
            except AttemptFailed as failure:
                too_long = (failure.wait_s or 0) > self.retry_policy.longest_wait_s
                if started or not failure.retryable or too_long or number >= self.retry_policy.tries:
                    failure.error.partial = started
                    raise failure.error from failure
                attempt = Attempt(number, failure.error.message, self._wait(number, failure.wait_s))
            yield attempt
            await self._sleep(attempt.wait_s)
            number += 1

    async def close(self) -> None:
        """Closes the connections of this event loop; those of an ended loop are closed already."""
        for client in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await client.aclose()

    async def _once(self, call: Call, reader: ReplyReader) -> AsyncGenerator[ReplyPart]:
        import httpx2  # slow, and only to send

        target, client = call.target, self._client(call.target.url)
        try:
            async with client.stream("POST", target.url, content=call.body, headers=dict(call.headers)) as response:
                if not response.is_success:
                    raise from_status(target, response.status_code, await _error_body(response), response.headers)
                async with aclosing(_parts(response, reader)) as parts:
                    async for part in parts:
                        yield part
        except ReportedError as report:
            raise from_stream(target, report.payload) from report
        except MalformedReply as why:
            raise unreachable(target, str(why), retryable=why.retryable) from why
        except httpx2.HTTPError as why:
            # a reply may be complete although its connection broke before the formal end
            for part in (last := reader.end()):
                yield part
            if not last:
                raise _connection_failure(target, why, self.retry_policy) from why
        except httpx2.InvalidURL as why:
            raise unreachable(target, f"cannot be asked ({why}); check base_url", retryable=False) from why

    def _client(self, url: str) -> "AsyncClient":
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        local = bool(_LOCAL.match(url))
        if local not in clients:
            clients[local] = _new_client(self.retry_policy, local)
        return clients[local]

    def _wait(self, number: int, wait_s: float | None) -> float:
        # retrying at once is allowed once: enough for a dead pooled connection, without hammering the server
        if wait_s is None or (wait_s == 0 and number > 1):
            wait_s = FIRST_WAIT_S * 2 ** (number - 1) * random.uniform(0.75, 1.25)
        return min(wait_s, self.retry_policy.longest_wait_s)


def _new_client(retry_policy: RetryPolicy, local: bool) -> "AsyncClient":
    import httpx2  # slow, and only to send

    timeout = httpx2.Timeout(retry_policy.read_s, connect=retry_policy.connect_s, pool=retry_policy.connect_s)
    # a proxy from the environment is for the internet, not for a server on this machine
    direct = dict.fromkeys(("all://localhost", "all://127.0.0.0/8", "all://[::1]"))
    # without TLS there is nothing to verify, and reading the certificates takes a quarter of a second
    return httpx2.AsyncClient(timeout=timeout, mounts=direct, verify=not local)


async def _parts(response: "Response", reader: ReplyReader) -> AsyncGenerator[ReplyPart]:
    """The parts of the answer, up to Done."""
    async with aclosing(_events(response)) as events:
        async for event in events:
            for part in _read(reader, event):
                yield part
                if isinstance(part, Done):
                    await _drain(events)
                    return
    last = reader.end()
    if not last:
        raise MalformedReply("broke off before the reply was complete; ask again", retryable=True)
    for part in last:
        yield part


async def _events(response: "Response") -> AsyncGenerator[ServerEvent]:
    """The events, whatever the content type; `head` are the bytes before the first event."""
    events, head, started = EventReader(), b"", False
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            head = head if started else (head + chunk)[:MAX_ERROR_BYTES]
            for event in _feed(events, chunk):
                started = True
                yield event
            if events.strange and not started and len(head) == MAX_ERROR_BYTES:
                break
    for event in events.end():
        started = True
        yield event
    if events.strange and not started:
        raise _no_stream(head)


def _feed(events: EventReader, chunk: bytes) -> list[ServerEvent]:
    try:
        return events.feed(chunk)
    except EventTooLarge as why:
        raise MalformedReply(f"sent {why}; check base_url") from why


def _read(reader: ReplyReader, event: ServerEvent) -> list[ReplyPart]:
    try:
        return reader.read(event)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
        raise MalformedReply("sent data that is not in its format; ask again, or check base_url") from why


def _no_stream(body: bytes) -> Exception:
    """The error for a 200 without events: a reported error, or the wrong URL."""
    try:
        answer = loads(body)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict) and answer.get("error"):
        return ReportedError(answer)
    return MalformedReply("did not answer with a stream of events; check base_url")


async def _error_body(response: "Response") -> bytes:
    """The beginning of an error's body, which says what is wrong."""
    body = b""
    try:
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= MAX_ERROR_BYTES:
                    break
    except Exception:  # half a message is better than none
        log.exception("the body of an error could not be read to its end")
    return body


async def _drain(events: AsyncGenerator[ServerEvent]) -> None:
    """Reads the formal end of the answer if it arrives at once, so that the connection can be reused."""
    try:
        async with asyncio.timeout(DRAIN_S):
            async for _ in events:
                pass
    except TimeoutError:  # the connection is closed instead
        pass
    except Exception:  # the reply is complete, whatever happens now
        log.exception("the end of a complete reply could not be read")


def _connection_failure(target: RequestTarget, why: "HTTPError", retry_policy: RetryPolicy) -> AttemptFailed:
    import httpx2  # slow, and only to send

    if isinstance(why, httpx2.ReadTimeout | httpx2.WriteTimeout):
        # the provider may still be working on the request: a retry would double that work
        silent = f"was silent for {retry_policy.read_s:g} s; ask again, or set a longer timeout"
        return unreachable(target, silent, retryable=False)
    if isinstance(why, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return unreachable(target, f"cannot be asked ({why}); check base_url", retryable=False)
    if isinstance(why, httpx2.ConnectError | httpx2.TimeoutException | httpx2.ProxyError):
        detail = str(why) or "no answer"
        return unreachable(target, f"cannot be reached ({detail}); check that it runs, and base_url", retryable=True)
    if isinstance(why, httpx2.DecodingError):
        return unreachable(target, f"sent data that cannot be decompressed ({why}); check base_url", retryable=False)
    reason = str(why) or type(why).__name__
    failure = unreachable(target, f"broke the connection ({reason}); ask again", retryable=True)
    failure.wait_s = 0.0
    return failure
