"""The way to a provider: posts exact bytes, tries again while nothing has come, yields what a Reader makes of it.

Knows no wire format; how failures are told apart stands in failure.py.
"""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from recto.providers.failure import Asked, Trouble, broken, from_status, from_stream
from recto.providers.provider import Attempt, Done, Part
from recto.providers.sse import EventReader, EventTooLarge, ServerEvent
from recto.wire import Json, loads

if TYPE_CHECKING:
    from httpx2 import AsyncClient, HTTPError, Response

LARGEST_ERROR = 64 * 1024
FIRST_WAIT_S = 0.5
DRAIN_S = 0.1

_LOCAL = re.compile(r"http://(localhost|127\.[\d.]+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a provider, and how often to ask."""

    tries: int = 4
    connect_s: float = 10.0
    read_s: float = 120.0
    """Between two pieces of an answer, so also for its first one."""
    longest_wait_s: float = 60.0


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it goes out; `asked` is for the words of an error."""

    asked: Asked
    headers: Mapping[str, str]
    body: bytes


class Garbled(Exception):
    """What came is of no use; the message finishes the sentence "the provider …". `again` as in Trouble."""

    def __init__(self, what: str, again: bool = False) -> None:
        super().__init__(what)
        self.again = again


class Reported(Exception):
    """The provider reports an error inside its stream."""

    def __init__(self, payload: Json) -> None:
        super().__init__(str(payload))
        self.payload = payload


class Reader(Protocol):
    """Makes Parts of one answer's events. Raises Garbled or Reported."""

    def read(self, event: ServerEvent) -> list[Part]: ...

    def end(self) -> list[Part]:
        """What is left when the stream ends: the Done if the reply is complete, else nothing."""
        ...


class Transport:
    def __init__(self, patience: Patience = PATIENCE, sleep: Sleep = asyncio.sleep) -> None:
        self.patience = patience
        self._sleep = sleep
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, AsyncClient]] = WeakKeyDictionary()

    async def post_stream(self, call: Call, reader: Callable[[], Reader]) -> AsyncGenerator[Part]:
        """Ends with Done or raises a ProviderError. Tries again only as long as no Part has come."""
        number, begun = 1, False
        while True:
            try:
                async with aclosing(self._once(call, reader())) as parts:
                    async for part in parts:
                        begun = True
                        yield part
                return
            except Trouble as trouble:
                too_long = (trouble.wait_s or 0) > self.patience.longest_wait_s
                if begun or not trouble.again or too_long or number >= self.patience.tries:
                    trouble.error.partial = begun
                    raise trouble.error from trouble
                failed = Attempt(number, trouble.error.message, self._wait(number, trouble.wait_s))
            yield failed
            await self._sleep(failed.wait_s)
            number += 1

    async def close(self) -> None:
        """Closes this loop's connections; those of a loop that has ended went with it."""
        for client in self._clients.pop(asyncio.get_running_loop(), {}).values():
            await client.aclose()

    async def _once(self, call: Call, reader: Reader) -> AsyncGenerator[Part]:
        import httpx2  # slow, and only to send

        asked, client = call.asked, self._client(call.asked.url)
        try:
            async with client.stream("POST", asked.url, content=call.body, headers=dict(call.headers)) as response:
                if not response.is_success:
                    raise from_status(asked, response.status_code, await _some(response), response.headers)
                async with aclosing(_parts(response, reader)) as parts:
                    async for part in parts:
                        yield part
        except Reported as report:
            raise from_stream(asked, report.payload) from report
        except Garbled as why:
            raise broken(asked, str(why), again=why.again) from why
        except httpx2.HTTPError as why:
            # a reply may be complete although its connection broke before the formal end
            for part in (last := reader.end()):
                yield part
            if not last:
                raise _unreached(asked, why, self.patience) from why
        except httpx2.InvalidURL as why:
            raise broken(asked, f"cannot be asked ({why}); check base_url", again=False) from why

    def _client(self, url: str) -> "AsyncClient":
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        local = bool(_LOCAL.match(url))
        if local not in clients:
            clients[local] = _new_client(self.patience, local)
        return clients[local]

    def _wait(self, number: int, wish_s: float | None) -> float:
        # to wait not at all is granted once: it serves a pooled connection that had died, and hammers no server
        if wish_s is None or (wish_s == 0 and number > 1):
            wish_s = FIRST_WAIT_S * 2 ** (number - 1) * random.uniform(0.75, 1.25)
        return min(wish_s, self.patience.longest_wait_s)


