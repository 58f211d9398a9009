"""ChatPage: one tab with a conversation: the list at the left, messages and composer, the panel at the right.

It passes the user's actions to the talk, and changes to the parts of the page.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nicegui import Client, ui

from recto.api.talk import AsyncTalk
from recto.chat.conversation import Conversation, ConversationState
from recto.errors import Invalid, RectoError
from recto.web.built_in_models import BuiltInModels, Change, download_html
from recto.web.components import Act, Action, Composer, Fragment, find_handler
from recto.web.documents import DocumentsView, NoteView
from recto.web.first_start import FirstStart, SharedStart
from recto.web.live import LiveConversation, LiveConversations, PageDesk, failure_of
from recto.web.live_turn import TurnChange
from recto.web.menu import COMMANDS, Completions, command_in, run_command
from recto.web.page import BUILD_TIMEOUT_S, LISTED, FindDoor, PageDoor, page_frame, place
from recto.web.panel import Meter, Panel, ReplyView
from recto.web.templates import fill
from recto.web.transcript import TranscriptView

if TYPE_CHECKING:
    from recto.recall.message_search import FoundMessage

NEW = "new"
MOST_FOUND = 20
STATES: dict[ConversationState, str] = {"active": "Conversations", "hidden": "Hidden", "deleted": "Trash"}


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
        self._begun = live
        """The last one that was opened here as a new conversation."""
        self._refreshing: asyncio.Task[None] | None = None
        self._must_refresh = False
        self._woken: LiveConversation | None = None
        """The conversation whose model is being loaded."""

    async def build(self) -> None:
        self._completions = Completions(self._talk)
        with page_frame():
            with place("list", "nav", "Conversations"):
                self.list = ConversationList(self.desk, self.all_live, self.act)
                await self.list.draw()
            with place("chat", "main"):
                self.head = Fragment(self._head_html(), self.act, tag="header").classes("chat-head")
                self.transcript = TranscriptView(lambda: self.live, self._start, self.act)
                await self.transcript.build()
                self.notice = Fragment("", self.act).classes("notices")
                self.download = Fragment("", self.act).classes("notices")
                self.waiting = Fragment("", self.act).classes("waiting")
                self.meter = Meter(self._talk, self.act)
                self.composer = Composer(self._key(), self.act, running=self.live.is_running)
            note = NoteView(lambda: self._talk().vault, self._talk)
            views = (self.meter, ReplyView(self.desk, self._talk), DocumentsView(self._talk), note)
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
        # only now: the first count loads a vocabulary, and the page's scripts would wait for it
        self._client.on_connect(self.meter.refresh)

    def _talk(self) -> AsyncTalk:
        return self.live.talk

    def _key(self, live: LiveConversation | None = None) -> str:
        """The browser's key for the draft."""
        return str((live or self.live).talk.number or NEW)

    def _leave(self) -> None:
        self.live.onlookers.discard(self._look_on)
        self.all_live.watchers.discard(self.list.refresh)

    # -- actions

    async def act(self, action: Action) -> None:
        try:
            await self._act(action)
        except Exception as why:
            self.tell(failure_of(why, f"the action {action.get('do')}"))

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
            self._note(await run_command(self.desk, self.live, name, str(action.get("id", ""))))

    def tell(self, words: str) -> None:
        """Show a failure until the next action."""
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
        """Show another conversation in this tab."""
        self.live.onlookers.discard(self._look_on)
        self.live = live
        self._begun = live if live.talk.id is None else self._begun
        live.onlookers.add(self._look_on)
        self.tell("")
        # before the messages: once they are visible, the user writes to this conversation and sees its draft
        self._show_place()
        await self.transcript.show()
        self.head.show(self._head_html())
        self._show_download()
        await self._show_waiting()
        self.meter.refresh()
        await self.panel.refresh()

    async def do_send(self, text: str, place: str, files: list[str]) -> None:
        self.tell("")
        written_at = place
        try:
            live = await self._written_in(place)
            place = self._key(live)
            if command := command_in(text):
                self._note(await run_command(self.desk, live, *command))
            else:
                await live.send(text, self.door.parked.take(files))
                if live is not self.live:
                    talk = live.talk
                    name = f"#{talk.number} {talk.title}" if talk.number else "the new conversation"
                    self._note(f"This went to {name}, where you wrote it.")
        except RectoError:
            self.composer.put(text, place)
            raise
        finally:
            self.composer.accept(written_at)

    async def _written_in(self, place: str) -> LiveConversation:
        """The conversation that was shown when this was written: it may overtake the opening of another one."""
        if place == self._key():
            return self.live
        known = self._begun.talk.id if place == NEW else place
        return await self.all_live.open(known) if known else self._begun

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

    async def do_complete(self, token: str, following: str, request: int) -> None:
        self.composer.offer(request, await self._completions.find(token, following))

    async def do_try(self, text: str) -> None:
        self.composer.put(text, self._key())

    async def do_edit(self, id: str) -> None:
        message = await self.live.talk.message(id)
        self.composer.edit("message", message.id, f"message #{message.said}", message.text)

    async def do_edit_summary(self) -> None:
        self.composer.edit("summary", "", "the summary", (await self.live.talk.summary_block()).summary)

    async def do_save_edit(self, kind: str, id: str, text: str, place: str) -> None:
        live = await self._written_in(place)
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

    # -- what changed

    def _look_on(self, changes: Sequence[TurnChange] | None) -> None:
        if changes is None:
            self.refresh()
        else:
            self.transcript.draw_turn(changes)

    def refresh(self) -> None:
        """Reload the end of the conversation; concurrent calls read it once."""
        self._must_refresh = True
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        while self._must_refresh:
            self._must_refresh = False
            try:
                await self._refresh_once()
            except Exception as why:
                self.tell(failure_of(why, "bringing the page up to date"))

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
        self.composer.set_place(self._key(), running=self.live.is_running, is_same=is_same)
        self.list.select(self.live.talk.id)
        address = f"/c/{number}" if number else "/"
        self._client.run_javascript(f"rectoPage.setAddress({address!r})")

    def _head_html(self) -> str:
        talk, title = self.live.talk, self.live.talk.title or "New conversation"
        return fill("chat_head", title=title, number=talk.number, model=talk.model, views=self.door.menu)

    def _show_download(self) -> None:
        """Show the download, except in a new conversation, which offers the built-in models anyway."""
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
        await self.do_new()
        self._note(f"{self.live.talk.model} answers in new conversations.")

    async def _show_waiting(self) -> None:
        waiting = await self.live.talk.waiting()
        self.waiting.show(fill("waiting", waiting=waiting, running=self.live.is_running) if waiting else "")


