"""Requests in the modes `record` and `passthrough`: the client's bytes go to the provider, the provider's come back.

Where the provider speaks another format, or runs in this process, the request and the reply are translated.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import Invalid, ProviderError, SpendLimit, StoreError
from recto.providers.client import ClientRequest
from recto.providers.client_formats import ClientFormat, rendered_body, with_member, with_model
from recto.providers.model import Attempt, Done, Model, Provider, ReplyLimit, ReplyMeter, ReplyPart, limited
from recto.providers.remote import RemoteProvider, embeddings_url, remote_of
from recto.serve.access import cap_of
from recto.serve.charging import (
    EMBEDDING_FIELDS,
    CallBound,
    CallCost,
    begin_charge,
    bound_of,
    check_fields,
    check_members,
    check_passed,
    cost_of,
    embedding_bound,
    embedding_cost,
)
from recto.serve.gateway import Gateway, header_text
from recto.serve.heard_reply import HeardBytes, HeardReply
from recto.serve.recording import Recording, begin_recording
from recto.serve.spans import ReplyTrace
from recto.store.clients import AccessKey
from recto.turn.spending import SpendCap, unpriced_refusal
from recto.window.request import Entry
from recto.wire import Json, loads

log = logging.getLogger(__name__)

# Parts or chunks, of at most 64 KB each, that the client has not read yet.
MOST_UNREAD = 256


class PassedHead(Struct, frozen=True):
    """How an answer begins."""

    status: int
    media_type: str


class PassedRequest:
    """A client's request on its way to a provider."""

    def __init__(
        self,
        gateway: Gateway,
        key: AccessKey,
        format: ClientFormat,
        body: bytes,
        *,
        records: bool,
        named: str | None,
        traceparent: str | None = None,
    ) -> None:
        self._gateway, self._key, self._format, self._named = gateway, key, format, named
        self._records, self._body = records, body
        # what the client has not read yet; the provider waits for a slow client
        self._out: asyncio.Queue[Any] = asyncio.Queue(MOST_UNREAD)
        self._is_read = True
        self._recording: Recording | None = None
        self._charge: int | None = None
        self._shortened: int | None = None
        self.data = _read(body)
        self._trace = ReplyTrace("record", traceparent, is_stream=self.is_stream)
        self.name = gateway.model_for(key, str(self.data["model"]))

    @property
    def is_stream(self) -> bool:
        return self.data.get("stream") is True

    @property
    def headers(self) -> dict[str, str]:
        recorded = self._recording
        mode = "record" if self._records else "passthrough"
        told = {"x-recto-mode": mode, "x-recto-model": header_text(self._model.name)}
        if self._shortened is not None:
            told["x-recto-max-tokens"] = str(self._shortened)
        if recorded is None:
            return told
        home = recorded.placement.session.conversation
        return told | {"x-recto-conversation": home, "x-recto-request": recorded.request}

    async def prepare(self) -> None:
        """Reads the request, and stores it with the most that it can cost; or that alone."""
        await self._gateway.check_spending(self._key)
        builder = self._gateway.engine.builder
        self._provider: Provider = builder.provider(self.name)
        self._model: Model = await builder.model(self.name)
        remote = remote_of(self._provider)
        self.remote: RemoteProvider | None = remote if self._provider.format.name == self._format.name else None
        self.asked: ClientRequest | None = None
        if self.remote is None:
            self.asked = self._format.read_request(self._body, pass_on=True)
        cap, sent = cap_of(self._key), self._rendered(None)
        self._bound = await bound_of(sent, self.data, self._provider.format, self._model)
        if cap and self._bound.most is None:
            raise unpriced_refusal(cap.key, self._model.name)
        if cap and self._bound.most:
            check_passed(cap.key, self._body, self.data, self._format)
        self._body = b"" if self.asked else sent
        if self._records:
            at = (self._gateway, self._key.name, self._named)
            format = self._provider.format.name
            self._recording = await begin_recording(*at, self._entries(), self._model, format)
        self.data.pop("messages", None)  # read, and large
        try:
            self._body = await self._reserved(sent, cap)
        except BaseException:
            await asyncio.shield(self.end_delivery(is_delivered=False))
            raise

    def _rendered(self, max_tokens: int | None) -> bytes:
        """The body as it is sent; with `max_tokens`, where a limit shortens the reply."""
        if self.remote is not None:
            body = with_model(self._body, self._model.id)
            return body if max_tokens is None else with_member(body, self.remote.length_field, max_tokens)
        assert self.asked is not None
        kept = self._provider.format.name == self._format.name
        parameters = self.asked.parameters if kept else replace(self.asked.parameters, extra={})
        parameters = parameters if max_tokens is None else replace(parameters, max_tokens=max_tokens)
        asked = replace(self.asked, parameters=parameters)
        return rendered_body(asked, self._provider.format, self._provider.name, self._model.id)

    async def _reserved(self, body: bytes, cap: SpendCap | None) -> bytes:
        """The body to send, once the most that it can cost is stored. A reply without a given length is shortened to
        what the limits leave."""
        try:
            await self._reserve(body, cap)
        except SpendLimit as why:
            if (longest := self._bound.shorter(why)) is None:
                raise
            self._shortened, self._bound = longest, replace(self._bound, longest=longest)
            body = self._rendered(longest)
            await self._reserve(body, cap)
        return body

    async def _reserve(self, body: bytes, cap: SpendCap | None) -> None:
        if self._recording:
            await self._recording.save(body, self._bound, cap)
            return
        at = (self._gateway.store, self._key.name, cap, self._gateway.desk.settings.spend, "passthrough", self._bound)
        self._charge = await self._gateway.store.do(begin_charge, *at)

    async def _settle(self, heard: HeardReply, cost: CallCost, error: Exception | None) -> None:
        """A bound that cannot be settled stays counted."""
        try:
            if self._recording:
                await self._recording.end(heard, self._trace, cost, error)
            elif self._charge is not None:
                settle = self._gateway.store.charges.settle
                await self._gateway.store.do(settle, self._charge, cost.cost_usd, cost.usage)
        except StoreError:
            log.exception("the cost of a request could not be stored")

    async def end_delivery(self, *, is_delivered: bool) -> None:
        self._is_read = False
        self._drop_unread()
        if self._recording:
            await self._recording.placement.end_delivery(is_delivered=is_delivered)

    def _entries(self) -> list[Entry]:
        """Instructions stand outside of a conversation, and results of one round together."""
        said: list[Entry] = []
        messages = self.data.get("messages")
        if not isinstance(messages, list):
            raise Invalid("messages must be a list.", field="messages")
        for group in self._format.read_messages(messages):
            for entry in group:
                if entry.role == "tool" and said and said[-1].role == "tool":
                    said[-1] = Entry("tool", said[-1].blocks + entry.blocks)
                elif entry.role != "system" and entry.blocks:
                    said.append(entry)
        if not said:
            raise Invalid("messages must have at least one message.", field="messages")
        return said

    # -- as it is

    def begin_raw(self) -> "asyncio.Task[None]":
        return self._gateway.begin(self._run_raw())

    async def _run_raw(self) -> None:
        assert self.remote is not None
        reply = HeardReply(ReplyMeter(*self._limit))
        heard = HeardBytes(self._format.reader(), reply, is_stream=self.is_stream)
        error: Exception | None = None
        failure: Exception | None = None
        is_refused = False
        try:
            async with self.remote.forwarded(self.remote.url, self._body) as response:
                media_type = response.headers.get("content-type", "application/json")
                await self._out.put(PassedHead(response.status_code, media_type))
                is_refused = not response.is_success
                async for chunk in response.aiter_bytes():
                    self._trace.hear()
                    if not is_refused:
                        heard.add(chunk)
                    if self._is_read:
                        await self._out.put(chunk)
                    elif is_refused or heard.is_over:
                        break  # nobody reads the rest
                if not is_refused:
                    heard.end()
                else:
                    error = ProviderError(f"{self._model.provider} answered with status {response.status_code}")
        except Exception as why:
            error = failure = why
        except asyncio.CancelledError:
            self._drop_unread()  # else the end would wait for a client that does not read
            raise
        finally:
            cost = cost_of(self._bound, reply, error, is_refused=is_refused, is_read=heard.is_read)
            await asyncio.shield(self._settle(reply, cost, error))
            await self._put(failure)  # told last: whoever hears of it may ask at once what it cost

    @property
    def _limit(self) -> tuple[ReplyLimit, int | None]:
        """The limit of the reply, and the tokens that the client asks for."""
        settings, asked = self._gateway.desk.settings, self.data
        tokens, choices = asked.get("max_completion_tokens") or asked.get("max_tokens"), asked.get("n")
        counts = [each for each in (tokens, choices) if type(each) is int and each > 0]
        limit = ReplyLimit(settings.reply.max_characters, settings.tools.call_limit)
        return limit, prod(counts) if tokens in counts else None

    def _drop_unread(self) -> None:
        while not self._out.empty():
            self._out.get_nowait()

    async def _put(self, what: Any) -> None:
        if self._is_read:
            await self._out.put(what)

    async def head(self) -> PassedHead:
        """How the answer begins. Raises where there is none."""
        first = await self._out.get()
        if isinstance(first, PassedHead):
            return first
        raise first if isinstance(first, BaseException) else ProviderError("The provider gave no answer.")

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        while isinstance(chunk := await self._out.get(), bytes):
            yield chunk

    # -- translated

    def begin(self) -> "asyncio.Task[None]":
        return self._gateway.begin(self._run())

    async def _run(self) -> None:
        heard = HeardReply(ReplyMeter(*self._limit))
        error: Exception | None = None
        try:
            stream = self._provider.stream(self._body, "reply")
            async with aclosing(limited(stream, *self._limit)) as parts:
                async for part in parts:
                    self._trace.hear()
                    heard.take(part)
                    if not isinstance(part, Done | Attempt):
                        await self._put(part)
        except Exception as why:
            error = why
        finally:
            cost = cost_of(self._bound, heard, error, is_refused=False, is_read=not heard.note)
            await asyncio.shield(self._settle(heard, cost, error))
        if last := error or heard.done:
            await self._put(last)

    async def parts(self) -> AsyncGenerator[ReplyPart, None]:
        while True:
            part = await self._out.get()
            if isinstance(part, BaseException):
                raise part
            yield part
            if isinstance(part, Done):
                return


