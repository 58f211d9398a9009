"""ChatPage: one tab with a conversation: the list at the left, messages and composer, the panel at the right.

It only passes on: deeds of the user to the talk, and what changed to the parts of the page.
"""

import asyncio
import logging
from collections.abc import Sequence

from nicegui import Client, ui

from recto.desk import AsyncDesk
from recto.errors import Invalid, RectoError
from recto.reports.transcript import ArchivedPart, TranscriptEntry
from recto.talk import AsyncTalk
from recto.web.components import Composer, Deed, Fragment, MessageList
from recto.web.conversation_view import ConversationView
from recto.web.files import taken_attachments
from recto.web.frame import VIEWS, page_frame, place
from recto.web.live import LiveConversation, LiveConversations
from recto.web.live_turn import TurnChange
from recto.web.message_view import items
from recto.web.meter import Meter, WindowView
from recto.web.panel import Handler, Panel, PanelView
from recto.web.reference_view import NoteView, ReferenceView
from recto.web.reply_view import ReplyView
from recto.web.templates import fill

# Messages that are loaded at once.
PAGE = 60
# So many messages are loaded to show one further back.
MOST_JUMPED = 2000
NEW = "new"

log = logging.getLogger(__name__)


def add_chat_page(desk: AsyncDesk, live: LiveConversations) -> None:
    @ui.page("/")
    async def latest(client: Client) -> None:
        await _open_page(desk, live, client, None)

    @ui.page("/c/{number}")
    async def numbered(client: Client, number: str) -> None:
        await _open_page(desk, live, client, number)


async def _open_page(desk: AsyncDesk, live: LiveConversations, client: Client, number: str | None) -> None:
    failure = ""
    try:
        opened = await live.open(number)
    except RectoError as why:
        opened, failure = await live.open(), why.message
    page = ChatPage(desk, live, opened, client)
    await page.build()
    if failure:
        page.tell(failure)


