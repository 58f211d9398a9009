"""The walk of one message: append, find, pick, budget, plan, compact, window, send, append.

Whoever reads `_walk` knows the product; each step is a paragraph below it, or a room of its own.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from recto.agents.agents import Agents
from recto.base import locations
from recto.base.background import FOREGROUND, BackgroundWorker, ForegroundTurn, share_heap
from recto.base.concurrency import TaskSet
from recto.base.text import clean
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.compaction.revisions import Revisions
from recto.compaction.summary_ahead import SummariesAhead, find_ahead, is_due_soon
from recto.errors import Invalid, Overflow, RectoError
from recto.events import Noticed, Working
from recto.mcp.servers import McpServers
from recto.memory.fact_learning import FactLearner
from recto.memory.fact_memory import FactMemory
from recto.memory.fact_picker import FactPicker
from recto.providers.registry import embedding_address
from recto.recall.archive import WAIT_FOR_USER, WAIT_IN_TURN, Archive
from recto.recall.picker import RecallPicker, recall_ahead
from recto.search.embedder import SharedEmbedder
from recto.settings.settings import Settings
from recto.settings.strategy import SUMMARIZE
from recto.sources.chooser import Chooser
from recto.sources.memory_files import MemoryFiles
from recto.store.backup import DailyBackup
from recto.store.database import CHECKPOINT_IN_S
from recto.store.store import Store
from recto.turn.builder import TurnBuilder
from recto.turn.citations import Citations, DocumentSummaryWriter
from recto.turn.context import NO_OPTIONS, CallOptions, ResolvedModel, TurnContext
from recto.turn.document_picker import DocumentPicker
from recto.turn.emitting import Emit, patiently
from recto.turn.exchange import Exchange, record_request
from recto.turn.incoming_message import OpenStreams
from recto.turn.memory_picker import MemoryPicker, read_memory
from recto.turn.messages import (
    DRAFT,
    FirstReads,
    Given,
    StartedTurn,
    TurnStart,
    UserMessage,
    append_message,
    is_waiting,
    user_message,
)
from recto.turn.passage_picker import PassagePicker, PassageSearch
from recto.turn.plan_picker import PlanPicker
from recto.turn.planned_request import PlannedRequest, count_results
from recto.turn.session import ChatSession
from recto.turn.session_sources import SessionSources
from recto.turn.source_picker import SourcePicker
from recto.turn.source_uses import UseTracker
from recto.turn.tool_round import Approvals, round_limit
from recto.turn.turn import CallerTools, Picker, Turn
from recto.vault.vault_search import OpenVaults
from recto.window.compaction_block import has_archive
from recto.window.planner import compact_now

if TYPE_CHECKING:
    from recto.compaction.run import CompactionRun


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
        share_heap()  # before there are threads
        self.store, self.settings, self.project, self.home = store, settings, project, home
        self.folder = project or Path.cwd()
        search, address = settings.search, partial(embedding_address, environment=environment, home=home)
        embedder, timeout_s = SharedEmbedder(search.embedder, home, address), search.timeout_s
        self.archive = Archive(store, home / locations.SEARCH_FILE, embedder, timeout_s=timeout_s)
        self.facts = FactMemory(store, home / locations.FACTS_FILE, embedder, timeout_s=timeout_s)
        self.vaults = OpenVaults(home, embedder, timeout_s=timeout_s)
        self.agents, self.memory_files = Agents(home, project, settings), MemoryFiles()
        self.servers = McpServers(home, environment, timeout_s=settings.tools.timeout_s, start_s=settings.tools.start_s)
        self.chooser = Chooser(home / locations.SOURCES_FILE, embedder, timeout_s=timeout_s)
        self.builder = TurnBuilder(store, settings, home=home, project=project, environment=environment)
        self.sources = SessionSources(store, settings.tools, self.servers, self.chooser, self.vaults, project)
        self.passages = PassageSearch(store, self.vaults, settings)
        self.revisions = Revisions(store, self.resolve)
        self.use_tracker = UseTracker(store, embedder)
        self.document_summaries = DocumentSummaryWriter(store, settings.references)
        self.learner = FactLearner(self.facts, store, self.vaults, home)
        self.backup = DailyBackup(store.database.file if settings.store.backup else None)
        self.streams = OpenStreams(store)
        self.checkpoints = BackgroundWorker(
            store.database.checkpoint, "recto-checkpoint", delay_s=CHECKPOINT_IN_S, quiet_s=0
        )
        self._warming, self.summaries_ahead = TaskSet(), SummariesAhead(store.database)

    def _pickers(self, turn: Turn, citations: Citations) -> list[Picker]:
        """Everything that enters a window for a message. A new kind of source is one line here."""
        patience = WAIT_FOR_USER if turn.is_draft else WAIT_IN_TURN
        return [
            SourcePicker(self.sources, turn),
            MemoryPicker(self.memory_files, self.chooser, self.agents, turn),
            DocumentPicker(turn, citations, self.settings.references, self.folder),
            PassagePicker(turn, citations, self.passages),
            FactPicker(self.facts, self.sources, turn),
            RecallPicker(self.archive, self.sources, turn, patience),
            PlanPicker(turn),
            CallerTools(turn, self.settings.tools),
        ]

    async def send(
        self,
        session: ChatSession,
        given: TurnStart,
        emit: Emit,
        options: CallOptions = NO_OPTIONS,
        *,
        can_ask: bool = True,
    ) -> None:
        """One message, all the way through, then those that were said meanwhile; two from one session take turns.
        `can_ask`: the user answers questions."""
        async with session.turn_lock():
            wanted: TurnStart | None = given
            while wanted is not None:
                with FOREGROUND.begin() as foreground:
                    await self._walk(session, wanted, emit, options, can_ask, foreground)
                wanted = () if await is_waiting(self.store, session) else None

    async def _walk(
        self,
        session: ChatSession,
        given: TurnStart,
        emit: Emit,
        options: CallOptions,
        can_ask: bool,
        foreground: ForegroundTurn,
    ) -> None:
        """The walk itself. Whatever fails later, the user's words are stored first."""
        waited = session.pending
        user, reads = user_message(given, may_be_empty=given == ()), partial(self.first_reads, session)
        storing = append_message(self.store, session, user, reads)
        started = await patiently(storing, emit, partial(Working, "store"))  # 1 append
        if started is None:
            return
        turn, approvals = await self.start(session, started, waited, emit, options, can_ask)  # 2 find, 3 pick
        steps, limit = 0, round_limit(session, self.settings.tools)
        while steps <= limit.most:
            planned = await self.plan_request(session, turn, emit, can_ask)  # 4 budget, 5 plan, 6 compact
            if note := await turn.shrunk(planned):
                await emit(Noticed(note))
                continue
            request = await record_request(self.store, session, planned, turn.message)  # 7 window
            exchange = Exchange(turn, planned, request, approvals, self.use_tracker, self.streams)
            foreground.end()  # from here on the model is waited for
            for event in exchange.sent():
                await emit(event)
            self.archive.wake()  # not before: it would take turns with whatever prepares the request
            self.learner.frequent_notes.wake(session, planned.context.settings)
            try:
                await exchange.run(emit)  # 8 send, 9 append the reply
            except Overflow as why:
                turn.shrink(why)
                await emit(Noticed("the provider says that this is too long for it: making the window smaller"))
                continue
            self.after_reply(turn, planned, is_last=not exchange.calls)
            if not exchange.calls:
                await self.learner.learn(session, turn.message, planned, emit, can_ask=can_ask)
                return
            steps += 1
            await exchange.run_tools(emit, may_run=steps <= limit.most)
            if exchange.handed_back:
                session.apply(suspended=turn)
                return
            if (session.run and session.run.stops) or await is_waiting(self.store, session):
                return  # said meanwhile: the next request answers it too
            turn.next_round(may_call=steps < limit.most)
        await emit(limit.reached)

    async def start(
        self,
        session: ChatSession,
        started: StartedTurn,
        waited: str | None,
        emit: Emit,
        options: CallOptions,
        can_ask: bool,
    ) -> tuple[Turn, Approvals]:
        """From the stored message to what goes in with it. `waited`: the reply whose calls the caller had to answer."""
        self.backup.wake()
        for event in (*started.events, *self.learner.untold(session)):
            await emit(event)
        name = self.builder.model_name(session.model, options, await started.reads.agent)
        # not beside the start of a tiny model, which lets nothing else in this process run
        choosing, loading = partial(self.passages.working, session), partial(Working, "model", model=name)
        quoting = self.passages.quote_ahead(session, started, self.builder.known_model(name))
        if quoted := await patiently(quoting, emit, choosing):
            await emit(quoted)
        turn = await patiently(self._new_turn(session, started.message, options, started.reads), emit, loading)
        if turn.resolved.model.one_slot:
            await self.summaries_ahead.stop(session.conversation)
        preparing = self.prepare(turn, is_continued=started.is_continued)
        turn = await patiently(preparing, emit, choosing)
        results = session.head if started.is_continued else started.message.parent
        await count_results(self.store, turn.context.token_cache, waited, results)
        for event in turn.events(is_new=not started.is_continued):
            await emit(event)
        allow, accepted = partial(self.sources.allow, session.conversation), self.servers.allowed
        return turn, Approvals(turn.overrides, session.allowed, can_ask, accepted, allow)

    async def plan_request(self, session: ChatSession, turn: Turn, emit: Emit, can_ask: bool) -> PlannedRequest:
        """What the next request says: planned, compacted where it must be, and filled with what is recalled."""
        planned, is_stored = await turn.next_plan(), True
        if planned.needs_compaction:
            compaction = self._compaction(turn, planned, can_ask=can_ask)
            await compaction.run(emit)
            planned, is_stored = compaction.planned, compaction.is_stored
        loaded = {turn.context.token_cache.root: planned.loaded} if is_stored else {}
        session.apply(loaded=loaded, settings=planned.context.settings)
        filled = await patiently(turn.fill(planned), emit, partial(Working, "search"))
        for note in session.new_notes(turn.late_notes):
            await emit(Noticed(note))
        return filled

    async def draft(self, session: ChatSession, given: Given = "", options: CallOptions = NO_OPTIONS) -> PlannedRequest:
        """What would be sent for this message now; nothing is sent, stored or changed, and no model is asked."""
        blocks = user_message(given, may_be_empty=True).blocks
        message = Message(DRAFT, "user", blocks, parent=session.head)
        with FOREGROUND.begin():
            turn = await self.prepare(await self._new_turn(session, message, options, is_draft=True))
            planned = await turn.next_plan()
            if planned.plan.cut is None:
                return await turn.fill(planned)
            after = await turn.fill(await self._compaction(turn, planned).preview())
            return replace(after, window=replace(after.window, plan=planned.plan))

    async def compact(self, session: ChatSession, emit: Emit, *, keep: str = "") -> None:
        """A compaction because the user wants one: of everything but the latest messages; `keep` says what matters."""
        async with session.turn_lock():
            turn = await self._without_message(session)
            planned = await turn.next_plan()
            chosen = turn.context.chosen_strategy
            strategy = chosen if chosen.summarizes else SUMMARIZE
            plan = compact_now(strategy, planned.loaded.view, planned.budget, planned.loaded.counts)
            if plan.cut is None or not plan.summed_up.count:
                raise Invalid(f"there is nothing to compact: {plan.because}")
            run = self._compaction(turn, replace(planned, plan=plan), is_requested=True)
            run.keep = clean(keep)[0].strip()
            await run.run(emit)
            session.apply(loaded={})

    def warm_up(self, session: ChatSession) -> None:
        """Loads in the background what the next message will need: the model, its tokenizer, the latest messages."""
        self._warming.begin(self._warm_up(session))

    async def _warm_up(self, session: ChatSession) -> None:
        with suppress(RectoError):  # the message itself will say what is wrong
            planned = await self.draft(session)
            # a server would be asked before there is a question
            if has_archive(planned.loaded.view.compaction) and ":" not in self.settings.search.embedder:
                await asyncio.to_thread(self.archive.check)

    # -- the steps

    def first_reads(self, session: ChatSession, given: UserMessage) -> FirstReads:
        agent = asyncio.ensure_future(asyncio.to_thread(self.agents.read_or_last, session.agent))
        if ":" not in self.settings.search.embedder:  # a server is not asked before the turn's own settings are known
            recall_ahead(self.archive, session, Message(DRAFT, "user", given.blocks))
        memory = asyncio.to_thread(read_memory, self.memory_files, self.agents, session)
        stored = self.store.submit(self.sources.state, session), self.store.submit(self.facts.has_facts)
        return FirstReads(agent, stored[0], asyncio.ensure_future(memory), stored[1])

    async def resolve(
        self, session: ChatSession, options: CallOptions = NO_OPTIONS, reads: FirstReads | None = None
    ) -> ResolvedModel:
        """Which model answers next, and as which agent: its files are read at every turn."""
        agent = await (reads.agent if reads else asyncio.to_thread(self.agents.read_or_last, session.agent))
        name, given = self.builder.model_name(session.model, options, agent), options.for_guest(session.is_guest)
        return await self.builder.resolve(name, agent, session.chosen, given, session.conversation)

    async def _new_turn(
        self,
        session: ChatSession,
        message: Message | None,
        options: CallOptions,
        reads: FirstReads | None = None,
        *,
        is_draft: bool = False,
    ) -> Turn:
        resolved, state = await self.resolve(session, options, reads), reads.state if reads else None
        turn = await self.sources.new_turn(session, resolved, message, options, is_draft=is_draft, state=state)
        if reads:
            turn.memory, turn.has_facts = reads.memory, reads.has_facts
        return turn

    async def prepare(self, turn: Turn, *, is_continued: bool = False) -> Turn:
        """Finds what the message names and picks what goes in with it; the same for `send`, `draft` and a turn of the
        past that is planned again. `is_continued`: the message stays as it was stored."""
        suspended, asked = turn.session.suspended, turn.asked
        assert asked is not None
        if is_continued and isinstance(suspended, Turn) and suspended.is_for(turn):
            suspended.next_round(may_call=True)
            return suspended
        await self._begin(turn)
        annotated = await turn.annotate(asked if not is_continued else None)
        if annotated is not asked and not turn.is_draft and not is_continued:
            await self.store.do(self.store.tree.refer, annotated)
        await turn.pick()
        return turn

    async def _begin(self, turn: Turn) -> Turn:
        vault = turn.session.vault
        citations = Citations(vault, self.vaults.summaries(vault) if vault else None, self.settings.references.enabled)
        await turn.begin(self.builder, self._pickers(turn, citations), citations)
        return turn

    def _compaction(
        self, turn: Turn, planned: PlannedRequest, *, is_requested: bool = False, can_ask: bool = True
    ) -> "CompactionRun":
        from recto.compaction.run import CompactionRun  # compiles the patterns of summaries: a tenth of a second

        ahead = self.summaries_ahead
        return CompactionRun(self.builder, turn, planned, is_requested=is_requested, can_ask=can_ask, ahead=ahead)

    async def context(self, session: ChatSession, options: CallOptions = NO_OPTIONS) -> TurnContext:
        """What the next turn would stand on, before there is a message."""
        return (await self._begin(await self._new_turn(session, None, options, is_draft=True))).context

    def after_reply(self, turn: Turn, planned: PlannedRequest, *, is_last: bool) -> None:
        """What is done in the background while the user reads and types: `is_last` of a turn, lines about long
        documents, and the summary of a compaction that comes near."""
        self.archive.wake()
        self.checkpoints.wake()
        session, options = turn.session, turn.options
        if not is_last or not options.may_send:
            return
        self.document_summaries.begin(session, turn.context, turn.citations)
        if is_due_soon(planned):
            number = block.compaction_number if (block := planned.loaded.view.compaction) else None
            self.summaries_ahead.begin(session.conversation, self._write_ahead(session, options, number))

    async def _write_ahead(self, session: ChatSession, options: CallOptions, compaction: int | None) -> None:
        # one for each compaction: another would cost more than it can save
        if await self.store.do(find_ahead, self.store, session.conversation, compaction):
            return
        turn = await self._without_message(session, options)
        await self._compaction(turn, await turn.next_plan()).write_ahead()

    async def _without_message(self, session: ChatSession, options: CallOptions = NO_OPTIONS) -> Turn:
        """A turn for what is there, before the next message."""
        turn = await self._begin(await self._new_turn(session, None, options))
        turn.message = Message(DRAFT, "user", (Text(""),), parent=session.head)
        return turn

    async def close(self) -> None:
        for tasks in (self._warming, self.summaries_ahead, self.learner, self.document_summaries, self.use_tracker):
            await tasks.close()
        for each in (self.servers, self.chooser, self.archive, self.facts, self.checkpoints, self.vaults, self.backup):
            await asyncio.to_thread(each.close)
        await self.builder.close()
        await self.streams.flush()
