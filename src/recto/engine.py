"""The walk of one message: append, find, pick, budget, plan, compact, window, send, append.

`start` and `_walk` are the product in short; each step is a method below or a package of its own."""

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
from recto.recall.message_index import WAIT_FOR_USER, WAIT_IN_TURN, MessageIndex
from recto.recall.picker import RecallPicker
from recto.search.embedder import SharedEmbedder
from recto.settings.settings import Settings
from recto.settings.strategy import SUMMARIZE
from recto.sources.chooser import Chooser
from recto.sources.memory_files import MemoryFiles
from recto.store.backup import DailyBackup
from recto.store.database import CHECKPOINT_IN_S
from recto.store.store import Store
from recto.turn.approvals import Approvals
from recto.turn.citations import Citations, DocumentSummaryWriter
from recto.turn.context import NO_OPTIONS, CallOptions
from recto.turn.document_picker import DocumentPicker
from recto.turn.emitting import Emit, patiently
from recto.turn.exchange import Exchange, count_results, record_request
from recto.turn.incoming_message import OpenStreams
from recto.turn.memory_picker import MemoryPicker
from recto.turn.messages import DRAFT, Given, TurnStart, append_message, is_waiting, user_message
from recto.turn.models import Models
from recto.turn.passage_picker import PassagePicker, PassageSearch
from recto.turn.planned_request import PlannedRequest
from recto.turn.session import ChatSession
from recto.turn.session_sources import SessionSources
from recto.turn.source_picker import SourcePicker
from recto.turn.spending import MAX_STEPS
from recto.turn.turn import CallerTools, Picker, PlanPicker, Turn
from recto.turn.turns import Turns
from recto.vault.vault_search import OpenVaults
from recto.window.compaction_block import has_archive
from recto.window.planner import compact_now

if TYPE_CHECKING:
    from recto.compaction.compaction_work import CompactionWork


