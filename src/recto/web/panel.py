"""The panel at the right, one view at a time; the meter; the views of the next window and of a reply's.

Windows, sent or not, are read in their JSON form, with numbers in place of ids.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from markupsafe import Markup

from recto.api.talk import AsyncTalk
from recto.base.text import counted
from recto.errors import RectoError
from recto.sources.source import SOURCE_KINDS
from recto.web.built_in_models import missing
from recto.web.components import Act, Fragment
from recto.web.live import PageDesk
from recto.web.templates import fill, pretty

Json = Mapping[str, Any]
# The meter warns from this share of the window on.
WARNS_AT = 80
# Larger requests show only their size; `recto request rebuild` prints them.
MOST_RAW = 2_000_000


class PanelView(Protocol):
    """The content of a tab. Each of its actions opens it."""

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
        """Show a view; ignores unknown ones."""
        if (name := getattr(view, "name", None)) in self._views and self._views[name] is view:
            self._open = name
            await self.refresh()

    async def refresh(self) -> None:
        """Redraw the open view."""
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
    """The fill of the next window by section, while the user types. In the panel: every pick, what was left out, and
    buttons that change it."""

    name, title = "window", "Next window"

    def __init__(self, talk: Callable[[], AsyncTalk], act: Act) -> None:
        self._window: Json = {}
        """The next window in JSON form; empty if unknown."""
        self._failure = ""
        self._talk, self._text, self._is_wanted = talk, "", False
        self._counting: asyncio.Task[None] | None = None
        self._shown = Fragment("", act).classes("meter")

    def type(self, text: str) -> None:
        """Count another text; during a count, only the latest text is counted next."""
        self._text, self._is_wanted = text, True
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count())

    async def _count(self) -> None:
        while self._is_wanted:
            self._is_wanted = False
            talk, text = self._talk(), self._text
            try:
                self._window, self._failure = await talk.numbered((await talk.window(text)).to_json()), ""
            except RectoError as why:
                weights = missing(talk.model)
                self._window = {}
                self._failure = f"The {weights.size} model is not on this machine yet." if weights else why.message
        full = _percent(self._window)
        values = {"window": self._window, "bars": bars(self._window), "full": full, "warns": full >= WARNS_AT}
        self._shown.show(fill("meter", **values, failure=self._failure))

    def refresh(self) -> None:
        if self._failure:  # perhaps of the previous model, while the next one loads
            self._shown.show("")
        self.type(self._text)

    async def settled(self) -> None:
        """Wait until the latest text is counted."""
        if self._counting:
            await asyncio.shield(self._counting)

    async def do_window(self) -> None:
        await self.settled()

    async def do_include(self, source: str) -> None:
        await self._talk().add_source(source)
        self.refresh()
        await self.settled()

    async def do_exclude(self, source: str) -> None:
        await self._talk().remove_source(source)
        self.refresh()
        await self.settled()

    async def html(self) -> str:
        if not self._window:
            return fill("failure", text=self._failure or "The next window is not known yet.")
        values = window_values(self._window) | {"window": self._window, "full": _percent(self._window)}
        return await asyncio.to_thread(fill, "window", **values)


def bars(window: Json) -> list[Json]:
    """The parts of the meter, in percent of the window."""
    limit = window.get("limit") or 1
    parts = [(section["name"], section.get("tokens") or 0) for section in window.get("sections") or ()]
    parts.append(("reserve", window.get("reserve") or 0))
    return [{"name": name, "tokens": each, "share": round(100 * each / limit, 2)} for name, each in parts if each]


def _percent(window: Json) -> int:
    """The fill of the window, including the room for the reply: at 100 something has to go."""
    return round(100 * ((window.get("total") or 0) + (window.get("reserve") or 0)) / (window.get("limit") or 1))


def window_values(window: Json) -> dict[str, Any]:
    """Values for the templates of a window: sections with their picks, what was left out, the plan in sentences."""
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
    """The strategy's decisions, in sentences."""
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


class ReplyView:
    """The request of a reply: its picks, the exact bytes, and their verification."""

    name, title = "reply", "Reply"

    def __init__(self, desk: PageDesk, talk: Callable[[], AsyncTalk]) -> None:
        self._desk, self._talk = desk, talk
        self._message = ""
        self._texts: dict[tuple[str, int], str] = {}
        """Open texts of picks, by section and place."""
        self._is_raw = False
        """True if the exact request is open."""

    async def do_context(self, id: str) -> None:
        self._message, self._texts, self._is_raw = id, {}, False

    async def do_sent_text(self, section: str, place: int) -> None:
        key = (section, place)
        if self._texts.pop(key, None) is not None:
            return
        try:
            self._texts[key] = (await self._desk.sent_pick(self._message, section, place)).text
        except RectoError as why:
            self._texts[key] = why.message

    async def do_request(self) -> None:
        self._is_raw = not self._is_raw

    async def html(self) -> str:
        if not self._message:
            return fill("hint", text="“Context” below a reply shows here what was sent for it.")
        talk = self._talk()
        try:
            record = await talk.request(self._message)
        except RectoError as why:
            return fill("hint", text=why.message)
        told, message = await talk.numbered(record.to_json()), await talk.message(self._message)
        raw = (await self._desk.rebuild(record.id)).decode(errors="replace") if self._is_raw else ""
        usage = message.usage
        return await asyncio.to_thread(
            fill,
            "reply",
            message=message,
            record=told,
            sent=record.was_sent,
            usage=usage,
            cost=record.cost_usd,
            cached=round(100 * usage.cache_read / usage.input) if usage and usage.input else None,
            bars=bars(told),
            used=[f"{each['name']}: {each['sign']}" for each in told.get("used") or () if each.get("sign")],
            prefix=_prefix(told.get("prefix")),
            proof=(await self._desk.verify([record.id]))[0][1],
            texts=self._texts,
            is_raw=self._is_raw,
            raw=pretty(raw) if len(raw) <= MOST_RAW else "",
            **window_values(told),
        )


def _prefix(prefix: Json | None) -> str:
    if not prefix:
        return ""
    if prefix.get("base") is None:
        return "The first request of its conversation."
    if broken_by := prefix.get("broken_by"):
        return f"The prefix was broken by {broken_by}: {prefix.get('kept')} of {prefix.get('of')} pieces kept."
    return "It begins as the request before it: a prompt cache can serve that part."
