"""The list of conversations: the latest first, found by title and by what was said, archived ones too."""

import asyncio

from nicegui import ui

from recto.chat.conversation import Conversation
from recto.desk import AsyncDesk
from recto.errors import RectoError
from recto.web.components import Act, Deed, Fragment
from recto.web.live import LiveConversations
from recto.web.templates import fill

MOST = 200
MOST_FOUND = 20


class ConversationView:
    def __init__(self, desk: AsyncDesk, live: LiveConversations, act: Act) -> None:
        self._desk, self._live, self._act = desk, live, act
        self._selected: str | None = None
        self._search = ""
        self._client = ui.context.client

    async def build(self) -> None:
        self._shown = Fragment(await self._html(), self._do)

    def select(self, id: str | None) -> None:
        if id != self._selected:
            self._selected = id
            self.refresh()

    def refresh(self) -> None:
        self._live.start(self._refresh())

    async def _refresh(self) -> None:
        html = await self._html()
        with self._client:
            self._shown.show(html)

    async def _do(self, deed: Deed) -> None:
        if deed.get("do") == "search":
            self._search = str(deed.get("value", "")).strip()
            await self._refresh()
            return
        await self._act(deed)

    async def _html(self) -> str:
        try:
            found = await self._found() if self._search else await self._desk.conversations(limit=MOST)
            hits = await self._desk.search(self._search, limit=MOST_FOUND) if self._search else ()
            failure = ""
        except RectoError as why:
            found, hits, failure = [], (), why.message
        return await asyncio.to_thread(
            fill,
            "conversations",
            conversations=found,
            hits=hits,
            search=self._search,
            selected=self._selected,
            running=self._live.running(),
            failure=failure,
        )

    async def _found(self) -> list[Conversation]:
        return await self._desk.find_conversations(self._search, limit=MOST_FOUND)
