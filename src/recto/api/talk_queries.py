"""AsyncTalkQueries: the read-only part of a conversation: its messages, its window, its sources, its statistics.

Nothing here sends, stores or changes anything; AsyncTalk adds that."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from recto.agents.agent import Agent, apply_agent, with_conversation_settings
from recto.api.arguments import checked_door
from recto.api.ask_options import AskOptions, call_options, with_attachments
from recto.api.loop import in_store, in_thread
from recto.api.store_queries import StoreQueries, full_id, message_by_number
from recto.base.ids import id_start, is_id
from recto.base.text import shown
from recto.chat.blocks import Compaction
from recto.chat.message import Message, stored_time
from recto.engine import Engine
from recto.errors import Invalid, NotFound, RectoError
from recto.events import Event
from recto.memory.frequent_notes import often_used
from recto.reports.conversation_stats import (
    ConversationStats,
    RequestUse,
    SaidCounter,
    WindowStats,
    recall_stats,
    recorded_use,
    request_totals,
)
from recto.reports.memory_report import MemoryReport, memory_picks
from recto.reports.transcript import (
    ArchivedPart,
    BranchEnd,
    TranscriptEntry,
    TranscriptFilter,
    archived_part,
    number_in,
    stands_for_something,
    transcript,
)
from recto.reports.what_if import PlanOptions, StrategyComparison, TurnPlanOptions, WhatIf, changes_of
from recto.settings import settings as configuration
from recto.sources.memory_files import notes_file
from recto.sources.overrides import SourceList, SourceOverrides
from recto.sources.source import SOURCE_KINDS, SourceKind
from recto.store.records import Record
from recto.store.usage_totals import Progress
from recto.turn.context import STRATEGY, TurnContext
from recto.turn.messages import Given
from recto.turn.session import ChatSession
from recto.vault.vault import NO_VAULT, Vault
from recto.vault.vault_search import FoundDocument, VaultHits
from recto.window.window import Window

T = TypeVar("T")
# The default number of messages.
LATEST = 100
# The smallest batch to read: the statements of a message depend on those around it.
READ_TOGETHER = 300


class Wanted(TypedDict, total=False):
    """A filter for the messages of a path."""

    limit: int | None
    """Only the last ones (default: 100); None for all."""
    since: str | int | date | None
    """From this time or message on: 2026-01-31T18:00, #12, or an id."""
    before: str | int | date | None
    with_tools: bool
    """Include tool results (default: True)."""
    with_system: bool
    """Include compactions and other system messages (default: True)."""


# messages per page on a walk along a path
PAGE = 500
# The current topic: the user's last messages, up to the length of a long question.
LAST_MESSAGES, LONGEST_QUESTION = 3, 2000
# How many more documents are considered than suggested: frequent use may lift a lower-ranked one.
MORE = 10


