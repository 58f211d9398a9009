"""The messages that a tab shows: the last page of the conversation, and older ones as far as the user has scrolled."""

import asyncio
from collections.abc import Callable, Sequence

from recto.errors import Invalid
from recto.reports.transcript import ArchivedPart, TranscriptEntry
from recto.web.components import Act, MessageList
from recto.web.first_start import AnyStart
from recto.web.live import LiveConversation
from recto.web.live_turn import TurnChange
from recto.web.message_view import items

# Messages that are loaded at once, and those that are loaded to show one further back.
PAGE, MOST_JUMPED = 60, 2000
EMPTY = "empty"


class TranscriptView:
    def __init__(self, live: Callable[[], LiveConversation], first_start: AnyStart) -> None:
        self._live, self._first_start = live, first_start
        self._shown: dict[str, str] = {}
        """The HTML of each message, oldest first."""
        self._has_more = False
        self._archived = ArchivedPart()

    async def build(self, act: Act) -> None:
        await self._read()
        self._list = MessageList(_as_items(self._shown), self._has_more, act).classes("grow")

    async def show(self) -> None:
        """Another conversation, from its end."""
        await self._read()
        self._list.show(_as_items(self._shown), more=self._has_more)
        self.show_turn()

    async def refresh(self) -> None:
        """Reads the end again, and draws what has changed."""
        before, archived = dict(self._shown), self._archived
        await self._read(keep=True)
        if archived != self._archived and len(self._shown) > PAGE:
            await self._read(limit=len(self._shown))
        self._draw(before)
        self.show_turn()

    def show_turn(self) -> None:
        """The running turn as a whole, or why the last one ended early."""
        live = self._live()
        self._list.set_turn(live.turn.all_parts() if live.turn else None, live.failure)

    def draw_turn(self, changes: Sequence[TurnChange]) -> None:
        self._list.draw(changes)

    async def load_older(self) -> None:
        if not self._has_more:
            return
        before, first = dict(self._shown), next(iter(self._shown))
        entries = await self._live().talk.transcript(limit=PAGE, before=first)
        self._has_more = len(entries) == PAGE
        self._shown = await self._rendered(entries) | self._shown
        self._draw(before)

    async def show_message(self, named: str) -> bool:
        """Scrolls to a message, wherever it is. True where it is on another branch, which is shown from now on."""
        talk = self._live().talk
        message = await talk.message(named)
        is_elsewhere = False
        if message.id not in self._shown:
            before = dict(self._shown)
            entries = await talk.transcript(limit=MOST_JUMPED, since=message.id)
            if is_elsewhere := not _holds(entries, message.id) and len(entries) < MOST_JUMPED:
                self._live().check_idle()
                await talk.switch(message.id)
                entries = await talk.transcript(limit=MOST_JUMPED, since=message.id)
            if not _holds(entries, message.id):
                raise Invalid(f"#{message.said} is too far back: more than {MOST_JUMPED:,} messages follow it")
            self._shown, self._has_more = await self._rendered(entries), message.said > 1
            self._draw(before)
        self._list.jump(message.id)
        return is_elsewhere

    def _draw(self, before: dict[str, str]) -> None:
        changed = {id: html for id, html in self._shown.items() if before.get(id) != html}
        if changed or list(before) != list(self._shown):
            self._list.patch(list(self._shown), _as_items(changed), more=self._has_more)

    async def _read(self, *, limit: int = PAGE, keep: bool = False) -> None:
        """The last messages; with `keep` behind the older ones that are shown already."""
        live = self._live()
        talk = live.talk
        entries = await talk.transcript(limit=limit) if talk.id else []
        self._archived = await talk.archived() if talk.id else ArchivedPart()
        has_more = len(entries) >= limit
        while live.is_running and entries and entries[-1].message.status == "unfinished":
            entries.pop()  # the running turn shows it
        fresh = (
            await self._rendered(entries) if entries or live.is_running else {EMPTY: await self._first_start.html(talk)}
        )
        first, shown = next(iter(fresh), None), list(self._shown)
        if keep and first in self._shown:
            older = shown[: shown.index(first)]
            self._shown = {id: self._shown[id] for id in older} | fresh
        else:
            self._shown, self._has_more = fresh, has_more

    async def _rendered(self, entries: list[TranscriptEntry]) -> dict[str, str]:
        alternatives = await self._live().talk.alternatives([entry.message.id for entry in entries]) if entries else {}
        made = await asyncio.to_thread(items, entries, alternatives)
        return {item["id"]: item["html"] for item in made}


def _holds(entries: list[TranscriptEntry], id: str) -> bool:
    return any(entry.message.id == id for entry in entries)


def _as_items(shown: dict[str, str]) -> list[dict[str, str]]:
    return [{"id": id, "html": html} for id, html in shown.items()]
