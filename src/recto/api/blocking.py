"""Desk, and with it Talk: the blocking door: typed wrappers around AsyncDesk and AsyncTalk, run on a loop in the
background.

Nothing is decided here: every method calls its asynchronous twin of the same name.
"""

from collections.abc import Callable, Collection, Coroutine, Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from recto.agents.agent import Agent
from recto.agents.agents import Agents
from recto.api.ask_options import AskOptions, Attachment, Reply
from recto.api.client_turn import ExtendedPath
from recto.api.desk import AsyncDesk, DeskOptions, TalkOptions, new_desk
from recto.api.loop import Loop
from recto.api.own_client import PreparedRequest, PrepareOptions
from recto.api.source_changes import ApprovalChange, IncludeChange
from recto.api.store_reader import SentText, SpentWithin
from recto.api.talk import AsyncTalk
from recto.api.talk_reader import Wanted
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation, ConversationState
from recto.chat.message import Message
from recto.engine import Engine
from recto.events import Event
from recto.mcp.servers import McpServers
from recto.providers.model import Model
from recto.recall.fact_memory import FactMemory
from recto.recall.indexed_message import IndexStatus
from recto.recall.message_search import FoundMessages, Time
from recto.reports.conversation_stats import ConversationStats
from recto.reports.document_stats import DocumentTally, Grouping
from recto.reports.memory_report import MemoryReport
from recto.reports.request_use import RequestUse
from recto.reports.source_report import SourceReport
from recto.reports.transcript import ArchivedPart, BranchEnd, TranscriptEntry
from recto.reports.what_if import PlanOptions, StrategyComparison, TurnPlanOptions, WhatIf
from recto.search.hybrid_index import Progress
from recto.settings.settings import ContextSettings, Settings
from recto.sources.overrides import SourceList, SourceOverrides, SourceStatus
from recto.sources.server_config import ServerConfig
from recto.sources.source import DEFAULT_AGENT, SOURCE_KINDS, SourceKind
from recto.sources.tool_definition import ToolChange
from recto.store.comparison import Difference
from recto.store.document_uses import Together
from recto.store.records import Record
from recto.store.source_uses import Period, SourcePeriod
from recto.store.spending import Spent, SpentBy, TokenUse
from recto.store.store import Store
from recto.store.trash import PruneOptions, PruneReport
from recto.store.waiting import WaitingMessage
from recto.tasks.report import RunReport
from recto.tasks.run import TaskRun
from recto.transfer.report import ExportOptions, ImportOptions, ImportReport, Place
from recto.turn.messages import Given
from recto.turn.session import ChatSession
from recto.vault.graph import Graph
from recto.vault.vault import Vault
from recto.vault.vault_search import FoundDocument, VaultHits, VaultSearch
from recto.window.calibration import TokenCalibration
from recto.window.window import Window

T = TypeVar("T")