@checked_door
class AsyncTalkQueries:
    session: ChatSession

    def __init__(self, engine: Engine, session: ChatSession, reader: StoreQueries, number: int | None = None) -> None:
        self._engine, self._store, self._settings = engine, engine.store, engine.settings
        self._tree = engine.store.tree
        self._reader, self._number = reader, number
        self.session = session

    @property
    def id(self) -> str | None:
        return self.session.conversation or None

    @property
    def number(self) -> int | None:
        """The short number that people see, such as `#3`; None until the conversation is stored."""
        return self._number if self.id else None

    @property
    def name(self) -> str:
        """The display name: `conversation #3`."""
        return f"conversation #{self.number}" if self.number else "a new conversation"

    @property
    def title(self) -> str:
        """The title of the conversation; empty until it is stored."""
        return self._tree.conversation(self.id).title if self.id else ""

    @property
    def head(self) -> str | None:
        """The last message of the path; the next one follows it."""
        return self.session.head

    @property
    def agent(self) -> Agent:
        """The conversation's agent, from its current files."""
        return self._engine.agents.read_or_last(self.session.agent)

    @property
    def model(self) -> str:
        """The model that answers: requested by name, else the agent's, else the settings'."""
        return self.session.model or self.agent.model or self._settings.model

    @property
    def vault(self) -> Vault | None:
        return self.session.vault

    @property
    def document(self) -> str | None:
        """The document that is open beside the chat."""
        return self.session.document

    @property
    def strategy(self) -> str | None:
        """The strategy chosen for this conversation; None if it follows agent, model and settings."""
        return self.session.chosen.get(STRATEGY)

    @property
    def chosen_settings(self) -> dict[str, Any]:
        """The settings chosen for this conversation, by key."""
        return dict(self.session.chosen)

    @property
    def settings(self) -> configuration.Settings:
        """The settings in force here, each with its origin, as far as they are known without the model."""
        below = apply_agent(self._settings, self.agent)
        return with_conversation_settings(below, self.session.chosen, self.name)[0]

    @property
    def context_settings(self) -> configuration.ContextSettings:
        return self.settings.context

    # -- what would be sent

    async def window(self, given: Given = "", **options: Unpack[AskOptions]) -> Window:
        """The window for this message, without sending or changing anything."""
        given = await with_attachments(given, options.get("attachments", ()))
        return (await self._engine.draft(self.session, given, call_options(**options))).window

    @property
    def memory_file(self) -> Path:
        """The file that `remember_in_project` adds to."""
        return notes_file(self.session.project or self._engine.folder)

    async def memory(self, text: str = "") -> MemoryReport:
        """The memory that would be sent with this message, or with the user's last one: files and facts, with
        reasons."""
        if not text:
            said = [each.text for each in await self.messages(limit=LATEST) if each.role == "user"]
            text = said[-1] if said else ""
        window = await self.window(text)
        picks, passed = memory_picks(window)
        numbers = [int(pick.name) for pick in (*picks, *passed) if pick.kind == "fact"]
        facts = await self._store.do(self._store.facts.some, numbers)
        notes = [note for note in window.notes if "memory" in note or "fact" in note]
        if not self.context_settings.memory_integration:
            notes.append("memory is switched off here (context.memory_integration)")
        return MemoryReport(tuple(picks), tuple(passed), facts, text, tuple(notes))

    def pending_events(self) -> Sequence[Event]:
        """Events of background work since the last message, such as facts learned. Each is returned once."""
        return self._engine.learner.untold(self.session)

    async def strategy_in_force(self, strategy: str | None = None) -> str | None:
        """The strategy of the next message, or of one that requests `strategy`; None if the model cannot be reached,
        since it may have its own."""
        try:
            return (await self._context(strategy)).strategy.name
        except RectoError:
            return None

    async def _context(self, strategy: str | None = None) -> TurnContext:
        return await self._engine.turns.context(self.session, call_options(strategy=strategy))

    # -- what it uses

    async def sources(self, kinds: Collection[SourceKind] = SOURCE_KINDS, *, fresh: bool = False) -> SourceList:
        """Rules, references and tools of the agent, with their status in this conversation. Tools may start MCP
        servers; `fresh` asks every server, ignoring cached lists."""
        agent = await self._session_agent()
        return await self._engine.sources.listing(self.session, agent, kinds, fresh=fresh)

    async def _session_agent(self) -> Agent:
        """The agent with the sources that this conversation has of it."""
        agent, settings = await asyncio.to_thread(lambda: (self.agent, self.context_settings))
        return await self._engine.sources.agent_of(self.session, agent, settings)

    @in_store
    def overrides(self) -> SourceOverrides:
        """The user's added, removed and allowed sources in this conversation."""
        return self._engine.sources.overrides(self.id or "")

    async def suggest_documents(self, limit: int = 5, progress: Progress | None = None) -> VaultHits[FoundDocument]:
        """Documents of the vault that bear on the latest messages and are new to this conversation, the most used ones
        first."""
        if self.vault is None:
            raise Invalid(NO_VAULT)
        question = await self._latest_question()
        if not question:
            raise Invalid(f"{self.name} has no message yet to find documents for")
        return await asyncio.to_thread(self._suggest, question, limit, progress)

    async def _latest_question(self) -> str:
        """The latest user messages, newest first, cut to the length of a question."""
        said: list[str] = []
        async for message in self.path():
            if message.role == "user" and message.text:
                said.append(message.text)
            if len(said) == LAST_MESSAGES:
                break
        return "\n".join(said)[:LONGEST_QUESTION]

    def _suggest(self, question: str, limit: int, progress: Progress | None) -> VaultHits[FoundDocument]:
        assert self.vault is not None
        uses = self._store.document_uses.uses(str(self.vault.root), self.id)
        vault_search, used = self._engine.vaults.search(self.vault), {use.path for use in uses}
        vault_search.fill(progress)
        vault_search.settle(self._settings.search.timeout_s)
        found = vault_search.find_documents(question, limit=limit + len(used) + MORE)
        often = self._engine.learner.frequent_notes.of_vault(self.vault.root, self.context_settings)
        hits = [often_used(hit, often.get(hit.path)) for hit in found.hits if hit.path not in used]
        hits.sort(key=lambda hit: -hit.score)
        return VaultHits(tuple(hits[:limit]), found.warning)

    # -- what was said

    async def path(self, before: str | None = None) -> AsyncIterator[Message]:
        """Messages from the head, or from the message before this one, back to the first, read a page at a time."""
        at = self.session.head if before is None else (await self.message(before)).parent
        while at:
            page = await self._store.do(self._tree.page, at, most=PAGE)
            for message in page:
                yield message
            at = page[-1].parent if len(page) == PAGE else None

    async def messages(self, **wanted: Unpack[Wanted]) -> list[Message]:
        """The last messages of the path to the head, oldest first, filtered by `Wanted`."""
        found = await transcript(await self._walk(**wanted), ArchivedPart(), await self._filter(**wanted))
        return [entry.message for entry in found]

    async def transcript(self, **wanted: Unpack[Wanted]) -> list[TranscriptEntry]:
        """The same, each message marked if it is still sent."""
        return await transcript(await self._walk(**wanted), await self.archived(), await self._filter(**wanted))

    async def _walk(self, **wanted: Unpack[Wanted]) -> AsyncIterator[Message]:
        """The path, read no further than needed: a message of it may be named as the end."""
        before = str(wanted.get("before") or "")
        if self.head and (number_in(before) is not None or is_id(before)):
            end = await self.message(before)
            if await self._store.do(self._tree.is_on, self.head, end.id):
                return self.path(end.id)
        return self.path()

    async def _filter(self, **wanted: Unpack[Wanted]) -> TranscriptFilter:
        limit = wanted.get("limit", LATEST)
        if limit is not None and (type(limit) is not int or limit < 1):
            raise Invalid(
                f"a limit of {limit} is not allowed; it is a whole number from 1 on, or None for all messages"
            )
        since, before = await self._bound(wanted.get("since")), await self._bound(wanted.get("before"))
        with_tools, with_system = wanted.get("with_tools", True), wanted.get("with_system", True)
        return TranscriptFilter(since, before, limit, with_tools, with_system)

    async def _bound(self, given: str | int | date | None) -> str | int | None:
        """A time as stored, or the depth of a message that is given by number or id."""
        if given is None:
            return None
        named = str(given)
        if number_in(named) is not None or is_id(named):
            return (await self.message(named)).depth
        try:
            return stored_time(named)
        except (ValueError, OverflowError) as why:
            if id_start(named):
                return (await self.message(named)).depth
            words = "neither a time such as 2026-01-31T18:00 nor a message such as #12"
            raise Invalid(f"{shown(named)} is {words}") from why

    @in_store
    def stored_head(self) -> tuple[str | None, bool]:
        """The conversation's stored head, which another client may have moved, and whether that message is still being
        written."""
        return self._tree.head(self.id) if self.id else (None, False)

    @in_store
    def archived(self) -> ArchivedPart:
        """The archived part of the path."""
        return archived_part(self._tree, self.head)

    @in_store
    def message(self, named: str) -> Message:
        """A message by id or a prefix of it, or by its number on the path (`#57`). Raises NotFound for one of another
        conversation."""
        return self._message(named)

    def _message(self, named: str) -> Message:
        if self.id is None:
            raise NotFound(f"message {named} is not part of this conversation, which has none yet", id=named)
        if (number := number_in(named)) is not None:
            return message_by_number(self._engine.store, self._tree.conversation(self.id), self.head, number)
        id = full_id(self._engine.store, "message", named, self.id)
        if self._tree.owner(id) != self.id:
            raise NotFound(f"message {named} is not part of this conversation", id=named)
        return self._tree.message(id)

    async def tool_result(self, message: str, *, call: int = 1, media: int | None = None) -> bytes:
        """The complete output of a tool: the text of a call, or one of its pictures and files by number."""
        found = await self.message(message)
        return await asyncio.to_thread(self._reader.tool_result, found, call=call, media=media)

    @in_store
    def alternatives(self, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        """For each message, by id, the ids in its place on other branches, including its own, oldest first."""
        return self._tree.alternatives(names)

    @in_store
    def branches(self) -> list[BranchEnd]:
        """The last message of every branch, newest first."""
        leaves = self._tree.leaves(self.id) if self.id else []
        return [BranchEnd(message, message.id == self.head) for message in leaves]

    async def request(self, named: str) -> Record:
        """The record of a request, given by its id, or by a message's id or number on the path."""
        id = named if number_in(named) is None else (await self.message(named)).id
        return await asyncio.to_thread(self._reader.record, id)

    @in_thread
    def last_request(self) -> Record | None:
        """The record of the last request for a reply."""
        last = self._store.records.latest(self.id) if self.id else None
        return self._store.records.record(last) if last else None

    @in_thread
    def numbered(self, value: T) -> T:
        """A JSON value with `#12` in place of the ids of messages on the path, and `#3` of conversations."""
        return self._reader.numbered(value, self.head)

    # -- compactions

    @in_store
    def compaction(self) -> Compaction | None:
        """The Compaction in force."""
        newest = self._tree.compaction(self.session.head) if self.session.head else None
        return newest.compaction if newest else None

    async def summary_block(self) -> Compaction:
        """The Compaction that replaces archived messages. Raises NotFound if nothing is compacted; pins alone do not
        count."""
        block = await self.compaction()
        if block is None or not stands_for_something(block):
            raise NotFound("nothing is compacted in this conversation: everything said is in its window")
        return block

    async def lost_statements(self, limit: int | None = None) -> list[tuple[int, str, str]]:
        """Statements that are only in the archive: message number, the speaker's role, and the words. Covers all
        messages of the summary in force, or the last `limit` of them."""
        from recto.summary.verification import CoveredMessages, only_archived

        block = await self.summary_block()
        found = await self.archived()
        covered = CoveredMessages()
        archived: list[Message] = []
        async for message in self.path():
            if not (message.compaction or found.active(message)):
                archived.append(message)
            if limit and len(archived) == max(limit, READ_TOGETHER):
                break
        await asyncio.to_thread(covered.add, reversed(archived))
        lost = await asyncio.to_thread(only_archived, block, covered)
        first = archived[:limit][-1].said if archived else 0
        return [each for each in lost if each[0] >= first]

    async def ledger(self) -> list[tuple[int, str]]:
        """The quotes in the ledger of the summary in force, each with its message number."""
        from recto.summary.ledger import ledger_items

        return [each.key for each in ledger_items((await self.summary_block()).ledger)]

    @in_store
    def compactions(self, *, limit: int = 100) -> list[Compaction]:
        """All on the path, newest first, including those replaced, edited or taken back."""
        found = self._tree.compactions(self.session.head, limit=limit) if self.session.head else []
        return [message.compaction for message in found if message.compaction]

    # -- reports

    async def stats(self) -> ConversationStats:
        """Messages, tokens, compactions, window, requests and cost."""
        sent = await asyncio.to_thread(self._store.records.sent, self.id) if self.id else []
        counter = SaidCounter(await self.archived())
        async for message in self.path():
            counter.count(message)
        strategy, window, error = await self._window_stats()
        summaries = [request for request in sent if request.purpose == "summary"]
        return ConversationStats(
            self.id,
            counter.total(),
            strategy,
            window,
            error,
            request_totals(sent),
            recall_stats(sent),
            request_totals(summaries),
        )

    async def _window_stats(self) -> tuple[str | None, WindowStats | None, str]:
        """The strategy in force and how full the window is; if the model fails, an error in its place."""
        try:
            context, window = await self._context(), await self.window()
        except RectoError as why:
            return self.strategy, None, why.message
        return context.strategy.name, WindowStats.of(window, context.budget), ""

    async def what_if(self, message: str, **changes: Unpack[TurnPlanOptions]) -> WhatIf:
        """The window of a past turn, named by its reply or its message, as it was and as it would be with these
        changes. No model is called, and nothing is stored."""
        from recto.reports.planned_again import plan_again  # compiles the patterns of summaries: a tenth of a second

        return await plan_again(self._engine, self.session, await self.message(message), changes_of(changes))

    async def compare_strategies(
        self, names: Collection[str] = (), progress: Progress | None = None, **changes: Unpack[PlanOptions]
    ) -> StrategyComparison:
        """All turns of the path planned again with each of these strategies (default: all), side by side."""
        from recto.reports.strategy_comparison import compare_strategies  # compiles patterns too

        return await compare_strategies(self._engine, self.session, changes_of(changes), names, progress)

    async def request_use(self) -> list[RequestUse]:
        """For each reply on the path, how full its window was and what it cost, oldest first."""
        path = [message async for message in self.path()]
        return await self._store.do(lambda: list(recorded_use(self._engine.store, path[::-1])))
