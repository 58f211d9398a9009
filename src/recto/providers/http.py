"""Transport: posts exact bytes to a provider, retries while no reply has begun, and yields the parts of the reply.

Knows no wire format; failure.py classifies failures.
"""

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from msgspec import Struct

from recto.providers.failure import AttemptFailed, RequestTarget, from_status, from_stream, unreachable
from recto.providers.model import Attempt, Done, ReplyPart, says_something
from recto.providers.sse import MAX_EVENT_BYTES, EventReader, EventTooLarge, ServerEvent
from recto.wire import Json, loads

if TYPE_CHECKING:
    from httpx2 import AsyncClient, HTTPError, Response

log = logging.getLogger(__name__)

MAX_ERROR_BYTES, ERROR_BODY_S = 64 * 1024, 10.0
FIRST_WAIT_S = 0.5
DRAIN_S = 0.1
# Anthropic sends pings while a model works silently; more silences in a row than these are no work
MOST_SILENCES = 5

_LOCAL = re.compile(r"http://(localhost|127\.[\d.]+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)

# what reading JSON of another shape than expected raises
BAD_DATA = (ValueError, TypeError, KeyError, AttributeError, RecursionError)

Sleep = Callable[[float], Awaitable[object]]


class RetryPolicy(Struct, frozen=True):
    """How long to wait for a provider, and how often to try."""

    tries: int = 4
    connect_s: float = 10.0
    read_s: float = 120.0
    """The longest silence between two events of an answer, and before the first. Comments do not count as events."""
    longest_wait_s: float = 60.0


RETRY_POLICY = RetryPolicy()


class Call(Struct, frozen=True):
    """One request to send; `target` names it in error messages."""

    target: RequestTarget
    headers: Mapping[str, str]
    body: bytes


class MalformedReply(Exception):
    """The answer is unusable; the message completes the sentence "the provider …". `retryable` as in AttemptFailed,
    `may_cost` as in ProviderError."""

    def __init__(self, what: str, *, retryable: bool = False, may_cost: bool = False) -> None:
        super().__init__(what)
        self.retryable, self.may_cost = retryable, may_cost


class ReportedError(Exception):
    """The provider reports an error inside its stream."""

    def __init__(self, payload: Json) -> None:
        super().__init__(str(payload))
        self.payload = payload


class NoEvents(Exception):
    """An answer of status 200 that is not a stream of events; `body` is its beginning, or all of it if it is JSON."""

    def __init__(self, body: bytes) -> None:
        super().__init__("no stream of events")
        self.body = body


class ReplyReader(Protocol):
    """Turns the events of one answer into parts. Raises MalformedReply or ReportedError."""

    def read(self, event: ServerEvent) -> list[ReplyPart]: ...

    def whole(self, reply: Json) -> list[ReplyPart]:
        """A reply in one piece, as the parts that its stream would yield; the last is Done if it is a reply."""
        ...

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
        number, started, sent = 1, False, False
        while True:
            try:
                async with aclosing(self._once(call, reader())) as parts:
                    async for part in parts:
                        started = True
                        yield part
                return
            except AttemptFailed as failure:
                sent = sent or failure.was_sent
                too_long = (failure.wait_s or 0) > self.retry_policy.longest_wait_s
                if started or not failure.retryable or too_long or number >= self.retry_policy.tries:
                    failure.error.partial, failure.error.sent = started, sent
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

        target, client = call.target, self.client(call.target.url)
        try:
            async with client.stream("POST", target.url, content=call.body, headers=dict(call.headers)) as response:
                if not response.is_success:
                    raise from_status(target, response.status_code, await _error_body(response), response.headers)
                async with aclosing(_parts(response, reader, self.retry_policy.read_s)) as parts:
                    async for part in parts:
                        yield part
        except ReportedError as report:
            raise from_stream(target, report.payload) from report
        except MalformedReply as why:
            failure = unreachable(target, str(why), retryable=why.retryable)
            failure.error.may_cost = why.may_cost
            raise failure from why
        except (httpx2.HTTPError, TimeoutError) as why:
            # a reply may be complete although its connection broke before the formal end
            for part in (last := reader.end()):
                yield part
            if not last:
                raise connection_failure(target, why, self.retry_policy) from why
        except httpx2.InvalidURL as why:
            raise unreachable(
                target, f"cannot be asked ({why}); check its address", retryable=False, sent=False
            ) from why

    def client(self, url: str) -> "AsyncClient":
        """Connections of this event loop; those to servers on this machine use no proxy."""
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


async def _parts(response: "Response", reader: ReplyReader, read_s: float) -> AsyncGenerator[ReplyPart]:
    """The parts of the answer, up to Done."""
    try:
        silence = Silence(read_s)
        async with aclosing(_events(response, silence)) as events:
            while (event := await silence.until(anext(events, None))) is not None:
                parts = _read(reader, event)
                silence.note(parts)
                for part in parts:
                    yield part
                    if isinstance(part, Done):
                        await _drain(events)
                        return
        last = reader.end()
    except NoEvents as answer:
        last = _read_whole(reader, answer.body)
    if not last:
        raise MalformedReply("broke off before the reply was complete; ask again", retryable=True)
    for part in last:
        yield part


class Silence:
    """How long a server may say nothing: `read_s` without any event, and a few times that with events that bring no
    part of the reply, such as pings and empty texts. Also how many bytes it may send meanwhile."""

    def __init__(self, read_s: float) -> None:
        self._read_s, self._clock = read_s, asyncio.get_running_loop().time
        self._heard, self._bytes = self._clock(), 0

    async def until(self, event: Awaitable[ServerEvent | None]) -> ServerEvent | None:
        """Raises TimeoutError when it does not come in time."""
        async with asyncio.timeout_at(min(self._clock() + self._read_s, self._heard + MOST_SILENCES * self._read_s)):
            return await event

    def count(self, size: int) -> None:
        """Bytes that arrived. Raises MalformedReply when there are too many without a part of the reply."""
        self._bytes += size
        if self._bytes > MAX_EVENT_BYTES:  # comments, pings, or a body that never ends
            raise MalformedReply(f"sent {MAX_EVENT_BYTES:,} bytes without a part of a reply; check its address")

    def note(self, parts: Sequence[ReplyPart]) -> None:
        if any(map(says_something, parts)):
            self._heard, self._bytes = self._clock(), 0


async def _events(response: "Response", silence: Silence) -> AsyncGenerator[ServerEvent]:
    """The events, whatever the content type. Raises NoEvents; `head` are the bytes before the first event."""
    events, head, started = EventReader(), bytearray(), False
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            silence.count(len(chunk))
            head += b"" if started else chunk
            for event in _feed(events, chunk):
                started = True
                yield event
            if events.strange and not started and len(head) > MAX_ERROR_BYTES and not _begins_json(head):
                break
    for event in events.end():
        started = True
        yield event
    if events.strange and not started:
        raise NoEvents(bytes(head))


def _begins_json(head: bytearray) -> bool:
    return head[:100].lstrip().startswith(b"{")


def _feed(events: EventReader, chunk: bytes) -> list[ServerEvent]:
    try:
        return events.feed(chunk)
    except EventTooLarge as why:
        raise MalformedReply(f"sent {why}; check its address") from why


def _read(reader: ReplyReader, event: ServerEvent) -> list[ReplyPart]:
    try:
        return reader.read(event)
    except BAD_DATA as why:
        if last := reader.end():  # the reply is complete, whatever comes after it
            log.warning("an event after a complete reply could not be read", exc_info=why)
            return last
        raise MalformedReply(
            "sent data that is not in its format; ask again, or check its address", may_cost=True
        ) from why


def _read_whole(reader: ReplyReader, body: bytes) -> list[ReplyPart]:
    """The parts of an answer without events: a reply in one piece, a reported error, or the wrong URL."""
    try:
        answer = loads(body)
        if isinstance(answer, dict) and answer.get("error"):
            raise ReportedError(answer)
        parts = reader.whole(answer)
    except BAD_DATA:
        parts = []
    if not parts or not isinstance(parts[-1], Done):
        raise MalformedReply("did not answer with a reply; check its address")
    return parts


async def _error_body(response: "Response") -> bytes:
    """The beginning of an error's body, which says what is wrong."""
    body = b""
    try:
        async with asyncio.timeout(ERROR_BODY_S), aclosing(response.aiter_bytes()) as chunks:
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


def connection_failure(
    target: RequestTarget, why: "HTTPError | TimeoutError", retry_policy: RetryPolicy
) -> AttemptFailed:
    import httpx2  # slow, and only to send

    if isinstance(why, httpx2.ReadTimeout | httpx2.WriteTimeout | TimeoutError):
        # the provider may still be working on the request: a retry would double that work
        silent = f"was silent for {retry_policy.read_s:g} s; ask again, or set a longer timeout"
        failure = unreachable(target, silent, retryable=False)
        failure.error.may_cost = True
        return failure
    if isinstance(why, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return unreachable(target, f"cannot be asked ({why}); check its address", retryable=False, sent=False)
    if isinstance(why, httpx2.ConnectError | httpx2.TimeoutException | httpx2.ProxyError):
        what = f"cannot be reached ({str(why) or 'no answer'}); check that it runs, and its address"
        return unreachable(target, what, retryable=True, sent=False)
    if isinstance(why, httpx2.DecodingError):
        return unreachable(
            target,
            f"sent data that cannot be decompressed ({why}); check its address",
            retryable=False,
        )
    reason = str(why) or type(why).__name__
    failure = unreachable(target, f"broke the connection ({reason}); ask again", retryable=True)
    failure.wait_s, failure.error.may_cost = 0.0, True
    return failure