class TalkReader:
    def __init__(self, talk: AsyncTalk, loop: Loop) -> None:
        self._talk, self._loop = talk, loop

    @property
    def asynchronous(self) -> AsyncTalk:
        """The same conversation for asynchronous code."""
        return self._talk

    @property
    def session(self) -> ChatSession:
        return self._talk.session

    @property
    def id(self) -> str | None:
        return self._talk.id

    @property
    def number(self) -> int | None:
        return self._talk.number

    @property
    def name(self) -> str:
        return self._talk.name

    @property
    def title(self) -> str:
        return self._talk.title

    @property
    def head(self) -> str | None:
        return self._talk.head

    @property
    def agent(self) -> Agent:
        return self._talk.agent

    @property
    def model(self) -> str:
        return self._talk.model

    @property
    def vault(self) -> Vault | None:
        return self._talk.vault

    @property
    def document(self) -> str | None:
        return self._talk.document

    @property
    def strategy(self) -> str | None:
        return self._talk.strategy

    @property
    def context_settings(self) -> ContextSettings:
        return self._talk.context_settings

    def strategy_in_force(self, strategy: str | None = None) -> str | None:
        return self._loop.run(self._talk.strategy_in_force(strategy))

    def suggest_documents(self, limit: int = 5, progress: Progress | None = None) -> VaultHits[FoundDocument]:
        return self._loop.run(self._talk.suggest_documents(limit, progress))

    def sources(self, kinds: Collection[SourceKind] = SOURCE_KINDS, *, fresh: bool = False) -> SourceList:
        return self._loop.run(self._talk.sources(kinds, fresh=fresh))

    def overrides(self) -> SourceOverrides:
        return self._loop.run(self._talk.overrides())

    def window(self, given: Given = "", **options: Unpack[AskOptions]) -> Window:
        return self._loop.run(self._talk.window(given, **options))

    def what_if(self, message: str, **changes: Unpack[TurnPlanOptions]) -> WhatIf:
        return self._loop.run(self._talk.what_if(message, **changes))

    def compare_strategies(
        self, names: Collection[str] = (), progress: Progress | None = None, **changes: Unpack[PlanOptions]
    ) -> StrategyComparison:
        return self._loop.run(self._talk.compare_strategies(names, progress, **changes))

    def request_use(self) -> list[RequestUse]:
        return self._loop.run(self._talk.request_use())

    @property
    def memory_file(self) -> Path:
        return self._talk.memory_file

    def memory(self, text: str = "") -> MemoryReport:
        return self._loop.run(self._talk.memory(text))

    def path(self, before: str | None = None) -> Iterator[Message]:
        return self._loop.iterate(self._talk.path(before))

    def messages(self, **wanted: Unpack[Wanted]) -> list[Message]:
        return self._loop.run(self._talk.messages(**wanted))

    def transcript(self, **wanted: Unpack[Wanted]) -> list[TranscriptEntry]:
        return self._loop.run(self._talk.transcript(**wanted))

    def stored_head(self) -> tuple[str | None, bool]:
        return self._loop.run(self._talk.stored_head())

    def archived(self) -> ArchivedPart:
        return self._loop.run(self._talk.archived())

    def message(self, named: str) -> Message:
        return self._loop.run(self._talk.message(named))

    def tool_result(self, message: str, *, call: int = 1, media: int | None = None) -> bytes:
        return self._loop.run(self._talk.tool_result(message, call=call, media=media))

    def alternatives(self, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        return self._loop.run(self._talk.alternatives(names))

    def branches(self) -> list[BranchEnd]:
        return self._loop.run(self._talk.branches())

    def request(self, named: str) -> Record:
        return self._loop.run(self._talk.request(named))

    def last_request(self) -> Record | None:
        return self._loop.run(self._talk.last_request())

    def stats(self) -> ConversationStats:
        return self._loop.run(self._talk.stats())

    def numbered(self, value: T) -> T:
        return self._loop.run(self._talk.numbered(value))

    def compaction(self) -> Compaction | None:
        return self._loop.run(self._talk.compaction())

    def summary_block(self) -> Compaction:
        return self._loop.run(self._talk.summary_block())

    def untold(self) -> Sequence[Event]:
        return self._talk.untold()

    def lost_facts(self, limit: int | None = None) -> list[tuple[int, str, str]]:
        return self._loop.run(self._talk.lost_facts(limit))

    def ledger(self) -> list[tuple[int, str]]:
        return self._loop.run(self._talk.ledger())

    def compactions(self, *, limit: int = 100) -> list[Compaction]:
        return self._loop.run(self._talk.compactions(limit=limit))


class Talk(TalkReader):
    """One conversation, from one client's place in it. It is stored with its first message."""

    @property
    def settings(self) -> Settings:
        return self._talk.settings

    @property
    def chosen_settings(self) -> dict[str, Any]:
        return self._talk.chosen_settings

    def open_document(self, path: str | None) -> str | None:
        return self._loop.run(self._talk.open_document(path))

    def wake(self) -> None:
        self._loop.run(self._talk.wake())

    def watch_vault(self) -> None:
        self._loop.run(self._talk.watch_vault())

    def use(self, model: str) -> None:
        self._loop.run(self._talk.use(model))

    def use_strategy(self, name: str | None) -> None:
        self._loop.run(self._talk.use_strategy(name))

    def set_setting(self, key: str, value: Any) -> Any:
        return self._loop.run(self._talk.set_setting(key, value))

    def remember_in_project(self, text: str) -> Path:
        return self._loop.run(self._talk.remember_in_project(text))

    def add_source(self, named: str) -> SourceStatus:
        return self._loop.run(self._talk.add_source(named))

    def add_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        return self._loop.run(self._talk.add_sources(names))

    def remove_source(self, named: str) -> SourceStatus:
        return self._loop.run(self._talk.remove_source(named))

    def remove_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        return self._loop.run(self._talk.remove_sources(names))

    def set_include(self, named: str, mode: str) -> IncludeChange:
        return self._loop.run(self._talk.set_include(named, mode))

    def allow(self, tool: str) -> None:
        self._loop.run(self._talk.allow(tool))

    def ask_again(self, tool: str) -> ApprovalChange:
        return self._loop.run(self._talk.ask_again(tool))

    def extend(self, messages: Sequence[Any]) -> ExtendedPath:
        return self._loop.run(self._talk.extend(messages))

    def prepare(self, given: Given | None = None, **options: Unpack[PrepareOptions]) -> PreparedRequest:
        return self._loop.run(self._talk.prepare(given, **options))

    def record(self, prepared: PreparedRequest, reply: Any) -> Reply:
        return self._loop.run(self._talk.record(prepared, reply))

    def stream(self, given: Given = (), *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        """Closing it (or Ctrl-C) stops the reply and keeps what came."""
        return self._loop.stream(self._talk.stream(given, can_ask=can_ask, **options))

    def ask(self, given: Given, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.ask(given, **options))

    def stream_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        can_ask: bool = True,
        **options: Unpack[AskOptions],
    ) -> Generator[Event]:
        """Closing it (or Ctrl-C) stops the run, which can go on later."""
        events = self._talk.stream_goal(goal, max_steps=max_steps, max_cost=max_cost, can_ask=can_ask, **options)
        return self._loop.stream(events)

    def run_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        **options: Unpack[AskOptions],
    ) -> RunReport:
        return self._loop.run(self._talk.run_goal(goal, max_steps=max_steps, max_cost=max_cost, **options))

    def last_run(self) -> TaskRun | None:
        return self._loop.run(self._talk.last_run())

    def stop_goal(self) -> bool:
        return self._loop.run(self._talk.stop_goal())

    def queue(self, given: Given, *, attachments: Sequence[Attachment] = ()) -> WaitingMessage:
        return self._loop.run(self._talk.queue(given, attachments=attachments))

    def waiting(self) -> list[WaitingMessage]:
        return self._loop.run(self._talk.waiting())

    def take_back(self, id: str | None = None) -> WaitingMessage:
        return self._loop.run(self._talk.take_back(id))

    def undo(self) -> Message:
        return self._loop.run(self._talk.undo())

    def fork(self, message: str) -> Message:
        return self._loop.run(self._talk.fork(message))

    def switch(self, message: str) -> str:
        return self._loop.run(self._talk.switch(message))

    def set_priority(self, message: str, priority: int) -> Message:
        return self._loop.run(self._talk.set_priority(message, priority))

    def stream_compaction(self, keep: str = "") -> Generator[Event]:
        return self._loop.stream(self._talk.stream_compaction(keep))

    def compact(self, keep: str = "") -> Compaction:
        return self._loop.run(self._talk.compact(keep))

    def clear(self) -> Compaction:
        return self._loop.run(self._talk.clear())

    def uncompact(self) -> Compaction:
        return self._loop.run(self._talk.uncompact())

    def edit_summary(self, text: str) -> Compaction:
        return self._loop.run(self._talk.edit_summary(text))

    def pin(self, message: str) -> Compaction:
        return self._loop.run(self._talk.pin(message))

    def unpin(self, message: str) -> Compaction:
        return self._loop.run(self._talk.unpin(message))

    def stream_edit(
        self, message: str, text: str, *, can_ask: bool = True, **options: Unpack[AskOptions]
    ) -> Generator[Event]:
        return self._loop.stream(self._talk.stream_edit(message, text, can_ask=can_ask, **options))

    def edit(self, message: str, text: str, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.edit(message, text, **options))

    def stream_regenerate(self, *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        return self._loop.stream(self._talk.stream_regenerate(can_ask=can_ask, **options))

    def regenerate(self, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.regenerate(**options))


class Desk:
    """A store, settings and a vault, open. Use it as a context manager, or `close()` it."""

    def __init__(self, desk: AsyncDesk) -> None:
        self._desk, self._loop = desk, Loop()

    @property
    def asynchronous(self) -> AsyncDesk:
        """The same desk for asynchronous code."""
        return self._desk

    @property
    def home(self) -> Path:
        return self._desk.home

    @property
    def project(self) -> Path | None:
        return self._desk.project

    @property
    def settings(self) -> Settings:
        return self._desk.settings

    @property
    def store(self) -> Store:
        return self._desk.store

    @property
    def engine(self) -> Engine:
        return self._desk.engine

    @property
    def vault(self) -> Vault | None:
        return self._desk.vault

    @property
    def facts(self) -> FactMemory:
        return self._desk.facts

    @property
    def agents(self) -> Agents:
        return self._desk.agents

    @property
    def servers(self) -> McpServers:
        return self._desk.servers

    @property
    def vault_search(self) -> VaultSearch | None:
        return self._desk.vault_search

    def use(self, *, vault: str | Path | None = None, model: str | None = None) -> None:
        self._loop.run(self._desk.use(vault=vault, model=model))

    def conversation(self, id: str | int | None = None, **options: Unpack[TalkOptions]) -> Talk:
        return Talk(self._loop.run(self._desk.conversation(id, **options)), self._loop)

    def latest(self, *, unsent: bool = False) -> Talk | None:
        talk = self._loop.run(self._desk.latest(unsent=unsent))
        return Talk(talk, self._loop) if talk else None

    def talk_with(self, message: str, conversation: str | None = None) -> Talk:
        return Talk(self._loop.run(self._desk.talk_with(message, conversation)), self._loop)

    def rename(self, conversation: str, title: str) -> Conversation:
        return self._loop.run(self._desk.rename(conversation, title))

    def conversations(self, *, limit: int = 100, state: ConversationState = "active") -> list[Conversation]:
        return self._loop.run(self._desk.conversations(limit=limit, state=state))

    def search(
        self,
        text: str,
        *,
        conversation: str | None = None,
        role: str | None = None,
        since: Time | None = None,
        before: Time | None = None,
        limit: int = 20,
        complete: bool = False,
    ) -> FoundMessages:
        found = self._desk.search(
            text, conversation=conversation, role=role, since=since, before=before, limit=limit, complete=complete
        )
        return self._loop.run(found)

    def export(self, file: Place, conversation: str | int | None = None, **options: Unpack[ExportOptions]) -> Path:
        return self._loop.run(self._desk.export(file, conversation, **options))

    def import_file(self, file: Place, **options: Unpack[ImportOptions]) -> ImportReport:
        return self._loop.run(self._desk.import_file(file, **options))

    def index(self, progress: Progress | None = None, *, vectors: bool = False, anew: bool = False) -> IndexStatus:
        return self._loop.run(self._desk.index(progress, vectors=vectors, anew=anew))

    def index_status(self) -> IndexStatus:
        return self._loop.run(self._desk.index_status())

    def check_embedder(self) -> str:
        return self._loop.run(self._desk.check_embedder())

    def model(self, name: str) -> Model:
        return self._loop.run(self._desk.model(name))

    def calibration(self, model: str) -> TokenCalibration:
        return self._loop.run(self._desk.calibration(model))

    def trust(self, server: str, agent: str = DEFAULT_AGENT) -> ServerConfig:
        return self._loop.run(self._desk.trust(server, agent))

    def distrust(self, server: str, agent: str = DEFAULT_AGENT) -> ServerConfig:
        return self._loop.run(self._desk.distrust(server, agent))

    def tool_changes(self, server: str, agent: str = DEFAULT_AGENT) -> tuple[ToolChange, ...]:
        return self._loop.run(self._desk.tool_changes(server, agent))

    def accept_tools(self, changes: Sequence[ToolChange]) -> None:
        self._loop.run(self._desk.accept_tools(changes))

    def record(self, request: str | None = None) -> Record:
        return self._loop.run(self._desk.record(request))

    def rebuild(self, request: str | None = None) -> bytes:
        return self._loop.run(self._desk.rebuild(request))

    def compare(self, before: str | None = None, after: str | None = None) -> Difference:
        return self._loop.run(self._desk.compare(before, after))

    def verify(self, requests: Sequence[str] | None = None) -> list[tuple[str, str | None]]:
        return self._loop.run(self._desk.verify(requests))

    def sent_source(self, request: str | None, source: str) -> SentText:
        return self._loop.run(self._desk.sent_source(request, source))

    def sent_pick(self, request: str | None, section: str, place: int) -> SentText:
        return self._loop.run(self._desk.sent_pick(request, section, place))

    def attached(self, message: str, block: int) -> tuple[str, bytes]:
        return self._loop.run(self._desk.attached(message, block))

    def source_report(self, agent: str | None = None, since: str | None = None) -> SourceReport:
        return self._loop.run(self._desk.source_report(agent, since))

    def spending(
        self, by: SpentBy = "day", progress: Progress | None = None, **within: Unpack[SpentWithin]
    ) -> list[Spent]:
        return self._loop.run(self._desk.spending(by, progress, **within))

    def source_periods(
        self, by: Period = "month", agent: str | None = None, since: str | None = None
    ) -> list[SourcePeriod]:
        return self._loop.run(self._desk.source_periods(by, agent, since))

    def token_use(
        self, by: SpentBy = "day", progress: Progress | None = None, **within: Unpack[SpentWithin]
    ) -> list[TokenUse]:
        return self._loop.run(self._desk.token_use(by, progress, **within))

    def used_graph(self, by: Together = "turn") -> Graph:
        return self._loop.run(self._desk.used_graph(by))

    def document_stats(self, by: Grouping = "document") -> list[DocumentTally]:
        return self._loop.run(self._desk.document_stats(by))

    def unnamed_documents(self) -> list[DocumentTally]:
        return self._loop.run(self._desk.unnamed_documents())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs on the desk's own loop in the background."""
        return self._loop.run(work)

    def follow(self, listener: Callable[[], object] | None = None) -> None:
        self._loop.run(self._desk.follow(listener))

    def close(self) -> None:
        self._loop.run(self._desk.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def archive(self, conversation: str) -> Conversation:
        return self._loop.run(self._desk.archive(conversation))

    def unarchive(self, conversation: str) -> Conversation:
        return self._loop.run(self._desk.unarchive(conversation))

    def delete(self, conversation: str) -> Conversation:
        return self._loop.run(self._desk.delete(conversation))

    def restore(self, conversation: str) -> Conversation:
        return self._loop.run(self._desk.restore(conversation))

    def empty_trash(self, older_than: int = 0, progress: Progress | None = None) -> int:
        return self._loop.run(self._desk.empty_trash(older_than, progress))

    def prune(self, older_than: str, progress: Progress | None = None, **options: Unpack[PruneOptions]) -> PruneReport:
        return self._loop.run(self._desk.prune(older_than, progress, **options))

    def find_conversations(self, text: str, *, limit: int = 20) -> list[Conversation]:
        return self._loop.run(self._desk.find_conversations(text, limit=limit))


def open_desk(**options: Unpack[DeskOptions]) -> Desk:
    """A desk on `home` (default: RECTO_HOME or ~/.recto). Keyword settings win over files and environment."""
    return Desk(new_desk(**options))
