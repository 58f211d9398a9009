"""ChatPage: one tab with a conversation: the list at the left, messages and composer, the panel at the right.

It only passes on: deeds of the user to the talk, and what changed to the parts of the page.
"""

import asyncio
import logging
from collections.abc import Sequence

from nicegui import Client, ui

from recto.api.talk import AsyncTalk
from recto.errors import Invalid, RectoError
from recto.web.built_in_models import BuiltInModels, Change, download_html
from recto.web.commands import command_in, run_command
from recto.web.completions import Completions
from recto.web.components import Composer, Deed, Fragment
from recto.web.conversation_view import ConversationView
from recto.web.frame import BUILD_TIMEOUT_S, VIEWS, page_frame, place
from recto.web.live import LiveConversation
from recto.web.live_turn import TurnChange
from recto.web.meter import Meter, WindowView
from recto.web.page_desk import whole_desk
from recto.web.page_door import FindDoor, PageDoor
from recto.web.panel import Handler, Panel, PanelView
from recto.web.reference_view import NoteView, ReferenceView
from recto.web.reply_view import ReplyView
from recto.web.templates import fill
from recto.web.transcript_view import TranscriptView

NEW = "new"
# What was written in an earlier conversation of a tab still arrives there; one opens no more of them in between.
MOST_VISITS = 16

log = logging.getLogger(__name__)


def add_chat_page(find: FindDoor) -> None:
    @ui.page("/", response_timeout=BUILD_TIMEOUT_S)
    async def fresh(client: Client) -> None:
        await _open_page(await find(client.request.scope), client, None)

    @ui.page("/c/{number}", response_timeout=BUILD_TIMEOUT_S)
    async def numbered(client: Client, number: str) -> None:
        await _open_page(await find(client.request.scope), client, number)


async def _open_page(door: PageDoor, client: Client, number: str | None) -> None:
    failure = ""
    try:
        opened = await door.live.open(number)
    except RectoError as why:
        opened, failure = await door.live.open(), why.message
    page = ChatPage(door, opened, client)
    await page.build()
    if failure:
        page.tell(failure)


