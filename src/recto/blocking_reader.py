"""TalkReader: what can be seen of one conversation, for blocking code; Talk adds what changes it."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, Unpack

from recto.agents.agent import Agent
from recto.ask_options import AskOptions
from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.events import Event
from recto.loop import Loop
from recto.reports.conversation_stats import ConversationStats
from recto.reports.memory_report import MemoryReport
from recto.reports.request_use import RequestUse
from recto.reports.transcript import ArchivedPart, BranchEnd, TranscriptEntry
from recto.reports.what_if import PlanOptions, StrategyComparison, TurnPlanOptions, WhatIf
from recto.search.hybrid_index import Progress
from recto.settings import ContextSettings
from recto.sources.overrides import SourceList, SourceOverrides
from recto.sources.source import SOURCE_KINDS, SourceKind
from recto.store.records import Record
from recto.talk import AsyncTalk
from recto.talk_reader import Wanted
from recto.turn.messages import Given
from recto.turn.session import ChatSession
from recto.vault.vault import Vault
from recto.vault.vault_search import FoundDocument, VaultHits
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
