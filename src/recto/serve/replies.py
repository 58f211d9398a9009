"""Replies as they go out: whole, as a stream of events, as an error in the client's format."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from recto.chat.blocks import Block
from recto.chat.message import MessageBuilder
from recto.errors import BrokenPlugin, Busy, Invalid, RectoError, StoreError
from recto.providers.client_formats import ClientFormat, ReplyWriter
from recto.providers.model import Attempt, Done, ReplyPart
from recto.serve.gateway import Gateway
from recto.serve.incoming_body import BodyTooLarge, while_there
from recto.turn.incoming_message import delta_of
from recto.wire import Json, dumpb

log = logging.getLogger(__name__)
EVENT_STREAM = "text/event-stream"


class ServedReply(Protocol):
    """A reply on its way, with what is said about it."""

    @property
    def headers(self) -> dict[str, str]: ...

    def parts(self) -> AsyncGenerator[ReplyPart, None]: ...

    async def end_delivery(self, *, is_delivered: bool) -> None:
        """The reply has gone out whole, or never will."""


class ServerClosing(Busy):
    """The server ends, and takes no more requests."""


# What an error says about the request it was raised for. Other invalid values are the server's own.
ABOUT_REQUEST = frozenset({"field", "model"})


def for_client(why: Exception) -> Exception:
    """An error as a client may read it: what is about its own request. Errors of the server's database and of its files
    name hosts, users and paths: they go to the log, and the client gets one sentence. So does what nobody foresaw."""
    if isinstance(why, RecursionError):  # what can be read may still be too deep for a later step
        why = Invalid("The request is nested too deeply.", field="")
    if not isinstance(why, RectoError):
        log.error("a request failed", exc_info=why)
        return why
    is_own = isinstance(why, Invalid) and not ABOUT_REQUEST.intersection(why.data)
    if isinstance(why, StoreError) and not isinstance(why, ServerClosing):
        hidden: RectoError = Busy("The server cannot use its store now. Try again in a moment.")
    elif is_own or "path" in why.data or isinstance(why, BrokenPlugin):
        hidden = RectoError("The server is not set up correctly. Its owner finds the reason in its log.")
    else:
        return why
    log.error("a request failed: %s", why.message, exc_info=why)
    return hidden


def error_response(format: ClientFormat, why: Exception) -> Response:
    """In the client's own format."""
    error = format.error(for_client(why))
    status = 413 if isinstance(why, BodyTooLarge) else error.status
    return json_response(error.body, status, error.headers)


def json_response(value: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumpb(value), status, dict(headers or {}), "application/json")


async def told_parts(gateway: Gateway, reply: ServedReply, began: float) -> AsyncGenerator[ReplyPart, None]:
    """The parts, counted by the clock."""
    is_first = True
    async with aclosing(reply.parts()) as parts:
        async for part in parts:
            if is_first and not isinstance(part, Attempt):
                gateway.metrics.first_byte.add(time.monotonic() - began)
                is_first = False
            if isinstance(part, Done) and part.usage:
                gateway.metrics.tokens["input"] += part.usage.input
                gateway.metrics.tokens["output"] += part.usage.output
            yield part
    gateway.metrics.whole.add(time.monotonic() - began)


class DeliveredStream(StreamingResponse):
    """A stream that tells when it has ended, also where its client left before anything went out: a generator that was
    never begun would end without a word."""

    def __init__(
        self,
        content: AsyncGenerator[bytes, None],
        ended: Callable[[], object],
        headers: Mapping[str, str],
        status: int = 200,
        media_type: str = EVENT_STREAM,
    ) -> None:
        super().__init__(content, status, headers, media_type)
        self._content, self._ended = content, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            try:
                await self._content.aclose()
            finally:
                self._ended()


async def streamed(
    gateway: Gateway,
    request: Request,
    writer: ReplyWriter,
    parts: AsyncGenerator[ReplyPart, None],
    reply: ServedReply,
    task: "asyncio.Task[None]",
) -> Response:
    """A stream of events. It begins with the first part: what fails before has a status of its own."""
    first = await while_there(request, anext(parts))
    if first is None:
        return await left_alone(gateway, reply, task)
    is_whole, is_over = False, False

    async def events() -> AsyncGenerator[bytes, None]:
        nonlocal is_whole, is_over
        try:
            for event in writer.write(first):
                yield event.encoded
            is_whole = isinstance(first, Done)
            async for part in parts:
                for event in writer.write(part):
                    yield event.encoded
                is_whole = isinstance(part, Done)
        except Exception as why:
            is_over = True
            for event in writer.error(for_client(why)):
                yield event.encoded

    def ended() -> None:
        if not is_whole and not is_over and gateway.options.on_disconnect == "stop":
            task.cancel()
        gateway.begin(reply.end_delivery(is_delivered=is_whole))

    return DeliveredStream(events(), ended, {**reply.headers, "cache-control": "no-cache"})


async def whole(
    gateway: Gateway,
    request: Request,
    write: Callable[[Sequence[Block], Done], Json],
    parts: AsyncGenerator[ReplyPart, None],
    reply: ServedReply,
    task: "asyncio.Task[None]",
) -> Response:
    """The reply in one piece, for a client that waits for it."""
    collected = await while_there(request, _collected(parts))
    if collected is None:
        return await left_alone(gateway, reply, task)
    builder, done = collected
    response = json_response(write(builder.blocks, done), 200, reply.headers)
    response.background = BackgroundTask(reply.end_delivery, is_delivered=True)  # runs when all of it has gone out
    return response


async def left_alone(gateway: Gateway, reply: ServedReply, task: "asyncio.Task[None]") -> Response:
    """Where the client has left before anything of the reply went out."""
    if gateway.options.on_disconnect == "stop":
        task.cancel()
    await reply.end_delivery(is_delivered=False)
    return Response(status_code=499)


async def _collected(parts: AsyncGenerator[ReplyPart, None]) -> tuple[MessageBuilder, Done]:
    builder, done = MessageBuilder(), Done("stop")
    async for part in parts:
        if isinstance(part, Done):
            done = part
        elif not isinstance(part, Attempt):
            builder.add(delta_of(part))
    return builder, done
