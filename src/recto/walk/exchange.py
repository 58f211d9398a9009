"""Exchange: one request and what comes back: the reply, stored as it streams, and the tool calls it asks for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from recto.chat.blocks import Block, ToolCall
from recto.chat.message import Message, Role, Tokens, Usage
from recto.errors import ProviderError, RectoError, StoreError
from recto.events import Event, Noticed, Replied, Retrying, TextDelta, ThinkingDelta
from recto.providers.provider import Attempt, Done, Part, TextPart, ThinkingPart
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.walk.referring import Referring
from recto.walk.reply import Incoming, draft, step_of
from recto.walk.setup import Ready
from recto.walk.standing import Standing
from recto.walk.tooling import close_calls, run_calls
from recto.walk.turn import Turn
from recto.window.request import Entry, Request


@dataclass(slots=True)
class Exchange:
    store: Store
    clerk: Clerk
    standing: Standing
    ready: Ready
    turn: Turn
    request: Request
    referring: Referring
    calls: tuple[ToolCall, ...] = ()
    """What the reply asks for, once it is there."""
    _attempts: list[dict[str, Any]] = field(default_factory=list)

    async def run(self) -> AsyncGenerator[Event, None]:
        """The reply into the store and out to whoever listens. What came of it is kept, however it ends."""
        incoming = self._incoming("assistant", self.ready.provider.name, self.ready.model.name, self.request.id)
        done = Done("stop")
        try:
            async with aclosing(self.ready.provider.stream(self.request.body, self.request.purpose)) as parts:
                async for part in parts:
                    if isinstance(part, Done):
                        done = part
                    elif event := await self._take(incoming, part):
                        yield event
        except BaseException as why:
            await self._end_early(incoming, why)
            raise
        branched = False
        try:
            message = await self._end(incoming, done)
        finally:
            # also when it was stopped right here: what is stored is where we stand
            if incoming.message:
                branched = self.standing.stands_at(incoming.message.id, incoming.moved)
        yield Replied(message, self.turn.window, self.request.id)
        if branched:
            yield Noticed("another process went on with this conversation meanwhile: what follows here is a branch")
        if not message.blocks:
            yield Noticed("the model's reply was empty")
        if done.finish == "length":
            yield Noticed("the reply was cut off at its length limit")

    async def run_tools(self, *, may_run: bool) -> AsyncGenerator[Event, None]:
        """The calls of the reply, each with its one result in the end, whether or not they may run."""
        incoming = self._incoming("tool")
        try:
            async with aclosing(run_calls(incoming, self.ready.toolbox, self.calls if may_run else ())) as events:
                async for event in events:
                    yield event
        finally:
            message = await close_calls(incoming, self.calls, self._own)
            for call, result in zip(self.calls, message.results, strict=True):  # in the order of the calls
                self.referring.took(call, result)
            self.standing.stands_at(message.id, incoming.moved)

    def _incoming(
        self, role: Role, provider: str | None = None, model: str | None = None, request: str | None = None
    ) -> Incoming:
        assert self.standing.head is not None
        kind = "tool_output" if role == "tool" else "primary"
        blank = draft(role, self.standing.head, provider=provider, model=model, request=request, context_type=kind)
        return Incoming(self.store, self.clerk, self.standing.conversation, blank)

    async def _take(self, incoming: Incoming, part: Part) -> Event | None:
        if isinstance(part, Attempt):
            self._attempts.append({"error": part.error, "wait_s": part.wait_s})
            return Retrying(part.number, part.error, part.wait_s)
        assert not isinstance(part, Done)
        await incoming.add(step_of(part))
        if isinstance(part, TextPart):
            return TextDelta(part.text)
        return ThinkingDelta(part.text) if isinstance(part, ThinkingPart) and part.text else None

    async def _end(self, incoming: Incoming, done: Done) -> Message:
        if incoming.message is None:
            await incoming.add(["text", ""])
        own = await self._own("assistant", incoming.blocks)
        counted = self.turn.window.total
        message = await incoming.finish(
            "done",
            blocks=await self._with_references(incoming.blocks),
            tokens=Tokens(own),
            usage=done.usage or Usage(counted, own or 0, reported=False),
            outcome=self._outcome(done.finish),
        )
        assert message is not None
        self.calls = message.calls
        return message

    async def _with_references(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """The last reply of a turn names the documents that it was made with."""
        if any(isinstance(block, ToolCall) for block in blocks):
            return blocks
        found = await asyncio.to_thread(self.referring.block)
        return (*blocks, found) if found else blocks

    async def _own(self, role: Role, blocks: tuple[Block, ...]) -> int | None:
        """What a message will cost as history; unknown when it cannot be counted now."""
        try:
            weighed = await self.ready.scale.weigh([Entry(role, blocks)])
        except ProviderError:
            return None
        return weighed[0].count.tokens

    def _outcome(self, finish: str, error: str | None = None) -> dict[str, Any]:
        """What cannot be told from the reply itself."""
        told = {"finish": finish, "attempts": self._attempts, "error": error}
        return {name: value for name, value in told.items() if value}

    async def _end_early(self, incoming: Incoming, why: BaseException) -> None:
        stopped = isinstance(why, asyncio.CancelledError | GeneratorExit)
        error = None if stopped else why.message if isinstance(why, RectoError) else repr(why)
        outcome = self._outcome("stopped" if stopped else "error", error)
        # a store that fails here has most likely failed before: the first error is the one to tell
        with suppress(StoreError):
            found = self.referring.block() if incoming.blocks else None
            blocks = (*incoming.blocks, found) if found else None
            kept = await incoming.finish("stopped" if stopped else "error", blocks=blocks, error=error, outcome=outcome)
            if kept:
                self.standing.stands_at(kept.id, incoming.moved)
            else:
                await self.clerk.do(self.store.records.outcome, self.request.id, **outcome)