def _new_client(patience: Patience, local: bool) -> "AsyncClient":
    import httpx2  # slow, and only to send

    timeout = httpx2.Timeout(patience.read_s, connect=patience.connect_s, pool=patience.connect_s)
    # a proxy from the environment is for the world, not for a server on this machine
    direct = dict.fromkeys(("all://localhost", "all://127.0.0.0/8", "all://[::1]"))
    # without TLS there is nothing to verify, and reading the certificates takes a quarter of a second
    return httpx2.AsyncClient(timeout=timeout, mounts=direct, verify=not local)


async def _parts(response: "Response", reader: Reader) -> AsyncGenerator[Part]:
    """What the reader makes of the answer, up to its Done."""
    async with aclosing(_events(response)) as events:
        async for event in events:
            for part in _read(reader, event):
                yield part
                if isinstance(part, Done):
                    await _drain(events)
                    return
    last = reader.end()
    if not last:
        raise Garbled("broke off before the reply was complete; ask again", again=True)
    for part in last:
        yield part


async def _events(response: "Response") -> AsyncGenerator[ServerEvent]:
    """The events, whatever content type they claim to be; `seen` is what came before the first of them."""
    events, seen, begun = EventReader(), b"", False
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            seen = seen if begun else (seen + chunk)[:LARGEST_ERROR]
            for event in _fed(events, chunk):
                begun = True
                yield event
            if events.strange and not begun and len(seen) == LARGEST_ERROR:
                break
    for event in events.end():
        begun = True
        yield event
    if events.strange and not begun:
        raise _no_stream(seen)


def _fed(events: EventReader, chunk: bytes) -> list[ServerEvent]:
    try:
        return events.feed(chunk)
    except EventTooLarge as why:
        raise Garbled(f"sent {why}; check base_url") from why


def _read(reader: Reader, event: ServerEvent) -> list[Part]:
    try:
        return reader.read(event)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
        raise Garbled("sent something that is not its format; ask again, and check base_url if it stays so") from why


def _no_stream(body: bytes) -> Exception:
    """A server that answers 200 with something else: an error after all, or the wrong address."""
    try:
        answer = loads(body)
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict) and answer.get("error"):
        return Reported(answer)
    return Garbled("did not answer with a stream of events; check base_url")


async def _some(response: "Response") -> bytes:
    """As much of a short answer as it takes to know what is wrong."""
    body = b""
    with suppress(Exception):  # half a message is better than none
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= LARGEST_ERROR:
                    break
    return body


async def _drain(events: AsyncGenerator[ServerEvent]) -> None:
    """Reads the formal end of the answer if it comes at once, so that the connection can serve again."""
    with suppress(Exception):  # the reply is complete, whatever happens now
        async with asyncio.timeout(DRAIN_S):
            async for _ in events:
                pass


def _unreached(asked: Asked, why: "HTTPError", patience: Patience) -> Trouble:
    import httpx2  # slow, and only to send

    if isinstance(why, httpx2.ReadTimeout | httpx2.WriteTimeout):
        # it may be at work on the request: asking again would only double that
        return broken(asked, f"was silent for {patience.read_s:g} s; ask again, or set a longer timeout", again=False)
    if isinstance(why, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return broken(asked, f"cannot be asked ({why}); check base_url", again=False)
    if isinstance(why, httpx2.ConnectError | httpx2.TimeoutException | httpx2.ProxyError):
        detail = str(why) or "no answer"
        return broken(asked, f"cannot be reached ({detail}); check that it runs, and base_url", again=True)
    if isinstance(why, httpx2.DecodingError):
        return broken(asked, f"sent something that cannot be unpacked ({why}); check base_url", again=False)
    trouble = broken(asked, f"broke the connection ({str(why) or type(why).__name__}); ask again", again=True)
    trouble.wait_s = 0.0
    return trouble
