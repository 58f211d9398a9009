"""The routes of the endpoint. A route reads a client's request, has it answered, and writes the reply in its format."""

import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from recto.base.ids import new_id
from recto.chat.blocks import Block
from recto.errors import NotFound, RectoError
from recto.providers.client import ClientRequest, ReplyHead, sentence_of
from recto.providers.client_formats import ANTHROPIC, OPENAI, ClientFormat
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
from recto.serve.connections import note_valid_key
from recto.serve.conversation_finder import FoundConversation
from recto.serve.gateway import Gateway, checked_name
from recto.serve.incoming_body import IncomingBody, while_there
from recto.serve.managed import ManagedReply
from recto.serve.passing import PassedEmbeddings, PassedRequest
from recto.serve.replies import (
    DeliveredStream,
    ServerClosing,
    error_response,
    for_client,
    json_response,
    left_alone,
    streamed,
    told_parts,
    whole,
)
from recto.store.clients import AccessKey
from recto.wire import Json

log = logging.getLogger(__name__)
PATIENCE_S = 30.0


def chat_route(format: ClientFormat) -> Callable[[Request], Awaitable[Response]]:
    """`/v1/chat/completions` and `/v1/messages`."""

    async def answer(request: Request) -> Response:
        gateway: Gateway = request.app.state.gateway
        route, mode, began = request.url.path, "", time.monotonic()
        try:
            key = await admitted(gateway, request)
            incoming = IncomingBody(request, gateway.options.limits)
            if gateway.workers and (relayed := await gateway.workers.answer(key.name, request, incoming)):
                return relayed
            mode = gateway.mode_of(key, request.headers.get("x-recto-mode"))
            # nothing here holds on to the body, which may be large
            if mode == "manage":
                response = await managed(gateway, request, key, await incoming.whole(), format, began)
            else:
                records = mode == "record"
                response = await passed_on(gateway, request, key, await incoming.whole(), format, records=records)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as why:
            response = error_response(format, why)
        gateway.metrics.requests[route, mode, response.status_code] += 1
        return response

    return answer


async def admitted(gateway: Gateway, request: Request) -> AccessKey:
    """The key of a request that may be made now."""
    if gateway.is_closing:
        raise ServerClosing("The server is shutting down; ask again in a moment.")
    find = gateway.access.key_of
    key = await gateway.store.do(find, request.headers) if gateway.options.needs_key else find(request.headers)
    note_valid_key(request.scope)
    if not gateway.options.is_worker:
        gateway.access.admit(key)
    return key


# -- managed


async def managed(
    gateway: Gateway, request: Request, key: AccessKey, body: bytes, format: ClientFormat, began: float
) -> Response:
    asked: ClientRequest = format.read_request(body, pass_on=True)
    del body
    named = checked_name(request.headers.get("x-recto-conversation"))
    asked = replace(asked, model=gateway.model_for(key, asked.model))
    parent = request.headers.get("traceparent")
    reply = ManagedReply(gateway, key, asked, named, traceparent=parent, bounded=format.bounded)
    await reply.prepare()
    gateway.metrics.compactions += reply.compacted
    task = reply.begin()
    head = ReplyHead(f"{format.reply_prefix}{new_id()}", asked.model, int(time.time()))
    parts = told_parts(gateway, reply, began)
    if asked.stream:
        return await streamed(gateway, request, format.open_writer(head, asked.include_usage), parts, reply, task)
    return await whole(gateway, request, partial(format.write_reply, head), parts, reply, task)


async def passed_on(
    gateway: Gateway, request: Request, key: AccessKey, body: bytes, format: ClientFormat, *, records: bool
) -> Response:
    named = checked_name(request.headers.get("x-recto-conversation"))
    parent = request.headers.get("traceparent")
    passed = PassedRequest(gateway, key, format, body, records=records, named=named, traceparent=parent)
    del body
    await passed.prepare()
    if passed.asked is not None:
        task, asked = passed.begin(), passed.asked
        head = ReplyHead(f"{format.reply_prefix}{new_id()}", asked.model, int(time.time()))
        if asked.stream:
            return await streamed(
                gateway, request, format.open_writer(head, asked.include_usage), passed.parts(), passed, task
            )
        return await whole(gateway, request, partial(format.write_reply, head), passed.parts(), passed, task)
    task = passed.begin_raw()
    begun = await while_there(request, passed.head())
    if begun is None:
        return await left_alone(gateway, passed, task)
    is_whole = False

    async def chunks() -> AsyncGenerator[bytes, None]:
        nonlocal is_whole
        async for chunk in passed.chunks():
            yield chunk
        is_whole = True

    def ended() -> None:
        if not is_whole and gateway.options.on_disconnect == "stop":
            task.cancel()
        gateway.begin(passed.end_delivery(is_delivered=is_whole))

    return DeliveredStream(chunks(), ended, passed.headers, begun.status, begun.media_type)


# -- besides


