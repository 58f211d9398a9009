"""Recording: a request that is passed on as it is, stored with its exact bytes, and with the reply once it is there."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.background import FOREGROUND
from recto.chat.blocks import Block
from recto.chat.message import Message, MessageBuilder, Status, now
from recto.chat.priority import priority_of
from recto.errors import RectoError
from recto.ids import new_id
from recto.providers.forwarding import body_pieces
from recto.providers.http import BAD_DATA, ReplyReader, ReportedError
from recto.providers.model import Attempt, Done, Model, ReplyPart
from recto.providers.reply_limit import ReplyMeter
from recto.providers.sse import MAX_EVENT_BYTES, EventReader
from recto.serve.gateway import Gateway
from recto.serve.placement import Placement, place
from recto.serve.spans import ReplyTrace
from recto.turn.incoming_message import delta_of
from recto.turn.spending import priced
from recto.window.request import Entry, Request
from recto.wire import loads

log = logging.getLogger(__name__)


class HeardReply:
    """The copy of a reply that is stored: all of it, or as much as its limit allows."""

    def __init__(self, meter: ReplyMeter) -> None:
        self.done: Done | None = None
        self._meter, self._builder = meter, MessageBuilder()

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._builder.blocks

    @property
    def note(self) -> str:
        """Why the copy ends before the reply does."""
        return self._meter.note or (self.done.note if self.done else "")

    def take(self, part: ReplyPart) -> None:
        if isinstance(part, Done):
            self.done = part
        elif (taken := self._meter.take(part)) and not isinstance(taken, Attempt | Done):
            self._builder.add(delta_of(taken))


class HeardBytes:
    """Reads a provider's bytes beside passing them on. What cannot be read is passed on all the same."""

    def __init__(self, reader: ReplyReader, reply: HeardReply, *, is_stream: bool) -> None:
        self._reader, self._reply, self._is_stream = reader, reply, is_stream
        self._events, self._whole, self._is_lost = EventReader(), bytearray(), False

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be kept."""
        return self._is_lost or bool(self._reply.note)

    def add(self, chunk: bytes) -> None:
        if self._is_lost:
            return
        if self._is_stream:
            self._read(lambda: [part for event in self._events.feed(chunk) for part in self._reader.read(event)])
        else:
            self._whole += chunk
            if len(self._whole) > MAX_EVENT_BYTES:
                log.warning("a reply that was passed on is too large to be kept")
                self._is_lost, self._whole = True, bytearray()

    def end(self) -> None:
        if self._is_lost:
            return
        if not self._is_stream:
            self._read(lambda: self._reader.whole(loads(bytes(self._whole))))
        elif self._reply.done is None:
            self._read(self._reader.end)

    def _read(self, read: Callable[[], Sequence[ReplyPart]]) -> None:
        try:
            for part in read():
                self._reply.take(part)
        except (*BAD_DATA, ReportedError):
            log.warning("a reply that was passed on could not be read", exc_info=True)
            self._is_lost = True


class Recording(Struct):
    gateway: Gateway
    placement: Placement
    model: Model
    request: str
    head: str

    async def end(self, heard: HeardReply, trace: ReplyTrace, error: Exception | None = None) -> None:
        """Stores what came of the reply: all of it, its beginning, or why there is none."""
        told = error.message if isinstance(error, RectoError) else repr(error) if error else heard.note or None
        done = heard.done
        outcome: dict[str, Any] = {"finish": done.finish if done else "error"} | ({"error": told} if told else {})
        usage = priced(self.model, done.usage) if done and done.usage else None
        status: Status = "error" if error and not done else "done" if done and not heard.note else "stopped"
        message = Message(
            new_id(),
            "assistant",
            heard.blocks,
            parent=self.head,
            status=status,
            error=told,
            provider=self.model.provider,
            model=self.model.name,
            request=self.request,
            usage=usage,
        )
        message = replace(message, priority=priority_of(message))
        outcome |= {"cost_usd": usage.cost_usd if usage else 0.0}
        await self.gateway.store_thread.do(self._write, message, outcome)
        if not done:
            await self.placement.end_delivery(is_delivered=False)
        self.gateway.engine.archive.wake()
        self.gateway.engine.checkpoints.wake()
        await self.gateway.tell(self.request, message if message.blocks else None, trace, error)

    def _write(self, message: Message, outcome: dict[str, Any]) -> None:
        with self.gateway.store.database.write():
            if message.blocks:
                self.gateway.store.tree.append(self.placement.session.conversation, message)
                self.placement.note_reply(message.id, message.blocks)
            self.gateway.store.records.outcome(self.request, **outcome)


async def begin_recording(
    gateway: Gateway, owner: str, named: str | None, entries: Sequence[Entry], model: Model, format: str, body: bytes
) -> Recording:
    """Stores the messages of a request and its bytes, before it leaves. `format` is the name of theirs."""
    with FOREGROUND.begin():
        return await _begun(gateway, owner, named, entries, model, format, body)


async def _begun(
    gateway: Gateway, owner: str, named: str | None, entries: Sequence[Entry], model: Model, format: str, body: bytes
) -> Recording:
    placement = await place(gateway, owner, named, model.name, entries)
    head, home = placement.session.head, placement.session.conversation
    assert head is not None
    pieces = body_pieces(body)
    request = Request(new_id(), home, "reply", model.name, format, {}, pieces, message=head, created=now())

    def save() -> None:
        with gateway.store.database.write():
            latest = gateway.store.records.latest(request.conversation)
            gateway.store.records.save(request, latest)

    await gateway.store_thread.do(save)
    return Recording(gateway, placement, model, request.id, head)
