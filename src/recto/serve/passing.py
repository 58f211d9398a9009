"""Requests in the mode `record`, and for embeddings: passes the client's bytes on, and the provider's back.

A copy of the reply is read as well, to store it and for its cost.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.base.background import FOREGROUND
from recto.base.ids import new_id
from recto.chat.blocks import Block, written_text
from recto.chat.message import Message, MessageBuilder, Status, Usage, now
from recto.errors import Invalid, ProviderError, RectoError, StoreError
from recto.providers.catalog import thinks_unseen
from recto.providers.client import parsed
from recto.providers.client_formats import (
    OPENAI,
    body_members,
    body_pieces,
    body_tokens,
    is_measured,
    with_model,
)
from recto.providers.http import BAD_DATA, MAX_EVENT_BYTES, EventReader, ReplyReader, ReportedError
from recto.providers.model import (
    Attempt,
    Done,
    Model,
    ReplyLimit,
    ReplyMeter,
    ReplyPart,
    VocabularyCounter,
    reported_count,
    says_something,
)
from recto.providers.remote import RemoteProvider, embeddings_url, remote_of
from recto.sentences.priority import priority_of
from recto.serve.gateway import cap_of, check_fields, objects_in
from recto.serve.placement import place
from recto.serve.replies import Call, ServedReply, model_headers
from recto.settings.settings import SpendSettings
from recto.store.store import Store
from recto.turn.incoming_message import delta_of
from recto.turn.spending import (
    LARGEST_REPLY,
    SpendCap,
    check_cap,
    check_day,
    check_limits,
    is_priced,
    largest_reply,
    priced,
    unpriced_refusal,
)
from recto.window.calibration import is_believable
from recto.window.request import Entry, Format, Request
from recto.wire import Json, loads

log = logging.getLogger(__name__)

MOST_REPLIES = 128
LENGTHS = ("max_tokens", "max_completion_tokens")
EMBEDDING_FIELDS = frozenset(
    {"model", "input", "dimensions", "encoding_format", "user", "output_dimension", "output_dtype", "input_type"}
)
# Parts or chunks, of at most 64 KB each, that the client has not read yet.
MOST_UNREAD = 256


# -- the maximum and actual cost. The bound is written before the call, in the transaction that checks the limits, and
# settled with the cost after it. Managed requests do the same in `turn/spending.py`.


class CallBound(Struct, frozen=True):
    """The maximum cost of a call: its input, and its replies at their longest."""

    model: Model
    tokens: int
    longest: int
    """Of one reply."""
    replies: int = 1

    @property
    def most(self) -> float | None:
        """US dollars; None if the price is unknown."""
        prices = self.model.prices
        longest = min(self.longest, self.model.max_output or self.longest)
        return prices.at_most(self.tokens, self.replies * longest) if prices else None


async def bound_of(body: bytes, data: Mapping[str, Json], format: Format, model: Model) -> CallBound:
    """The bound of the body as sent; `data` is what the client sent."""
    given = [each for name in LENGTHS if type(each := data.get(name)) is int and each > 0]
    replies = data.get("n")
    if replies is not None and not (type(replies) is int and 1 <= replies <= MOST_REPLIES):
        raise Invalid(f"n must be a whole number from 1 to {MOST_REPLIES}.", field="n")
    longest = max(given) if given else largest_reply(model)
    is_free = not is_priced(model) or not (model.prices and model.prices.at_most(1, 1))
    tokens = 0 if is_free else await asyncio.to_thread(body_tokens, body, format, model)
    if not all(is_measured(each.get("content")) for each in objects_in(data.get("messages"))):
        tokens = max(tokens, model.window or LARGEST_REPLY)
    return CallBound(model, tokens, longest, replies or 1)


def embedding_bound(body: bytes, model: Model) -> CallBound:
    """Vectors have no price of their own, and no token is shorter than a byte."""
    prices = model.prices
    prices = replace(prices, output=prices.output or 0.0) if prices and prices.input is not None else None
    return CallBound(replace(model, prices=prices), len(body), 0)


def check_members(body: bytes) -> None:
    """Rejects a duplicate field: a provider may read the one that we do not."""
    names = [name for name, _, _ in body_members(body.decode())]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Invalid(f"{twice[:80]} is given twice.", field=twice)


def begin_charge(
    store: Store, owner: str, cap: SpendCap | None, limits: SpendSettings, purpose: str, bound: CallBound
) -> int:
    """Writes the bound of a call outside any conversation; raises SpendLimit if it is too high."""
    with store.database.write():
        if cap:
            check_cap(store, cap, bound.model.name, bound.most)
        check_day(store, limits, bound.most)
        return store.charges.begin(owner, bound.model.name, purpose, bound.most)


class CallCost(Struct, frozen=True):
    cost_usd: float | None
    """None if the price is unknown."""
    usage: Usage | None = None


def embedding_cost(bound: CallBound, answer: bytes) -> CallCost:
    """By the reported usage, else the maximum."""
    try:
        told = loads(answer)["usage"]
        tokens = reported_count(told.get("prompt_tokens") or told.get("total_tokens"))
    except BAD_DATA:
        tokens = None
    if not tokens:
        return CallCost(bound.most)
    usage = Usage(tokens, 0)
    return CallCost(priced(bound.model, usage).cost_usd, usage)


# -- our copy of the reply


class HeardReply:
    """The copy of a reply that is stored: all of it, or as much as its limit allows. Unreadable bytes are passed on all
    the same."""

    def __init__(self, meter: ReplyMeter, reader: ReplyReader, *, is_stream: bool) -> None:
        self.done: Done | None = None
        self._meter, self._builder = meter, MessageBuilder()
        self._reader, self._is_stream = reader, is_stream
        self._events, self._whole, self._is_lost = EventReader(), bytearray(), False
        self._unread = 0
        """Bytes since the last part of the reply."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._builder.blocks

    @property
    def note(self) -> str:
        """Why the copy ends before the reply does."""
        return self._meter.note

    @property
    def is_over(self) -> bool:
        return self._is_lost or bool(self.note)

    @property
    def is_read(self) -> bool:
        """True if we know what the model wrote: all of it, or the part of a broken stream that arrived. A reply in one
        piece may have been written without ever arriving."""
        arrived = self._is_stream and (bool(self.blocks) or not self._unread)
        return not self.is_over and (self.done is not None or arrived)

    def add(self, chunk: bytes) -> None:
        if self._is_lost:
            return
        self._unread += len(chunk)
        if self._is_stream:
            self._read(lambda: [part for event in self._events.feed(chunk) for part in self._reader.read(event)])
        else:
            self._whole += chunk
        if self._unread > MAX_EVENT_BYTES:
            log.warning("a reply that was passed on is too large to be read to its end")
            self._is_lost, self._whole = True, bytearray()

    def end(self) -> None:
        if not self._is_lost and self.done is None:
            self._read(self._reader.end if self._is_stream else lambda: self._reader.whole(loads(bytes(self._whole))))

    def _read(self, read: Callable[[], Sequence[ReplyPart]]) -> None:
        try:
            for part in read():
                self._unread = 0 if says_something(part) else self._unread
                if isinstance(part, Done):
                    self.done = part
                elif (taken := self._meter.take(part)) and not isinstance(taken, Attempt | Done):
                    self._builder.add(delta_of(taken))
        except (*BAD_DATA, ReportedError):
            log.warning("a reply that was passed on could not be read", exc_info=True)
            self._is_lost = True


