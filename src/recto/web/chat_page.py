"""ChatPage: one tab with a conversation: the list at the left, messages and composer, the panel at the right.

It only passes on: actions of the user to the talk, and what changed to the parts of the page.
"""

import asyncio
import logging
from collections.abc import Sequence

from nicegui import Client, ui

from recto.api.talk import AsyncTalk
from recto.chat.blocks import Quote
from recto.errors import Invalid, RectoError
from recto.web.built_in_models import BuiltInModels, Change, download_html
from recto.web.completions import Completions
from recto.web.components import Action, Composer, Fragment, find_handler
from recto.web.conversation_list import ConversationList
from recto.web.documents import DocumentsView, NoteView, documents_of
from recto.web.first_start import FirstStart, SharedStart
from recto.web.live import LiveConversation
from recto.web.live_turn import TurnChange
from recto.web.menu import COMMANDS, command_in, run_command
from recto.web.page import BUILD_TIMEOUT_S, WENT_WRONG, FindDoor, PageDoor, page_frame, place
from recto.web.panel import Meter, Panel, WindowView
from recto.web.reply_view import ReplyView
from recto.web.templates import fill
from recto.web.transcript import TranscriptView

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
    page.tell(failure)


class ChatPage:
    def __init__(self, door: PageDoor, live: LiveConversation, client: Client) -> None:
        self.door, self.desk, self.all_live, self.live = door, door.desk, door.live, live
        self._client = client
        self._start = FirstStart(door.whole, takes_keys=door.takes_keys) if door.whole else SharedStart()
        self._visit = 0
        self._visits = {0: live}
        """The latest conversations that this tab has shown, by a number that comes back with what is written there: a
        message may overtake the opening of another one."""
        self._refreshing: asyncio.Task[None] | None = None
        self._must_refresh = False
        self._woken: LiveConversation | None = None
        """The conversation whose model was told to get ready."""

    async def build(self) -> None:
        self._completions = Completions(self.door.whole, self._talk)
        with page_frame():
            with place("list", "nav", "Conversations"):
                self.list = ConversationList(self.desk, self.all_live, self.act)
                await self.list.build()
            with place("chat", "main"):
                self.head = Fragment(self._head_html(), self.act, tag="header").classes("chat-head")
                self.transcript = TranscriptView(lambda: self.live, self._start)
                await self.transcript.build(self.act)
                self.notice = Fragment("", self.act).classes("notices")
                self.download = Fragment("", self.act).classes("notices")
                self.waiting = Fragment("", self.act).classes("waiting")
                self.meter = Meter(self._talk, self.act)
                self.composer = Composer(self._key(), self._visit, self.act, running=self.live.is_running)
            views = (
                WindowView(self._talk, self.meter),
                ReplyView(self.desk, self._talk),
                DocumentsView(self._talk),
                NoteView(lambda: self._talk().vault, self._quotes),
            )
            self.panel = Panel(views, self.act)
        self._actors: list[object] = [self, self.list, self.transcript, self.panel, *views]
        if self.door.whole:
            built_in = BuiltInModels(self.door.whole, self.all_live, self._hear_of_models)
            self._actors.append(built_in)
            self._client.on_delete(built_in.leave)
        self.live.onlookers.add(self._look_on)
        self.all_live.watchers.add(self.list.refresh)
        self._client.on_delete(self._leave)
        self.transcript.show_turn()
        self._show_download()
        self._show_place()
        await self._show_waiting()
        # not before: the first count loads a vocabulary, and the scripts of the page would wait for that
        self._client.on_connect(self.meter.refresh)

    def _talk(self) -> AsyncTalk:
        return self.live.talk

    async def _quotes(self) -> list[Quote]:
        return (await documents_of(self.live.talk))[1]

    def _key(self, live: LiveConversation | None = None) -> str:
        """The browser keeps the draft by it."""
        return str((live or self.live).talk.number or NEW)

    def _leave(self) -> None:
        self.live.onlookers.discard(self._look_on)
        self.all_live.watchers.discard(self.list.refresh)

    # -- actions

    async def act(self, action: Action) -> None:
        try:
            await self._act(action)
        except RectoError as why:
            self.tell(why.message)
        except Exception:
            log.exception("the page could not do %s", action.get("do"))
            self.tell(WENT_WRONG)

    async def _act(self, action: Action) -> None:
        for actor in self._actors:
            if handle := find_handler(actor, action):
                await handle()
                await self.panel.open(actor)
                return
        if isinstance(self._start, FirstStart) and (handle := find_handler(self._start, action)):
            if await self._start.tried(handle):
                await self._move(await self.all_live.open())
            else:
                await self.transcript.refresh()
        elif (name := str(action.get("do"))) in COMMANDS:
            await run_command(self.desk, self.live, name)

    def tell(self, words: str) -> None:
        """A failure, where it can be seen, until the next action."""
        self.notice.show(fill("failure", text=words) if words else "")

    def _note(self, words: str) -> None:
        self.notice.show(fill("notice", text=words) if words else "")

    async def do_open(self, id: str, message: str = "") -> None:
        await self._move(await self.all_live.open(id))
        if message:
            await self._show_message(message)

    async def do_new(self) -> None:
        await self._move(await self.all_live.open())

    async def do_delete(self, id: str) -> None:
        await self.list.do_delete(id)
        if id == self.live.talk.id:
            await self.do_new()

    async def _move(self, live: LiveConversation) -> None:
        """Shows another conversation in this tab."""
        self.live.onlookers.discard(self._look_on)
        self.live = live
        live.onlookers.add(self._look_on)
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

    async def do_send(self, text: str, place: str, files: list[str], visit: int = -1) -> None:
        self.tell("")
        written_at = place
        try:
            live = await self._written_in(visit)
            place = self._key(live)
            if command := command_in(text):
                self._note(await run_command(self.desk, live, *command))
            else:
                await live.send(text, await self.door.parked.take(files))
                if live is not self.live:
                    talk = live.talk
                    name = f"#{talk.number} {talk.title}" if talk.number else "the new conversation"
                    self._note(f"This went to {name}, where you wrote it.")
        except RectoError:
            self.composer.put(text, place)
            raise
        finally:
            self.composer.accept(written_at)

    async def _written_in(self, visit: int) -> LiveConversation:
        """The conversation that was shown where this was written."""
        live = self._visits.get(visit)
        if live is None:
            raise Invalid(
                "nothing was sent, since other conversations were opened meanwhile; what you wrote is a draft"
            )
        if live is self.live or live.talk.id is None:
            return live
        return await self.all_live.open(live.talk.id)

    async def do_stop(self) -> None:
        self.live.stop()

    async def do_answer(self, part: int, answer: str) -> None:
        self.live.answer(part, answer)

    async def do_take_back(self, id: str) -> None:
        taken = await self.live.talk.take_back(id)
        self.composer.put(taken.text, self._key())
        self.live.refresh()

    async def do_send_waiting(self) -> None:
        self.live.run(self.live.talk.stream())

    async def do_draft(self, text: str) -> None:
        if text and self._woken is not self.live:
            self._woken = self.live
            await self.live.talk.wake()
        self.meter.type(text)

    async def do_complete(self, token: str, behind: str, request: int) -> None:
        self.composer.offer(request, await self._completions.find(token, behind))

    async def do_try(self, text: str) -> None:
        self.composer.put(text, self._key())

    async def do_edit(self, id: str) -> None:
        message = await self.live.talk.message(id)
        self.composer.edit("message", message.id, f"message #{message.said}", message.text)

    async def do_edit_summary(self) -> None:
        self.composer.edit("summary", "", "the summary", (await self.live.talk.summary_block()).summary)

    async def do_save_edit(self, kind: str, id: str, text: str, visit: int = -1) -> None:
        live = await self._written_in(visit)
        if kind == "summary":
            await live.talk.edit_summary(text)
            live.refresh()
        else:
            live.run(live.talk.stream_edit(id, text))

    async def do_switch(self, id: str) -> None:
        self.live.check_idle()
        await self.live.talk.switch(id)
        self.live.refresh()

    async def do_jump(self, number: str) -> None:
        await self._show_message(f"#{number}")

    async def _show_message(self, named: str) -> None:
        if await self.transcript.show_message(named):
            self._note("This message is on another branch of the conversation, which you are on now.")

    async def do_pin(self, id: str) -> None:
        await self.live.talk.pin(id)
        self.live.refresh()

    async def do_unpin(self, id: str) -> None:
        await self.live.talk.unpin(id)
        self.live.refresh()

    # -- what changed

    def _look_on(self, changes: Sequence[TurnChange] | None) -> None:
        if changes is None:
            self.refresh()
        else:
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
        self.composer.set_place(self._key(), self._visit, running=self.live.is_running, is_same=is_same)
        self.list.select(self.live.talk.id)
        address = f"/c/{number}" if number else "/"
        ui.run_javascript(f"rectoPage.setAddress({address!r})")

    def _head_html(self) -> str:
        talk, title = self.live.talk, self.live.talk.title or "New conversation"
        return fill("chat_head", title=title, number=talk.number, model=talk.model, views=self.door.menu)

    def _show_download(self) -> None:
        """A new conversation offers the built-in models anyway."""
        if self.door.whole:
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
            await self.do_new()
            self._note(f"{self.live.talk.model} answers in new conversations.")

    async def _show_waiting(self) -> None:
        waiting = await self.live.talk.waiting()
        self.waiting.show(fill("waiting", waiting=waiting, running=self.live.is_running) if waiting else "")