class ConversationList(Fragment):
    """The list, latest first: searched by title and content; hidden ones and the trash."""

    def __init__(self, desk: PageDesk, live: LiveConversations, act: Act) -> None:
        super().__init__("", act)
        self._desk, self._live = desk, live
        self.selected: str | None = None
        self.searched, self.renaming = "", ""
        self.state: ConversationState = "active"
        self.done: dict[str, str] = {}
        """The last change, and the action that undoes it."""

    def select(self, id: str | None) -> None:
        if id != self.selected:
            self.selected = id
            self.refresh()

    def refresh(self) -> None:
        self._live.start(self.draw())

    async def do_search(self, value: str) -> None:
        self.searched = value.strip()
        await self.draw()

    async def do_show_state(self, value: ConversationState) -> None:
        self.state = value
        await self.draw()

    async def do_rename(self, id: str) -> None:
        self.renaming = id
        await self.draw()

    async def do_save_title(self, id: str, words: str) -> None:
        self.renaming = ""
        await self._desk.rename(id, words)
        self._live.tell_list()

    async def do_hide(self, id: str) -> None:
        self._tell("hidden: it is not listed, but still searched", await self._desk.hide(id), "unhide")

    async def do_unhide(self, id: str) -> None:
        self._tell("listed again", await self._desk.unhide(id))

    async def do_delete(self, id: str) -> None:
        if id in self._live.running():
            raise Invalid("a reply is coming in this conversation: stop it first")
        self._tell("in the trash", await self._desk.delete(id), "restore")

    async def do_restore(self, id: str) -> None:
        self._tell("back from the trash", await self._desk.restore(id))

    def _tell(self, words: str, about: Conversation, back: str = "") -> None:
        self.done = {"words": f"{about.title or f'#{about.number}'} is {words}.", "back": back, "id": about.id}
        self._live.tell_list()

    async def draw(self) -> None:
        found: list[Conversation] = []
        hits: list[FoundMessage] = []
        failure = ""
        try:
            if self.searched:
                found = await self._desk.find_conversations(self.searched, limit=MOST_FOUND)
                hits = list(await self._desk.search(self.searched, limit=MOST_FOUND))
            else:
                found = await self._desk.conversations(limit=LISTED, state=self.state)
        except RectoError as why:
            failure = why.message
        values = {"conversations": found, "hits": hits, "running": self._live.running(), "failure": failure}
        self.show(await asyncio.to_thread(fill, "conversations", view=self, states=STATES, **values))