async def responses(request: Request) -> Response:
    """`/v1/responses`, always managed: what a client leaves out stands in the store."""
    gateway: Gateway = request.app.state.gateway
    began = time.monotonic()
    try:
        key = await admitted(gateway, request)
        incoming = IncomingBody(request, gateway.options.limits)
        if gateway.workers and (relayed := await gateway.workers.answer(key.name, request, incoming)):
            return relayed
        response = await responded(gateway, request, key, await incoming.whole(), began)
    except ClientDisconnect:
        return Response(status_code=499)
    except Exception as why:
        response = error_response(OPENAI, why)
    gateway.metrics.requests[request.url.path, "manage", response.status_code] += 1
    return response


async def responded(gateway: Gateway, request: Request, key: AccessKey, body: bytes, began: float) -> Response:
    read = read_responses_request(body)
    del body
    model = gateway.model_for(key, read.asked.model)
    follows = await _previous(gateway, key, read.previous) if read.previous else None
    named = checked_name(request.headers.get("x-recto-conversation")) if follows is None else None
    parent = request.headers.get("traceparent")
    reply = ManagedReply(gateway, key, replace(read.asked, model=model), named, follows, parent)
    await reply.prepare()
    gateway.metrics.compactions += reply.compacted
    head = ReplyHead(f"{PREFIX}{reply.waiting.request.id}", read.asked.model, int(time.time()))
    before = [compaction_item(reply.waiting.request.id, reply.summary)] if reply.compacted else []
    task, parts = reply.begin(), told_parts(gateway, reply, began)
    if read.asked.stream:
        return await streamed(gateway, request, ResponsesWriter(head, before, read.previous), parts, reply, task)

    def write(blocks: Sequence[Block], done: Done) -> Json:
        return write_response(head, [*before, *output_items(head, blocks)], done, read.previous)

    return await whole(gateway, request, write, parts, reply, task)


async def _previous(gateway: Gateway, key: AccessKey, id: str) -> FoundConversation:
    """The reply that a request follows, of the same owner."""
    find = gateway.store.client_messages.reply_to
    found = await gateway.store.do(find, key.name, id.removeprefix(PREFIX))
    if found is None:
        raise NotFound(f"There is no reply {id[:80]}.", field="previous_response_id")
    return FoundConversation(found.conversation, found.id)


async def embeddings(request: Request) -> Response:
    """Passed on: vectors are no conversation."""
    gateway: Gateway = request.app.state.gateway
    try:
        key = await admitted(gateway, request)
        incoming = IncomingBody(request, gateway.options.limits)
        if gateway.workers and (relayed := await gateway.workers.answer(key.name, request, incoming)):
            return relayed
        answer = await PassedEmbeddings(gateway, key, await incoming.whole()).answer()
        return Response(answer.body, answer.head.status, media_type=answer.head.media_type)
    except ClientDisconnect:
        return Response(status_code=499)
    except Exception as why:
        return error_response(OPENAI, why)


async def models(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    try:
        key = await admitted(gateway, request)
        overview = await model_overview(gateway.desk.home, gateway.desk.project, os.environ)
        names = dict.fromkeys(
            (gateway.desk.settings.model, *overview.aliases, *(each.name for each in overview.usable))
        )
        allowed = [name for name in names if _may_ask(gateway, key, name)]
    except Exception as why:
        return error_response(OPENAI, why)
    listed = [
        {"id": name, "object": "model", "type": "model", "created": 0, "owned_by": name.partition(":")[0]}
        for name in allowed
    ]
    return json_response({"object": "list", "data": listed, "has_more": False})


def _may_ask(gateway: Gateway, key: AccessKey, model: str) -> bool:
    try:
        gateway.model_for(key, model)
    except RectoError:
        return False
    return True


async def health(request: Request) -> Response:
    """The process is there."""
    return JSONResponse({"status": "ok"})


async def ready(request: Request) -> Response:
    """The store can be read, and requests are taken."""
    gateway: Gateway = request.app.state.gateway
    if gateway.is_closing:
        return JSONResponse({"status": "closing"}, 503)
    try:
        await gateway.store.do(gateway.store.tree.newest_number)
    except RectoError as why:
        return JSONResponse({"status": sentence_of(for_client(why))}, 503)
    return JSONResponse({"status": "ready"})


async def metrics(request: Request) -> Response:
    gateway: Gateway = request.app.state.gateway
    return PlainTextResponse(gateway.metrics.text(gateway.running), media_type="text/plain; version=0.0.4")


async def not_found(request: Request, why: Exception) -> Response:
    format = ANTHROPIC if "anthropic-version" in request.headers else OPENAI
    return error_response(format, NotFound(f"There is nothing at {request.url.path[:200]}."))


def build_app(gateway: Gateway) -> Starlette:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None, None]:
        yield
        await gateway.close(PATIENCE_S)

    routes = [
        Route("/v1/chat/completions", chat_route(OPENAI), methods=["POST"]),
        Route("/v1/messages", chat_route(ANTHROPIC), methods=["POST"]),
        Route("/v1/responses", responses, methods=["POST"]),
        Route("/v1/embeddings", embeddings, methods=["POST"]),
        Route("/v1/models", models),
        Route("/health", health),
        Route("/ready", ready),
        Route("/metrics", metrics),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: not_found})
    app.state.gateway = gateway
    return app
