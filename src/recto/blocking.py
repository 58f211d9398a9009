"""Desk and Talk: the blocking door: typed wrappers around AsyncDesk and AsyncTalk, run on a loop in the background.

Nothing is decided here: every method calls its asynchronous twin of the same name.
"""

from collections.abc import Coroutine, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from recto.agents.agents import Agents
from recto.ask_options import AskOptions, Reply
from recto.blocking_reader import TalkReader
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation, ConversationState
from recto.chat.message import Message
from recto.desk import AsyncDesk, new_desk
from recto.engine import Engine
from recto.events import Event
from recto.loop import Loop
from recto.mcp.servers import McpServers
from recto.providers.model import Model
from recto.recall.archive import IndexStatus
from recto.recall.message_search import FoundMessages, Time
from recto.reports.document_stats import DocumentTally, Grouping
from recto.reports.source_report import SourceReport
from recto.search.hybrid_index import Progress
from recto.settings import Settings
from recto.source_changes import ApprovalChange, IncludeChange
from recto.sources.overrides import SourceStatus
from recto.sources.server_config import ServerConfig
from recto.sources.source import DEFAULT_AGENT
from recto.store.comparison import Difference
from recto.store.records import Record
from recto.store.store import Store
from recto.store_reader import SentText
from recto.turn.messages import Given
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch
from recto.window.calibration import TokenCalibration

T = TypeVar("T")


class Talk(TalkReader):
    """One conversation, from one client's place in it. It is stored with its first message."""

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

    def stream(self, given: Given, *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        """Closing it (or Ctrl-C) stops the reply and keeps what came."""
        return self._loop.stream(self._talk.stream(given, can_ask=can_ask, **options))

    def ask(self, given: Given, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.ask(given, **options))

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

    def undo(self) -> Message:
        return self._loop.run(self._talk.undo())

    def fork(self, message: str) -> Message:
        return self._loop.run(self._talk.fork(message))

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
    def agents(self) -> Agents:
        return self._desk.agents

    @property
    def servers(self) -> McpServers:
        return self._desk.servers

    @property
    def vault_search(self) -> VaultSearch | None:
        return self._desk.vault_search

    def conversation(self, id: str | int | None = None, *, agent: str = DEFAULT_AGENT, as_left: bool = False) -> Talk:
        return Talk(self._loop.run(self._desk.conversation(id, agent=agent, as_left=as_left)), self._loop)

    def latest(self, *, unsent: bool = False) -> Talk | None:
        talk = self._loop.run(self._desk.latest(unsent=unsent))
        return Talk(talk, self._loop) if talk else None

    def talk_with(self, message: str, conversation: str | None = None) -> Talk:
        return Talk(self._loop.run(self._desk.talk_with(message, conversation)), self._loop)

    def rename(self, conversation: str, title: str) -> Conversation:
        return self._loop.run(self._desk.rename(conversation, title))

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

    def conversations(self, *, limit: int = 100, state: ConversationState = "active") -> list[Conversation]:
        return self._loop.run(self._desk.conversations(limit=limit, state=state))

    def find_conversations(self, text: str, *, limit: int = 20) -> list[Conversation]:
        return self._loop.run(self._desk.find_conversations(text, limit=limit))

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

    def source_report(self, agent: str | None = None, since: str | None = None) -> SourceReport:
        return self._loop.run(self._desk.source_report(agent, since))

    def document_stats(self, by: Grouping = "document") -> list[DocumentTally]:
        return self._loop.run(self._desk.document_stats(by))

    def unnamed_documents(self) -> list[DocumentTally]:
        return self._loop.run(self._desk.unnamed_documents())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs on the desk's own loop in the background."""
        return self._loop.run(work)

    def close(self) -> None:
        self._loop.run(self._desk.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_desk(
    *,
    home: str | Path | None = None,
    vault: str | Path | None = None,
    model: str | None = None,
    project: str | Path | None = None,
    settings: dict[str, Any] | None = None,
) -> Desk:
    """A desk on `home` (default: RECTO_HOME or ~/.recto). Keyword settings win over files and environment."""
    return Desk(new_desk(home=home, vault=vault, model=model, project=project, settings=settings))
