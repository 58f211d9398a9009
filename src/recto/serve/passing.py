"""Requests in the modes `record` and `passthrough`: the client's bytes go to the provider, the provider's come back.

Where the provider speaks another format, or runs in this process, the request and the reply are translated.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import Invalid, ProviderError, RectoError
from recto.providers.client import ClientRequest
from recto.providers.client_formats import ClientFormat
from recto.providers.forwarding import forwarded, remote_of, rendered_body, with_model
from recto.providers.model import Attempt, Done, Model, Provider, ReplyPart
from recto.providers.remote import RemoteProvider
from recto.providers.reply_limit import ReplyLimit, ReplyMeter, limited
from recto.serve.gateway import Gateway, header_text
from recto.serve.recording import HeardBytes, HeardReply, Recording, begin_recording
from recto.serve.spans import ReplyTrace
from recto.store.clients import AccessKey
from recto.window.request import Entry
from recto.wire import Json, loads

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
        self.data = _read(body)
        self._trace = ReplyTrace("record", traceparent, is_stream=self.is_stream)
        self.name = gateway.model_name(str(self.data["model"]))
        gateway.access.check_model(key, self.name)

    @property
    def is_stream(self) -> bool:
        return self.data.get("stream") is True

    @property
    def headers(self) -> dict[str, str]:
        recorded = self._recording
        mode = "record" if self._records else "passthrough"
        told = {"x-recto-mode": mode, "x-recto-model": header_text(self._model.name)}
        if recorded is None:
            return told
        home = recorded.placement.session.conversation
        return told | {"x-recto-conversation": home, "x-recto-request": recorded.request}

    async def prepare(self) -> None:
        await self._gateway.check_spending(self._key)
        builder = self._gateway.engine.builder
        self._provider: Provider = builder.provider(self.name)
        self._model: Model = await builder.model(self.name)
        remote = remote_of(self._provider)
        self.remote: RemoteProvider | None = remote if self._provider.format.name == self._format.name else None
        self.asked: ClientRequest | None = None
        if self.remote is not None:
            self._body = with_model(self._body, self._model.id)
        else:
            self.asked = self._format.read_request(self._body, pass_on=True)
            kept = self._provider.format.name == self._format.name
            parameters = self.asked.parameters if kept else replace(self.asked.parameters, extra={})
            asked = replace(self.asked, parameters=parameters)
            self._body = rendered_body(asked, self._provider.format, self._provider.name, self._model.id)
        if self._records:
            at = (self._gateway, self._key.name, self._named, self._entries())
            self._recording = await begin_recording(*at, self._model, self._provider.format.name, self._body)

    async def end_delivery(self, *, is_delivered: bool) -> None:
        self._is_read = False
        self._drop_unread()
        if self._recording:
            await self._recording.placement.end_delivery(is_delivered=is_delivered)

    def _entries(self) -> list[Entry]:
        """Instructions stand outside of a conversation, and results of one round together."""
        said: list[Entry] = []
        for group in self._format.read_messages(self.data.get("messages") or ()):
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
        try:
            async with forwarded(self.remote, self.remote.url, self._body) as response:
                media_type = response.headers.get("content-type", "application/json")
                await self._out.put(PassedHead(response.status_code, media_type))
                is_heard = response.is_success and self._recording is not None
                async for chunk in response.aiter_bytes():
                    self._trace.hear()
                    if is_heard:
                        heard.add(chunk)
                    if self._is_read:
                        await self._out.put(chunk)
                    elif not is_heard or heard.is_over:
                        break  # nobody reads the rest
                if is_heard:
                    heard.end()
                elif not response.is_success:
                    error = ProviderError(f"{self._model.provider} answered with status {response.status_code}")
        except RectoError as why:
            error = why
            await self._put(why)
        except asyncio.CancelledError:
            self._drop_unread()  # else the end would wait for a client that does not read
            raise
        finally:
            if self._recording:
                await asyncio.shield(self._recording.end(reply, self._trace, error))
            await self._put(None)

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
            await self._put(why)
        finally:
            if self._recording:
                await asyncio.shield(self._recording.end(heard, self._trace, error))
        if heard.done:
            await self._put(heard.done)

    async def parts(self) -> AsyncGenerator[ReplyPart, None]:
        while True:
            part = await self._out.get()
            if isinstance(part, BaseException):
                raise part
            yield part
            if isinstance(part, Done):
                return


def _read(body: bytes) -> dict[str, Json]:
    try:
        data = loads(body.decode())
    except (ValueError, RecursionError) as why:
        raise Invalid(f"The request is not JSON: {str(why) or 'it is nested too deeply'}.") from why
    if not isinstance(data, dict) or not isinstance(data.get("model"), str):
        raise Invalid("model is missing.", field="model")
    return data
