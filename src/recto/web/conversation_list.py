"""The list of conversations: the latest first, found by title and by what was said; archived ones and the trash."""

import asyncio
from typing import TYPE_CHECKING

from nicegui import ui

from recto.chat.conversation import Conversation, ConversationState
from recto.errors import Invalid, RectoError
from recto.web.components import Act, Fragment
from recto.web.live import LiveConversations, PageDesk
from recto.web.templates import fill

if TYPE_CHECKING:
    from recto.recall.message_search import FoundMessage

MOST = 200
MOST_FOUND = 20
STATES: dict[ConversationState, str] = {"active": "Conversations", "archived": "Archived", "deleted": "Trash"}


class ConversationList:
    def __init__(self, desk: PageDesk, live: LiveConversations, act: Act) -> None:
        self._desk, self._live, self._act = desk, live, act
        self._selected: str | None = None
        self._search = ""
        self._state: ConversationState = "active"
        self._renaming = ""
        self._done: dict[str, str] = {}
        """What was done last, and the conversation that it can be taken back for."""
        self._client = ui.context.client

    async def build(self) -> None:
        self._shown = Fragment(await self._html(), self._act)

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

    async def do_search(self, value: str) -> None:
        self._search = value.strip()
        await self._refresh()

    async def do_show_state(self, value: ConversationState) -> None:
        self._state = value
        await self._refresh()

    async def do_rename(self, id: str) -> None:
        """Shows a field for the title."""
        self._renaming = id
        await self._refresh()

    async def do_save_title(self, id: str, words: str) -> None:
        self._renaming = ""
        await self._desk.rename(id, words)
        self._live.tell_list()

    async def do_archive(self, id: str) -> None:
        self._tell("archived: it is not listed, but still searched", await self._desk.archive(id), "unarchive")

    async def do_unarchive(self, id: str) -> None:
        self._tell("listed again", await self._desk.unarchive(id))

    async def do_delete(self, id: str) -> None:
        if id in self._live.running():
            raise Invalid("a reply is coming in this conversation: stop it first")
        self._tell("in the trash", await self._desk.delete(id), "restore")

    async def do_restore(self, id: str) -> None:
        self._tell("back from the trash", await self._desk.restore(id))

    def _tell(self, words: str, about: Conversation, back: str = "") -> None:
        self._done = {"words": f"{about.title or f'#{about.number}'} is {words}.", "back": back, "id": about.id}
        self._live.tell_list()

    async def _html(self) -> str:
        found: list[Conversation] = []
        hits: list[FoundMessage] = []
        failure = ""
        try:
            if self._search:
                found = await self._desk.find_conversations(self._search, limit=MOST_FOUND)
                hits = list(await self._desk.search(self._search, limit=MOST_FOUND))
            else:
                found = await self._desk.conversations(limit=MOST, state=self._state)
        except RectoError as why:
            failure = why.message
        return await asyncio.to_thread(
            fill,
            "conversations",
            conversations=found,
            hits=hits,
            search=self._search,
            state=self._state,
            states=STATES,
            renaming=self._renaming,
            told=self._done,
            selected=self._selected,
            running=self._live.running(),
            failure=failure,
        )
