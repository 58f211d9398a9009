"""Recording: a request that is passed on as it is, stored with its exact bytes, and with the reply once it is there."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.base.background import FOREGROUND
from recto.base.ids import new_id
from recto.chat.message import Message, Status, now
from recto.errors import RectoError
from recto.providers.client_formats import body_pieces
from recto.providers.model import Model
from recto.sentences.priority import priority_of
from recto.serve.charging import CallBound, CallCost
from recto.serve.gateway import Gateway
from recto.serve.heard_reply import HeardReply
from recto.serve.placement import Placement, place
from recto.serve.spans import ReplyTrace
from recto.turn.spending import SpendCap, check_limits
from recto.window.request import Entry, Request


class Recording(Struct):
    gateway: Gateway
    placement: Placement
    model: Model
    format: str
    request: str = ""
    """The id of the request; empty before it is stored."""

    @property
    def head(self) -> str:
        found = self.placement.session.head
        assert found is not None
        return found

    async def save(self, body: bytes, bound: CallBound, cap: SpendCap | None) -> None:
        """Stores the request with the most that it can cost; raises SpendLimit where that is too much."""
        request = Request(
            new_id(),
            self.placement.session.conversation,
            "reply",
            self.model.name,
            self.format,
            {},
            body_pieces(body),
            message=self.head,
            created=now(),
            at_most_usd=bound.most,
        )
        await self.gateway.store.do(self._save, request, cap)
        self.request = request.id

    def _save(self, request: Request, cap: SpendCap | None) -> None:
        store = self.gateway.store
        with store.database.write():
            check_limits(store, self.gateway.desk.settings.spend, request, cap=cap)
            store.records.save(request, store.records.latest(request.conversation))

    async def end(self, heard: HeardReply, trace: ReplyTrace, cost: CallCost, error: Exception | None = None) -> None:
        """Stores the end of the reply: all of it, its beginning, or why there is none; and what it cost."""
        told = error.message if isinstance(error, RectoError) else repr(error) if error else heard.note or None
        done = heard.done
        outcome: dict[str, Any] = {"finish": done.finish if done else "error"} | ({"error": told} if told else {})
        usage = replace(cost.usage, cost_usd=cost.cost_usd) if cost.usage else None
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
        outcome |= {"cost_usd": cost.cost_usd}
        await self.gateway.store.do(self._write, message, outcome)
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
    gateway: Gateway, owner: str, named: str | None, entries: Sequence[Entry], model: Model, format: str
) -> Recording:
    """Stores the messages of a request, before it leaves. `format` is the name of theirs."""
    with FOREGROUND.begin():
        return Recording(gateway, await place(gateway, owner, named, model.name, entries), model, format)
