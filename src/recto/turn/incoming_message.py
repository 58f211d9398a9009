"""IncomingMessage: a reply or a round of tool results as it comes in.

OpenStreams: all open ones. Each tick stores what has arrived, for all of them in one commit, so that a crash loses
nothing that was shown more than a tenth of a second ago."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from recto.base.text import clean
from recto.chat.blocks import Block, Made
from recto.chat.message import Delta, Message, MessageBuilder, Status, Tokens, Usage
from recto.errors import StoreError
from recto.providers.model import CallPart, TextPart, ThinkingPart
from recto.sentences.priority import priority_of
from recto.store.rows import AppendedMessage
from recto.store.store import Store
from recto.turn.session import ChatSession, SessionChanges, moved

log = logging.getLogger(__name__)

# Half of the time within which shown text must be stored; the other half is for the commit.
TICK_S = 0.05


class OpenStreams:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._open: dict[IncomingMessage, None] = {}
        self._changing = threading.Lock()
        self._began = time.monotonic()
        self._is_asked_for = False

    def add(self, stream: "IncomingMessage") -> None:
        with self._changing:
            self._open[stream] = None

    def remove(self, stream: "IncomingMessage") -> None:
        with self._changing:
            self._open.pop(stream, None)

    async def tick(self) -> None:
        """All streams wait for the same moment; the first of them stores."""
        await asyncio.sleep(TICK_S - (time.monotonic() - self._began) % TICK_S)
        if self._open and not self._is_asked_for:
            self._is_asked_for = True
            await self.store.do(self._store)

    async def flush(self) -> None:
        """Stores what has arrived; what cannot be stored now is tried again."""
        if self._open:
            await self.store.do(self._store)

    def flush_soon(self) -> None:
        """Like `flush`, but works even while the caller's loop is busy."""
        if self._open:
            self.store.begin(self._store)

    def _store(self) -> None:
        self._is_asked_for = False
        with self._changing:
            taken = [(stream, steps) for stream in self._open if (steps := stream.take())]
            growing = {stream for stream, _ in taken}
            self._open = {stream: None for stream in self._open if stream in growing or not stream.is_over}
        if not taken:
            return
        try:
            # not synced: a power cut may lose the last words of an unfinished reply, but syncing would make twenty
            # streams wait for the disk
            with self.store.database.write(is_synced=False):
                for stream, steps in taken:
                    self.store.tree.grow(stream.id, steps)
        except StoreError as why:
            log.warning("part of a reply is not stored yet: %s", why.message)
            for stream, steps in taken:
                stream.put_back(steps)


class IncomingMessage:
    """A message that grows in the store from its first delta on."""

    def __init__(self, streams: OpenStreams, session: ChatSession, draft: Message) -> None:
        self._streams, self._store = streams, streams.store
        self._session, self._draft = session, draft
        self._made = Made(draft.provider, draft.model) if draft.provider and draft.model else None
        self._builder = MessageBuilder(self._made)
        # deltas arrive in the caller's loop and are taken in the store's thread
        self._building = threading.Lock()
        self._started = time.monotonic()
        self._ticker: asyncio.Task[None] | None = None
        self._begun = False
        self.is_over = False
        """Nothing more comes. If finishing failed, the next tick stores what is left."""
        self.is_finished = False

    @property
    def id(self) -> str:
        return self._draft.id

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._builder.blocks

    @property
    def message(self) -> Message | None:
        """The message so far; None before the first delta."""
        return replace(self._draft, blocks=self.blocks) if self._begun else None

    async def add(self, delta: Delta) -> None:
        # first, so that nothing is lost if the caller is cancelled while the message is created
        with self._building:
            self._builder.add(delta)
        if not self._begun:
            await self._store.do(self._begin)
            self._ticker = asyncio.create_task(self._tick())

    def take(self) -> list[Delta]:
        """The deltas to store now."""
        with self._building:
            return self._builder.take()

    def put_back(self, deltas: list[Delta]) -> None:
        with self._building:
            self._builder.put_back(deltas)

    def _begin(self) -> None:
        def append() -> tuple[AppendedMessage, SessionChanges]:
            placed = self._store.tree.append(self._session.conversation, self._draft)
            return placed, moved(placed)

        self._draft = self._session.commit(self._store, append).message
        self._begun = True
        self._streams.add(self)

    async def finish(
        self,
        status: Status,
        *,
        blocks: tuple[Block, ...] | None = None,
        tokens: Tokens = Tokens(),  # noqa: B008  a frozen value
        usage: Usage | None = None,
        error: str | None = None,
        outcome: dict[str, Any] | None = None,
        also: Callable[[], None] | None = None,
    ) -> Message | None:
        """Stores the whole message, the outcome of its request and what `also` writes. None if nothing arrived."""
        if not self._begun:
            return None
        self.is_over = True
        made = self._made and replace(self._made, duration_s=round(time.monotonic() - self._started, 3))
        whole = tuple(replace(block, made=made) for block in blocks or self.blocks)
        done = replace(self._draft, blocks=whole, status=status, tokens=tokens, usage=usage, error=error)
        done = replace(done, priority=priority_of(done))

        def write() -> None:
            with self._store.database.write():
                self._store.tree.finish(done)
                if done.request and outcome is not None:
                    self._store.records.outcome(done.request, **outcome)
                if also:
                    also()
            self.is_finished = True
            self._streams.remove(self)

        try:
            await self._store.do(write)
        finally:  # not earlier: while this waits for the ticker other tasks run, and shown text is not stored yet
            if self._ticker:
                self._ticker.cancel()
                await asyncio.gather(self._ticker, return_exceptions=True)
        return done

    async def _tick(self) -> None:
        while True:
            await self._streams.tick()


def delta_of(part: TextPart | ThinkingPart | CallPart) -> Delta:
    """Cleans the text: providers can send characters that cannot be stored."""
    if isinstance(part, TextPart):
        return ["text", clean(part.text)[0]]
    if isinstance(part, ThinkingPart):
        return ["thinking", clean(part.text)[0], part.signature, part.redacted]
    return ["call", part.index, part.id, part.name, clean(part.arguments)[0]]
