"""Desk: the Python door. `recto.open()` gives a desk, a desk gives talks; everything else is behind them."""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from recto import settings as configuration
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message, Usage
from recto.engine import Engine
from recto.errors import Unreachable
from recto.events import Event, Noticed, Replied
from recto.standing import Standing
from recto.store.records import Record
from recto.store.store import Store
from recto.vault.vault import Vault
from recto.window.window import Window

T = TypeVar("T")
STORE_FILE = "recto.db"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one message, with what is known about it."""

    text: str
    message: Message
    window: Window
    request_id: str
    notes: tuple[str, ...] = ()

    @property
    def references(self) -> tuple[dict[str, object], ...]:
        return self.message.references

    @property
    def usage(self) -> Usage:
        assert self.message.usage is not None
        return self.message.usage


class Desk:
    """A store, settings and a vault, open. Use it as a context manager, or `close()` it."""

    def __init__(self, *, home: Path, project: Path | None, settings: configuration.Settings) -> None:
        self.home = home
        self.settings = settings
        vault = Vault(Path(settings.vault).expanduser()) if settings.vault else None
        self.store = Store(home / STORE_FILE)
        self.engine = Engine(self.store, settings, home=home, project=project, environment=os.environ, vault=vault)
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- conversations

    def conversation(self, id: str | None = None) -> "Talk":
        """The conversation of this id, or a new one, which is stored with its first message."""
        if id is None:
            return Talk(self, None)
        return Talk(self, self.store.tree.conversation(id))

    def latest(self) -> "Talk | None":
        found = self.store.tree.latest()
        return Talk(self, found) if found else None

    def conversations(self, *, limit: int = 100) -> list[Conversation]:
        return self.store.tree.conversations(limit=limit)

    # -- records

    def record(self, request: str) -> Record:
        return self.store.records.record(request)

    def rebuild(self, request: str) -> bytes:
        """The exact bytes that were sent. Altered when they can no longer be had."""
        return self.store.records.rebuild(request)

    def verify(self, requests: Sequence[str] | None = None) -> list[tuple[str, str | None]]:
        """For each request (all of them by default): None when it rebuilds, else what differs."""
        ids = self.store.records.ids() if requests is None else requests
        return list(self.store.records.differences(ids))

    # -- running

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs on the desk's own loop in the background, so that it works inside a running loop too (Jupyter)."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop()).result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="recto-loop", daemon=True).start()
        return self._loop

    def stream(self, events: AsyncIterator[Event]) -> Iterator[Event]:
        """Events as they come, for synchronous code. Leaving early (or Ctrl-C) stops the reply and keeps what came."""
        box: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        task = asyncio.run_coroutine_threadsafe(_pump(events, box), self._running_loop())
        try:
            while (item := box.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            if not task.done():
                task.cancel()
                while box.get() is not None:
                    continue

    def close(self) -> None:
        if self._loop is not None:
            self.run(self.engine.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None
        else:
            self.engine.clerk.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Talk:
    """One conversation, from where this front end stands in it."""

    def __init__(self, desk: Desk, conversation: Conversation | None) -> None:
        self._desk = desk
        self._standing: Standing | None = None
        if conversation is not None:
            self._standing = self._stand(conversation)

    def _stand(self, conversation: Conversation) -> Standing:
        chosen = conversation.details.get("model")
        settings = self._desk.settings
        model = settings.model if settings.origin("model") == "option" or not chosen else str(chosen)
        return Standing(conversation.id, conversation.head, model)

    @property
    def standing(self) -> Standing:
        """Where we stand; a new conversation is stored when it is first needed."""
        if self._standing is None:
            self._standing = self._stand(self._desk.store.tree.create())
        return self._standing

    @property
    def id(self) -> str | None:
        return self._standing.conversation if self._standing else None

    @property
    def model(self) -> str:
        return self._standing.model if self._standing else self._desk.settings.model

    def use(self, model: str) -> None:
        """Another model from the next message on, for this conversation."""
        self._desk.engine.provider(model)
        self.standing.model = model
        self._desk.store.tree.change(self.standing.conversation, details={"model": model})

    async def send(self, text: str | bytes) -> AsyncIterator[Event]:
        """The message on its way, as events, in the caller's own loop."""
        async for event in self._desk.engine.send(self.standing, text):
            yield event

    def stream(self, text: str | bytes) -> Iterator[Event]:
        return self._desk.stream(self.send(text))

    def ask(self, text: str | bytes) -> Reply:
        last: Replied | None = None
        notes: list[str] = []
        for event in self.stream(text):
            if isinstance(event, Replied):
                last = event
            elif isinstance(event, Noticed):
                notes.append(event.text)
        if last is None:
            raise Unreachable("the model gave no reply")
        return Reply(last.message.text, last.message, last.window, last.request, tuple(notes))

    def window(self, text: str | bytes = "") -> Window:
        """What would be sent for this message, without sending or changing anything."""
        standing = self._standing or Standing("", None, self._desk.settings.model)
        return self._desk.run(self._desk.engine.window(standing, text))

    def messages(self, *, limit: int | None = None) -> list[Message]:
        """The path to the head, oldest first; with `limit`, only its last messages."""
        head = self._standing.head if self._standing else None
        if head is None:
            return []
        return self._desk.store.tree.page(head, most=limit or 2**31)[::-1]

    def undo(self) -> Message:
        return self._desk.run(self._desk.engine.undo(self.standing))

    def fork(self, message: str) -> None:
        self._desk.run(self._desk.engine.fork(self.standing, message))

    def clear(self) -> Compaction:
        return self._desk.run(self._desk.engine.clear(self.standing))


async def _pump(events: AsyncIterator[Event], box: "queue.SimpleQueue[Event | BaseException | None]") -> None:
    try:
        async for event in events:
            box.put(event)
    except Exception as why:
        box.put(why)
    finally:
        box.put(None)


def open_desk(
    *,
    home: str | Path | None = None,
    vault: str | Path | None = None,
    model: str | None = None,
    project: str | Path | None = None,
    settings: dict[str, Any] | None = None,
) -> Desk:
    """A desk on `home` (default: RECTO_HOME or ~/.recto). Keyword settings win over files and environment."""
    place = Path(home).expanduser() if home else configuration.find_home()
    root = Path(project) if project else configuration.find_project(Path.cwd())
    flags = {"vault": str(vault) if vault else None, "model": model, **(settings or {})}
    return Desk(home=place, project=root, settings=configuration.load(place, root, flags=flags))