class Engine:
    def __init__(
        self, store: Store, settings: Settings, *, home: Path, project: Path | None, environment: Mapping[str, str]
    ) -> None:
        share_heap()  # before there are threads
        self.store, self.settings, self.project, self.home = store, settings, project, home
        self.folder = project or Path.cwd()
        search, address = settings.search, partial(embedding_address, environment=environment, home=home)
        embedder, timeout_s = SharedEmbedder(search.embedder, home, address), search.timeout_s
        self.message_index = MessageIndex(store, home / locations.SEARCH_FILE, embedder, timeout_s=timeout_s)
        self.facts = FactMemory(store, home / locations.FACTS_FILE, embedder, timeout_s=timeout_s)
        self.vaults = OpenVaults(home, embedder, timeout_s=timeout_s)
        self.agents, self.memory_files = Agents(home, project, settings), MemoryFiles()
        self.servers = McpServers(home, environment, timeout_s=settings.tools.timeout_s, start_s=settings.tools.start_s)
        self.chooser = Chooser(home / locations.SOURCES_FILE, embedder, timeout_s=timeout_s)
        self.models = Models(store, settings, home=home, project=project, environment=environment)
        self.sources = SessionSources(store, settings.tools, self.servers, self.chooser, self.vaults, project)
        self.turns = Turns(self.models, self.agents, self.sources, settings.references, self._pickers)
        self.passages = PassageSearch(store, self.vaults, settings)
        self.revisions = Revisions(store, self.turns.resolve)
        self.document_summaries = DocumentSummaryWriter(store, settings.references)
        self.learner = FactLearner(self.facts, store, self.vaults, home)
        self.backup = DailyBackup(store.database.file if settings.store.backup else None)
        self.streams = OpenStreams(store)
        checkpoint, delay_s = store.database.checkpoint, CHECKPOINT_IN_S
        self.checkpoints = BackgroundWorker(checkpoint, "recto-checkpoint", delay_s=delay_s, quiet_s=0)
        self._warming, self.summaries_ahead = TaskSet(), SummariesAhead(store.database)

    def _pickers(self, turn: Turn, citations: Citations) -> list[Picker]:
        """Everything that enters a window for a message. A new kind of source is one line here."""
        patience = WAIT_FOR_USER if turn.is_draft else WAIT_IN_TURN
        return [
            SourcePicker(self.sources, turn),
            MemoryPicker(self.memory_files, self.chooser, self.agents, turn),
            DocumentPicker(turn, citations, self.settings.references, self.folder),
            *([PassagePicker(turn, citations, self.passages)] if turn.session.vault else []),
            FactPicker(self.facts, self.sources, turn),
            RecallPicker(self.message_index, self.sources, turn, patience),
            *([PlanPicker(turn, turn.session.run)] if turn.session.run else []),
            *([CallerTools(turn, self.settings.tools)] if turn.options.tools else []),
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
        """Sends one message, then those that arrived meanwhile; two turns of one session never overlap. `can_ask`: a
        user answers."""
        async with session.turn_lock():
            wanted: TurnStart | None = given
            while wanted is not None:
                with FOREGROUND.begin() as foreground:
                    if turn := await self.start(session, wanted, emit, options, can_ask=can_ask):
                        await self._walk(turn, emit, foreground)
                wanted = () if await is_waiting(self.store, session) else None

    async def _walk(self, turn: Turn, emit: Emit, foreground: ForegroundTurn) -> None:
        """One pass for each round of tool calls, to the last reply."""
        session, steps = turn.session, 0
        # a run's own limit spans all of its turns
        most = session.run.steps_left if session.run else self.settings.tools.step_limit
        while steps <= most:
            exchange = await self.prepare_request(turn, emit)  # 4 budget, 5 plan, 6 compact, 7 window
            foreground.end()  # from here on we only wait for the model
            self.message_index.wake()  # not earlier: it would compete with preparing the request
            self.learner.frequent_notes.wake(session, exchange.context.settings)
            await self.exchange(exchange, emit)  # 8 send, 9 append the reply
            if not exchange.calls:
                await self.learner.learn(session, turn.message, exchange.planned, emit, can_ask=turn.approvals.can_ask)
                return
            steps += 1
            await exchange.run_tools(emit, may_run=steps <= most)
            if exchange.handed_back:
                session.apply(suspended=turn)
                return
            if (session.run and session.run.stops) or await is_waiting(self.store, session):
                return  # a message arrived meanwhile: the next request answers it too
            turn.next_round(may_call=steps < most)
        setting = MAX_STEPS if session.run else "tools.step_limit"
        await emit(Noticed(f"stopped after {most} rounds of tool calls ({setting})"))

    async def start(
        self, session: ChatSession, given: TurnStart, emit: Emit, options: CallOptions, *, can_ask: bool
    ) -> Turn | None:
        """1 append, 2 find, 3 pick: from the message to what goes in with it. The user's words are stored first,
        whatever fails later. None if there is nothing to say."""
        waited, user = session.pending, user_message(given, may_be_empty=given == ())
        storing = append_message(self.store, session, user)
        started = await patiently(storing, emit, partial(Working, "store"))
        if started is None:
            return None
        self.backup.wake()
        for event in started.events:
            await emit(event)
        agent = await asyncio.to_thread(self.agents.read_or_last, session.agent)
        name = self.models.name(session.model, options, agent)
        # not in parallel with the start of a tiny model, which blocks the whole process
        choosing, loading = partial(self.passages.working, session), partial(Working, "model", model=name)
        quoting = self.passages.quote_ahead(session, started, self.models.known_model(name))
        if quoted := await patiently(quoting, emit, choosing):
            await emit(quoted)
        turn = await patiently(self.turns.new(session, started.message, options, agent), emit, loading)
        if turn.resolved.model.one_slot:
            await self.summaries_ahead.stop(session.conversation)
        turn = await patiently(self.turns.prepare(turn, is_continued=started.is_continued), emit, choosing)
        allow, accepted = partial(self.sources.allow, session.conversation), self.servers.allowed
        turn.approvals = Approvals(turn.overrides, session.allowed, can_ask, accepted, allow)
        results = session.head if started.is_continued else started.message.parent
        await count_results(self.store, turn.context.token_cache, waited, results)
        for event in turn.events(is_new=not started.is_continued):
            await emit(event)
        return turn

    async def prepare_request(self, turn: Turn, emit: Emit) -> Exchange:
        """The next request, planned and recorded."""
        planned = await self._plan(turn, emit)
        request = await record_request(self.store, turn.session, planned, turn.message)
        return Exchange(turn, planned, request, self.streams)

    async def _plan(self, turn: Turn, emit: Emit) -> PlannedRequest:
        """The plan, after a compaction if needed, with recalled messages."""
        session, planned, is_stored = turn.session, await turn.next_plan(), True
        if planned.needs_compaction:
            compaction = self._compaction(turn, planned, can_ask=turn.approvals.can_ask)
            await compaction.run(emit)
            planned, is_stored = compaction.planned, compaction.is_stored
        loaded = {turn.context.token_cache.root: planned.loaded} if is_stored else {}
        session.apply(loaded=loaded, settings=planned.context.settings)
        filled = await patiently(turn.fill(planned), emit, partial(Working, "search"))
        for note in session.new_notes(turn.late_notes):
            await emit(Noticed(note))
        return filled

    async def exchange(self, exchange: Exchange, emit: Emit) -> None:
        """Sends a request and stores its reply. A request that is too long for its provider is planned again."""
        while True:
            await exchange.announce(emit)
            try:
                await exchange.run(emit)
                return self.after_reply(exchange)
            except Overflow as why:
                exchange.turn.shrink(why)
                await emit(Noticed("the provider says that this is too long for it: making the window smaller"))
            smaller = await self.prepare_request(exchange.turn, emit)
            exchange.planned, exchange.request = smaller.planned, smaller.request

    async def draft(self, session: ChatSession, given: Given = "", options: CallOptions = NO_OPTIONS) -> PlannedRequest:
        """What would be sent now; nothing is sent, stored or changed, and no model is called."""
        message = Message(DRAFT, "user", user_message(given, may_be_empty=True).blocks, parent=session.head)
        with FOREGROUND.begin():
            turn = await self.turns.new(session, message, options, is_draft=True)
            return await self.preview(await self.turns.prepare(turn))

    async def preview(self, turn: Turn) -> PlannedRequest:
        """The next request of a prepared turn, after the cut that it needs, as far as that is known without a model."""
        planned = await turn.next_plan()
        if planned.plan.cut is None:
            return await turn.fill(planned)
        after = await turn.fill(await self._compaction(turn, planned).preview())
        return replace(after, window=replace(after.window, plan=planned.plan))

    async def compact(self, session: ChatSession, emit: Emit, *, keep: str = "") -> None:
        """Compacts everything but the latest messages at the user's request; `keep` says what matters."""
        async with session.turn_lock():
            turn = await self.turns.without_message(session)
            planned = await turn.next_plan()
            chosen = turn.context.chosen_strategy
            strategy = chosen if chosen.summarizes else SUMMARIZE
            plan = compact_now(strategy, planned.loaded.view, planned.budget, planned.loaded.counts)
            if plan.cut is None or not plan.summed_up.count:
                raise Invalid(f"there is nothing to compact: {plan.because}")
            run = self._compaction(turn, replace(planned, plan=plan))
            run.is_requested, run.keep = True, clean(keep)[0].strip()
            await run.run(emit)
            session.apply(loaded={})

    def warm_up(self, session: ChatSession) -> None:
        """Loads the model, its tokenizer and the latest messages in the background."""
        self._warming.begin(self._warm_up(session))

    async def _warm_up(self, session: ChatSession) -> None:
        with suppress(RectoError):  # the message itself will report the error
            planned = await self.draft(session)
            # a server would be asked before there is a question
            if has_archive(planned.loaded.view.compaction) and ":" not in self.settings.search.embedder:
                await asyncio.to_thread(self.message_index.check)

    def _compaction(self, turn: Turn, planned: PlannedRequest, *, can_ask: bool = True) -> "CompactionWork":
        from recto.compaction.compaction_work import CompactionWork  # its patterns take a tenth of a second

        return CompactionWork(self.models, turn, planned, can_ask=can_ask, ahead=self.summaries_ahead)

    def after_reply(self, exchange: Exchange) -> None:
        """Starts background work after the last reply of a turn: lines about long documents, and the summary of an
        approaching compaction."""
        self.message_index.wake()
        self.checkpoints.wake()
        turn = exchange.turn
        if exchange.calls or not turn.options.may_send:
            return
        self.document_summaries.begin(turn.session, turn.context, turn.citations)
        if is_due_soon(exchange.planned):
            self.summaries_ahead.begin(turn.session.conversation, self._write_ahead(turn, exchange.planned))

    async def _write_ahead(self, turn: Turn, planned: PlannedRequest) -> None:
        block, session = planned.loaded.view.compaction, turn.session
        number = block.compaction_number if block else None
        # one per compaction: another would cost more than it can save
        if await self.store.do(find_ahead, self.store, session.conversation, number):
            return
        turn = await self.turns.without_message(session, turn.options)
        await self._compaction(turn, await turn.next_plan()).write_ahead()

    async def close(self) -> None:
        tasks = (self._warming, self.summaries_ahead, self.learner, self.document_summaries)
        for work in tasks:
            await work.close()
        parts = (self.servers, self.chooser, self.message_index, self.facts, self.checkpoints, self.vaults, self.backup)
        for each in parts:
            await asyncio.to_thread(each.close)
        await self.models.close()
        await self.streams.flush()
