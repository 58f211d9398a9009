"""Desk, and with it Talk: the blocking door: typed wrappers around AsyncDesk and AsyncTalk, run on a loop in the
background.

Nothing is decided here: every method calls its asynchronous twin of the same name.
"""

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from recto.agents.agents import Agents
from recto.blocking_talk import Talk
from recto.chat.conversation import Conversation, ConversationState
from recto.desk import AsyncDesk, DeskOptions, TalkOptions, new_desk
from recto.engine import Engine
from recto.loop import Loop
from recto.mcp.servers import McpServers
from recto.providers.model import Model
from recto.recall.fact_memory import FactMemory
from recto.recall.indexed_message import IndexStatus
from recto.recall.message_search import FoundMessages, Time
from recto.reports.document_stats import DocumentTally, Grouping
from recto.reports.source_report import SourceReport
from recto.search.hybrid_index import Progress
from recto.settings import Settings
from recto.sources.server_config import ServerConfig
from recto.sources.source import DEFAULT_AGENT
from recto.sources.tool_definition import ToolChange
from recto.store.comparison import Difference
from recto.store.records import Record
from recto.store.retention import PruneOptions, PruneReport
from recto.store.spending import Spent, SpentBy
from recto.store.store import Store
from recto.store.token_use import TokenUse
from recto.store.use_over_time import Period, SourcePeriod, Together
from recto.store_reader import SentText, SpentWithin
from recto.transfer.report import ExportOptions, ImportOptions, ImportReport, Place
from recto.vault.graph import Graph
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch
from recto.window.calibration import TokenCalibration

T = TypeVar("T")
__all__ = ["Desk", "Talk", "open_desk"]


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
