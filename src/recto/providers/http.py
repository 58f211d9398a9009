"""Transport: posts exact bytes to a provider, retries until a reply begins, and yields the parts of the reply.

Also reads and writes server-sent events, and classifies failures: the error, and whether a retry may help. Knows no
wire format.
"""

import asyncio
import logging
import math
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from msgspec import Struct

from recto.base.text import without_key
from recto.errors import Overflow, ProviderError, RateLimited, Refused, Unreachable
from recto.providers.model import Attempt, Done, ReplyPart, says_something
from recto.wire import Json, loads

if TYPE_CHECKING:
    from httpx2 import AsyncClient, HTTPError, Response

log = logging.getLogger(__name__)

MAX_ERROR_BYTES, ERROR_BODY_S = 64 * 1024, 10.0
FIRST_WAIT_S = 0.5
DRAIN_S = 0.1
# Anthropic sends pings while a model works silently; after more silences in a row, give up
MOST_SILENCES = 5
_LOCAL = re.compile(r"http://(localhost|127\.[\d.]+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)
# raised when JSON has an unexpected shape
BAD_DATA = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
Sleep = Callable[[float], Awaitable[object]]

# -- server-sent events
# httpx2 has a reader, but it requires a content type that some servers omit, trusts their charset, and loses a last
# event without its blank line, such as a final `[DONE]`.

FIELDS = (b"data", b"event", b"id", b"retry", b"error", b":")
MAX_EVENT_BYTES = 32 * 1024 * 1024


class ServerEvent(Struct, frozen=True):
    data: str
    name: str = "message"

    @property
    def encoded(self) -> bytes:
        """The bytes on the wire; the default name is omitted."""
        named = "" if self.name == "message" else f"event: {self.name}\n"
        lines = "".join(f"data: {line}\n" for line in self.data.split("\n"))
        return f"{named}{lines}\n".encode()


class EventReader:
    """Takes chunks and returns complete events; `end` returns a last event without its blank line."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_return = False
        self._data: list[str] = []
        self._name, self._size = "", 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        self._rest += chunk
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise ValueError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        if b"\n" not in chunk and b"\r" not in chunk:
            return []
        # bytes split at \n, \r and \r\n only, as the standard requires; str would split at U+2028 too
        lines = self._rest.splitlines(keepends=True)
        self._rest = bytearray() if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        return [event for line in lines for event in self._line(bytes(line).rstrip(b"\r\n"))]

    def end(self) -> list[ServerEvent]:
        last = self._line(bytes(self._rest)) if self._rest else []
        self._rest.clear()
        return last + self._line(b"")

    def _line(self, line: bytes) -> list[ServerEvent]:
        """Reads one complete line, so that no character is decoded in parts. An empty one ends the event."""
        if not line:
            events = [ServerEvent("\n".join(self._data), self._name or "message")] if self._data else []
            self._data, self._name, self._size = [], "", 0
            return events
        field, _, value = line.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field in ("data", "error"):  # llama.cpp reports errors in a field of that name
            self._data.append(value)
            self._size += len(line)
        if field in ("event", "error"):
            self._name = value if field == "event" else "error"
        return []


# -- failures

RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})
MAX_DETAIL = 300
LONGEST_WISH_S = 24 * 3600.0
# the wordings of OpenAI, Anthropic, llama.cpp, vLLM, Mistral, Ollama, LM Studio, Gemini, Groq, xAI, Bedrock, TGI, Kimi,
# SGLang, TabbyAPI and LiteLLM
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|context_?window_?exceeded|request_too_large|string_above_max"
    r"|(prompt|input|request|messages?) (is |are )?too (long|large)|too large for model|too many (input )?tokens"
    r"|max(imum)? (context|prompt|model|input) length|max(imum)? number of (input )?tokens|token count.{,80} exceeds"
    r"|exceed(s|ed)?( the| max| maximum| available| allowed| model)* (context|token limit|input length)"
    r"|context (length|size|window|limit) (has been )?exceed|greater than the context length|context length of only"
    r"|reduce (the length of the|your) (prompt|message)|tokens? \+ `?max_(new_)?tokens`? (must|exceed)"
    r"|longer than the (model's )?context|greater than max_seq_len"
    # the room that vLLM has left for the reply
    r"|max_(completion_)?tokens must be at least 1, got (-\d|0\b)",
    re.IGNORECASE,
)
_NO_CREDIT = ("insufficient_quota", "billing_hard_limit", "exceeded your current quota")
_WORDS_TO_STATUS = {
    "insufficient_quota": 429,
    "rate_limit": 429,
    "too_many_requests": 429,
    "overloaded": 529,
    "unavailable": 503,
    "timeout": 504,
    "authentication": 401,
    "invalid_api_key": 401,
    "permission": 403,
    "billing": 402,
    "not_found": 404,
    "context_": 400,
    "request_too_large": 413,
    "invalid_request": 400,
    "badrequest": 400,
}


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The provider, address and model of a request, for error messages."""

    provider: str
    url: str
    model: str
    key_place: str = ""
    """Where the user finds the key: "the key in OPENAI_API_KEY"."""
    key: str | None = field(default=None, repr=False)
    """Needed only to remove it from providers' error messages that repeat it."""

    @property
    def place(self) -> str:
        """The provider and its URL, without path and password."""
        parts = urlsplit(self.url)
        return f"{self.provider} at {parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class AttemptFailed(Exception):
    """An attempt failed with `error`. `retryable` if another may succeed; `wait_s` is the requested wait, if any."""

    def __init__(self, error: ProviderError, retryable: bool, wait_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error, self.retryable, self.wait_s = error, retryable, wait_s


def from_status(target: RequestTarget, status: int, body: bytes, headers: Mapping[str, str]) -> AttemptFailed:
    try:
        payload = loads(body)
    except (ValueError, RecursionError):
        payload = body.decode("utf-8", "replace")
    message, codes = _message_and_codes(payload, target.key)
    return _classify(target, status, message, codes, retry_after_s(headers))


def from_stream(target: RequestTarget, payload: Json) -> AttemptFailed:
    """The failure for an error inside a stream, whose HTTP status was 200."""
    message, codes = _message_and_codes(payload, target.key)
    number = next((int(word) for word in codes.split() if re.fullmatch(r"[45]\d\d", word)), None)
    guess = (status for word, status in _WORDS_TO_STATUS.items() if word in codes.lower())
    return _classify(target, number or next(guess, 500), message, codes, None, is_guessed=number is None)


def unreachable(
    target: RequestTarget, what: str, *, retryable: bool = False, sent: bool = True, may_cost: bool = False
) -> AttemptFailed:
    """The failure of a connection, or of an unusable answer; `what` completes the sentence."""
    error = Unreachable(f"{target.place} {without_key(what, target.key)}.")
    error.sent, error.may_cost = sent, may_cost
    return AttemptFailed(error, retryable)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the provider asks for, as milliseconds or seconds; None if it makes no sense."""
    milliseconds, seconds = headers.get("retry-after-ms"), headers.get("retry-after", "")
    try:
        wait_s = float(milliseconds) / 1000 if milliseconds else float(seconds)
    except ValueError:
        return None
    return min(wait_s, LONGEST_WISH_S) if 0 <= wait_s < math.inf else None


def _classify(
    target: RequestTarget, status: int, message: str, codes: str, wait_s: float | None, *, is_guessed: bool = False
) -> AttemptFailed:
    """`is_guessed`: the status was derived from the provider's words, so it is not shown."""
    text = f"{message} {codes}"
    detail = f": {message if len(message) <= MAX_DETAIL else message[: MAX_DETAIL - 1] + '…'}" if message else "."
    if _is_overflow(status, text):
        advice = f"set `window` of {target.model} in models.toml to what it can read, or start a new conversation"
        overflow = Overflow(f"{target.provider} counts the request as too long for {target.model}; {advice}{detail}")
        return AttemptFailed(overflow, False)
    if status == 429 and not any(word in text.lower() for word in _NO_CREDIT):
        when = f"in {wait_s:.0f} s" if wait_s else "in a while"
        sentence = f"{target.provider} asks to slow down; try again {when}{detail}"
        return AttemptFailed(RateLimited(sentence, retry_after_s=wait_s), True, wait_s)
    if status >= 500 or status in RETRYABLE - {429}:
        failed = "reported an error instead of a reply" if is_guessed else f"failed with status {status}"
        error = Unreachable(f"{target.place} {failed}; try again later{detail}")
        return AttemptFailed(error, status in RETRYABLE, wait_s)
    return AttemptFailed(Refused(_refusal(target, status, is_guessed) + detail), False)


def _refusal(target: RequestTarget, status: int, is_guessed: bool) -> str:
    if status in (401, 403):
        return f"{target.provider} refused access; check {target.key_place or 'whether it needs a key'}"
    if status == 404:
        return f"{target.place} does not know the model {target.model}; check its name"
    if status in (402, 429):
        return f"{target.provider} has no credit left on this account"
    if 300 <= status < 400:
        return f"{target.place} redirects to another address; check its address"
    return f"{target.provider} refused the request" + ("" if is_guessed else f" with status {status}")


def _is_overflow(status: int, text: str) -> bool:
    if status == 429:  # a limit per minute that a single request exceeds: waiting cannot help, a shorter request can
        return "request too large" in text.lower()
    return status == 413 or (status not in (401, 402, 403, 404) and bool(_TOO_LONG.search(text)))


def _message_and_codes(payload: Json, key: str | None) -> tuple[str, str]:
    """The provider's own message on one line, and its error codes and types."""
    codes: list[str] = []
    while isinstance(payload, dict | list):
        if isinstance(payload, list):
            payload = payload[0] if payload else ""
            continue
        codes += [str(payload[name]) for name in ("code", "type", "status") if payload.get(name) is not None]
        payload = next((payload[name] for name in ("error", "message", "detail", "msg") if payload.get(name)), "")
    text = str(payload)
    if text.lstrip().startswith("<"):
        text = " ".join(re.findall(r"<title>(.*?)</title>", text, re.DOTALL | re.IGNORECASE))
    return " ".join(without_key(text, key).split()), " ".join(codes)


# -- the transport


class RetryPolicy(Struct, frozen=True):
    """How long to wait for a provider, and how often to try."""

    tries: int = 4
    connect_s: float = 10.0
    read_s: float = 120.0
    """The longest silence between two events of an answer, and before the first. Comments do not count as events."""
    longest_wait_s: float = 60.0


RETRY_POLICY = RetryPolicy()


class ReportedError(Exception):
    """The provider reports an error inside its stream."""

    def __init__(self, payload: Json) -> None:
        super().__init__(str(payload))
        self.payload = payload


class ReplyReader(Protocol):
    """Turns the events of one answer into parts. May raise ReportedError, or any of BAD_DATA."""

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

    async def post_stream(
        self, target: RequestTarget, headers: Mapping[str, str], body: bytes, reader: Callable[[], ReplyReader]
    ) -> AsyncGenerator[ReplyPart]:
        """Ends with Done or raises a ProviderError. Retries only while no ReplyPart has arrived."""
        number, started, sent = 1, False, False
        while True:
            try:
                async with aclosing(self._once(target, headers, body, reader())) as parts:
                    async for part in parts:
                        started = True
                        yield part
                return
            except AttemptFailed as failure:
                sent = sent or failure.error.sent
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

    async def _once(
        self, target: RequestTarget, headers: Mapping[str, str], body: bytes, reader: ReplyReader
    ) -> AsyncGenerator[ReplyPart]:
        import httpx2  # slow, and only to send

        client = self.client(target.url)
        try:
            async with client.stream("POST", target.url, content=body, headers=dict(headers)) as response:
                if not response.is_success:
                    raise from_status(target, response.status_code, await _error_body(response), response.headers)
                async with aclosing(_Answer(target, reader, response, self.retry_policy.read_s).parts()) as parts:
                    async for part in parts:
                        yield part
        except ReportedError as report:
            raise from_stream(target, report.payload) from report
        except (httpx2.HTTPError, TimeoutError) as why:
            # a reply may be complete although its connection broke before the formal end
            for part in (last := reader.end()):
                yield part
            if not last:
                raise connection_failure(target, why, self.retry_policy) from why
        except httpx2.InvalidURL as why:
            raise unreachable(target, f"cannot be used ({why}); check its address", sent=False) from why

    def client(self, url: str) -> "AsyncClient":
        """Connections of this event loop; those to servers on this machine use no proxy."""
        import httpx2  # slow, and only to send

        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        local = bool(_LOCAL.match(url))
        if local not in clients:
            policy = self.retry_policy
            timeout = httpx2.Timeout(policy.read_s, connect=policy.connect_s, pool=policy.connect_s)
            # a proxy from the environment is for the internet, not for a server on this machine
            direct = dict.fromkeys(("all://localhost", "all://127.0.0.0/8", "all://[::1]"))
            # without TLS there is nothing to verify, and reading the certificates takes a quarter of a second
            clients[local] = httpx2.AsyncClient(timeout=timeout, mounts=direct, verify=not local)
        return clients[local]

    def _wait(self, number: int, wait_s: float | None) -> float:
        # one immediate retry is allowed: enough for a dead pooled connection, without hammering the server
        if wait_s is None or (wait_s == 0 and number > 1):
            wait_s = FIRST_WAIT_S * 2 ** (number - 1) * random.uniform(0.75, 1.25)
        return min(wait_s, self.retry_policy.longest_wait_s)


class _Answer:
    """Reads one answer of status 200.

    A server may be silent for `read_s`, and for a few times as long while its events bring no part of the reply, such
    as pings and empty texts."""

    def __init__(self, target: RequestTarget, reader: ReplyReader, response: "Response", read_s: float) -> None:
        self._target, self._reader, self._response = target, reader, response
        self._clock, self._longest_s = asyncio.get_running_loop().time, MOST_SILENCES * read_s
        self._heard, self._bytes = self._clock(), 0
        """The time of the reply's last part, and the number of bytes since."""
        self._page = bytearray()
        """An answer that is not a stream of events."""

    async def parts(self) -> AsyncGenerator[ReplyPart]:
        """Up to Done."""
        async with aclosing(self._events()) as events:
            while (event := await self._next(events)) is not None:
                parts = self._read(event)
                if any(map(says_something, parts)):
                    self._heard, self._bytes = self._clock(), 0
                for part in parts:
                    yield part
                    if isinstance(part, Done):
                        # if the formal end of the answer arrives immediately, the connection can be reused
                        with suppress(Exception):
                            async with asyncio.timeout(DRAIN_S):
                                await anext(events, None)
                        return
        last = self._whole() if self._page else self._reader.end()
        if not last:
            raise unreachable(self._target, "broke off before the reply was complete; ask again", retryable=True)
        for part in last:
            yield part

    async def _next(self, events: AsyncGenerator[ServerEvent]) -> ServerEvent | None:
        """Raises TimeoutError if no part of the reply comes in time."""
        async with asyncio.timeout_at(self._heard + self._longest_s):
            return await anext(events, None)

    async def _events(self) -> AsyncGenerator[ServerEvent]:
        """The events, whatever the content type."""
        reader, is_first = EventReader(), True
        async with aclosing(self._response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                self._bytes += len(chunk)
                if self._bytes > MAX_EVENT_BYTES:  # comments, pings, or a body that never ends
                    what = f"sent {MAX_EVENT_BYTES:,} bytes without a part of a reply; check its address"
                    raise unreachable(self._target, what)
                if self._page or (is_first and not _begins_events(chunk)):
                    self._page += chunk
                    if len(self._page) > MAX_ERROR_BYTES and not self._page.lstrip().startswith(b"{"):
                        break
                    continue
                is_first = is_first and not chunk.strip()
                for event in reader.feed(chunk):
                    yield event
        for event in reader.end():
            yield event

    def _read(self, event: ServerEvent) -> list[ReplyPart]:
        try:
            return self._reader.read(event)
        except BAD_DATA as why:
            if last := self._reader.end():  # the reply is complete, whatever follows
                log.warning("an event after a complete reply could not be read", exc_info=why)
                return last
            what = "sent invalid data; ask again, or check its address"
            raise unreachable(self._target, what, may_cost=True) from why

    def _whole(self) -> list[ReplyPart]:
        """The parts of an answer without events: a reply in one piece, a reported error, or the wrong URL."""
        try:
            answer = loads(bytes(self._page))
            if isinstance(answer, dict) and answer.get("error"):
                raise ReportedError(answer)
            parts = self._reader.whole(answer)
        except BAD_DATA:
            parts = []
        if not parts or not isinstance(parts[-1], Done):
            raise unreachable(self._target, "did not answer with a reply; check its address")
        return parts


def _begins_events(chunk: bytes) -> bool:
    start = chunk.removeprefix(b"\xef\xbb\xbf").lstrip()
    return any(start.startswith(field[: len(start)]) for field in FIELDS)


async def _error_body(response: "Response") -> bytes:
    """The beginning of an error's body, which describes the problem."""
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


def connection_failure(
    target: RequestTarget, why: "HTTPError | TimeoutError", retry_policy: RetryPolicy
) -> AttemptFailed:
    import httpx2  # slow, and only to send

    if isinstance(why, httpx2.ReadTimeout | httpx2.WriteTimeout | TimeoutError):
        # the provider may still be working on the request: a retry would double that work
        silent = f"was silent for {retry_policy.read_s:g} s; ask again, or set a longer timeout"
        return unreachable(target, silent, may_cost=True)
    if isinstance(why, httpx2.ConnectError | httpx2.TimeoutException | httpx2.ProxyError):
        what = f"cannot be reached ({str(why) or 'no answer'}); check that it runs, and its address"
        return unreachable(target, what, retryable=True, sent=False)
    reason = str(why) or type(why).__name__
    if isinstance(why, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol | httpx2.DecodingError):
        return unreachable(
            target, f"cannot be used ({reason}); check its address", sent=isinstance(why, httpx2.DecodingError)
        )
    failure = unreachable(target, f"broke the connection ({reason}); ask again", retryable=True, may_cost=True)
    failure.wait_s = 0.0
    return failure
