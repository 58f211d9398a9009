"""Desk: the Python door. `recto.open()` gives a desk, a desk gives talks; everything else is behind them."""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from recto import places
from recto import settings as configuration
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message, Usage
from recto.engine import Engine
from recto.errors import Invalid, NotFound, RectoError, Unreachable
from recto.events import BRANCHED, Appended, CompactionProposed, ContextCompacted, Event, Noticed, Replied
from recto.providers.model import Model
from recto.store.records import Record
from recto.store.store import Store
from recto.text import clean
from recto.vault.vault import Vault
from recto.walk.setup import Choices
from recto.walk.standing import Standing
from recto.window.window import Window

T = TypeVar("T")
# messages read at a time on a walk along a path
PAGE = 500


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


@dataclass(frozen=True, slots=True)
class Covered:
    """What of a path its newest Compaction has archived."""

    depth: int = 0
    """Messages up to here are covered."""
    lifted: frozenset[str] = frozenset()
    compaction: str | None = None

    def active(self, message: Message) -> bool:
        """Whether the message is in the view now."""
        if message.compaction:
            return message.id == self.compaction
        return message.depth > self.depth or message.id in self.lifted


class Desk:
    """A store, settings and a vault, open. Use it as a context manager, or `close()` it."""

    def __init__(self, *, home: Path, project: Path | None, settings: configuration.Settings) -> None:
        self.home, self.project = home, project
        self.settings = settings
        self.vault = Vault(Path(settings.vault).expanduser()) if settings.vault else None
        self.store = Store(home / places.STORE_FILE)
        self.engine = Engine(self.store, settings, home=home, project=project, environment=os.environ)
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- conversations

    def conversation(self, id: str | None = None, *, agent: str = "default") -> "Talk":
        """The conversation of this id, or a new one of this agent, which is stored with its first message."""
        if id is None:
            configuration.check_agent(agent, self.home, self.project)
            return Talk(self, None, agent)
        return Talk(self, self.store.tree.conversation(id))

    def latest(self) -> "Talk | None":
        found = self.store.tree.latest()
        return Talk(self, found) if found else None

    def conversations(self, *, limit: int = 100) -> list[Conversation]:
        return self.store.tree.conversations(limit=limit)

    def model(self, name: str) -> Model:
        """What is known about `provider:model`. NotFound when nobody knows it."""
        return self.run(self.engine.setup.provider(name).model(name))

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
            self._thread = threading.Thread(target=self._loop.run_forever, name="recto-loop", daemon=True)
            self._thread.start()
        return self._loop

    def stream(self, events: AsyncGenerator[Event, None]) -> Generator[Event]:
        """Events as they come, for synchronous code. Leaving early (or Ctrl-C) stops the reply and keeps what came."""
        box: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        task = asyncio.run_coroutine_threadsafe(_pump(events, box), self._running_loop())
        ended = False
        try:
            while not (ended := (item := box.get()) is None):
                if isinstance(item, BaseException):
                    raise item
                yield item
                if isinstance(item, CompactionProposed):
                    item.settle()
        finally:
            if not ended:
                task.cancel()
                while box.get() is not None:
                    continue

    def close(self) -> None:
        if self._loop is not None:
            self.run(self.engine.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
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

    def __init__(self, desk: Desk, conversation: Conversation | None, agent: str = "default") -> None:
        self._desk = desk
        self._choices = Choices(agent)
        # a model that was asked for by name stays with the conversation; one from the settings may change with them
        self._chosen = desk.settings.model if desk.settings.origin("model") == "option" else None
        self._standing: Standing | None = None
        if conversation is not None:
            model = self._chosen or str(conversation.details.get("model") or desk.settings.model)
            choices = Choices(conversation.agent, conversation.details.get("strategy"))
            self._standing = Standing(conversation.id, conversation.head, model, desk.vault, choices)
            if desk.vault is None and conversation.details.get("vault"):
                self._remember(self._standing, Path(conversation.details["vault"]))

    def _remember(self, standing: Standing, folder: Path) -> None:
        """The vault that the conversation was begun over; one that is gone is told, and the chat goes on."""
        try:
            standing.vault = Vault(folder)
        except RectoError as why:
            standing.notes.append(f"the vault of this conversation cannot be used: {why.message}")

    @property
    def standing(self) -> Standing:
        """Where we stand; a new conversation is stored when it is first needed."""
        if self._standing is None:
            details = {"model": self._chosen} if self._chosen else {}
            if self._desk.vault and self._desk.settings.origin("vault") == "option":
                details["vault"] = str(self._desk.vault.root)
            if self._choices.conversation:
                details["strategy"] = self._choices.conversation
            made = self._desk.store.tree.create(details=details, agent=self._choices.agent)
            self._standing = replace(self._outside, conversation=made.id)
        return self._standing

    @property
    def _outside(self) -> Standing:
        """Where we stand as long as nothing is stored: in no conversation yet."""
        return self._standing or Standing("", None, self.model, self._desk.vault, self._choices)

    @property
    def id(self) -> str | None:
        return self._standing.conversation if self._standing else None

    @property
    def model(self) -> str:
        return self._standing.model if self._standing else self._chosen or self._desk.settings.model

    @property
    def vault(self) -> Vault | None:
        return self._outside.vault

    def use(self, model: str) -> None:
        """Another model from the next message on, for this conversation. NotFound when nobody knows it."""
        self._desk.model(model)
        self._chosen = model
        if self._standing is not None:
            self._standing.model = model
            self._desk.store.tree.change(self._standing.conversation, details={"model": model})

    @property
    def strategy(self) -> str | None:
        """What was chosen for this conversation; None when it follows agent, model and settings."""
        return self._outside.choices.conversation

    def use_strategy(self, name: str | None) -> None:
        """Another strategy for this conversation from the next message on; None follows the settings again."""
        if name is not None:
            configuration.check("context.strategy", name, "strategy")
        self._choices = replace(self._choices, conversation=name)
        if self._standing is not None:
            self._standing.choices = replace(self._standing.choices, conversation=name)
            self._desk.store.tree.change(self._standing.conversation, details={"strategy": name})

    async def send(self, text: str | bytes, *, strategy: str | None = None) -> AsyncGenerator[Event, None]:
        """The message on its way, as events, in the caller's own loop; `strategy` is for this message alone."""
        if self._standing is None and not clean(text)[0].strip():
            raise Invalid("the message is empty: write something to send")  # before a conversation is made for it
        if strategy is not None:
            configuration.check("context.strategy", strategy, "strategy")
        async with aclosing(self._desk.engine.send(self.standing, text, strategy)) as events:
            async for event in events:
                yield event
                if isinstance(event, CompactionProposed):
                    event.settle()

    def stream(self, text: str | bytes, *, strategy: str | None = None) -> Generator[Event]:
        """The same for synchronous code; closing it (or Ctrl-C) stops the reply and keeps what came."""
        return self._desk.stream(self.send(text, strategy=strategy))

    def ask(self, text: str | bytes, *, strategy: str | None = None) -> Reply:
        last: Replied | None = None
        notes: list[str] = []
        for event in self.stream(text, strategy=strategy):
            if isinstance(event, Replied):
                last = event
            elif isinstance(event, Noticed):
                notes.append(event.text)
            elif isinstance(event, ContextCompacted):
                notes.extend(event.notes)
            elif isinstance(event, Appended) and event.branched:
                notes.append(BRANCHED)
        if last is None:
            raise Unreachable("the model gave no reply")
        return Reply(last.message.text, last.message, last.window, last.request, tuple(notes))

    def window(self, text: str | bytes = "", *, strategy: str | None = None) -> Window:
        """What would be sent for this message, without sending or changing anything."""
        if strategy is not None:
            configuration.check("context.strategy", strategy, "strategy")
        return self._desk.run(self._desk.engine.window(self._outside, text, strategy))

    def path(self) -> Iterator[Message]:
        """From the head back to the first message, read a page at a time."""
        at = self._outside.head
        while at:
            page = self._desk.store.tree.page(at, most=PAGE)
            yield from page
            at = page[-1].parent if len(page) == PAGE else None

    def messages(self, *, limit: int | None = None) -> list[Message]:
        """The path to the head, oldest first; with `limit`, only its last messages."""
        return list(islice(self.path(), limit))[::-1]

    def covered(self) -> Covered:
        """What of the path is archived now."""
        tree, head = self._desk.store.tree, self._outside.head
        newest = tree.compaction(head) if head else None
        if newest is None or newest.compaction is None:
            return Covered()
        last = newest.compaction.last
        depth = tree.message(last).depth if last else 0
        return Covered(depth, frozenset(newest.compaction.lifted), newest.id)

    def undo(self) -> Message:
        return self._desk.run(self._desk.engine.undo(self._outside))

    def fork(self, message: str) -> None:
        if self._standing is None:
            raise NotFound(f"message {message} is not part of this conversation, which has none yet", id=message)
        self._desk.run(self._desk.engine.fork(self._standing, message))

    def clear(self) -> Compaction:
        return self._desk.run(self._desk.engine.clear(self._outside))

    # -- compactions

    def compacting(self, keep: str = "") -> Generator[Event]:
        """A compaction now, as events; `keep` says what must be in its summary above all."""
        return self._desk.stream(self._desk.engine.compact(self._outside, keep))

    def compact(self, keep: str = "") -> Compaction:
        for _ in self.compacting(keep):
            pass
        block = self.compaction()
        assert block is not None
        return block

    def compaction(self) -> Compaction | None:
        """The Compaction in force."""
        newest = self._desk.store.tree.compaction(self._outside.head) if self._outside.head else None
        return newest.compaction if newest else None

    def compactions(self, *, limit: int = 100) -> list[Compaction]:
        """All on the path, the newest first: those that were replaced, edited or taken back too."""
        head = self._outside.head
        found = self._desk.store.tree.compactions(head, limit=limit) if head else []
        return [message.compaction for message in found if message.compaction]

    def uncompact(self) -> Compaction:
        """Takes the newest compaction back; what was said since stays."""
        return self._desk.run(self._desk.engine.uncompact(self._outside))

    def edit_summary(self, text: str) -> Compaction:
        return self._desk.run(self._desk.engine.edit_summary(self._outside, text))

    def pin(self, message: str) -> Compaction:
        """The message is in every window from now on."""
        return self._desk.run(self._desk.engine.pin(self._outside, message))

    def unpin(self, message: str) -> Compaction:
        return self._desk.run(self._desk.engine.unpin(self._outside, message))

    def prioritise(self, message: str, priority: int) -> None:
        """How much a message matters to `hybrid`, from 1 to 10, in place of what it was given by itself."""
        if self.id is None or self._desk.store.tree.owner(message) != self.id:
            raise NotFound(f"message {message} is not part of this conversation", id=message)
        self._desk.store.tree.prioritise(message, priority)
        self._outside.loaded = {}


async def _pump(events: AsyncGenerator[Event, None], box: "queue.SimpleQueue[Event | BaseException | None]") -> None:
    try:
        async with aclosing(events):
            async for event in events:
                box.put(event)
                if isinstance(event, CompactionProposed):
                    await event.settled()
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
    place = Path(home).expanduser() if home else places.find_home()
    root = Path(project) if project else places.find_project(Path.cwd())
    flags = {"vault": str(vault) if vault else None, "model": model, **(settings or {})}
    return Desk(home=place, project=root, settings=configuration.load(place, root, flags=flags))