class ChatPage:
    def __init__(self, door: PageDoor, live: LiveConversation, client: Client) -> None:
        self.desk, self.all_live, self.live = door.desk, door.live, live
        self._client, self._parked = client, door.parked
        desk = whole_desk(door.desk)
        self._built_in = BuiltInModels(desk, door.live) if desk else None
        first_start = self._first_start = door.start()
        self.transcript = TranscriptView(lambda: self.live, first_start)
        self._visit = 0
        self._visits = {0: live}
        """The latest conversations that this tab has shown, by a number that comes back with what is written there: a
        message may overtake the opening of another one."""
        self._refreshing: asyncio.Task[None] | None = None
        self._must_refresh = False
        self._woken: LiveConversation | None = None
        """The conversation whose model was told to get ready."""
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
            "complete": self._complete,
            "try": self._try,
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
            **dict.fromkeys(first_start.deeds, self._start_with),
        }

    async def build(self) -> None:
        self._completions = Completions(whole_desk(self.desk), self._talk)
        with page_frame():
            with place("list", "nav", "Conversations"):
                self.list = ConversationView(self.desk, self.all_live, self.act)
                await self.list.build()
            with place("chat", "main"):
                self.head = Fragment(self._head_html(), self.act, tag="header").classes("chat-head")
                await self.transcript.build(self.act)
                self.notice = Fragment("", self.act).classes("notices")
                self.download = Fragment("", self.act).classes("notices")
                self.waiting = Fragment("", self.act).classes("waiting")
                self.meter = Meter(self._talk, self.act)
                self.composer = Composer(_key(self.live), self._visit, self.act, running=self.live.is_running)
            self.panel = Panel(self._views(), Fragment("", self.act, tag="aside"))
        self._handlers |= {**self.panel.handlers, **self.list.handlers, "delete": self._delete}
        self.live.join(self)
        self.all_live.watch_list(self.list.refresh)
        self._client.on_delete(self._leave)
        if self._built_in:
            self._handlers |= self._built_in.handlers
            self._built_in.watch(self._hear_of_models)
        self.transcript.show_turn()
        self._show_download()
        self._show_place()
        await self._show_waiting()
        # not before: the first count loads a vocabulary, and the scripts of the page would wait for that
        self._client.on_connect(self.meter.refresh)

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
        if self._built_in:
            self._built_in.unwatch(self._hear_of_models)

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

    def _note(self, words: str) -> None:
        self.notice.show(fill("notice", text=words) if words else "")

    async def _open(self, deed: Deed) -> None:
        await self._move(await self.all_live.open(str(deed["id"])))
        if message := deed.get("message"):
            await self._show_message(str(message))

    async def _start_with(self, deed: Deed) -> None:
        """Other notes or another model, chosen before the first message."""
        if await self._first_start.act(deed):
            await self._move(await self.all_live.open())
        else:
            await self.transcript.refresh()

    async def _new(self, deed: Deed) -> None:
        await self._move(await self.all_live.open())

    async def _delete(self, deed: Deed) -> None:
        await self.list.handlers["delete"](deed)
        if str(deed["id"]) == self.live.talk.id:
            await self._move(await self.all_live.open())

    async def _move(self, live: LiveConversation) -> None:
        """Shows another conversation in this tab."""
        self.live.leave(self)
        self.live = live
        live.join(self)
        self._visit += 1
        self._visits[self._visit] = live
        self._visits.pop(self._visit - MOST_VISITS, None)
        self.tell("")
        # before the messages: who sees them writes to this conversation, and its draft replaces what is in the composer
        self._show_place()
        await self.transcript.show()
        self.head.show(self._head_html())
        self._show_download()
        await self._show_waiting()
        self.meter.refresh()
        await self.panel.refresh()

    async def _load_older(self, deed: Deed) -> None:
        await self.transcript.load_older()

    async def _send(self, deed: Deed) -> None:
        self.tell("")
        text, files = str(deed.get("text", "")), [str(each) for each in deed.get("files") or ()]
        place = written_at = str(deed.get("place", ""))
        try:
            live = await self._written_in(deed)
            place = _key(live)
            if command := command_in(text):
                self._note(await run_command(self.desk, live, *command))
            else:
                await live.send(text, await self._parked.take(files))
                if live is not self.live:
                    self._note(f"This went to {_named(live)}, where you wrote it.")
        except RectoError:
            self.composer.put(text, place)
            raise
        finally:
            self.composer.accept(written_at)

    async def _written_in(self, deed: Deed) -> LiveConversation:
        """The conversation that was shown where this was written."""
        live = self._visits.get(int(deed.get("visit", -1)))
        if live is None:
            raise Invalid(
                "nothing was sent, since other conversations were opened meanwhile; what you wrote is a draft"
            )
        if live is self.live or live.talk.id is None:
            return live
        return await self.all_live.open(live.talk.id)

    async def _stop(self, deed: Deed) -> None:
        self.live.stop()

    async def _retry(self, deed: Deed) -> None:
        self.live.retry()

    async def _answer(self, deed: Deed) -> None:
        self.live.answer(int(deed["part"]), str(deed["answer"]))

    async def _take_back(self, deed: Deed) -> None:
        taken = await self.live.talk.take_back(str(deed["id"]))
        self.composer.put(taken.text, _key(self.live))
        self.live.refresh()

    async def _send_waiting(self, deed: Deed) -> None:
        self.live.send_waiting()

    async def _draft(self, deed: Deed) -> None:
        if deed.get("text") and self._woken is not self.live:
            self._woken = self.live
            await self.live.talk.wake()
        self.meter.type(str(deed.get("text", "")))

    async def _complete(self, deed: Deed) -> None:
        found = await self._completions.find(str(deed.get("token", "")), str(deed.get("behind", "")))
        self.composer.offer(int(deed["request"]), found)

    async def _try(self, deed: Deed) -> None:
        self.composer.put(str(deed.get("text", "")), _key(self.live))

    async def _edit(self, deed: Deed) -> None:
        message = await self.live.talk.message(str(deed["id"]))
        self.composer.edit("message", message.id, f"message #{message.said}", message.text)

    async def _edit_summary(self, deed: Deed) -> None:
        self.composer.edit("summary", "", "the summary", (await self.live.talk.summary_block()).summary)

    async def _save_edit(self, deed: Deed) -> None:
        text, live = str(deed.get("text", "")), await self._written_in(deed)
        if deed.get("kind") == "summary":
            await live.talk.edit_summary(text)
            live.refresh()
        else:
            live.edit(str(deed["id"]), text)

    async def _switch(self, deed: Deed) -> None:
        self.live.check_idle()
        await self.live.talk.switch(str(deed["id"]))
        self.live.refresh()

    async def _jump(self, deed: Deed) -> None:
        await self._show_message(f"#{deed['number']}")

    async def _show_message(self, named: str) -> None:
        if await self.transcript.show_message(named):
            self._note("This message is on another branch of the conversation, which you are on now.")

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
        self.transcript.draw_turn(changes)

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
        await self.transcript.refresh()
        self.head.show(self._head_html())
        self._show_download()
        self._show_place(is_same=True)
        await self._show_waiting()
        if not self.live.is_running:
            self.meter.refresh()
            await self.meter.settled()
            await self.panel.refresh()

    def _show_place(self, *, is_same: bool = False) -> None:
        number = self.live.talk.number
        self.composer.set_place(_key(self.live), self._visit, running=self.live.is_running, is_same=is_same)
        self.list.select(self.live.talk.id)
        address = f"/c/{number}" if number else "/"
        ui.run_javascript(f"rectoPage.setAddress({address!r})")

    def _head_html(self) -> str:
        talk = self.live.talk
        return fill(
            "chat_head", title=talk.title or "New conversation", number=talk.number, model=talk.model, views=VIEWS
        )

    def _show_download(self) -> None:
        """A new conversation offers the built-in models anyway."""
        if self._built_in:
            self.download.show(download_html(self.live.talk.model if self.live.talk.id else ""))

    def _hear_of_models(self, change: Change) -> None:
        if change == "progress":
            self._show_download()
        elif change == "chosen" and self.live.talk.id is None and not self.live.is_running:
            self.all_live.start(self._begin_with_chosen())
        else:
            self.refresh()

    async def _begin_with_chosen(self) -> None:
        with self._client:
            await self._move(await self.all_live.open())
            self._note(f"{self.live.talk.model} answers in new conversations.")

    async def _show_waiting(self) -> None:
        waiting = await self.live.talk.waiting()
        self.waiting.show(fill("waiting", waiting=waiting, running=self.live.is_running) if waiting else "")


def _key(live: LiveConversation) -> str:
    """What the browser keeps the draft by."""
    return str(live.talk.number or NEW)


def _named(live: LiveConversation) -> str:
    talk = live.talk
    return f"#{talk.number} {talk.title}" if talk.number else "the new conversation"
