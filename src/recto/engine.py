"""The walk of one message: append, find, pick, budget, plan, compact, window, send, append.

Whoever reads `send` knows the product; each step is a paragraph below it, or a room of its own.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from recto.chat.blocks import Compaction, Text
from recto.chat.message import Message, Tokens, now
from recto.errors import Invalid, NotFound
from recto.events import (
    Appended,
    ContextCompacted,
    ContextUsage,
    Event,
    Noticed,
    Sent,
)
from recto.ids import new_id
from recto.settings import Settings
from recto.sources.documents import find_documents
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.walk.exchange import Exchange
from recto.walk.picking import pick_documents
from recto.walk.scale import Scale
from recto.walk.setup import Ready, Setup
from recto.walk.standing import Standing
from recto.walk.turn import (
    Loaded,
    Picked,
    Turn,
    account_of,
    behind_cut,
    cut_message,
    follow,
    load,
    make_turn,
    weigh_current,
)
from recto.window.compact import cleared
from recto.window.request import Request
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
    ) -> None:
        self.store = store
        self.settings = settings
        self.clerk = Clerk()
        self.setup = Setup(store, self.clerk, settings, home=home, project=project, environment=environment)

    async def send(self, standing: Standing, text: str | bytes) -> AsyncGenerator[Event, None]:
        """One message, all the way through; two from one front end take turns."""
        async with standing.taking_turns(), aclosing(self._walk(standing, text)) as events:
            async for event in events:
                yield event

    async def _walk(self, standing: Standing, text: str | bytes) -> AsyncGenerator[Event, None]:
        """The walk itself. Whatever fails later, the user's words are stored first."""
        message, repaired, branched = await self._append(standing, text)  # 1 append
        yield Appended(message, branched)
        for note in standing.take_notes():
            yield Noticed(note)
        if repaired:
            yield Noticed(f"{repaired} invalid or NUL characters in your message were replaced by U+FFFD")
        ready = await self.setup.ready(standing.model, standing.vault)
        picked, notes = await self._pick(standing, ready, message.text)  # 2 find, 3 pick
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
            standing.loaded = {ready.scale: turn.loaded} if ready.compacts else {}
            request = await self._record(standing, turn, message)  # 7 window, recorded before it leaves
            yield ContextUsage(turn.window.total, turn.window.limit)
            yield Sent(request.id, turn.window)
            exchange = Exchange(self.store, self.clerk, standing, ready, turn, request)
            async with aclosing(exchange.run()) as events:  # 8 send, 9 append the reply
                async for event in events:
                    yield event
            if not exchange.calls:
                return
            async with aclosing(exchange.run_tools(may_run=step < self.settings.tools.step_limit)) as events:
                async for event in events:
                    yield event
        yield Noticed(f"stopped after {self.settings.tools.step_limit} rounds of tool calls (tools.step_limit)")

    async def window(self, standing: Standing, text: str | bytes = "") -> Window:
        """What would be sent for this message now; nothing is sent, stored or changed."""
        said, _ = clean(text)
        message = Message("next", "user", (Text(said),), parent=standing.head)
        ready = await self.setup.ready(standing.model, standing.vault)
        picked, notes = await self._pick(standing, ready, said)
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
        placed, branched = await self.clerk.do(self._place, standing, message)
        return placed, repaired, branched

    def _place(self, standing: Standing, message: Message) -> tuple[Message, bool]:
        """Stores and stands there in one step of the store's thread: a cancelled turn must not part the two."""
        placed = self.store.tree.append(standing.conversation, message)
        return placed.message, standing.stands_at(placed.message.id, placed.moved)

    async def _pick(self, standing: Standing, ready: Ready, text: str) -> tuple[list[Picked], list[str]]:
        """What this message calls for; a vault that fails here is noted, and the turn goes on without it."""
        try:
            return await pick_documents(ready.scale, find_documents(text, standing.vault), ready.free)
        except (NotFound, Invalid, OSError) as why:
            return [], [f"the linked documents could not be read: {why}"]

    async def _load(self, standing: Standing, ready: Ready, current: str | None) -> Loaded:
        known = standing.loaded.get(ready.scale)
        loaded = await follow(self.store, self.clerk, ready.scale, standing.head, current, known)
        if loaded is None:
            loaded = await load(self.store, self.clerk, ready.scale, standing.head, current, ready.budget.room)
        return loaded

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
            await self.clerk.do(self._place, standing, made)
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
            stable=turn.stable,
        )
        tools = sum(section.tokens for section in turn.window.sections if section.name == "tools")
        tokens = Tokens(turn.current.own.tokens, turn.current.weighed.count.tokens, tools)
        await self.clerk.do(self._write_record, standing, request, turn.scale, replace(message, tokens=tokens))
        return request

    def _write_record(self, standing: Standing, request: Request, scale: Scale, message: Message) -> None:
        with self.store.database.write():
            scale.save()
            self.store.tree.count(message)
            base = standing.request or self.store.records.latest(standing.conversation)
            self.store.records.save(request, base)
        standing.request = request.id

    # -- moving about

    async def undo(self, standing: Standing) -> Message:
        """The head goes back to before what was done last, a clear or a message of the user, which is given back."""
        at = standing.head
        head = await self.clerk.do(self.store.tree.message, at) if at else None
        if head and head.compaction and head.compaction.made_by == "clear":
            standing.head = await self.clerk.do(self.store.tree.move, standing.conversation, head.parent, again=False)
            return head
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
        before, after = await self.clerk.do(self._sizes, standing)
        made = cleared(
            before=newest.compaction if newest else None,
            parent=head.id,
            archived=head.said,
            size_before=before,
            size_after=after,
        )
        await self.clerk.do(self._place, standing, made)
        return _block(made)

    def _sizes(self, standing: Standing) -> tuple[int, int]:
        """The last window here, and what of it does not come from the conversation."""
        last = self.store.records.latest(standing.conversation)
        sections = self.store.records.record(last).account["sections"] if last else []
        fixed = sum(section["tokens"] for section in sections if section["name"] in ("system", "tools"))
        return sum(section["tokens"] for section in sections), fixed

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
