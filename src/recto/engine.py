"""The walk of one message: append, find, pick, budget, plan, compact, window, send, append.

Whoever reads `send` knows the product; each step is a paragraph below it, or a room of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from recto.chat.blocks import Block, Compaction, Text, ToolCall
from recto.chat.message import Message, Tokens, Usage, now
from recto.errors import Invalid, NotFound, ProviderError, RectoError
from recto.events import (
    Appended,
    ContextCompacted,
    ContextUsage,
    Event,
    Noticed,
    Replied,
    Retrying,
    Sent,
    TextDelta,
    ThinkingDelta,
)
from recto.ids import new_id
from recto.picking import pick_documents
from recto.providers.provider import Attempt, Done, Part, TextPart, ThinkingPart
from recto.reply import Incoming, draft, step_of
from recto.scale import Scale
from recto.settings import Settings
from recto.setup import Ready, Setup
from recto.sources.documents import find_documents
from recto.standing import Standing
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.tooling import close_calls, run_calls
from recto.turn import (
    Loaded,
    Picked,
    Turn,
    account_of,
    behind_cut,
    cut_message,
    load,
    make_turn,
    weigh_current,
)
from recto.vault.vault import Vault
from recto.window.compact import cleared
from recto.window.request import Entry, Request
from recto.window.window import Window


class Engine:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        home: Path,
        project: Path | None,
        environment: Mapping[str, str],
        vault: Vault | None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.vault = vault
        self.clerk = Clerk()
        self.setup = Setup(
            store, self.clerk, settings, home=home, project=project, environment=environment, vault=vault
        )

    async def send(self, standing: Standing, text: str | bytes) -> AsyncIterator[Event]:
        """One message, all the way through. Whatever fails later, the user's words are stored first."""
        message, repaired, branched = await self._append(standing, text)  # 1 append
        yield Appended(message, branched)
        if repaired:
            yield Noticed(f"{repaired} invalid or NUL characters in your message were replaced by U+FFFD")
        ready = await self.setup.ready(standing.model)
        findings = find_documents(message.text, self.vault)  # 2 find
        picked, notes = await pick_documents(ready.scale, findings, ready.free)  # 3 pick
        for note in (*ready.notes, *notes):
            if note in notes or standing.tell_once(note):
                yield Noticed(note)
        for step in range(1, self.settings.tools.step_limit + 1):
            loaded = await self._load(standing, ready, message.id)
            turn = await self._plan(standing, ready, loaded, message, picked, notes)  # 4 budget, 5 plan
            if turn.plan.cut:
                block = await self._compact(standing, ready, turn)  # 6 compact, then plan again
                yield _compacted(block) if ready.compacts else _left_out(block)
                turn = await self._plan(standing, ready, behind_cut(loaded, block), message, picked, notes)
            request = await self._record(standing, turn, message)  # 7 window, recorded before it leaves
            yield ContextUsage(turn.window.total, turn.window.limit)
            yield Sent(request.id, turn.window)
            reply = message
            async for event in self._reply(standing, ready, turn, request):  # 8 send, 9 append the reply
                reply = event.message if isinstance(event, Replied) else reply
                yield event
            if not reply.calls:
                return
            allowed = step < self.settings.tools.step_limit
            async for event in self._run_tools(standing, ready, reply.calls, allowed):
                yield event

    async def window(self, standing: Standing, text: str | bytes = "") -> Window:
        """What would be sent for this message now; nothing is sent, stored or changed."""
        said, _ = clean(text)
        message = Message("next", "user", (Text(said),), parent=standing.head)
        ready = await self.setup.ready(standing.model)
        picked, notes = await pick_documents(ready.scale, find_documents(said, self.vault), ready.free)
        loaded = await self._load(standing, ready, None)
        turn = await self._plan(standing, ready, loaded, message, picked, notes)
        if turn.plan.cut:
            behind = behind_cut(loaded, _block(cut_message(turn, "next")))
            turn = replace(turn, window=(await self._plan(standing, ready, behind, message, picked, notes)).window)
        return replace(turn.window, plan=turn.plan)

    # -- the steps

    async def _append(self, standing: Standing, text: str | bytes) -> tuple[Message, int, bool]:
        said, repaired = clean(text)
        if not said.strip():
            raise Invalid("the message is empty: write something to send")
        message = Message(new_id(), "user", (Text(said),), parent=standing.head)
        placed = await self.clerk.do(self.store.tree.append, standing.conversation, message)
        return placed.message, repaired, standing.stands_at(placed.message.id, placed.moved)

    async def _load(self, standing: Standing, ready: Ready, current: str | None) -> Loaded:
        room = ready.budget.room
        return await load(self.store, self.clerk, ready.scale, standing.head, current, room)

    async def _plan(
        self,
        standing: Standing,
        ready: Ready,
        loaded: Loaded,
        message: Message,
        picked: Sequence[Picked],
        notes: Sequence[str],
    ) -> Turn:
        current = await weigh_current(ready.scale, message, picked)
        return make_turn(
            ready.scale,
            ready.parameters,
            ready.budget,
            ready.opening,
            loaded,
            current,
            conversation=standing.conversation,
            notes=(*ready.notes, *notes),
        )

    async def _compact(self, standing: Standing, ready: Ready, turn: Turn) -> Compaction:
        """One Compaction block; stored, unless automatic compaction is off: then this request alone leaves out."""
        assert standing.head is not None
        made = cut_message(turn, standing.head)
        if ready.compacts:
            placed = await self.clerk.do(self.store.tree.append, standing.conversation, made)
            standing.stands_at(placed.message.id, placed.moved)
        return _block(made)

    async def _record(self, standing: Standing, turn: Turn, message: Message) -> Request:
        request = Request(
            id=new_id(),
            conversation=standing.conversation,
            purpose="reply",
            model=turn.scale.model.name,
            format=turn.scale.format.name,
            parameters=turn.parameters.given(),
            pieces=turn.pieces,
            account=account_of(turn),
            message=message.id,
            created=now(),
        )
        tools = sum(section.tokens for section in turn.window.sections if section.name == "tools")
        tokens = Tokens(turn.current.own.tokens, turn.current.weighed.count.tokens, tools)
        await self.clerk.do(self._write_record, standing, request, turn.scale, tokens)
        return request

    def _write_record(self, standing: Standing, request: Request, scale: Scale, tokens: Tokens) -> None:
        with self.store.database.write():
            scale.save()
            if request.message:
                self.store.tree.count(request.message, tokens)
            base = standing.request or self.store.records.latest(standing.conversation)
            self.store.records.save(request, base)
        standing.request = request.id

    async def _reply(self, standing: Standing, ready: Ready, turn: Turn, request: Request) -> AsyncIterator[Event]:
        """Streams the reply into the store and out to whoever listens; what came is kept, however it ends."""
        assert standing.head is not None
        blank = draft(
            "assistant", standing.head, provider=ready.provider.name, model=ready.model.name, request=request.id
        )
        incoming = Incoming(self.store, self.clerk, standing.conversation, blank)
        attempts: list[dict[str, object]] = []
        done: Done | None = None
        try:
            async for part in ready.provider.stream(request.body, request.purpose):
                if isinstance(part, Attempt):
                    attempts.append({"error": part.error, "wait_s": part.wait_s})
                    yield Retrying(part.number, part.error, part.wait_s)
                elif isinstance(part, Done):
                    done = part
                else:
                    await incoming.add(step_of(part))
                    if event := _delta(part):
                        yield event
        except (ProviderError, asyncio.CancelledError, GeneratorExit) as why:
            await self._end_early(standing, incoming, request, attempts, why)
            raise
        message = await self._end(standing, ready, turn, incoming, request, attempts, done or Done("stop"))
        branched = standing.stands_at(message.id, incoming.moved)
        yield Replied(message, turn.window, request.id)
        if branched:
            yield Noticed("another process went on with this conversation meanwhile: what follows here is a branch")
        if not message.blocks:
            yield Noticed("the model's reply was empty")
        if done and done.finish == "length":
            yield Noticed("the reply was cut off at its length limit")

    async def _end(
        self,
        standing: Standing,
        ready: Ready,
        turn: Turn,
        incoming: Incoming,
        request: Request,
        attempts: list[dict[str, object]],
        done: Done,
    ) -> Message:
        if incoming.message is None:
            await incoming.add(["text", ""])
        own = await self._own(ready.scale, incoming.blocks)
        usage = done.usage or Usage(turn.window.total, own or 0, reported=False)
        message = await incoming.finish(
            "done",
            tokens=Tokens(own),
            usage=usage,
            outcome={"attempts": attempts, "finish": done.finish, "counted": turn.window.total},
        )
        assert message is not None
        return message

    async def _own(self, scale: Scale, blocks: tuple[Block, ...]) -> int | None:
        """What the reply will cost as history; unknown when it cannot be counted now."""
        try:
            weighed = await scale.weigh([Entry("assistant", blocks)])
        except ProviderError:
            return None
        return weighed[0].count.tokens

    async def _end_early(
        self,
        standing: Standing,
        incoming: Incoming,
        request: Request,
        attempts: list[dict[str, object]],
        why: BaseException,
    ) -> None:
        failed = isinstance(why, RectoError)
        error = why.message if isinstance(why, RectoError) else None
        outcome = {"attempts": attempts, "finish": "error" if failed else "stopped", "error": error}
        kept = await incoming.finish("error" if failed else "stopped", error=error, outcome=outcome)
        if kept:
            standing.head = kept.id
        else:
            await self.clerk.do(self.store.records.outcome, request.id, **outcome)

    async def _run_tools(
        self, standing: Standing, ready: Ready, calls: Sequence[ToolCall], allowed: bool
    ) -> AsyncIterator[Event]:
        assert standing.head is not None
        blank = draft("tool", standing.head, context_type="tool_output")
        incoming = Incoming(self.store, self.clerk, standing.conversation, blank)
        try:
            async for event in run_calls(incoming, ready.toolbox, calls if allowed else ()):
                yield event
        finally:
            standing.head = (await close_calls(incoming, calls)).id
        if not allowed:
            yield Noticed(f"stopped after {self.settings.tools.step_limit} rounds of tool calls (tools.step_limit)")

    # -- moving about

    async def undo(self, standing: Standing) -> Message:
        """The head goes back to before the last message of the user, which is given back."""
        at = standing.head
        while at:
            page = await self.clerk.do(self.store.tree.page, at, most=64)
            if last := next((message for message in page if message.role == "user"), None):
                await self._move(standing, last.parent)
                return last
            at = page[-1].parent
        raise NotFound("there is nothing to undo: the conversation has no message yet")

    async def fork(self, standing: Standing, message: str) -> None:
        """The next message becomes a child of this one."""
        await self._move(standing, message)

    async def _move(self, standing: Standing, target: str | None) -> None:
        standing.head = await self.clerk.do(self.store.tree.move, standing.conversation, target)
        standing.branched = False

    async def clear(self, standing: Standing) -> Compaction:
        """Starts the view anew. Everything said stays in the store, in search and in show."""
        if standing.head is None:
            raise Invalid("there is nothing to clear: the conversation has no message yet")
        head = await self.clerk.do(self.store.tree.message, standing.head)
        newest = await self.clerk.do(self.store.tree.compaction, standing.head)
        made = cleared(before=newest.compaction if newest else None, parent=head.id, archived=head.said)
        placed = await self.clerk.do(self.store.tree.append, standing.conversation, made)
        standing.head = placed.message.id
        return _block(made)

    async def close(self) -> None:
        await self.setup.close()
        self.clerk.close()


def _block(message: Message) -> Compaction:
    assert message.compaction is not None
    return message.compaction


def _compacted(block: Compaction) -> ContextCompacted:
    return ContextCompacted(
        block.compaction_number,
        block.messages_archived,
        block.context_size_before,
        block.context_size_after,
        block.summary,
    )


def _left_out(block: Compaction) -> Noticed:
    return Noticed(f"{block.messages_archived} older messages do not fit and were left out of this request")


def _delta(part: Part) -> Event | None:
    if isinstance(part, TextPart):
        return TextDelta(part.text)
    if isinstance(part, ThinkingPart) and part.text:
        return ThinkingDelta(part.text)
    return None
