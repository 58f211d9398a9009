"""LiveConversation: a conversation that pages show: its talk, the turn that runs in it, and who looks on.

Several tabs share one. What other programs add to it, such as a chat in a terminal, is noticed by looking at the store.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, Protocol, Self

from recto.api.ask_options import Attachment
from recto.api.talk import AsyncTalk
from recto.chat.conversation import Conversation
from recto.errors import Invalid, RectoError
from recto.events import Appended, Event, Question, Replied
from recto.vault.vault import Vault
from recto.web.live_turn import LiveTurn, TurnChange
from recto.web.page_desk import PageDesk

# How often growing replies are drawn, and how often the store is looked at for what others did.
DRAW_S, LOOK_S = 0.05, 1.0
DRAWING_SHARE = 10
# Conversations of the list that are compared to notice a change.
MOST_LISTED = 200

log = logging.getLogger(__name__)


class Onlooker(Protocol):
    """A tab that shows the conversation."""

    def draw_turn(self, changes: Sequence[TurnChange]) -> None:
        """Parts of the running turn have changed."""
        ...

    def refresh(self) -> None:
        """Stored messages, or anything else about the conversation, may have changed."""
        ...


class LiveConversation:
    def __init__(self, desk: PageDesk, talk: AsyncTalk, stored: Callable[["LiveConversation"], object]) -> None:
        self.talk = talk
        self.turn: LiveTurn | None = None
        self.failure = ""
        """Why the last turn ended early; empty when it did not."""
        self._desk, self._stored = desk, stored
        self._onlookers: list[Onlooker] = []
        self._task: asyncio.Task[None] | None = None
        self._drawing: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self.turn is not None

    @property
    def ending(self) -> asyncio.Task[None] | None:
        """The task of the running turn, to be waited for."""
        return self._task

    @property
    def is_watched(self) -> bool:
        return bool(self._onlookers)

    def join(self, onlooker: Onlooker) -> None:
        self._onlookers.append(onlooker)

    def leave(self, onlooker: Onlooker) -> None:
        with suppress(ValueError):
            self._onlookers.remove(onlooker)

    def refresh(self) -> None:
        for each in tuple(self._onlookers):
            each.refresh()

    # -- turns

    async def send(self, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Sends a message; while a reply comes, it waits for the end of that."""
        if self.is_running:
            await self.talk.queue(text, attachments=attachments)
            self.refresh()
            return
        self._run(self.talk.stream(text, attachments=attachments))

    def edit(self, message: str, text: str) -> None:
        self._run(self.talk.stream_edit(message, text))

    def retry(self) -> None:
        self._run(self.talk.stream_regenerate())

    def compact(self, keep: str = "") -> None:
        self._run(self.talk.stream_compaction(keep))

    def send_waiting(self) -> None:
        """Sends what an earlier turn left waiting."""
        self._run(self.talk.stream())

    def stop(self) -> None:
        """Stops the reply; what came of it is kept."""
        if self._task:
            self._task.cancel()

    def answer(self, part: int, answer: str) -> None:
        """The user's answer to a question of the running turn."""
        if self.turn:
            self.turn.answer(part, answer)
            self._draw()

    def check_idle(self) -> None:
        """Refuses what cannot be done while a reply comes."""
        if self.is_running:
            raise Invalid("a reply is on its way: wait for it, or stop it first")

    def _run(self, events: AsyncGenerator[Event, None]) -> None:
        self.check_idle()
        self.turn, self.failure = LiveTurn(), ""
        self._task = asyncio.create_task(self._follow(events))
        self._drawing = asyncio.create_task(self._keep_drawing(self.turn))
        self.refresh()

    async def _follow(self, events: AsyncGenerator[Event, None]) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    await self._hear(event)
        except RectoError as why:
            self.failure = why.message
        except asyncio.CancelledError:
            pass  # stopped by the user; what came is stored
        except Exception:
            log.exception("a turn failed")
            self.failure = "something went wrong in Recto itself; the log says more, and your message is kept"
        finally:
            self.turn = None
            if self._drawing:
                self._drawing.cancel()
            self.refresh()
            self._stored(self)

    async def _hear(self, event: Event) -> None:
        assert self.turn is not None
        is_stored = self.turn.hear(event)
        if isinstance(event, Appended):
            self._stored(self)
        if is_stored:
            # what was shown as it came is a stored message now
            self.turn.clear()
            self.refresh()
        if isinstance(event, Question):
            self._draw()
            await event.settled()
        if isinstance(event, Replied):
            self._draw()

    async def _keep_drawing(self, turn: LiveTurn) -> None:
        while True:
            await turn.changed.wait()
            began = time.monotonic()
            self._draw()
            # a busy server draws less often, so that every reply gets its share
            await asyncio.sleep(max(DRAW_S, DRAWING_SHARE * (time.monotonic() - began)))

    def _draw(self) -> None:
        if self.turn and (changes := self.turn.take_changes()):
            for each in tuple(self._onlookers):
                each.draw_turn(changes)

    # -- others

    async def look(self) -> None:
        """Notices what another program has added."""
        if self.is_running or self.talk.id is None:
            return
        head, is_growing = await self.talk.stored_head()
        if head != self.talk.head:
            self.talk = await self._desk.conversation(self.talk.id)
            self.refresh()
        elif is_growing:
            self.refresh()


class LiveConversations:
    """All that pages show now, by id, and the list of conversations."""

    def __init__(self, desk: PageDesk) -> None:
        self._desk = desk
        self._known: dict[str, LiveConversation] = {}
        self._watchers: list[Callable[[], object]] = []
        self._listed: list[Conversation] = []
        self._watched: Vault | None = None
        self._looking: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, id: str | int | None = None) -> LiveConversation:
        """The conversation of this id or number, or a new one. NotFound where there is none."""
        talk = await self._desk.conversation(id)
        if talk.vault is not self._watched:
            self._watched = talk.vault
            await talk.watch_vault()
        if id is None:
            return LiveConversation(self._desk, talk, self._note_stored)
        assert talk.id is not None
        known = self._known.get(talk.id)
        if known is None or not (known.is_running or known.is_watched):
            known = self._known[talk.id] = LiveConversation(self._desk, talk, self._note_stored)
        return known

    def running(self) -> set[str]:
        """The ids of the conversations in which a reply is coming."""
        return {id for id, live in self._known.items() if live.is_running}

    def _note_stored(self, live: LiveConversation) -> None:
        if live.talk.id is not None:
            self._known[live.talk.id] = live
        self.tell_list()

    def watch_list(self, watcher: Callable[[], object]) -> None:
        self._watchers.append(watcher)

    def unwatch_list(self, watcher: Callable[[], object]) -> None:
        with suppress(ValueError):
            self._watchers.remove(watcher)

    def tell_list(self) -> None:
        for each in tuple(self._watchers):
            each()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Runs something beside; it ends with the server at the latest."""
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
        self._known = {id: live for id, live in self._known.items() if live.is_watched or live.is_running}
        for live in [each for each in self._known.values() if each.is_watched]:
            await live.look()
        if self._watchers:
            listed = await self._desk.conversations(limit=MOST_LISTED)
            if listed != self._listed:
                self._listed = listed
                self.tell_list()

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._keep_looking())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        running = [self._looking, *self._tasks]
        for live in self._known.values():
            live.stop()
            running.append(live.ending)
        for task in filter(None, running):
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.gather(*filter(None, running), return_exceptions=True)
