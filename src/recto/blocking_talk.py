"""Talk: one conversation for blocking code; every method calls that of AsyncTalk of the same name."""

from collections.abc import Collection, Generator, Iterator, Sequence
from typing import Any, TypeVar, Unpack

from recto.agents.agent import Agent
from recto.ask_options import AskOptions, Attachment, Reply
from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.events import Event
from recto.loop import Loop
from recto.reports.conversation_stats import ConversationStats
from recto.reports.transcript import ArchivedPart, BranchEnd, TranscriptEntry
from recto.search.hybrid_index import Progress
from recto.settings import ContextSettings, Settings
from recto.source_changes import ApprovalChange, IncludeChange
from recto.sources.overrides import SourceList, SourceOverrides, SourceStatus
from recto.sources.source import SOURCE_KINDS, SourceKind
from recto.store.records import Record
from recto.store.waiting import WaitingMessage
from recto.talk import AsyncTalk
from recto.talk_reader import Wanted
from recto.turn.messages import Given
from recto.turn.session import ChatSession
from recto.vault.vault import Vault
from recto.vault.vault_search import FoundDocument, VaultHits
from recto.window.window import Window

T = TypeVar("T")


class Talk:
    """One conversation, from one client's place in it. It is stored with its first message."""

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
    def settings(self) -> Settings:
        return self._talk.settings

    @property
    def chosen_settings(self) -> dict[str, Any]:
        return self._talk.chosen_settings

    @property
    def context_settings(self) -> ContextSettings:
        return self._talk.context_settings

    def strategy_in_force(self, strategy: str | None = None) -> str | None:
        return self._loop.run(self._talk.strategy_in_force(strategy))

    def suggest_documents(self, limit: int = 5, progress: Progress | None = None) -> VaultHits[FoundDocument]:
        return self._loop.run(self._talk.suggest_documents(limit, progress))

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

    def sources(self, kinds: Collection[SourceKind] = SOURCE_KINDS, *, fresh: bool = False) -> SourceList:
        return self._loop.run(self._talk.sources(kinds, fresh=fresh))

    def overrides(self) -> SourceOverrides:
        return self._loop.run(self._talk.overrides())

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

    def stream(self, given: Given = (), *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        """Closing it (or Ctrl-C) stops the reply and keeps what came."""
        return self._loop.stream(self._talk.stream(given, can_ask=can_ask, **options))

    def ask(self, given: Given, **options: Unpack[AskOptions]) -> Reply:
        return self._loop.run(self._talk.ask(given, **options))

    def window(self, given: Given = "", **options: Unpack[AskOptions]) -> Window:
        return self._loop.run(self._talk.window(given, **options))

    def path(self) -> Iterator[Message]:
        return self._loop.iterate(self._talk.path())

    def messages(self, **wanted: Unpack[Wanted]) -> list[Message]:
        return self._loop.run(self._talk.messages(**wanted))

    def transcript(self, **wanted: Unpack[Wanted]) -> list[TranscriptEntry]:
        return self._loop.run(self._talk.transcript(**wanted))

    def archived(self) -> ArchivedPart:
        return self._loop.run(self._talk.archived())

    def message(self, named: str) -> Message:
        return self._loop.run(self._talk.message(named))

    def tool_result(self, message: str, *, call: int = 1, media: int | None = None) -> bytes:
        return self._loop.run(self._talk.tool_result(message, call=call, media=media))

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

    def set_priority(self, message: str, priority: int) -> Message:
        return self._loop.run(self._talk.set_priority(message, priority))

    def stream_compaction(self, keep: str = "") -> Generator[Event]:
        return self._loop.stream(self._talk.stream_compaction(keep))

    def compact(self, keep: str = "") -> Compaction:
        return self._loop.run(self._talk.compact(keep))

    def compaction(self) -> Compaction | None:
        return self._loop.run(self._talk.compaction())

    def summary_block(self) -> Compaction:
        return self._loop.run(self._talk.summary_block())

    def lost_facts(self) -> list[tuple[int, str]]:
        return self._loop.run(self._talk.lost_facts())

    def ledger(self) -> list[tuple[int, str]]:
        return self._loop.run(self._talk.ledger())

    def compactions(self, *, limit: int = 100) -> list[Compaction]:
        return self._loop.run(self._talk.compactions(limit=limit))

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
