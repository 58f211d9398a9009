"""The panel at the right, one view at a time; the meter, and the view of the next window that it counts.

Windows, sent or not, are read in their JSON form, with numbers in place of ids.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from markupsafe import Markup
from msgspec import Struct

from recto.api.talk import AsyncTalk
from recto.base.text import counted
from recto.errors import RectoError
from recto.sources.source import SOURCE_KINDS
from recto.web.built_in_models import missing
from recto.web.components import Act, Fragment
from recto.web.templates import fill

Json = Mapping[str, Any]
# From this share of the window on the meter warns.
WARNS_AT = 80


class PanelView(Protocol):
    """What a tab shows. Each of its actions opens it."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    async def html(self) -> str: ...


class Panel:
    def __init__(self, views: Sequence[PanelView], act: Act) -> None:
        self._views = {view.name: view for view in views}
        self._open: str | None = None
        self._shown = Fragment("", act, tag="aside").classes("place panel closed")

    async def do_tab(self, tab: str) -> None:
        await self.open(self._views.get(tab))

    async def do_close_panel(self) -> None:
        self._open = None
        self._shown.classes(add="closed")
        self._shown.show("")

    async def open(self, view: object) -> None:
        """Shows a view; whatever is none of its own changes nothing."""
        if (name := getattr(view, "name", None)) in self._views and self._views[name] is view:
            self._open = name
            await self.refresh()

    async def refresh(self) -> None:
        """Draws the open view again."""
        if self._open is None:
            return
        body, failure = "", ""
        try:
            body = await self._views[self._open].html()
        except RectoError as why:
            failure = why.message
        tabs = {name: view.title for name, view in self._views.items()}
        self._shown.classes(remove="closed")
        self._shown.show(fill("panel", tabs=tabs, open=self._open, failure=failure, body=Markup(body)))


class Meter:
    """How full the next window is, by section, while the user types."""

    def __init__(self, talk: Callable[[], AsyncTalk], act: Act) -> None:
        self.window: Json | None = None
        """What the next message would send; None where it is not known."""
        self.failure = ""
        self._talk, self._text, self._is_wanted = talk, "", False
        self._counting: asyncio.Task[None] | None = None
        self._shown = Fragment("", act).classes("meter")

    def type(self, text: str) -> None:
        """Counts for another text; while one count runs, only the latest text is counted next."""
        self._text, self._is_wanted = text, True
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
        while self._is_wanted:
            self._is_wanted = False
            talk, text = self._talk(), self._text
            try:
                self.window = await talk.numbered((await talk.window(text)).to_json())
                self.failure = ""
            except RectoError as why:
                weights = missing(talk.model)
                self.window = None
                self.failure = f"The {weights.size} model is not on this machine yet." if weights else why.message
        window = self.window or {}
        full = _percent(window)
        shown = {"window": window, "bars": bars(window), "full": full, "warns": full >= WARNS_AT}
        self._shown.show(fill("meter", **shown, failure=self.failure))


class WindowView:
    """The window of the next turn: every pick, what was left out, and buttons that change it."""

    name, title = "window", "Next window"

    def __init__(self, talk: Callable[[], AsyncTalk], meter: Meter) -> None:
        self._talk, self._meter = talk, meter

    async def do_window(self) -> None:
        await self._meter.settled()

    async def do_include(self, source: str) -> None:
        await self._talk().add_source(source)
        self._meter.refresh()
        await self._meter.settled()

    async def do_exclude(self, source: str) -> None:
        await self._talk().remove_source(source)
        self._meter.refresh()
        await self._meter.settled()

    async def html(self) -> str:
        window = self._meter.window
        if window is None:
            return fill("failure", text=self._meter.failure or "The next window is not known yet.")
        values = window_values(window) | {"window": window, "full": _percent(window)}
        return await asyncio.to_thread(fill, "window", **values)


class Bar(Struct, frozen=True):
    """A part of the meter."""

    name: str
    tokens: int
    share: float
    """Of the window, in percent."""


def bars(window: Json) -> list[Bar]:
    limit = window.get("limit") or 1
    parts = [(section["name"], section.get("tokens") or 0) for section in window.get("sections") or ()]
    parts.append(("reserve", window.get("reserve") or 0))
    return [Bar(name, tokens, round(100 * tokens / limit, 2)) for name, tokens in parts if tokens]


def _percent(window: Json) -> int:
    """How full the window is, the room for the reply included: at 100 something has to go."""
    return round(100 * ((window.get("total") or 0) + (window.get("reserve") or 0)) / (window.get("limit") or 1))


def window_values(window: Json) -> dict[str, Any]:
    """What the templates of a window show: its sections with their picks, what was left out, the plan in sentences."""
    sections = [
        {
            "name": section["name"],
            "tokens": section.get("tokens") or 0,
            "budget": section.get("budget"),
            "picks": [pick_values(pick, place) for place, pick in enumerate(section.get("picks") or ())],
        }
        for section in window.get("sections") or ()
    ]
    return {
        "sections": sections,
        "counts": _counts_line([pick for section in sections for pick in section["picks"]]),
        "left_out": [pick_values(pick) for pick in window.get("not_picked") or ()],
        "plan": _plan_words(window.get("plan") or {}),
    }


def pick_values(pick: Json, place: int = 0) -> dict[str, Any]:
    kind, name, server = str(pick.get("kind") or ""), str(pick.get("name") or ""), pick.get("server")
    is_source = kind in SOURCE_KINDS
    prefix = "ref" if kind == "reference" else kind
    return {
        "kind": kind,
        "name": f"{server}:{name}" if server else name,
        "mode": str(pick.get("mode") or "always").capitalize(),
        "badged": is_source or kind in ("document", "memory", "fact"),
        "score": pick.get("score"),
        "tokens": pick.get("tokens") or 0,
        "because": str(pick.get("because") or ""),
        "place": place,
        "has_text": bool(pick.get("sha256")),
        "source": f"{prefix}:{server}/{name}" if is_source and server else f"{prefix}:{name}" if is_source else "",
        "said": kind in ("message", "messages", "rounds"),
    }


def _counts_line(picks: Sequence[Json]) -> str:
    """5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"""
    counts = {kind: Counter(pick["mode"].lower() for pick in picks if pick["kind"] == kind) for kind in SOURCE_KINDS}
    return ", ".join(f"{counted(modes.total(), kind)} ({_modes(modes)})" for kind, modes in counts.items() if modes)


def _modes(modes: Counter[str]) -> str:
    if len(modes) == 1:
        (mode,) = modes
        return mode if modes.total() == 1 else f"all {mode}"
    return ", ".join(f"{modes[mode]} {mode}" for mode in sorted(modes))


def _plan_words(plan: Json) -> list[str]:
    """What the strategy decided, in sentences."""
    told = [f"{plan.get('strategy')}: {plan.get('because')}"] if plan.get("because") else []
    for key, words in (("summed_up", "would be summed up"), ("left_out", "would be left out")):
        part = plan.get(key) or {}
        if part.get("count"):
            told.append(f"{counted(part['count'], 'message')} ({part.get('tokens') or 0:,} tokens) {words}")
    if plan.get("excerpts"):
        told.append(f"{counted(len(plan['excerpts']), 'message')} sent as an excerpt")
    for lift in plan.get("lifted") or ():
        told.append(f"still sent: {', '.join(lift.get('messages') or ())} ({lift.get('because', '')})")
    return told