class PassedAnswer(Struct, frozen=True):
    head: PassedHead
    body: bytes


class PassedEmbeddings:
    """A client's request for vectors, on its way to a provider."""

    def __init__(self, gateway: Gateway, key: AccessKey, body: bytes) -> None:
        self._gateway, self._key, self._body, self._data = gateway, key, body, _read(body)
        self._name = gateway.model_for(key, str(self._data["model"]))

    async def answer(self) -> PassedAnswer:
        gateway, cap = self._gateway, cap_of(self._key)
        await gateway.check_spending(self._key)
        builder = gateway.engine.builder
        remote, url = embeddings_url(builder.provider(self._name))
        model = builder.known_model(self._name)
        assert model is not None, "its provider is known"
        bound = embedding_bound(self._body, model)
        if cap and bound.most:
            check_members(self._body)
            check_fields(cap.key, self._data, EMBEDDING_FIELDS)
        at = (gateway.store, self._key.name, cap, gateway.desk.settings.spend, "embeddings", bound)
        charge = await gateway.store.do(begin_charge, *at)
        return await self._sent(remote, url, with_model(self._body, model.id), bound, charge)

    async def _sent(self, remote: RemoteProvider, url: str, body: bytes, bound: CallBound, charge: int) -> PassedAnswer:
        cost = CallCost(bound.most)
        try:
            async with remote.forwarded(url, body) as response:
                found, media_type = await response.aread(), response.headers.get("content-type", "application/json")
            cost = embedding_cost(bound, found) if response.is_success else CallCost(0.0)
        except ProviderError as why:
            cost = cost if why.may_cost else CallCost(0.0)
            raise
        finally:
            settle = partial(self._gateway.store.charges.settle, charge, cost.cost_usd, cost.usage)
            await asyncio.shield(self._gateway.store.do(settle))
        return PassedAnswer(PassedHead(response.status_code, media_type), found)


def _read(body: bytes) -> dict[str, Json]:
    try:
        data = loads(body.decode())
    except (ValueError, RecursionError) as why:
        raise Invalid(f"The request is not JSON: {str(why) or 'it is nested too deeply'}.", field="") from why
    if not isinstance(data, dict) or not isinstance(data.get("model"), str):
        raise Invalid("model is missing.", field="model")
    return data
