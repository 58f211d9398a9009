"""Shared by all pages: the door to a home, the frame, and FullView, a page other than the chat."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from msgspec import Struct
from nicegui import Client, ui

from recto.api.desk import AsyncDesk
from recto.errors import Invalid
from recto.web.components import Action, Fragment, find_handler
from recto.web.files import ParkedFiles
from recto.web.live import LiveConversation, LiveConversations, PageDesk, failure_of
from recto.web.menu import PAGES, menu
from recto.web.templates import fill

HEAD = """
<meta name="referrer" content="no-referrer">
<link rel="stylesheet" href="/assets/page.css">
<script src="/assets/page.js" defer></script>
"""
# NiceGUI gives up after three seconds, which a busy machine may need.
BUILD_TIMEOUT_S = 60.0
LISTED = 200
# Names of form fields in addresses.
QUERY = {"c": "conversation", "look": "search"}


class PageDoor(Struct, frozen=True):
    """Access to a home, or to the part of one key."""

    desk: PageDesk
    live: LiveConversations
    parked: ParkedFiles
    takes_keys: bool = False
    """True if the page accepts a provider's key."""

    @property
    def whole(self) -> AsyncDesk | None:
        """The desk of the whole home; None for the part of a key."""
        return self.desk if isinstance(self.desk, AsyncDesk) else None

    @property
    def menu(self) -> Mapping[str, str]:
        return menu(is_whole=self.whole is not None)


FindDoor = Callable[[Any], Awaitable[PageDoor]]
"""Returns the door of a visitor by the scope of a request."""


@contextmanager
def page_frame() -> Iterator[None]:
    """The container of the places of a page, side by side."""
    ui.add_head_html(HEAD)
    with ui.element("div").classes("page"):
        Fragment('<p id="announcer" role="status" aria-live="polite"></p>').classes("sr")
        Fragment(fill("shortcuts")).classes("keys")
        yield


@contextmanager
def place(name: str, tag: str, label: str = "") -> Iterator[None]:
    """One of `list`, `chat` and `full`."""
    made = ui.element(tag).classes(f"place {name}")
    if label:
        made.props["aria-label"] = label
    with made:
        yield


class FullView:
    """A page such as /stats. It is redrawn after each action; its form keeps the values."""

    address: ClassVar[str]
    template: ClassVar[str]
    fields: ClassVar[Mapping[str, str]] = {}
    """The initial form."""

    def __init__(self, door: PageDoor, asked: Mapping[str, str]) -> None:
        """`asked` is the query of the address."""
        self.door, self.live = door, door.live
        named = {QUERY.get(name, ""): value for name, value in asked.items()}
        self.form = {name: named.get(name, default) for name, default in self.fields.items()}
        self.said = ""
        """A sentence about the last action."""
        self.actors: list[object] = [self]
        self._acting = asyncio.Lock()

    @property
    def desk(self) -> AsyncDesk:
        """The desk, for pages that show a whole home."""
        whole = self.door.whole
        assert whole is not None
        return whole

    def build(self) -> None:
        """Create the parts of the page, once."""
        self.body = Fragment("", self.act)

    async def draw(self) -> None:
        """Fill the parts."""
        values = await self.values()
        self.body.show(fill(self.template, form=self.form, said=self.said, **values))

    async def values(self) -> dict[str, Any]:
        """Values of the template in addition to the form."""
        return {}

    async def conversation(self) -> LiveConversation | None:
        """The conversation of the form, else the latest, shared with open tabs; None if there is none."""
        named: str | None = self.form["conversation"]
        if not named:
            latest = await self.door.desk.latest()
            named = latest.id if latest else None
        return await self.live.open(named) if named else None

    async def chosen(self) -> LiveConversation:
        if (found := await self.conversation()) is None:
            raise Invalid("there is no conversation yet: the chat starts one")
        return found

    async def choices(self) -> list[tuple[str, str]]:
        """Conversations by number, with their titles, the latest first."""
        found = await self.door.desk.conversations(limit=LISTED)
        return [(str(each.number), f"#{each.number} {each.title}") for each in found]

    async def do_choose(self, name: str, value: str) -> None:
        """Set a field of the form."""
        self.said = ""
        if name in self.form:
            self.form[name] = value

    async def open(self) -> None:
        with page_frame(), place("full", "main"):
            head = fill("full_head", title=PAGES[self.address].title, views=self.door.menu)
            Fragment(head, self.act, tag="header").classes("full-head")
            with ui.element("div").classes("full-body"):
                self.failure = Fragment("", self.act).classes("notices")
                self.build()
        await self._try(self.draw())

    async def act(self, action: Action) -> None:
        async with self._acting:  # one at a time, so that the last action is drawn last
            self.failure.show("")
            await self._try(self._handle_and_draw(action))

    async def _handle_and_draw(self, action: Action) -> None:
        try:
            await self._handle(action)
        finally:
            await self.draw()

    async def _handle(self, action: Action) -> None:
        for actor in self.actors:
            if handle := find_handler(actor, action):
                await handle()
                return

    async def _try(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as why:
            self.failure.show(fill("failure", text=failure_of(why, f"the page {self.address}")))


def add_view(view: type[FullView], find: FindDoor) -> None:
    @ui.page(view.address, response_timeout=BUILD_TIMEOUT_S)
    async def opened(client: Client) -> None:
        await view(await find(client.request.scope), dict(client.request.query_params)).open()
