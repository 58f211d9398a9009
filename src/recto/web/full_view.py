"""FullView: a page besides the chat, such as /stats: its deeds, and what it shows after each of them."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping

from nicegui import Client, ui

from recto.api.desk import AsyncDesk
from recto.errors import RectoError
from recto.web.components import Deed, Fragment
from recto.web.frame import BUILD_TIMEOUT_S, VIEWS, full_page
from recto.web.live import LiveConversation, LiveConversations
from recto.web.page_desk import PageDesk, whole_desk
from recto.web.page_door import FindDoor
from recto.web.panel import Handler
from recto.web.templates import fill

WENT_WRONG = "something went wrong in Recto itself; the log says more"
LISTED = 200

log = logging.getLogger(__name__)
Asked = Mapping[str, str]
"""The query of the address, by name."""


class FullView:
    """`build` makes the parts of the page once, `draw` fills them. A handler changes what the view tells."""

    title = ""
    failure: Fragment

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        self.page_desk, self._live = desk, live
        self.handlers: dict[str, Handler] = {}
        self.quiet: dict[str, Handler] = {}
        """Handlers after which nothing is drawn again."""
        self._acting = asyncio.Lock()

    @property
    def desk(self) -> AsyncDesk:
        """For pages that show all of a home: no other page has them."""
        whole = whole_desk(self.page_desk)
        assert whole is not None
        return whole

    def build(self) -> None:
        raise NotImplementedError

    async def draw(self) -> None:
        raise NotImplementedError

    async def conversation(self, number: str) -> LiveConversation | None:
        """The conversation of this number, else the latest, as open tabs have it; None where there is none."""
        latest = None if number else await self.page_desk.latest()
        named = number or (latest.id if latest else None)
        return await self._live.open(named) if named else None

    async def choices(self) -> list[tuple[int, str]]:
        """Conversations by number and title, the latest first."""
        return [(each.number, each.title) for each in await self.page_desk.conversations(limit=LISTED)]

    async def open(self) -> None:
        with full_page(self.title, self.act):
            self.failure = Fragment("", self.act).classes("notices")
            self.build()
        await self._try(self.draw())

    async def act(self, deed: Deed) -> None:
        name = str(deed.get("do"))
        if quiet := self.quiet.get(name):
            await self._try(quiet(deed))
        elif handler := self.handlers.get(name):
            async with self._acting:  # one after the other: what is drawn last must be what was done last
                self.failure.show("")
                await self._try(self._handled(handler, deed))

    async def _handled(self, handler: Handler, deed: Deed) -> None:
        try:
            await handler(deed)
        finally:
            await self.draw()

    async def _try(self, work: Awaitable[None]) -> None:
        try:
            await work
        except RectoError as why:
            self.failure.show(fill("failure", text=why.message))
        except Exception:
            log.exception("the page %s failed", self.title)
            self.failure.show(fill("failure", text=WENT_WRONG))


def add_view(address: str, view: type[FullView], find: FindDoor) -> None:
    """Serves a view at an address, and puts it into the menu."""
    VIEWS[address] = view.title

    @ui.page(address, response_timeout=BUILD_TIMEOUT_S)
    async def opened(client: Client) -> None:
        door = await find(client.request.scope)
        await view(door.desk, door.live, dict(client.request.query_params)).open()
