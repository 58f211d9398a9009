"""KeyDesk: the part of a shared server that one key sees: its own conversations, and nothing else of the home.

All names are looked up among those, so another key's name is as unknown as one that never existed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Unpack

from recto.api.source_changes import SourceChanges
from recto.api.store_queries import SentText, StoreQueries
from recto.api.talk import AsyncTalk
from recto.chat.conversation import Conversation, ConversationState
from recto.errors import Invalid, NotFound, Refused
from recto.events import Event
from recto.recall.message_search import FoundMessages, MessageQuery, search_messages
from recto.reports.what_if import PlanOptions, WhatIf
from recto.serve.gateway import CHOSEN, Gateway, KeyRefused, cap_of
from recto.sources.overrides import SourceList
from recto.sources.source import SOURCE_KINDS, SourceKind
from recto.store.clients import AccessKey
from recto.store.comparison import Difference
from recto.store.records import Record
from recto.turn.context import STRATEGY, CallOptions
from recto.turn.emitting import Emit
from recto.turn.messages import Given, TurnStart, pending_reply
from recto.turn.session import ChatSession

HITS_LOOKED_AT = 100
ID_LENGTH = 26
NOT_YOURS = "this belongs to the owner of the server"


class KeyUse:
    """The permissions of a key. They are read again at every turn: a removed key stops working."""

    def __init__(self, gateway: Gateway, key: AccessKey) -> None:
        self.gateway, self.key = gateway, key

    async def admit(self, model: str, session: ChatSession) -> None:
        """Admits one more turn with this model. Its cost is checked when its request is stored."""
        gateway, known = self.gateway, await self.check()
        gateway.admit(known)
        gateway.model_for(known, model)
        await gateway.check_spending(known)
        session.apply(cap=cap_of(known))

    async def check(self) -> AccessKey:
        keys = await self.gateway.store.do(self.gateway.store.access_keys.all)
        found = next((each for each in keys if (each.name, each.created) == (self.key.name, self.key.created)), None)
        if found is None:
            raise KeyRefused("The key of this page was removed: its owner makes another with `recto serve keys add`.")
        return found

    def check_model(self, model: str) -> None:
        self.gateway.model_for(self.key, model)


class KeyTalk(AsyncTalk):
    """A conversation of one key. It uses the key's models, within its limits, and reads nothing from the machine."""

    def __init__(self, use: KeyUse, session: ChatSession, reader: StoreQueries, number: int | None = None) -> None:
        super().__init__(use.gateway.engine, session, reader, number)
        self._use = use

    def _create(self, id: str) -> None:
        super()._create(id)
        self._engine.store.client_messages.own(id, self._use.key.name)

    async def _addressed(self, given: Given, emit: Emit) -> Given:
        return given  # other agents are the owner's

    async def _send(self, given: TurnStart, chosen: CallOptions, emit: Emit, *, can_ask: bool) -> None:
        await self._use.admit(self.model, self.session)
        await super()._send(given, chosen, emit, can_ask=can_ask)

    async def stream_compaction(self, keep: str = "") -> AsyncGenerator[Event, None]:
        await self._use.admit(self.model, self.session)
        async with aclosing(super().stream_compaction(keep)) as events:
            async for event in events:
                yield event

    async def use(self, model: str) -> None:
        self._use.check_model(model)
        await super().use(model)

    async def set_setting(self, key: str, value: Any) -> Any:
        if key != STRATEGY:
            raise Refused(f"{key}: {NOT_YOURS}")
        return await super().set_setting(key, value)

    async def open_document(self, path: str | None) -> str | None:
        raise Refused(f"there are no notes here: {NOT_YOURS}")

    async def remember_in_project(self, text: str) -> Path:
        raise Refused(f"there is no memory file here: {NOT_YOURS}")

    async def _changes(self) -> SourceChanges:
        raise Refused(f"rules, references and tools: {NOT_YOURS}")

    async def sources(self, kinds: Collection[SourceKind] = SOURCE_KINDS, *, fresh: bool = False) -> SourceList:
        raise Refused(f"rules, references and tools: {NOT_YOURS}")

    async def request(self, named: str) -> Record:
        found = await super().request(named)
        if found.conversation != self.id:
            raise NotFound(f"request {named} is not part of this conversation", id=named)
        return found

    async def what_if(self, message: str, **changes: Unpack[PlanOptions]) -> WhatIf:
        self._check_changes(changes.get("model"), changes.get("settings"))
        return await super().what_if(message, **changes)

    def _check_changes(self, model: str | None, settings: object) -> None:
        if model:
            self._use.check_model(model)
        if settings:  # one of them brings memory, which is the owner's
            raise Refused(f"settings: {NOT_YOURS}")


