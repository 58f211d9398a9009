"""IncomingMessage: a reply or a round of tool results as it comes in, stored in small batches.

A crash loses nothing that was shown for a second.
"""

import asyncio
import time
from dataclasses import replace
from typing import Any

from recto.chat.blocks import Block, Made
from recto.chat.message import Message, Status, Tokens, Usage
from recto.chat.message_builder import Delta, MessageBuilder
from recto.chat.priority import priority_of
from recto.concurrency import StoreThread
from recto.providers.provider import CallPart, TextPart, ThinkingPart
from recto.store.store import Store
from recto.store.tree import AppendedMessage
from recto.text import clean
from recto.turn.session import ChatSession, SessionChanges, moved

FLUSH_S = 0.25


class IncomingMessage:
    """A message that grows in the store from its first delta on. Nothing is stored if none ever comes."""

    def __init__(self, store: Store, store_thread: StoreThread, session: ChatSession, draft: Message) -> None:
        self._store = store
        self._store_thread = store_thread
        self._session = session
        self._draft = draft
        self._builder = MessageBuilder(_made(draft))
        self._started = time.monotonic()
        self._flusher: asyncio.Task[None] | None = None
        self._begun = False
        self.is_finished = False
        self.starts_branch = False
        """Another writer had moved the head: the session is on a branch from this message on."""

    @property
    def message(self) -> Message | None:
        """The message so far, once something of it has come."""
        return replace(self._draft, blocks=self._builder.blocks) if self._begun else None

    async def add(self, delta: Delta) -> None:
        # first, so that nothing is missing if the caller is cancelled while the message is begun
        self._builder.add(delta)
        if not self._begun:
            await self._store_thread.do(self._begin)
            self._flusher = asyncio.create_task(self._flush_now_and_then())

    def _begin(self) -> None:
        was_branched = self._session.branched
        placed = self._session.commit(self._store, self._append)
        self._draft, self._begun = placed.message, True
        self.starts_branch = not placed.moved and not was_branched

    def _append(self) -> tuple[AppendedMessage, SessionChanges]:
        placed = self._store.tree.append(self._session.conversation, self._draft)
        return placed, moved(placed.message.id, placed.moved)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._builder.blocks

    async def finish(
        self,
        status: Status,
        *,
        blocks: tuple[Block, ...] | None = None,
        tokens: Tokens = Tokens(),  # noqa: B008  a frozen value
        usage: Usage | None = None,
        error: str | None = None,
        outcome: dict[str, Any] | None = None,
    ) -> Message | None:
        """Stores the whole message and the outcome of its request; None if nothing had come."""
        if not self._begun:
            return None
        if self._flusher:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        made = _made(self._draft)
        if made is not None:
            made = replace(made, duration_s=round(time.monotonic() - self._started, 3))
        whole = tuple(replace(block, made=made) for block in blocks or self._builder.blocks)
        done = replace(self._draft, blocks=whole, status=status, tokens=tokens, usage=usage, error=error)
        done = replace(done, priority=priority_of(done))
        await self._store_thread.do(self._write, done, outcome)
        return done

    def _write(self, done: Message, outcome: dict[str, Any] | None) -> None:
        with self._store.database.write():
            self._store.tree.finish(done)
            if done.request and outcome is not None:
                self._store.records.outcome(done.request, **outcome)
        self.is_finished = True

    async def _flush_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            if deltas := self._builder.take():
                await self._store_thread.do(self._store.tree.grow, self._draft.id, deltas)


def delta_of(part: TextPart | ThinkingPart | CallPart) -> Delta:
    """What a part adds to the message. Its text is cleaned: providers can send characters that cannot be stored."""
    if isinstance(part, TextPart):
        return ["text", clean(part.text)[0]]
    if isinstance(part, ThinkingPart):
        return ["thinking", clean(part.text)[0], part.signature, part.redacted]
    return ["call", part.index, part.id, part.name, clean(part.arguments)[0]]


def _made(message: Message) -> Made | None:
    if message.provider is None or message.model is None:
        return None
    return Made(message.provider, message.model)
