"""Exchange: one request and its reply, stored as it streams, with the tool calls it asks for."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import asdict, replace

from recto.base.background import FOREGROUND
from recto.base.concurrency import run_to_completion
from recto.base.ids import new_id
from recto.chat.blocks import Block, Text, Thinking, ToolCall, ToolResult, written_text
from recto.chat.message import Message, Role, Status, Tokens, Usage, result_delta
from recto.errors import ProviderError, RectoError, StoreError
from recto.events import (
    ContextUsage,
    Event,
    NotesQuoted,
    Noticed,
    Replied,
    Retrying,
    Sent,
    TextDelta,
    ThinkingDelta,
    ToolCallsPending,
    ToolFinished,
    ToolStarted,
)
from recto.providers.model import Attempt, CallPart, Done, ReplyPart, TextPart, ThinkingPart, limited
from recto.sources.tools import CANCELLED, REMEMBER, ToolOutcome, has_run
from recto.store.store import Store
from recto.turn.citations import Citations
from recto.turn.context import TurnContext
from recto.turn.emitting import Emit
from recto.turn.incoming_message import IncomingMessage, OpenStreams, delta_of
from recto.turn.planned_request import PlannedRequest, count_current, reply_request
from recto.turn.session import ChatSession, SessionChanges
from recto.turn.source_uses import find_uses, record_sources, tools_of
from recto.turn.spending import at_most, broken_off, check_limits, priced
from recto.turn.token_cache import TokenCache, message_tokens
from recto.turn.turn import Turn
from recto.window.calibration import is_believable
from recto.window.request import Request

# Characters that take some milliseconds to count and to compare with their sources.
LONG_REPLY = 8_000
NEARLY_FULL, NEARLY_DUE = 0.80, 0.94


async def record_request(store: Store, session: ChatSession, planned: PlannedRequest, message: Message) -> Request:
    """Stores a request before it is sent, unless it would exceed a spending limit."""
    request, cache = reply_request(planned, session.conversation, message), planned.token_cache
    if session.cap:  # without `max_tokens` a reply may be longer than the reserve
        most = at_most(planned.context.model, planned.window.total, planned.longest_reply)
        request = replace(request, at_most_usd=most)
    whole = (await count_current(cache, message, ())).own.tokens
    tokens = await message_tokens(cache, message.role, message.blocks, whole)
    tools = sum(section.tokens for section in planned.window.sections if section.name == "tools")
    tokens = replace(tokens, augmented=planned.current.counted.count.tokens, descriptions=tools)

    def write() -> tuple[None, SessionChanges]:
        check_limits(store, planned.context.spend, request, session.run, session.cap)
        cache.save()
        store.tree.count(replace(message, tokens=tokens))
        store.records.save(request, session.request or store.records.latest(session.conversation))
        hashes = record_sources(store, request.id, planned, session.stored_hashes)
        return None, {"request": request.id, "last_tools": tools_of(planned), "stored_hashes": hashes}

    await store.do(session.commit, store, write)
    return request


async def count_results(store: Store, cache: TokenCache, reply: str | None, results: str | None) -> None:
    """Does nothing if no reply was waiting for results."""
    if not reply or not results:
        return
    called = await store.do(store.tree.message, reply)
    given = await store.do(store.tree.message, results)
    tokens = await message_tokens(cache, "tool", given.blocks)

    def write() -> None:
        with store.database.write():
            store.tree.count(replace(given, tokens=tokens))
            _add_results(store, called, tokens.own)

    await store.do(write)


def _add_results(store: Store, reply: Message, results: int | None) -> None:
    """Runs in the store's thread."""
    if results is not None:
        tokens = replace(reply.tokens, tools=(reply.tokens.tools or 0) + results)
        store.tree.count(replace(reply, tokens=tokens))


async def _said(text: str) -> AsyncGenerator[ReplyPart, None]:
    """A reply that no model writes."""
    yield TextPart(text)
    yield Done("stop")