def cost_of(bound: CallBound, heard: HeardReply, error: BaseException | None, *, is_refused: bool) -> CallCost:
    """By the usage that the provider reported, else by our count of what arrived. A call that was rejected, or never
    left, costs nothing. `is_refused`: the provider answered with an error."""
    model, usage = bound.model, heard.done.usage if heard.done else None
    if usage and is_believable(usage):
        return CallCost(priced(model, usage).cost_usd, usage)
    may_cost = not isinstance(error, ProviderError) or error.may_cost
    if is_refused or (error and not heard.done and not heard.blocks and not may_cost):
        return CallCost(0.0)
    if thinks_unseen(model.id) or not heard.is_read:  # nobody can count what we did not see
        return CallCost(bound.most)
    counter, said = VocabularyCounter(model, OPENAI.format), "".join(map(written_text, heard.blocks))
    output = counter.text(said).tokens if bound.most else 0
    counted = priced(model, Usage(bound.tokens, output, reported=False)).cost_usd
    return CallCost(min(counted, bound.most) if counted is not None and bound.most is not None else counted)


# -- requests


class PassedHead(Struct, frozen=True):
    status: int
    media_type: str


class PassedRequest(ServedReply):
    """A client's request in transit. Its parts are a PassedHead and bytes."""

    def __init__(self, call: Call, body: bytes) -> None:
        self._data, self._body = _read(body), body
        self._is_stream = self._data.get("stream") is True
        super().__init__(call, call.trace("record", is_stream=self._is_stream), MOST_UNREAD)
        self._format, self._conversation = call.format, call.conversation
        self._name = self.gateway.model_for(self._key, self._data["model"])
        self._request: Request | None = None
        """As stored, without its bytes."""
        self._refusal: ProviderError | None = None

    @property
    def headers(self) -> dict[str, str]:
        headers = {"x-recto-mode": "record", **model_headers(self._model.name)}
        if self._request:
            headers |= {"x-recto-conversation": self._request.conversation, "x-recto-request": self._request.id}
        return headers

    async def prepare(self) -> None:
        """Reads the request, and stores it with its maximum cost."""
        await self.gateway.check_spending(self._key)
        models, cap = self.gateway.engine.models, cap_of(self._key)
        remote = remote_of(models.provider(self._name))
        if remote is None or remote.format.name != self._format.name:
            problem = f"{self._name} cannot be asked in the mode record: it has no API of {self._format.name}'s kind."
            raise Invalid(f"{problem} Use the mode manage.", field="x-recto-mode")
        self._remote: RemoteProvider = remote
        self._model: Model = await models.model(self._name)
        sent = with_model(self._body, self._model.id)
        self._bound = await bound_of(sent, self._data, self._format.format, self._model)
        if cap and self._bound.most is None:
            raise unpriced_refusal(cap.key, self._model.name)
        if cap and self._bound.most:
            check_members(sent)
            check_fields(cap.key, self._data, self._format.bounded)
        self._body = sent
        at = (self.gateway, self._key.name, self._conversation, self._model.name)
        with FOREGROUND.begin():
            self.placement = await place(*at, self._entries())
        self._data.pop("messages", None)  # already read, and large
        self._heard = HeardReply(ReplyMeter(*self._limit), self._format.reader(), is_stream=self._is_stream)
        try:
            await self.gateway.store.do(self._reserve, sent, cap)
        except BaseException:
            await asyncio.shield(self.end_delivery(is_delivered=False))
            raise

    def _entries(self) -> list[Entry]:
        """Without instructions, which are not part of a conversation; results of one round go together."""
        said: list[Entry] = []
        messages = self._data.get("messages")
        if not isinstance(messages, list):
            raise Invalid("messages must be a list.", field="messages")
        for entry in (entry for group in self._format.read_messages(messages) for entry in group):
            if entry.role == "tool" and said and said[-1].role == "tool":
                said[-1] = Entry("tool", said[-1].blocks + entry.blocks)
            elif entry.role != "system" and entry.blocks:
                said.append(entry)
        if not said:
            raise Invalid("messages must have at least one message.", field="messages")
        return said

    @property
    def _limit(self) -> tuple[ReplyLimit, int | None]:
        """The limit of the reply, and the tokens that the client requests."""
        settings, asked = self.gateway.desk.settings, self._data
        tokens, choices = asked.get("max_completion_tokens") or asked.get("max_tokens"), asked.get("n")
        counts = [each for each in (tokens, choices) if type(each) is int and each > 0]
        limit = ReplyLimit(settings.reply.max_characters, settings.tools.call_limit)
        return limit, prod(counts) if tokens in counts else None

    def _reserve(self, body: bytes, cap: SpendCap | None) -> None:
        """Runs in the store's thread; raises SpendLimit if it costs too much."""
        assert self.placement
        store, limits, session = self.gateway.store, self.gateway.desk.settings.spend, self.placement.session
        request = Request(
            new_id(),
            session.conversation,
            "reply",
            self._model.name,
            self._format.name,
            {},
            body_pieces(body),
            message=session.head,
            created=now(),
            at_most_usd=self._bound.most,
        )
        with store.database.write():
            check_limits(store, limits, request, cap=cap)
            store.records.save(request, store.records.latest(request.conversation))
        self._request = replace(request, pieces=())

    async def _receive(self) -> Done:
        heard = self._heard
        async with self._remote.forwarded(self._remote.url, self._body) as response:
            if not response.is_success:
                self._refusal = ProviderError(f"{self._model.provider} answered with status {response.status_code}")
            media_type = response.headers.get("content-type", "application/json")
            await self._put(PassedHead(response.status_code, media_type))
            async for chunk in response.aiter_bytes():
                self._trace.note_part()
                if not self._refusal:
                    heard.add(chunk)
                if not self._is_read and (self._refusal or heard.is_over):
                    break  # nobody reads the rest
                await self._put(chunk)
            if not self._refusal:
                heard.end()
        return heard.done or Done("stop")

    async def _settle(self, error: BaseException | None) -> None:
        why = self._refusal if error is None or isinstance(error, asyncio.CancelledError) else error
        cost = cost_of(self._bound, self._heard, why, is_refused=self._refusal is not None)
        try:
            if self._request:
                await self._record(self._request, cost, why)
        except StoreError:  # an unsettled bound stays counted
            log.exception("the cost of a request could not be stored")

    async def _record(self, request: Request, cost: CallCost, error: BaseException | None) -> None:
        """Stores the whole reply, its beginning, or why there is none; and its cost."""
        assert self.placement
        done, blocks = self._heard.done, self._heard.blocks
        told = error.message if isinstance(error, RectoError) else repr(error) if error else self._heard.note or None
        outcome: dict[str, Any] = {"finish": done.finish if done else "error"} | ({"error": told} if told else {})
        status: Status = "error" if error and not done else "done" if done and not self._heard.note else "stopped"
        message = Message(
            new_id(),
            "assistant",
            blocks,
            parent=request.message,
            status=status,
            error=told,
            provider=self._model.provider,
            model=self._model.name,
            request=request.id,
            usage=replace(cost.usage, cost_usd=cost.cost_usd) if cost.usage else None,
        )
        outcome["cost_usd"] = cost.cost_usd
        await self.gateway.store.do(self._write, replace(message, priority=priority_of(message)), outcome)
        if not done:
            await self.placement.end_delivery(is_delivered=False)
        self.gateway.engine.message_index.wake()
        self.gateway.engine.checkpoints.wake()
        await self.gateway.tell(request.id, message if blocks else None, self._trace, error)

    def _write(self, message: Message, outcome: dict[str, Any]) -> None:
        assert self.placement
        assert message.request
        with self.gateway.store.database.write():
            if message.blocks:
                self.gateway.store.tree.append(self.placement.session.conversation, message)
                self.placement.note_reply(message.id, message.blocks)
            self.gateway.store.records.outcome(message.request, **outcome)


