"""The context meter: how full the next window is, by section, while the user types; and that window itself."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from recto.api.talk import AsyncTalk
from recto.errors import RectoError
from recto.web.built_in_models import missing
from recto.web.components import Act, Deed, Fragment
from recto.web.panel import Handler
from recto.web.templates import fill
from recto.web.window_parts import WARNS_AT, bars, counts_line, left_out, percent, plan_words, sections

Json = Mapping[str, Any]


class Meter:
    def __init__(self, talk: Callable[[], AsyncTalk], act: Act) -> None:
        self.window: Json | None = None
        """What the next message would send, as JSON with numbers for ids; None where it is not known."""
        self.failure = ""
        self._talk, self._text = talk, ""
        self._wanted = False
        self._counting: asyncio.Task[None] | None = None
        self._shown = Fragment("", act).classes("meter")

    def type(self, text: str) -> None:
        """Counts for another text; while one count runs, only the latest text is counted next."""
        self._text, self._wanted = text, True
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count())

    def refresh(self) -> None:
        if self.failure:  # perhaps of another model, while the next one is loaded
            self._shown.show("")
        self.type(self._text)

    async def settled(self) -> None:
        """Waits until what was typed last is counted."""
        if self._counting:
            await asyncio.shield(self._counting)

    async def _count(self) -> None:
        while self._wanted:
            self._wanted = False
            talk, text = self._talk(), self._text
            try:
                self.window = await talk.numbered((await talk.window(text)).to_json())
                self.failure = ""
            except RectoError as why:
                weights = missing(talk.model)
                self.window = None
                self.failure = f"The {weights.size} model is not on this machine yet." if weights else why.message
        window = self.window
        full = percent(window) if window else 0
        self._shown.show(
            fill(
                "meter",
                window=window,
                bars=bars(window) if window else [],
                full=full,
                warns=full >= WARNS_AT,
                failure=self.failure,
            )
        )


class WindowView:
    """The window of the next turn: every pick, what was left out, and buttons that change it."""

    name, title = "window", "Next window"

    def __init__(self, talk: Callable[[], AsyncTalk], meter: Meter) -> None:
        self._talk, self._meter = talk, meter
        self.handlers: dict[str, Handler] = {"window": self._open, "include": self._include, "exclude": self._exclude}

    async def _open(self, deed: Deed) -> None:
        await self._meter.settled()

    async def _include(self, deed: Deed) -> None:
        await self._talk().add_source(str(deed["source"]))
        await self._recount()

    async def _exclude(self, deed: Deed) -> None:
        await self._talk().remove_source(str(deed["source"]))
        await self._recount()

    async def _recount(self) -> None:
        self._meter.refresh()
        await self._meter.settled()

    async def html(self) -> str:
        window = self._meter.window
        if window is None:
            return fill("failure", text=self._meter.failure or "The next window is not known yet.")
        return await asyncio.to_thread(
            fill,
            "window",
            window=window,
            sections=sections(window),
            counts=counts_line(window),
            left_out=left_out(window),
            plan=plan_words(window.get("plan")),
            full=percent(window),
        )