@dataclass(slots=True)
class Exchange:
    turn: Turn
    planned: PlannedRequest
    request: Request
    """As recorded; replaced together with the plan if the provider finds the request too long."""
    streams: OpenStreams
    calls: tuple[ToolCall, ...] = ()
    """The calls of the complete reply."""
    handed_back: tuple[ToolCall, ...] = ()
    listener: Callable[[ReplyPart], None] | None = None
    """Receives the parts of the reply as they are stored."""
    also: Callable[[str, Sequence[Block]], None] | None = None
    """Writes more about the reply when it is stored whole; called with its id and blocks."""
    finish: str = ""
    """Why the reply ended, according to the provider."""
    _attempts: list[dict[str, Any]] = field(init=False)
    _notes: list[str] = field(init=False)
    _reply: Message | None = None
    _sent_ids: frozenset[str] | None = None
    """The call ids in the request; None until they are needed."""

    @property
    def context(self) -> TurnContext:
        return self.planned.context

    @property
    def session(self) -> ChatSession:
        return self.turn.session

    @property
    def store(self) -> Store:
        return self.turn.store

    @property
    def citations(self) -> Citations:
        return self.turn.citations

    async def announce(self, emit: Emit) -> None:
        """Reports that the request is sent, and how full its window is."""
        window, budget = self.planned.window, self.planned.budget
        usage, due = ContextUsage(window.total, window.limit), budget.due
        await emit(usage)
        # in a small window the room ends before 80 % of it
        is_nearly_full = usage.size >= min(NEARLY_FULL * usage.limit, NEARLY_DUE * due)
        if self.session.becomes_nearly_full(is_nearly_full) and budget.trigger:
            full = f"{usage.percent:.0f} % full ({usage.size:,} of {usage.limit:,} tokens; it is compacted at {due:,})"
            await emit(Noticed(f"the context is {full}"))
        await emit(Sent(self.request.id, window))

    # -- the reply

    async def run(self, emit: Emit) -> None:
        """Streams the reply. However the stream ends, what arrived is kept."""
        self._attempts, self._notes = [], []
        context, request, told = self.context, self.request, self.citations.instead
        incoming = self._incoming("assistant", context.provider.name, context.model.name, request.id)
        done = Done("stop")
        try:
            stream = _said(told) if told else context.provider.stream(request.body, request.purpose)
            async with aclosing(limited(stream, context.reply_limit, request.max_tokens)) as parts:
                async for part in parts:
                    if isinstance(part, Done):
                        done = part
                    elif event := await self._take(incoming, part):
                        await emit(event)
            with FOREGROUND.begin():
                message = await (self._end_cut(incoming, done) if done.note else self._end(incoming, done))
        except BaseException as why:
            if not incoming.is_finished:
                await self._end_early(incoming, why)
            raise
        try:
            await self._tell(message, done, emit)
        except BaseException:
            if own := self._own_calls:  # if the caller leaves during the reply, every call still gets its result
                await self._close_round(self._incoming("tool"), own, "stopped")
            raise

    async def _tell(self, message: Message, done: Done, emit: Emit) -> None:
        if self.citations.quotes and self.context.model.summarizes and not message.calls:
            await emit(NotesQuoted(self.citations.quotes, self.citations.root))
        await emit(Replied(message, self.planned.window, self.request.id))
        if branch := self.session.new_branch():
            await emit(branch)
        notes = [] if message.blocks else ["the model's reply was empty"]
        if done.finish == "length":
            notes.append(done.note or "the reply was cut off at its length limit")
        for note in (*notes, *self._notes):
            await emit(Noticed(note))

    async def _take(self, incoming: IncomingMessage, part: ReplyPart) -> Event | None:
        if isinstance(part, Attempt):
            self._attempts.append({"error": part.error, "wait_s": part.wait_s})
            return Retrying(part.number, part.error, part.wait_s)
        assert not isinstance(part, Done)
        if isinstance(part, CallPart) and part.id:
            part = self._with_own_id(part)
        if self.listener:
            self.listener(part)
        await incoming.add(delta_of(part))
        if isinstance(part, TextPart):
            return TextDelta(part.text)
        return ThinkingDelta(part.text) if isinstance(part, ThinkingPart) and part.text else None

    def _with_own_id(self, part: CallPart) -> CallPart:
        """Some servers count from call_0 in every reply, and some providers accept an id only once."""
        if self._sent_ids is None:
            view = self.planned.loaded.view
            sent = (*view.lifted, *view.history, *view.rounds)
            self._sent_ids = frozenset(call.id for message in sent for call in message.calls)
        return replace(part, id=f"{part.id}_{self.request.id[-8:]}") if part.id in self._sent_ids else part

    def _incoming(
        self, role: Role, provider: str | None = None, model: str | None = None, request: str | None = None
    ) -> IncomingMessage:
        assert self.session.head is not None
        draft = Message(
            new_id(),
            role,
            (),
            parent=self.session.head,
            status="unfinished",
            context_type="tool_output" if role == "tool" else "primary",
            agent=self.session.agent,
            provider=provider,
            model=model,
            request=request,
            memory_references=self._facts if role == "assistant" else (),
            task_runs=self.session.task_runs(),
        )
        return IncomingMessage(self.streams, self.session, draft)

    @property
    def _facts(self) -> tuple[str, ...]:
        """The numbers of the facts in the request."""
        inserts = (item for item, _ in self.planned.current.inserts)
        return tuple(pick.name for item in inserts for pick in item.picks if pick.kind == "fact")

    # -- its end

    async def _end(self, incoming: IncomingMessage, done: Done) -> Message:
        if incoming.message is None:
            await incoming.add(["text", ""])
        toolbox, model, citations = self.context.toolbox, self.context.model, self.citations
        size = sum(len(block.text) for block in incoming.blocks if isinstance(block, Text | Thinking))
        # otherwise the last words are stored with the end of the reply, in one commit
        if citations.has_found or not self.context.token_cache.counter.is_quick or size > LONG_REPLY:
            self.streams.flush_soon()
        self.finish = done.finish
        calls = [block for block in incoming.blocks if isinstance(block, ToolCall)]
        blocks = incoming.blocks
        # the last reply of a turn cites the documents that tools read or found
        if not calls and citations.has_found and (found := await asyncio.to_thread(citations.block)):
            blocks = (*blocks, found)
        tokens = await self._tokens("assistant", blocks)
        text = "".join(block.text for block in incoming.blocks if isinstance(block, Text))
        uses = [] if calls else await asyncio.to_thread(find_uses, self.planned, text)
        usage = done.usage
        if usage and not is_believable(usage):
            usage = None
            if self.session.is_new(said := f"{model.name} reported a usage that cannot be right"):
                self._notes.append(f"{said}: our own counts are kept")
        report = self.planned.window.report(usage.input, self.context.token_cache.counter.key) if usage else None
        rounds = self.planned.loaded.view.rounds
        has_learned = not calls and any(call.name == REMEMBER for message in rounds for call in message.calls)
        sent = 0 if citations.instead else self.planned.window.total
        spent = priced(model, usage or Usage(sent, tokens.own or 0, reported=False))
        outcome = self._outcome(done.finish, not_sent=bool(citations.instead))
        if used := [asdict(use.id) | {"sign": use.sign, "detail": use.detail} for use in uses if use.sign]:
            outcome["used"] = used

        def write_more() -> None:
            if self.also:
                self.also(incoming.id, blocks)
            if self._facts:
                self.store.facts.used(map(int, self._facts))
            if has_learned:
                learned = self.store.facts.learned_from(self.turn.message.id)
                self.store.tree.learn(self.turn.message.id, [str(number) for number in learned])
            if uses:
                self.store.source_uses.signs(self.request.id, {use.id: use.sign for use in uses})
            if report and report.estimated:
                self.store.usage_reports.add(model.name, report)

        message = await incoming.finish(
            "pending" if any(map(toolbox.is_callers, calls)) else "done",
            blocks=blocks,
            tokens=tokens,
            usage=spent,
            outcome=outcome | {"cost_usd": spent.cost_usd},
            also=write_more,
        )
        assert message is not None
        self.calls, self._reply = message.calls, message
        self.handed_back = tuple(filter(toolbox.is_callers, message.calls))
        if self.handed_back:
            self.session.apply(pending=message.id)
        return message

    async def _end_cut(self, incoming: IncomingMessage, done: Done) -> Message:
        """The calls of a cut-off reply are neither run nor sent again: the last one may be incomplete, and there may be
        thousands."""
        if incoming.message is None:
            await incoming.add(["text", ""])
        self.finish, spent = done.finish, self._spent_on(incoming)
        outcome = self._outcome(done.finish, done.note) | {"cost_usd": spent.cost_usd}
        message = await incoming.finish("stopped", usage=spent, error=done.note, outcome=outcome)
        assert message is not None
        return message

    async def _end_early(self, incoming: IncomingMessage, why: BaseException) -> None:
        status: Status = "stopped" if isinstance(why, asyncio.CancelledError) else "error"
        error = None if status == "stopped" else why.message if isinstance(why, RectoError) else repr(why)
        failed = why if isinstance(why, ProviderError) else None
        may_cost = status == "stopped" or incoming.message or (failed and failed.may_cost)
        # a reply that broke off costs money, a rejected request does not
        spent = self._spent_on(incoming) if may_cost else None
        outcome = self._outcome(status, error, not_sent=failed is not None and not failed.sent)
        outcome["cost_usd"] = spent.cost_usd if spent else 0.0
        # a store that fails here has probably failed before: the first error is the one to report
        with suppress(StoreError):
            found = self.citations.block() if incoming.blocks else None
            blocks = (*incoming.blocks, found) if found else None
            kept = await incoming.finish(status, blocks=blocks, usage=spent, error=error, outcome=outcome)
            if not kept:
                await self.store.do(self.store.records.outcome, self.request.id, **outcome)

    def _spent_on(self, incoming: IncomingMessage) -> Usage:
        text = "".join(map(written_text, incoming.blocks))
        return broken_off(self.context.model, self.planned.window.total, text, self.request.at_most_usd)

    def _outcome(self, finish: str, error: str | None = None, *, not_sent: bool = False) -> dict[str, Any]:
        """The fields of the record that the reply itself lacks."""
        told = {"finish": finish, "attempts": self._attempts, "error": error, "not_sent": not_sent}
        return {name: value for name, value in told.items() if value}

    async def _tokens(self, role: Role, blocks: tuple[Block, ...]) -> Tokens:
        """The tokens of a message as history; empty if it cannot be counted now."""
        try:
            return await message_tokens(self.context.token_cache, role, blocks)
        except ProviderError:
            return Tokens()

    # -- tools

    @property
    def _own_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.calls if call not in self.handed_back)

    async def run_tools(self, emit: Emit, *, may_run: bool) -> None:
        """Runs the calls of the reply, or hands them back. Each gets exactly one result, even if it may not run."""
        if own := self._own_calls:
            calls = own if may_run else ()
            if self.finish == "length" and calls and calls[-1] == self.calls[-1]:
                calls = calls[:-1]  # it may have been cut off before its arguments
            incoming = self._incoming("tool")
            status: Status = "stopped"
            try:
                await self._run_calls(incoming, calls, emit)
                status = "done"
            finally:
                await self._close_round(incoming, own, status)
            if branch := self.session.new_branch():
                await emit(branch)
        if self.handed_back:
            await emit(ToolCallsPending(self.handed_back))

    async def _run_calls(self, incoming: IncomingMessage, calls: tuple[ToolCall, ...], emit: Emit) -> None:
        toolbox, approvals = self.context.toolbox, self.turn.approvals
        await approvals.ask(toolbox, calls, emit)
        may_run = []
        for call in calls:
            if refused := approvals.refused(call):
                await incoming.add(result_delta(refused))
                await emit(ToolFinished(call, refused))
            else:
                may_run.append(call)
                await emit(ToolStarted(call))
        running = {asyncio.create_task(toolbox.run(call)): call for call in may_run}
        try:
            while running:
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    call = running.pop(task)
                    await emit(ToolFinished(call, await self._keep_result(incoming, task.result())))
        finally:
            for task, call in running.items():
                # a thread that writes cannot be interrupted, and the model must know what it did
                if toolbox.writes(call):
                    await self._keep_result(incoming, await task)
                else:
                    task.cancel()

    async def _keep_result(self, incoming: IncomingMessage, ran: ToolOutcome) -> ToolResult:
        """Stores what does not go into the window: the whole of a long result, and anything but text."""
        result, whole = ran.result, [ran.whole.encode()] if ran.whole is not None else []
        if whole or ran.media:
            kept = await self.store.do(self.store.blobs.put_all, [*whole, *(each.data for each in ran.media)])
            media = zip(ran.media, kept[len(whole) :], strict=True)
            told = tuple(f"{each.media_type} {sha256}" for each, sha256 in media)
            result = replace(result, whole=kept[0] if whole else "", media=told)
        result = replace(result, approval=self.turn.approvals.verdicts.get(result.call_id, ""))
        await incoming.add(result_delta(result))
        return result

    async def _close_round(self, incoming: IncomingMessage, calls: Sequence[ToolCall], status: Status) -> None:
        """Gives every call exactly one result; calls that never ran are denied or cancelled. Runs to its end even if
        the turn is stopped."""
        await run_to_completion(asyncio.ensure_future(self._closed_round(incoming, calls, status)))

    async def _closed_round(self, incoming: IncomingMessage, calls: Sequence[ToolCall], status: Status) -> None:
        came = {block.call_id: block for block in incoming.blocks if isinstance(block, ToolResult)}
        for call in calls:
            if call.id not in came:
                cancelled = ToolResult(call.id, call.name, CANCELLED, is_error=True)
                came[call.id] = self.turn.approvals.refused(call) or cancelled
                await incoming.add(result_delta(came[call.id]))
        results = tuple(came[call.id] for call in calls)
        if self.session.run:
            results = self.session.run.take(calls, results)
        tokens, reply = await self._tokens("tool", results), self._reply
        assert reply is not None
        await incoming.finish(
            status, blocks=results, tokens=tokens, also=lambda: _add_results(self.store, reply, tokens.own)
        )
        for call in calls:  # as they came: those of a run have a line about its limits
            self.citations.add_result(call, came[call.id])
        # a tool that was called counts as used, even if no final reply follows
        ran = [result.name for result in results if has_run(result)]
        found = [tool.tool.id for name in ran if (tool := self.context.toolbox.runnable(name))]
        offered = {tool.id for tool, _ in self.planned.preamble.tools}
        if signs := {id: "called" for id in found if id in offered}:
            with suppress(RectoError):
                await self.store.do(self.store.source_uses.signs, self.request.id, signs)