async def pass_embeddings(call: Call, body: bytes) -> tuple[PassedHead, bytes]:
    """The provider's answer to a client's request for vectors."""
    gateway, cap, data = call.gateway, cap_of(call.key), _read(body)
    name = gateway.model_for(call.key, data["model"])
    await gateway.check_spending(call.key)
    models = gateway.engine.models
    remote, url = embeddings_url(models.provider(name))
    model = models.known_model(name)
    assert model is not None, "its provider is known"
    bound = embedding_bound(body, model)
    if cap and bound.most:
        check_members(body)
        check_fields(cap.key, data, EMBEDDING_FIELDS)
    at = (gateway.store, call.key.name, cap, gateway.desk.settings.spend, "embeddings", bound)
    charge = await gateway.store.do(begin_charge, *at)
    cost = CallCost(bound.most)
    try:
        async with remote.forwarded(url, with_model(body, model.id)) as response:
            answer, media_type = await response.aread(), response.headers.get("content-type", "application/json")
        cost = embedding_cost(bound, answer) if response.is_success else CallCost(0.0)
    except ProviderError as why:
        cost = cost if why.may_cost else CallCost(0.0)
        raise
    finally:
        settling = gateway.store.do(gateway.store.charges.settle, charge, cost.cost_usd, cost.usage)
        await asyncio.shield(settling)
    return PassedHead(response.status_code, media_type), answer


def _read(body: bytes) -> dict[str, Json]:
    fields = parsed(body)
    fields.needed_text("model")
    return fields.data
