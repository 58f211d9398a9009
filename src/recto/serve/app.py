"""The routes of the endpoint. A route reads a client's request, gets a reply, and writes it in the client's format."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from recto.base.ids import new_id
from recto.chat.blocks import Block
from recto.chat.message import MessageBuilder
from recto.errors import BrokenPlugin, Busy, Invalid, NotFound, RectoError, StoreError
from recto.providers.client import ClientRequest, ReplyHead, sentence_of
from recto.providers.client_formats import ANTHROPIC, OPENAI, ClientFormat, ReplyWriter
from recto.providers.model import Done
from recto.providers.openai_responses import (
    PREFIX,
    ResponsesWriter,
    compaction_item,
    output_items,
    read_responses_request,
    write_response,
)
from recto.providers.registry import model_overview
from recto.serve.connections import BodyTooLarge, DeliveredStream, declared_size, read_body, while_there
from recto.serve.gateway import LARGE_BYTES, SMALL_BYTES, Gateway, ServerClosing
from recto.serve.passing import PassedHead, PassedRequest, pass_embeddings
from recto.serve.placement import FoundConversation
from recto.serve.replies import Call, ManagedReply, ServedReply
from recto.store.clients import AccessKey
from recto.turn.incoming_message import delta_of
from recto.wire import Json, dumpb

log = logging.getLogger(__name__)
PATIENCE_S = 30.0
T = TypeVar("T")


def build_app(gateway: Gateway) -> Starlette:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None, None]:
        yield
        await gateway.close(PATIENCE_S)

    routes = [
        _post("/v1/chat/completions", _answer_chat, OPENAI),
        _post("/v1/messages", _answer_chat, ANTHROPIC),
        _post("/v1/responses", _answer_response, OPENAI, mode="manage"),
        _post("/v1/embeddings", _answer_embeddings, OPENAI, mode=None),
        Route("/v1/models", _models),
        Route("/health", _health),
        Route("/ready", _ready),
        Route("/metrics", _metrics),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _not_found})
    app.state.gateway = gateway
    return app


def _post(
    path: str, answer: Callable[[Call, bytes], Awaitable[Response]], format: ClientFormat, mode: str | None = ""
) -> Route:
    """`mode` is for the metrics: "" if the request names it, None for none."""

    async def handle(request: Request) -> Response:
        gateway: Gateway = request.app.state.gateway
        request.state.mode, began_s = mode, time.monotonic()
        try:
            call = Call(gateway, request, format, await _admitted(gateway, request), began_s)
            # a body of unknown size may be large
            async with gateway.reading(call.key.name, declared_size(request) or LARGE_BYTES + 1):
                # nothing here keeps the body, which may be large
                response = await answer(call, await read_body(request, gateway.options.limits))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as why:
            response = _error_response(format, why)
        if request.state.mode is not None:
            gateway.metrics.count(path, request.state.mode, response.status_code)
        return response

    return Route(path, handle, methods=["POST"])


async def _admitted(gateway: Gateway, request: Request) -> AccessKey:
    """The key of a request, if it is within its limits."""
    if gateway.is_closing:
        raise ServerClosing("The server is shutting down; ask again in a moment.")
    key = await gateway.key_of(request.headers)
    gateway.admit(key)
    return key


# -- requests


async def _answer_chat(call: Call, body: bytes) -> Response:
    """`/v1/chat/completions` and `/v1/messages`."""
    state, headers = call.request.state, call.request.headers
    state.mode = call.gateway.mode_of(call.key, headers.get("x-recto-mode"))
    if state.mode == "manage":
        asked: ClientRequest = await _read(call.format.read_request, body)
        del body
        asked = replace(asked, model=call.gateway.model_for(call.key, asked.model))
        reply = ManagedReply(call, asked, call.format.bounded)
        await reply.prepare()
        return await _delivered(call, reply, asked)
    passed = PassedRequest(call, body)
    del body
    await passed.prepare()
    return await _streamed(call, passed, None)


async def _read(read: Callable[[bytes], T], body: bytes) -> T:
    """Other clients do not wait while a large body is parsed."""
    return await asyncio.to_thread(read, body) if len(body) > SMALL_BYTES else read(body)


async def _answer_response(call: Call, body: bytes) -> Response:
    """`/v1/responses`, always managed: the messages that a client leaves out are in the store."""
    gateway, read = call.gateway, await _read(read_responses_request, body)
    del body
    asked = replace(read.asked, model=gateway.model_for(call.key, read.asked.model))
    follows = await _previous(call, read.previous) if read.previous else None
    reply = ManagedReply(call, asked, frozenset(), follows)
    await reply.prepare()
    id = reply.exchange.request.id
    head = ReplyHead(f"{PREFIX}{id}", read.asked.model, int(time.time()))
    before = [compaction_item(id, reply.summary)] if reply.compacted else []
    if asked.stream:
        return await _streamed(call, reply, ResponsesWriter(head, before, read.previous))

    def write(blocks: Sequence[Block], done: Done) -> Json:
        return write_response(head, [*before, *output_items(head, blocks)], done, read.previous)

    return await _whole(call, reply, write)


async def _previous(call: Call, id: str) -> FoundConversation:
    find = call.gateway.store.client_messages.reply_to
    found = await call.gateway.store.do(find, call.key.name, id.removeprefix(PREFIX))
    if found is None:
        raise NotFound(f"There is no reply {id[:80]}.", field="previous_response_id")
    return FoundConversation(found.conversation, found.id)


async def _answer_embeddings(call: Call, body: bytes) -> Response:
    """Always passed on, since vectors are not part of a conversation."""
    head, answer = await pass_embeddings(call, body)
    return Response(answer, head.status, media_type=head.media_type)


async def _models(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    try:
        key = await _admitted(gateway, request)
        overview = await model_overview(gateway.desk.home, gateway.desk.project, os.environ)
        names = (gateway.desk.settings.model, *overview.aliases, *(each.name for each in overview.usable))
        listed = [
            {"id": name, "object": "model", "type": "model", "created": 0, "owned_by": name.partition(":")[0]}
            for name in dict.fromkeys(names)
            if _may_ask(gateway, key, name)
        ]
    except Exception as why:
        return _error_response(OPENAI, why)
    return _json_response({"object": "list", "data": listed, "has_more": False})


def _may_ask(gateway: Gateway, key: AccessKey, model: str) -> bool:
    try:
        gateway.model_for(key, model)
    except RectoError:
        return False
    return True


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(request: Request) -> Response:
    """The store is readable, and requests are accepted."""
    gateway: Gateway = request.app.state.gateway
    if gateway.is_closing:
        return JSONResponse({"status": "closing"}, 503)
    try:
        await gateway.store.do(gateway.store.tree.newest_number)
    except RectoError as why:
        return JSONResponse({"status": sentence_of(_for_client(why))}, 503)
    return JSONResponse({"status": "ready"})


async def _metrics(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    return PlainTextResponse(gateway.metrics.text(gateway.running), media_type="text/plain; version=0.0.4")


async def _not_found(request: Request, why: Exception) -> Response:
    format = ANTHROPIC if "anthropic-version" in request.headers else OPENAI
    return _error_response(format, NotFound(f"There is nothing at {request.url.path[:200]}."))


# -- replies


async def _delivered(call: Call, reply: ServedReply, asked: ClientRequest) -> Response:
    format = call.format
    head = ReplyHead(f"{format.reply_prefix}{new_id()}", asked.model, int(time.time()))
    if asked.stream:
        return await _streamed(call, reply, format.open_writer(head, asked.include_usage))
    return await _whole(call, reply, partial(format.write_reply, head))


async def _streamed(call: Call, reply: ServedReply, writer: ReplyWriter | None) -> Response:
    """A stream of events; without a writer, the provider's answer unchanged. It begins with the first part: earlier
    failures have their own status."""
    reply.begin()
    parts = reply.parts()
    first = await while_there(call.request, anext(parts))
    if first is None:
        return await _left(reply)
    is_whole = is_over = False

    async def chunks() -> AsyncGenerator[bytes, None]:
        nonlocal is_whole, is_over
        part = first
        try:
            while True:
                for chunk in _encoded(part, writer):
                    yield chunk
                if is_whole := isinstance(part, Done):
                    return
                part = await anext(parts)
        except Exception as why:
            is_over = True
            for event in writer.error(_for_client(why)) if writer else ():
                yield event.encoded

    async def ended() -> None:
        if not is_whole and not is_over:
            reply.stop_without_client()
        call.gateway.begin(reply.end_delivery(is_delivered=is_whole))

    if isinstance(first, PassedHead):
        return DeliveredStream(chunks(), ended, reply.headers, first.status, first.media_type)
    headers = {**reply.headers, "cache-control": "no-cache"}
    return DeliveredStream(chunks(), ended, headers, media_type="text/event-stream")


def _encoded(part: Any, writer: ReplyWriter | None) -> Sequence[bytes]:
    if writer:
        return [event.encoded for event in writer.write(part)]
    return [part] if isinstance(part, bytes) else []


async def _whole(call: Call, reply: ServedReply, write: Callable[[Sequence[Block], Done], Json]) -> Response:
    """The reply in one piece, for a client that waits for it."""
    reply.begin()
    collected = await while_there(call.request, _collected(reply))
    if collected is None:
        return await _left(reply)
    response = _json_response(write(*collected), 200, reply.headers)
    response.background = BackgroundTask(reply.end_delivery, is_delivered=True)  # runs when all of it has been sent
    return response


async def _collected(reply: ServedReply) -> tuple[Sequence[Block], Done]:
    builder, done = MessageBuilder(), Done("stop")
    async for part in reply.parts():
        if isinstance(part, Done):
            done = part
        else:
            builder.add(delta_of(part))
    return builder.blocks, done


async def _left(reply: ServedReply) -> Response:
    reply.stop_without_client()
    await reply.end_delivery(is_delivered=False)
    return Response(status_code=499)


# -- errors

# Details of an error that concern the client's request. Other invalid values are the server's own.
ABOUT_REQUEST = frozenset({"field", "model"})


def _for_client(why: Exception) -> Exception:
    """An error as a client may see it. Errors of the server's database and files name hosts, users and paths, so they
    go to the log, like unexpected ones, and the client gets one sentence."""
    if isinstance(why, RecursionError):  # readable JSON may still be too deep for a later step
        why = Invalid("The request is nested too deeply.", field="")
    if not isinstance(why, RectoError):
        log.error("a request failed", exc_info=why)
        return why
    is_own = isinstance(why, Invalid) and not ABOUT_REQUEST.intersection(why.data)
    if isinstance(why, StoreError) and not isinstance(why, ServerClosing):
        hidden: RectoError = Busy("The server cannot use its store now. Try again in a moment.")
    elif is_own or "path" in why.data or isinstance(why, BrokenPlugin):
        hidden = RectoError("The server is not set up correctly. Its owner can find the reason in its log.")
    else:
        return why
    log.error("a request failed: %s", why.message, exc_info=why)
    return hidden


def _error_response(format: ClientFormat, why: Exception) -> Response:
    error = format.error(_for_client(why))
    return _json_response(error.body, 413 if isinstance(why, BodyTooLarge) else error.status, error.headers)


def _json_response(value: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumpb(value), status, dict(headers or {}), "application/json")