class ChatPage:
    def __init__(self, desk: AsyncDesk, all_live: LiveConversations, live: LiveConversation, client: Client) -> None:
        self.desk, self.all_live, self.live = desk, all_live, live
        self._client = client
        self._shown: dict[str, str] = {}
        """The HTML of each message that the tab shows, oldest first."""
        self._has_more = False
        self._archived = ArchivedPart()
        self._refreshing: asyncio.Task[None] | None = None
        self._must_refresh = False
        self._handlers: dict[str, Handler] = {
            "open": self._open,
            "new": self._new,
            "older": self._load_older,
            "send": self._send,
            "stop": self._stop,
            "retry": self._retry,
            "answer": self._answer,
            "take-back": self._take_back,
            "send-waiting": self._send_waiting,
            "draft": self._draft,
            "edit": self._edit,
            "save-edit": self._save_edit,
            "edit-summary": self._edit_summary,
            "switch": self._switch,
            "jump": self._jump,
            "pin": self._pin,
            "unpin": self._unpin,
            "compact": self._compact,
            "uncompact": self._uncompact,
            "clear": self._clear,
        }

    async def build(self) -> None:
        await self._read()
        with page_frame():
            with place("list", "nav", "Conversations"):
                self.list = ConversationView(self.desk, self.all_live, self.act)
                await self.list.build()
            with place("chat", "main"):
                self.head = Fragment(self._head_html(), self.act, tag="header").classes("chat-head")
                self.messages = MessageList(self._items(), self._has_more, self.act).classes("grow")
                self.notice = Fragment("", self.act).classes("notices")
                self.waiting = Fragment("", self.act).classes("waiting")
                self.meter = Meter(self._talk, self.act)
                self.composer = Composer(self._key, self.act, running=self.live.is_running)
            self.panel = Panel(self._views(), Fragment("", self.act, tag="aside"))
        self._handlers |= self.panel.handlers
        self.live.join(self)
        self.all_live.watch_list(self.list.refresh)
        self._client.on_delete(self._leave)
        self._set_turn()
        self._show_place()
        await self._show_waiting()
        self.meter.refresh()

    def _talk(self) -> AsyncTalk:
        return self.live.talk

    def _views(self) -> list[PanelView]:
        return [
            WindowView(self._talk, self.meter),
            ReplyView(self.desk, self._talk),
            ReferenceView(self._talk),
            NoteView(self._talk),
        ]

    def _leave(self) -> None:
        self.live.leave(self)
        self.all_live.unwatch_list(self.list.refresh)

    # -- deeds

    async def act(self, deed: Deed) -> None:
        handler = self._handlers.get(str(deed.get("do")))
        if handler is None:
            return
        try:
            await handler(deed)
        except RectoError as why:
            self.tell(why.message)
        except Exception:
            log.exception("the page could not do %s", deed.get("do"))
            self.tell("something went wrong in Recto itself; the log says more")

    def tell(self, words: str) -> None:
        """A failure, where it can be seen, until the next deed."""
        self.notice.show(fill("failure", text=words) if words else "")

    async def _open(self, deed: Deed) -> None:
        await self._move(await self.all_live.open(str(deed["id"])))
        if message := deed.get("message"):
            self.messages.jump(str(message))

    async def _new(self, deed: Deed) -> None:
        await self._move(await self.all_live.open())

    async def _move(self, live: LiveConversation) -> None:
        """Shows another conversation in this tab."""
        self.live.leave(self)
        self.live = live
        live.join(self)
        self.tell("")
        await self._read()
        self.messages.show(self._items(), more=self._has_more)
        self.head.show(self._head_html())
        self._set_turn()
        self._show_place()
        await self._show_waiting()
        self.meter.refresh()
        await self.panel.refresh()

    async def _load_older(self, deed: Deed) -> None:
        if not self._shown or not self._has_more:
            return
        first = next(iter(self._shown))
        entries = await self.live.talk.transcript(limit=PAGE, before=first)
        older = await self._rendered(entries)
        self._has_more = len(entries) == PAGE
        self._shown = older | self._shown
        self.messages.patch(list(self._shown), _as_items(older), more=self._has_more)

    async def _send(self, deed: Deed) -> None:
        self.tell("")
        files = [str(each) for each in deed.get("files") or ()]
        try:
            await self.live.send(str(deed.get("text", "")), taken_attachments(files))
        except RectoError:
            self.composer.put(str(deed.get("text", "")))
            raise
        finally:
            self.composer.accept(str(deed.get("place", "")))

    async def _stop(self, deed: Deed) -> None:
        self.live.stop()

    async def _retry(self, deed: Deed) -> None:
        self.live.retry()

    async def _answer(self, deed: Deed) -> None:
        self.live.answer(int(deed["part"]), str(deed["answer"]))

    async def _take_back(self, deed: Deed) -> None:
        taken = await self.live.talk.take_back(str(deed["id"]))
        self.composer.put(taken.text)
        self.live.refresh()

    async def _send_waiting(self, deed: Deed) -> None:
        self.live.send_waiting()

    async def _draft(self, deed: Deed) -> None:
        self.meter.type(str(deed.get("text", "")))

    async def _edit(self, deed: Deed) -> None:
        message = await self.live.talk.message(str(deed["id"]))
        self.composer.edit("message", message.id, f"message #{message.said}", message.text)

    async def _edit_summary(self, deed: Deed) -> None:
        self.composer.edit("summary", "", "the summary", (await self.live.talk.summary_block()).summary)

    async def _save_edit(self, deed: Deed) -> None:
        text = str(deed.get("text", ""))
        if deed.get("kind") == "summary":
            await self.live.talk.edit_summary(text)
            self.live.refresh()
        else:
            self.live.edit(str(deed["id"]), text)

    async def _switch(self, deed: Deed) -> None:
        self.live.check_idle()
        await self.live.talk.switch(str(deed["id"]))
        self.live.refresh()

    async def _jump(self, deed: Deed) -> None:
        """Shows a message by its number, wherever it is on the path."""
        named = f"#{deed['number']}"
        message = await self.live.talk.message(named)
        if message.id not in self._shown:
            entries = await self.live.talk.transcript(limit=MOST_JUMPED, since=named)
            if not entries or entries[0].message.id != message.id:
                raise Invalid(f"{named} is too far back to scroll to: search for its words instead")
            self._shown = await self._rendered(entries)
            self._has_more = message.said > 1
            self.messages.patch(list(self._shown), self._items(), more=self._has_more)
        self.messages.jump(message.id)

    async def _pin(self, deed: Deed) -> None:
        await self.live.talk.pin(str(deed["id"]))
        self.live.refresh()

    async def _unpin(self, deed: Deed) -> None:
        await self.live.talk.unpin(str(deed["id"]))
        self.live.refresh()

    async def _compact(self, deed: Deed) -> None:
        self.live.compact()

    async def _uncompact(self, deed: Deed) -> None:
        self.live.check_idle()
        await self.live.talk.uncompact()
        self.live.refresh()

    async def _clear(self, deed: Deed) -> None:
        self.live.check_idle()
        await self.live.talk.clear()
        self.live.refresh()

    # -- what changed

    def draw_turn(self, changes: Sequence[TurnChange]) -> None:
        self.messages.draw(changes)

    def refresh(self) -> None:
        """Reads the end of the conversation again; several calls at once read it once."""
        self._must_refresh = True
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        while self._must_refresh:
            self._must_refresh = False
            try:
                with self._client:
                    await self._refresh_once()
            except RectoError as why:
                self.tell(why.message)
            except Exception:
                log.exception("the page could not be brought up to date")

    async def _refresh_once(self) -> None:
        before, archived = dict(self._shown), self._archived
        await self._read(keep=True)
        if archived != self._archived and len(self._shown) > PAGE:
            await self._read(limit=len(self._shown))
        changed = {id: html for id, html in self._shown.items() if before.get(id) != html}
        if changed or list(before) != list(self._shown):
            self.messages.patch(list(self._shown), _as_items(changed), more=self._has_more)
        self._set_turn()
        self.head.show(self._head_html())
        self._show_place()
        await self._show_waiting()
        if not self.live.is_running:
            self.meter.refresh()
            await self.meter.settled()
            await self.panel.refresh()

    async def _read(self, *, limit: int = PAGE, keep: bool = False) -> None:
        """The last messages; with `keep` behind the older ones that are shown already."""
        talk = self.live.talk
        entries = await talk.transcript(limit=limit) if talk.id else []
        self._archived = await talk.archived() if talk.id else ArchivedPart()
        if self.live.is_running:
            while entries and entries[-1].message.status == "unfinished":
                entries.pop()  # the running turn shows it
        fresh = await self._rendered(entries)
        first, shown = next(iter(fresh), None), list(self._shown)
        if keep and first in self._shown:
            older = shown[: shown.index(first)]
            self._shown = {id: self._shown[id] for id in older} | fresh
            return
        self._shown, self._has_more = fresh, len(entries) >= limit

    async def _rendered(self, entries: list[TranscriptEntry]) -> dict[str, str]:
        alternatives = await self.live.talk.alternatives([entry.message.id for entry in entries]) if entries else {}
        made = await asyncio.to_thread(items, entries, alternatives)
        return {item["id"]: item["html"] for item in made}

    def _items(self) -> list[dict[str, str]]:
        return _as_items(self._shown)

    def _set_turn(self) -> None:
        turn = self.live.turn
        self.messages.set_turn(turn.all_parts() if turn else None, self.live.failure)

    def _show_place(self) -> None:
        number = self.live.talk.number
        self.composer.set_place(self._key, running=self.live.is_running)
        self.list.select(self.live.talk.id)
        address = f"/c/{number}" if number else "/"
        ui.run_javascript(f"rectoPage.setAddress({address!r})")

    @property
    def _key(self) -> str:
        """What the browser keeps the draft by."""
        return str(self.live.talk.number or NEW)

    def _head_html(self) -> str:
        talk = self.live.talk
        return fill(
            "chat_head", title=talk.title or "New conversation", number=talk.number, model=talk.model, views=VIEWS
        )

    async def _show_waiting(self) -> None:
        waiting = await self.live.talk.waiting()
        self.waiting.show(fill("waiting", waiting=waiting, running=self.live.is_running) if waiting else "")


def _as_items(shown: dict[str, str]) -> list[dict[str, str]]:
    return [{"id": id, "html": html} for id, html in shown.items()]
