"""ServedReply: a reply in progress. ManagedReply: one whose window was planned.

Its own task receives the reply and stores it, even if the client is gone; the client reads the parts that the task
queues.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from recto.api.client_turn import prepare_turn
from recto.base.background import FOREGROUND
from recto.chat.message import Message
from recto.errors import Invalid, NotFound, Overflow, ProviderError, SpendLimit
from recto.events import ContextCompacted, Event, Replied
from recto.providers.client import ClientRequest
from recto.providers.client_formats import ClientFormat
from recto.providers.model import Done, ReplyPart
from recto.serve.gateway import Gateway, cap_of, check_fields
from recto.serve.placement import FoundConversation, Placement, place
from recto.serve.telemetry import ReplyTrace
from recto.store.clients import AccessKey
from recto.turn.context import CallOptions
from recto.turn.exchange import Exchange
from recto.turn.messages import AnswerAgain
from recto.turn.spending import shorter_reply


class Call(Struct, frozen=True):
    """A client's request: who asks, by which API, and when."""

    gateway: Gateway
    request: Request
    format: ClientFormat
    key: AccessKey
    began_s: float

    @property
    def conversation(self) -> str | None:
        """The client's conversation, by its id or by a name of the client's own."""
        name = self.request.headers.get("x-recto-conversation")
        if name is not None and not (0 < len(name) <= 200 and name.isprintable()):
            raise NotFound("x-recto-conversation must be an id or a name of at most 200 characters.")
        return name

    def trace(self, mode: str, *, is_stream: bool) -> ReplyTrace:
        return ReplyTrace(mode, self.request.headers.get("traceparent"), is_stream=is_stream)


