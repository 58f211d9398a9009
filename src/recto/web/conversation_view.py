"""The list of conversations: the latest first, found by title and by what was said; archived ones and the trash."""

import asyncio
from typing import TYPE_CHECKING, cast, get_args

from nicegui import ui

from recto.chat.conversation import Conversation, ConversationState
from recto.errors import Invalid, RectoError
from recto.web.components import Act, Deed, Fragment
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk
from recto.web.panel import Handler
from recto.web.templates import fill

if TYPE_CHECKING:
    from recto.recall.message_search import FoundMessage

MOST = 200
MOST_FOUND = 20
STATES = get_args(ConversationState)


class ConversationView:
    def __init__(self, desk: PageDesk, live: LiveConversations, act: Act) -> None:
        self._desk, self._live = desk, live
        self._act = act
        self._selected: str | None = None
        self._search = ""
        self._state: ConversationState = "active"
        self._renaming: str | None = None
        self._told: dict[str, str] = {}
        """What was done last, and the conversation that it can be taken back for."""
        self._client = ui.context.client
        self.handlers: dict[str, Handler] = {
            "search": self._find,
            "show-state": self._choose_state,
            "rename": self._begin_rename,
            "save-title": self._rename,
            "archive": self._archive,
            "unarchive": self._unarchive,
            "delete": self._delete,
            "restore": self._restore,
        }

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

    async def _find(self, deed: Deed) -> None:
        self._search = str(deed.get("value", "")).strip()
        await self._refresh()

    async def _choose_state(self, deed: Deed) -> None:
        if deed.get("value") in STATES:
            self._state = cast(ConversationState, deed["value"])
        await self._refresh()

    async def _begin_rename(self, deed: Deed) -> None:
        self._renaming = str(deed["id"])
        await self._refresh()

    async def _rename(self, deed: Deed) -> None:
        self._renaming = None
        await self._desk.rename(str(deed["id"]), str(deed.get("words", "")))
        self._live.tell_list()

    async def _archive(self, deed: Deed) -> None:
        done = await self._desk.archive(str(deed["id"]))
        self._tell("archived: it is not listed, but still searched", done, "unarchive")

    async def _unarchive(self, deed: Deed) -> None:
        self._tell("listed again", await self._desk.unarchive(str(deed["id"])))

    async def _delete(self, deed: Deed) -> None:
        if str(deed["id"]) in self._live.running():
            raise Invalid("a reply is coming in this conversation: stop it first")
        self._tell("in the trash", await self._desk.delete(str(deed["id"])), "restore")

    async def _restore(self, deed: Deed) -> None:
        self._tell("back from the trash", await self._desk.restore(str(deed["id"])))

    def _tell(self, words: str, done: Conversation, back: str = "") -> None:
        self._told = {"words": f"{done.title or f'#{done.number}'} is {words}.", "back": back, "id": done.id}
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
            states={"active": "Conversations", "archived": "Archived", "deleted": "Trash"},
            renaming=self._renaming,
            told=self._told,
            selected=self._selected,
            running=self._live.running(),
            failure=failure,
        )
