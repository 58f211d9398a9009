"""PageDoor: what a visitor of the page finds behind it: everything of a home, or the part of one key."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from recto.serve.gateway import Gateway
from recto.serve.key_desk import KeyDesk
from recto.web.first_start import AnyStart, FirstStart, SharedStart
from recto.web.key_guard import SCOPE_KEY
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk, whole_desk
from recto.web.parked_files import ParkedFiles, expiring_files

if TYPE_CHECKING:
    from recto.store.clients import AccessKey


class PageDoor(Struct, frozen=True):
    desk: PageDesk
    live: LiveConversations
    parked: ParkedFiles
    takes_keys: bool = False
    """Whether a provider's key may be typed into the page."""

    def start(self) -> AnyStart:
        """What an empty conversation shows."""
        desk = whole_desk(self.desk)
        return FirstStart(desk, takes_keys=self.takes_keys) if desk else SharedStart()


FindDoor = Callable[[Any], Awaitable[PageDoor]]
"""The door of whoever a request comes from, by the request's scope."""


class KeyDoors:
    """A door for each key, opened with its first visit."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._stack = gateway, AsyncExitStack()
        self._doors: dict[AccessKey, PageDoor] = {}

    async def find(self, scope: Any) -> PageDoor:
        key: AccessKey = scope[SCOPE_KEY]
        if key not in self._doors:
            desk = KeyDesk(self._gateway, key)
            parked = ParkedFiles(self._gateway.desk.home, key.name)
            door = self._doors[key] = PageDoor(desk, LiveConversations(desk), parked)
            await self._stack.enter_async_context(door.live)
        return self._doors[key]

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(expiring_files(self._gateway.desk.home))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._stack.aclose()
