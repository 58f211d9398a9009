"""LiveConversation: a conversation that pages show: its talk, its running turn, and its onlookers.

Several tabs share one. Changes by other programs, such as a chat in a terminal, are found by polling the store.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Self

from recto.api.ask_options import Attachment
from recto.api.desk import AsyncDesk
from recto.api.talk import AsyncTalk
from recto.chat.conversation import Conversation
from recto.errors import Invalid, RectoError
from recto.events import Appended, Event, Question, Replied
from recto.serve.key_desk import KeyDesk
from recto.vault.vault import Vault
from recto.web.live_turn import LiveTurn, TurnChange

# Seconds between redraws of growing replies, and between polls of the store.
DRAW_S, LOOK_S = 0.05, 1.0
# A busy server draws less often, so that all replies advance.
DRAWING_SHARE = 10
# Conversations of the list compared to notice a change.
MOST_LISTED = 200

log = logging.getLogger(__name__)
PageDesk = AsyncDesk | KeyDesk
"""The desk of a home, or of one key's part."""
Onlooker = Callable[[Sequence[TurnChange] | None], object]
"""A tab that shows a conversation. Called with changes of the running turn, or None for any other change."""


def failure_of(why: Exception, what: str, hint: str = "the log says more") -> str:
    """The sentence to show. Unexpected errors are logged with their traceback."""
    if isinstance(why, RectoError):
        return why.message
    log.error("%s failed", what, exc_info=why)
    return f"something went wrong in Recto itself; {hint}"


class LiveConversation:
    def __init__(self, desk: PageDesk, talk: AsyncTalk, stored: Callable[["LiveConversation"], object]) -> None:
        self.talk = talk
        self.turn: LiveTurn | None = None
        self.failure = ""
        """Why the last turn ended early, or empty."""
        self.onlookers: set[Onlooker] = set()
        self.task: asyncio.Task[None] | None = None
        """Of the last turn."""
        self._desk, self._stored = desk, stored

    @property
    def is_running(self) -> bool:
        return self.turn is not None

    def refresh(self) -> None:
        self._tell(None)

    def _tell(self, changes: Sequence[TurnChange] | None) -> None:
        for onlooker in tuple(self.onlookers):
            onlooker(changes)

    # -- turns

    async def send(self, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Send a message; during a reply it waits for the end."""
        if self.is_running:
            await self.talk.queue(text, attachments=attachments)
            self.refresh()
        else:
            self.run(self.talk.stream(text, attachments=attachments))

    def stop(self) -> None:
        """Stop the reply. Its text so far is kept."""
        if self.task:
            self.task.cancel()

    def answer(self, part: int, answer: str) -> None:
        """Answer a question of the running turn."""
        if self.turn:
            self.turn.answer(part, answer)
            self._draw()

    def check_idle(self) -> None:
        """Raise Invalid during a reply."""
        if self.is_running:
            raise Invalid("a reply is on its way: wait for it, or stop it first")

    def run(self, events: AsyncGenerator[Event, None]) -> None:
        """Follow a turn to its end, with or without onlookers."""
        self.check_idle()
        self.turn, self.failure = LiveTurn(), ""
        self.task = asyncio.create_task(self._follow(events))
        self.refresh()

    async def _follow(self, events: AsyncGenerator[Event, None]) -> None:
        drawing = asyncio.create_task(self._keep_drawing())
        try:
            # stopped by the user; the text so far is stored
            with suppress(asyncio.CancelledError):
                async with aclosing(events):
                    async for event in events:
                        await self._hear(event)
        except Exception as why:
            self.failure = failure_of(why, "a turn", "the log says more, and your message is kept")
        finally:
            self.turn = None
            drawing.cancel()
            self.refresh()
            self._stored(self)

    async def _hear(self, event: Event) -> None:
        assert self.turn is not None
        is_stored = self.turn.hear(event)
        if isinstance(event, Appended):
            self._stored(self)
        if is_stored:
            # the streamed text is a stored message now
            self.turn.clear()
            self.refresh()
        if isinstance(event, Question | Replied):
            self._draw()
        if isinstance(event, Question):
            await event.settled()

    async def _keep_drawing(self) -> None:
        while self.turn:
            await self.turn.changed.wait()
            began = time.monotonic()
            self._draw()
            await asyncio.sleep(max(DRAW_S, DRAWING_SHARE * (time.monotonic() - began)))

    def _draw(self) -> None:
        if self.turn and (changes := self.turn.take_changes()):
            self._tell(changes)

    async def look(self) -> None:
        """Notice messages added by another program."""
        if self.is_running or self.talk.id is None:
            return
        head, is_growing = await self.talk.stored_head()
        if head != self.talk.head:
            self.talk = await self._desk.conversation(self.talk.id)
            self.refresh()
        elif is_growing:
            self.refresh()


class LiveConversations:
    """The conversations that pages show now, by id, and the list of all."""

    def __init__(self, desk: PageDesk) -> None:
        self.watchers: set[Callable[[], object]] = set()
        """Callbacks for changes of the list."""
        self._desk = desk
        self._known: dict[str, LiveConversation] = {}
        self._listed: list[Conversation] = []
        self._watched: Vault | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, id: str | int | None = None) -> LiveConversation:
        """Open a conversation by id or number, or a new one. NotFound if it does not exist."""
        talk = await self._desk.conversation(id)
        if talk.vault is not self._watched:
            self._watched = talk.vault
            await talk.watch_vault()
        if id is None:
            return LiveConversation(self._desk, talk, self._note_stored)
        assert talk.id is not None
        known = self._known.get(talk.id)
        if known is None or not (known.is_running or known.onlookers):
            known = self._known[talk.id] = LiveConversation(self._desk, talk, self._note_stored)
        return known

    def running(self) -> set[str]:
        """The ids of the conversations with a running reply."""
        return {id for id, live in self._known.items() if live.is_running}

    def _note_stored(self, live: LiveConversation) -> None:
        if live.talk.id is not None:
            self._known[live.talk.id] = live
        self.tell_list()

    def tell_list(self) -> None:
        for watcher in tuple(self.watchers):
            watcher()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Run something in the background; it ends with the server at the latest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep_looking(self) -> None:
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def hear() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(changed.set)

        await self._desk.follow(hear)
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), LOOK_S)
            changed.clear()
            try:
                await self._look()
            except RectoError as why:
                log.warning("cannot look for changes: %s", why.message)

    async def _look(self) -> None:
        self._known = {id: live for id, live in self._known.items() if live.onlookers or live.is_running}
        for live in [each for each in self._known.values() if each.onlookers]:
            await live.look()
        if self.watchers:
            listed = await self._desk.conversations(limit=MOST_LISTED)
            if listed != self._listed:
                self._listed = listed
                self.tell_list()

    @asynccontextmanager
    async def looking(self) -> AsyncGenerator[Self, None]:
        """Notice changes while a server runs, and end every turn and task with it."""
        looking = asyncio.create_task(self._keep_looking())
        try:
            yield self
        finally:
            turns = [live.task for live in self._known.values() if live.task]
            tasks = [each for each in (looking, *self._tasks, *turns) if each is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
