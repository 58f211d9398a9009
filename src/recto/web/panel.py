"""The panel at the right: one view at a time, with a tab for each."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from markupsafe import Markup

from recto.errors import RectoError
from recto.web.components import Deed, Fragment
from recto.web.templates import fill

Handler = Callable[[Deed], Awaitable[None]]


class PanelView(Protocol):
    """What a tab shows. A handler changes what the view tells, or the conversation; the panel draws it afterwards."""

    @property
    def name(self) -> str:
        """Of the tab, and of the deed that opens it."""
        ...

    @property
    def title(self) -> str: ...

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """By the name of a deed; each opens the view."""
        ...

    async def html(self) -> str: ...


class Panel:
    def __init__(self, views: Sequence[PanelView], shown: Fragment) -> None:
        self._views = {view.name: view for view in views}
        self._open: str | None = None
        self._shown = shown
        shown.classes("place panel closed")
        self.handlers: dict[str, Handler] = {"tab": self._choose, "close-panel": self._close}
        for view in views:
            self.handlers |= {name: self._opening(view, handler) for name, handler in view.handlers.items()}

    def _opening(self, view: PanelView, handler: Handler) -> Handler:
        async def handle(deed: Deed) -> None:
            await handler(deed)
            await self.open(view.name)

        return handle

    async def _choose(self, deed: Deed) -> None:
        await self.open(str(deed.get("tab", "")))

    async def _close(self, deed: Deed) -> None:
        self._open = None
        self._shown.classes(add="closed")
        self._shown.show("")

    async def open(self, name: str) -> None:
        if name in self._views:
            self._open = name
            await self.refresh()

    async def refresh(self) -> None:
        """Draws the open view again."""
        if self._open is None:
            return
        view = self._views[self._open]
        try:
            body, failure = await view.html(), ""
        except RectoError as why:
            body, failure = "", why.message
        tabs = {name: each.title for name, each in self._views.items()}
        self._shown.classes(remove="closed")
        self._shown.show(fill("panel", tabs=tabs, open=self._open, failure=failure, body=Markup(body)))