class KeyDesk:
    """A PageDesk whose methods see only what belongs to the key."""

    vault = None

    def __init__(self, gateway: Gateway, key: AccessKey) -> None:
        self._use, self._owner = KeyUse(gateway, key), key.name
        self._desk, self._do, self._tree = gateway.desk, gateway.store.do, gateway.store.tree
        self._reader = StoreQueries(gateway.store, gateway.desk.home, None)

    async def follow(self, listener: Callable[[], object] | None = None) -> None:
        if listener:
            self._desk.store.changes.watch(lambda _: listener())

    # -- conversations

    async def conversation(self, id: str | int | None = None) -> KeyTalk:
        await self._use.check()
        if id is None:
            return KeyTalk(self._use, ChatSession("", chosen=CHOSEN, is_guest=True), self._reader)
        return await self._talk(await self._own(str(id)))

    async def latest(self) -> KeyTalk | None:
        found = await self.conversations(limit=1)
        return await self._talk(found[0]) if found else None

    async def _talk(self, found: Conversation) -> KeyTalk:
        model = str(found.details.get("model") or "")
        chosen = {**(found.details.get("settings") or {}), **CHOSEN}
        session = ChatSession(found.id, found.head, model, agent=found.agent, chosen=chosen, is_guest=True)
        session.apply(pending=await self._do(pending_reply, self._desk.store, found.head))
        return KeyTalk(self._use, session, self._reader, found.number)

    async def _own(self, named: str, *, deleted: bool = False) -> Conversation:
        """By its id or its number."""
        number = named.removeprefix("#")
        found = [each for each in await self._all() if each.id == named or str(each.number) == number]
        if found and (deleted or not found[0].deleted):
            return found[0]
        raise NotFound(f"there is no conversation {named[:80]}", id=named)

    async def _all(self) -> list[Conversation]:
        return await self._do(self._tree.conversations, limit=None, owner=self._owner)

    async def conversations(self, *, limit: int = 100, state: ConversationState = "active") -> list[Conversation]:
        return await self._do(self._tree.conversations, limit=limit, state=state, owner=self._owner)

    async def find_conversations(self, text: str, *, limit: int = 20) -> list[Conversation]:
        words, own = text.casefold().split(), {each.id: each for each in await self._all() if not each.deleted}
        found = {each.id: each for each in own.values() if all(word in each.title.casefold() for word in words)}
        if len(found) < limit:
            for hit in await self.search(text, limit=HITS_LOOKED_AT):
                found.setdefault(hit.conversation, own[hit.conversation])
        return list(found.values())[:limit]

    async def search(self, text: str, *, limit: int = 20) -> FoundMessages:
        await self._use.check()
        homes = frozenset(each.id for each in await self._all() if not each.deleted)
        query = MessageQuery(text, limit=limit, homes=homes)
        return await asyncio.to_thread(search_messages, self._desk.engine.message_index, self._desk.store, query)

    async def rename(self, conversation: str, title: str) -> Conversation:
        return await self._desk.rename((await self._own(conversation)).id, title)

    async def hide(self, conversation: str) -> Conversation:
        return await self._desk.hide((await self._own(conversation)).id)

    async def unhide(self, conversation: str) -> Conversation:
        return await self._desk.unhide((await self._own(conversation)).id)

    async def delete(self, conversation: str) -> Conversation:
        return await self._desk.delete((await self._own(conversation)).id)

    async def restore(self, conversation: str) -> Conversation:
        return await self._desk.restore((await self._own(conversation, deleted=True)).id)

    # -- requests and attachments, by their own ids or those of their messages

    async def rebuild(self, request: str) -> bytes:
        return await self._desk.rebuild(await self._own_request(request))

    async def compare(self, before: str, after: str) -> Difference:
        return await self._desk.compare(await self._own_request(before), await self._own_request(after))

    async def verify(self, requests: Sequence[str]) -> list[tuple[str, str | None]]:
        return await self._desk.verify([await self._own_request(each) for each in requests])

    async def sent_pick(self, request: str, section: str, place: int) -> SentText:
        return await self._desk.sent_pick(await self._own_request(request), section, place)

    async def attached(self, message: str, block: int) -> tuple[str, bytes]:
        home, found = await asyncio.to_thread(self._reader.message, _full(message))
        await self._own(home.id)
        return await self._desk.attached(found.id, block)

    async def _own_request(self, named: str) -> str:
        record = await asyncio.to_thread(self._reader.record, _full(named))
        await self._own(record.conversation)
        return record.id


def _full(named: str) -> str:
    """An id; numbers and words such as `last` refer to the whole store."""
    if len(named) != ID_LENGTH or not named.isalnum():
        raise Invalid("an id of 26 characters is needed here")
    return named