class ServedReply:
    placement: Placement | None = None

    def __init__(self, call: Call, trace: ReplyTrace, most_unread: int = 0) -> None:
        """`most_unread`: the parts after which the provider waits for a slow client; 0 for no bound."""
        self.gateway, self._key, self._trace = call.gateway, call.key, trace
        self._unread: asyncio.Queue[Any] = asyncio.Queue(most_unread)
        self._is_read = True

    @property
    def headers(self) -> dict[str, str]:
        """How the request was handled, for clients that want to know."""
        raise NotImplementedError

    async def _receive(self) -> Done:
        """Receives and stores the reply; passes all parts but the last to `_put`."""
        raise NotImplementedError

    async def _settle(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        self._task = self.gateway.begin(self._run())

    async def _run(self) -> None:
        error: BaseException | None = None
        try:
            last: Done | Exception = await self._receive()
        except Exception as why:
            error = last = why
        except BaseException as why:
            error, last = why, ProviderError("The reply was stopped.")
            if self._unread.full():
                self._drop_unread()  # else the end would wait for a client that does not read
        try:
            await asyncio.shield(self._settle(error))
        finally:
            await self._put(last)  # last, since a client may then ask for the cost immediately
        if error is not None and not isinstance(error, Exception):
            raise error

    async def _put(self, part: Any) -> None:
        if self._is_read:
            await self._unread.put(part)

    def _drop_unread(self) -> None:
        while not self._unread.empty():
            self._unread.get_nowait()

    async def parts(self) -> AsyncGenerator[Any, None]:
        """The parts of the reply, ending with Done. Raises the error that ended the reply."""
        while True:
            part = await self._unread.get()
            if isinstance(part, BaseException):
                raise part
            yield part
            if isinstance(part, Done):
                return

    def stop_without_client(self) -> None:
        """The client has gone: ends the reply too, if the options say so."""
        if self.gateway.options.on_disconnect == "stop":
            self._task.cancel()

    async def end_delivery(self, *, is_delivered: bool) -> None:
        """The reply was fully delivered, or never will be."""
        self._is_read = False
        self._drop_unread()
        if self.placement:
            await self.placement.end_delivery(is_delivered=is_delivered)


class ManagedReply(ServedReply):
    """One request in the mode `manage`: its messages are stored, the window is planned, the reply is kept."""

    placement: Placement
    exchange: Exchange

    def __init__(
        self, call: Call, request: ClientRequest, bounded: frozenset[str], follows: FoundConversation | None = None
    ) -> None:
        """`bounded`: fields that a key with a limit may send. `follows`: the reply that the request follows, if it does
        not repeat what is before."""
        super().__init__(call, call.trace("manage", is_stream=request.stream))
        self._request, self._bounded, self._follows = request, bounded, follows
        self._conversation = call.conversation if follows is None else None
        self._engine, self._began_s = call.gateway.engine, call.began_s
        self._has_begun = False
        self._left = [*call.gateway.fallbacks(request.model)]
        self._options = CallOptions(
            request.model,
            parameters=request.parameters,
            tools=request.tools,
            system=request.system,
            runs_tools=False,
        )
        self._shortened: int | None = None
        self.compacted = False
        self._message: Message | None = None

    async def prepare(self) -> None:
        """Stores what is new and records the request, so that later failures lose nothing."""
        if self._request.entries[-1].role == "assistant":
            raise Invalid("messages must end with the message to answer.", field="messages")
        await self.gateway.check_spending(self._key)
        cap = cap_of(self._key)
        if cap:
            check_fields(cap.key, self._request.parameters.extra, self._bounded)
        at = (self.gateway, self._key.name, self._conversation, self._request.model)
        with FOREGROUND.begin():
            self.placement = await place(*at, self._request.entries, self._follows)
            self._session = self.placement.session
            self._session.apply(cap=cap)
            self._options = replace(self._options, notes=self.placement.notes)
            try:
                self.exchange = await self._within_limits()
            except BaseException:
                await asyncio.shield(self.end_delivery(is_delivered=False))
                raise
        self.gateway.metrics.compactions += self.compacted

    async def _prepared(self) -> Exchange:
        async with self._session.turn_lock():
            return await prepare_turn(self._engine, self._session, AnswerAgain(), self._note, self._options)

    async def _note(self, event: Event) -> None:
        self.compacted |= isinstance(event, ContextCompacted)
        if isinstance(event, Replied):
            self._message = event.message

    async def _within_limits(self) -> Exchange:
        """A reply without a given length is shortened to what the limits leave."""
        try:
            return await self._prepared()
        except SpendLimit as why:
            models, name = self._engine.models, self._request.model
            if self._options.parameters.max_tokens:
                raise
            self._shortened = shorter_reply(await models.model(name), await models.longest_reply(name), why)
            if self._shortened is None:
                raise
            note = f"max_tokens is {self._shortened:,}: that is what the spending limit leaves"
            parameters = replace(self._options.parameters, max_tokens=self._shortened)
            self._options = replace(self._options, parameters=parameters, notes=(*self._options.notes, note))
            return await self._prepared()

    @property
    def summary(self) -> str:
        """The summary in force."""
        block = self.exchange.planned.loaded.view.compaction
        return block.summary if block else ""

    @property
    def headers(self) -> dict[str, str]:
        total, block = self.exchange.planned.window.total, self.exchange.planned.loaded.view.compaction
        characters = sum(len(str(getattr(b, "text", ""))) for entry in self._request.entries for b in entry.blocks)
        sent = max(1, len(self.exchange.request.body))
        return {
            "x-recto-conversation": self._session.conversation,
            "x-recto-request": self.exchange.request.id,
            "x-recto-mode": "manage",
            "x-recto-tokens": str(total),
            "x-recto-tokens-before": str(max(total, total * characters // sent)),
            "x-recto-compacted": "true" if self.compacted else "false",
            "x-recto-archived": str(block.messages_archived if block else 0),
            **model_headers(self.exchange.context.model.name, self._shortened),
        }

    def _hear(self, part: ReplyPart) -> None:
        if not self._has_begun:
            self.gateway.metrics.first_byte.add(time.monotonic() - self._began_s)
        self._has_begun = True
        self._trace.note_part()
        if self._is_read:
            self._unread.put_nowait(part)

    async def _receive(self) -> Done:
        await self._exchanged()
        assert self._message is not None
        self.gateway.sessions.keep(self._session)
        metrics, usage = self.gateway.metrics, self._message.usage
        metrics.whole.add(time.monotonic() - self._began_s)
        if usage:
            metrics.tokens["input"] += usage.input
            metrics.tokens["output"] += usage.output
        return Done(self.exchange.finish, usage)

    async def _exchanged(self) -> None:
        """Before the reply has begun, a model that fails is replaced."""
        while True:
            self.exchange.listener, self.exchange.also = self._hear, self.placement.note_reply
            try:
                return await self._engine.exchange(self.exchange, self._note)
            except ProviderError as why:
                if isinstance(why, Overflow) or self._has_begun or not self._left:
                    raise
            self._options = replace(self._options, model=self._left.pop(0))
            self.exchange = await self._prepared()

    async def _settle(self, error: BaseException | None) -> None:
        if error:
            await self.placement.end_delivery(is_delivered=False)
        await self.gateway.tell(self.exchange.request.id, None if error else self._message, self._trace, error)


def model_headers(model: str, shortened: int | None = None) -> Mapping[str, str]:
    """The model that answers, and the limit set on its reply."""
    text = "".join(char if " " <= char <= "~" else "?" for char in model)
    return {"x-recto-model": text} | ({} if shortened is None else {"x-recto-max-tokens": str(shortened)})
