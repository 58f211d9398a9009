"""Exchange: one request and what comes back: the reply, stored as it streams, and the tool calls it asks for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from recto.chat.blocks import Block, Text, ToolCall, ToolResult
from recto.chat.message import Message, Role, Tokens, Usage
from recto.errors import ProviderError, RectoError, StoreError
from recto.events import Event, Noticed, Replied, Retrying, TextDelta, ThinkingDelta
from recto.providers.provider import Attempt, Done, Part, TextPart, ThinkingPart
from recto.sources.tools import Ran
from recto.store.clerk import Clerk, to_its_end
from recto.store.store import Store
from recto.walk.approving import Approving
from recto.walk.referring import Referring
from recto.walk.reply import Incoming, draft, step_of
from recto.walk.setup import Ready
from recto.walk.standing import Standing
from recto.walk.tooling import close_calls, run_calls
from recto.walk.turn import Turn
from recto.walk.using import Retracing, evidence
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
    approving: Approving
    retracing: Retracing
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
        except BaseException as why:
            if not incoming.is_finished:
                await self._end_early(incoming, why)
            raise
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
        incoming, calls = self._incoming("tool"), self.calls if may_run else ()
        try:
            async with aclosing(run_calls(incoming, self.ready.toolbox, calls, self.approving, self._keep)) as events:
                async for event in events:
                    yield event
        finally:
            # to its end, also when the turn is stopped right here: what is stored is where we stand
            await to_its_end(asyncio.ensure_future(self._close_round(incoming)))

    async def _close_round(self, incoming: Incoming) -> None:
        message = await close_calls(incoming, self.calls, self.approving, self._own)
        for call, result in zip(self.calls, message.results, strict=True):  # in the order of the calls
            self.referring.took(call, result)
        self.standing.stands_at(message.id, incoming.moved)
        await self._note_calls()

    async def _keep(self, ran: Ran) -> ToolResult:
        """What does not go into the window is kept all the same: the whole of a long result, and what is no text."""
        whole = [ran.whole.encode()] if ran.whole is not None else []
        if not whole and not ran.media:
            return ran.result
        kept = await self.clerk.do(self.store.kept.put_all, [*whole, *(each.data for each in ran.media)])
        media = zip(ran.media, kept[len(whole) :], strict=True)
        told = tuple(f"{each.media_type} {sha256}" for each, sha256 in media)
        return replace(ran.result, whole=kept[0] if whole else "", media=told)

    def _incoming(
        self, role: Role, provider: str | None = None, model: str | None = None, request: str | None = None
    ) -> Incoming:
        assert self.standing.head is not None
        kind = "tool_output" if role == "tool" else "primary"
        known = {"provider": provider, "model": model, "request": request, "agent": self.standing.choices.agent}
        blank = draft(role, self.standing.head, context_type=kind, **known)
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
            outcome=self._outcome(done.finish) | await self._used(incoming.blocks),
        )
        assert message is not None
        self.calls = message.calls
        return message

    async def _used(self, blocks: tuple[Block, ...]) -> dict[str, Any]:
        """Which sources the last reply of a turn shows signs of; a look that fails has seen nothing."""
        if any(isinstance(block, ToolCall) for block in blocks):
            return {}
        text = "".join(block.text for block in blocks if isinstance(block, Text))
        with suppress(Exception):  # a reply is there, whatever can be said about it
            if found := evidence(self.turn, text):
                uses = await asyncio.to_thread(lambda: found.uses)
                signs = {use.id: use.sign for use in uses}
                await self.clerk.do(self.store.sourced.signs, self.request.id, signs)
                self.retracing.begin(self.request.id, found, uses)
                told = [asdict(use.id) | {"sign": use.sign, "detail": use.detail} for use in uses if use.sign]
                return {"used": told} if told else {}
        return {}

    async def _note_calls(self) -> None:
        """A tool that was called was used, also where no last reply comes."""
        tools = [tool for call in self.calls if (tool := self.ready.toolbox.tool(call.name))]
        offered = {tool.id for tool, _ in self.turn.opening.tools}
        if signs := {tool.id: "called" for tool in tools if tool.id in offered}:
            with suppress(RectoError):
                await self.clerk.do(self.store.sourced.signs, self.request.id, signs)

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
