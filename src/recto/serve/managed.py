"""ManagedReply: one request in the mode `manage`: its messages are stored, the window is planned, the reply is kept.

The reply goes into the store in a task of its own: it is kept whether or not the client waits for it.
"""

import asyncio
from collections.abc import AsyncGenerator

from msgspec.structs import replace

from recto.api.client_turn import ClientTurn, prepare_turn
from recto.base.background import FOREGROUND
from recto.chat.message import Message
from recto.errors import Invalid, Overflow, ProviderError, SpendLimit
from recto.events import ContextCompacted, Event, Replied
from recto.providers.client import ClientRequest
from recto.providers.model import Done, ReplyPart
from recto.serve.access import cap_of
from recto.serve.charging import check_fields
from recto.serve.conversation_finder import FoundConversation
from recto.serve.gateway import Gateway, header_text
from recto.serve.placement import place
from recto.serve.spans import ReplyTrace
from recto.store.clients import AccessKey
from recto.turn.context import CallOptions
from recto.turn.exchange import Exchange, record_request
from recto.turn.messages import AnswerAgain
from recto.turn.spending import shorter_reply

Heard = ReplyPart | BaseException


class ManagedReply:
    def __init__(
        self,
        gateway: Gateway,
        key: AccessKey,
        request: ClientRequest,
        conversation: str | None,
        follows: FoundConversation | None = None,
        traceparent: str | None = None,
        bounded: frozenset[str] = frozenset(),
    ) -> None:
        """`bounded`: fields that a key with a limit may send. `follows`: the reply that the request comes after, where
        it does not repeat what is before."""
        self._follows, self._bounded = follows, bounded
        self._trace = ReplyTrace("manage", traceparent, is_stream=request.stream)
        self._gateway, self._key, self._request, self._named = gateway, key, request, conversation
        self._engine, self._store = gateway.engine, gateway.store
        self._heard: asyncio.Queue[Heard] = asyncio.Queue()
        self._has_begun = False
        self._left = [*gateway.fallbacks(request.model)]
        self._options = CallOptions(
            request.model,
            parameters=request.parameters,
            tools=request.tools,
            system=request.system,
            runs_tools=False,
        )
        self._shortened: int | None = None
        self.compacted = False
        self.message: Message | None = None

    # -- before the reply

    async def prepare(self) -> None:
        """Stores what is new and records the request. What fails later loses none of it."""
        if self._request.entries[-1].role == "assistant":
            other = "" if self._key.mode else "; `x-recto-mode: passthrough` passes on a beginning of the reply"
            raise Invalid(f"messages must end with what is to be answered{other}.", field="messages")
        await self._gateway.check_spending(self._key)
        cap = cap_of(self._key)
        if cap:
            check_fields(cap.key, self._request.parameters.extra, self._bounded)
        at = (self._gateway, self._key.name, self._named, self._request.model)
        with FOREGROUND.begin():
            self._placement = await place(*at, self._request.entries, self._follows)
            self._session = self._placement.session
            self._session.apply(cap=cap)
            self._options = replace(self._options, notes=self._placement.notes)
            try:
                self.waiting = await self._within_limits()
            except BaseException:
                await asyncio.shield(self.end_delivery(is_delivered=False))
                raise

    async def end_delivery(self, *, is_delivered: bool) -> None:
        await self._placement.end_delivery(is_delivered=is_delivered)

    async def _prepared(self) -> ClientTurn:
        async with self._session.turn_lock():
            return await prepare_turn(self._engine, self._session, AnswerAgain(), self._note, self._options)

    async def _note(self, event: Event) -> None:
        self.compacted |= isinstance(event, ContextCompacted)
        if isinstance(event, Replied):
            self.message = event.message

    async def _within_limits(self) -> ClientTurn:
        """A reply without a given length is shortened to what the limits leave."""
        try:
            return await self._prepared()
        except SpendLimit as why:
            builder, name = self._engine.builder, self._request.model
            if self._options.parameters.max_tokens:
                raise
            longest = shorter_reply(await builder.model(name), await builder.longest_reply(name), why)
            if longest is None:
                raise
            note = f"max_tokens is {longest:,}: that is what the spending limit leaves"
            parameters = replace(self._options.parameters, max_tokens=longest)
            notes = (*self._options.notes, note)
            self._options = replace(self._options, parameters=parameters, notes=notes)
            self._shortened = longest
            return await self._prepared()

    @property
    def summary(self) -> str:
        """The summary in force."""
        block = self.waiting.planned.loaded.view.compaction
        return block.summary if block else ""

    @property
    def headers(self) -> dict[str, str]:
        """What was done, for whoever wants to know."""
        window, block = self.waiting.planned.window, self.waiting.planned.loaded.view.compaction
        characters = sum(len(str(getattr(b, "text", ""))) for entry in self._request.entries for b in entry.blocks)
        sent = max(1, len(self.waiting.request.body))
        return {
            "x-recto-conversation": self._session.conversation,
            "x-recto-request": self.waiting.request.id,
            "x-recto-model": header_text(self.waiting.model.name),
            "x-recto-mode": "manage",
            "x-recto-tokens": str(window.total),
            "x-recto-tokens-before": str(max(window.total, window.total * characters // sent)),
            "x-recto-compacted": "true" if self.compacted else "false",
            "x-recto-archived": str(block.messages_archived if block else 0),
            **({} if self._shortened is None else {"x-recto-max-tokens": str(self._shortened)}),
        }

    # -- the reply

    def begin(self) -> "asyncio.Task[None]":
        return self._gateway.begin(self._run())

    async def parts(self) -> AsyncGenerator[ReplyPart, None]:
        """The parts of the reply, of which the last is Done. Raises what the reply ended with."""
        while True:
            heard = await self._heard.get()
            if isinstance(heard, BaseException):
                raise heard
            yield heard
            if isinstance(heard, Done):
                return

    def _hear(self, part: ReplyPart) -> None:
        self._has_begun = True
        self._trace.hear()
        self._heard.put_nowait(part)

    async def _run(self) -> None:
        try:
            exchange = await self._exchanged()
        except BaseException as why:
            told = ProviderError("The reply was stopped.") if isinstance(why, asyncio.CancelledError) else why
            self._heard.put_nowait(told)
            await asyncio.shield(self.end_delivery(is_delivered=False))
            await asyncio.shield(self._gateway.tell(self.waiting.request.id, None, self._trace, why))
            if not isinstance(why, Exception):
                raise
            return
        assert self.message is not None
        self._engine.after_reply(exchange.turn, exchange.planned, is_last=not exchange.calls)
        self._gateway.sessions.keep(self._session)
        self._heard.put_nowait(Done(exchange.finish, self.message.usage))
        await self._gateway.tell(exchange.request.id, self.message, self._trace, None)

    async def _exchanged(self) -> Exchange:
        while True:
            waiting = self.waiting
            at = (waiting.turn, waiting.planned, waiting.request, waiting.approvals)
            use_tracker, streams, also = self._engine.use_tracker, self._engine.streams, self._placement.note_reply
            exchange = Exchange(*at, use_tracker, streams, listener=self._hear, also=also)
            try:
                await exchange.run(self._note)
                return exchange
            except Overflow as why:
                if self._has_begun:
                    raise
                await self._shrink(why)
            except ProviderError:
                if self._has_begun or not self._left:
                    raise
                self._options = replace(self._options, model=self._left.pop(0))
                self.waiting = await self._prepared()

    async def _shrink(self, why: Overflow) -> None:
        """The provider counts more than we do: a smaller window."""
        turn = self.waiting.turn
        turn.shrink(why)
        planned = await self._engine.plan_request(self._session, turn, self._note, can_ask=False)
        request = await record_request(self._store, self._session, planned, turn.message)
        self.waiting = ClientTurn(turn, planned, request, self.waiting.approvals, self._session.head or "")
