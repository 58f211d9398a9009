"""A reply as it comes in: stored in small batches, so that a crash loses nothing that was shown for a second."""

import asyncio
import time
from dataclasses import replace
from typing import Any

from recto.chat.blocks import Block, Made
from recto.chat.growth import Growth, Step
from recto.chat.message import Message, Role, Status, Tokens, Usage
from recto.chat.priority import priority_of
from recto.ids import new_id
from recto.providers.provider import CallPart, TextPart, ThinkingPart
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean

FLUSH_S = 0.25


class Incoming:
    """A message that grows in the store from its first step on. Nothing is stored if no step ever comes."""

    def __init__(self, store: Store, clerk: Clerk, conversation: str, draft: Message) -> None:
        self._store = store
        self._clerk = clerk
        self._conversation = conversation
        self._draft = draft
        self._growth = Growth(_made(draft))
        self._started = time.monotonic()
        self._flusher: asyncio.Task[None] | None = None
        self._begun = False
        self.is_finished = False
        self.moved = True

    @property
    def message(self) -> Message | None:
        """The message so far, once something of it has come."""
        return replace(self._draft, blocks=self._growth.blocks) if self._begun else None

    async def add(self, step: Step) -> None:
        # first, so that what came is there also when the caller is cancelled while it is begun
        self._growth.add(step)
        if not self._begun:
            await self._clerk.do(self._begin)
            self._flusher = asyncio.create_task(self._flush_now_and_then())

    def _begin(self) -> None:
        placed = self._store.tree.append(self._conversation, self._draft)
        self._draft, self.moved, self._begun = placed.message, placed.moved, True

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._growth.blocks

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
        """The message whole, as it is now stored, with what became of its request; None when nothing had come."""
        if not self._begun:
            return None
        if self._flusher:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        made = _made(self._draft)
        if made is not None:
            made = replace(made, duration_s=round(time.monotonic() - self._started, 3))
        whole = tuple(replace(block, made=made) for block in blocks or self._growth.blocks)
        done = replace(self._draft, blocks=whole, status=status, tokens=tokens, usage=usage, error=error)
        done = replace(done, priority=priority_of(done))
        await self._clerk.do(self._write, done, outcome)
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
            if steps := self._growth.take():
                await self._clerk.do(self._store.tree.grow, self._draft.id, steps)


def draft(role: Role, parent: str, **known: Any) -> Message:
    """A message that is about to come in."""
    return Message(new_id(), role, (), parent=parent, status="unfinished", **known)


def step_of(part: TextPart | ThinkingPart | CallPart) -> Step:
    """What a part adds to the message; its text cleaned, since providers too can send what cannot be stored."""
    if isinstance(part, TextPart):
        return ["text", clean(part.text)[0]]
    if isinstance(part, ThinkingPart):
        return ["thinking", clean(part.text)[0], part.signature, part.redacted]
    return ["call", part.index, part.id, part.name, clean(part.arguments)[0]]


def _made(message: Message) -> Made | None:
    if message.provider is None or message.model is None:
        return None
    return Made(message.provider, message.model)
