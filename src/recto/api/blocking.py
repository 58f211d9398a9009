"""Talk and Desk: AsyncTalk and AsyncDesk for blocking code. Work runs on a loop in a background thread.

Generated from the asynchronous classes by `make docs`; do not edit.
"""

from collections.abc import Callable, Collection, Coroutine, Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from recto.agents.agent import Agent
from recto.agents.agents import Agents
from recto.api.ask_options import AskOptions, Attachment, Reply
from recto.api.client_turn import ExtendedPath, PreparedRequest, PrepareOptions
from recto.api.desk import AsyncDesk, DeskOptions, TalkOptions, new_desk
from recto.api.loop import Loop
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
from recto.memory.fact_memory import FactMemory
from recto.providers.model import Model
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
from recto.settings import settings as configuration
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
from recto.tasks.run import RunReport, TaskRun
from recto.transfer.report import ExportOptions, ImportOptions, ImportReport, Place
from recto.turn.messages import Given
from recto.turn.session import ChatSession
from recto.vault.graph import Graph
from recto.vault.vault import Vault
from recto.vault.vault_search import FoundDocument, VaultHits, VaultSearch
from recto.window.calibration import TokenCalibration
from recto.window.window import Window
from recto.wire import Json

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
        """The short number that people see, such as `#3`; None as long as nothing is stored."""
        return self._talk.number

    @property
    def name(self) -> str:
        """What people call the conversation: `conversation #3`."""
        return self._talk.name

    @property
    def title(self) -> str:
        """The title of the conversation; empty as long as nothing is stored."""
        return self._talk.title

    @property
    def head(self) -> str | None:
        """The last message of the path; the next one follows it."""
        return self._talk.head

    @property
    def agent(self) -> Agent:
        """The agent that the conversation belongs to, as its files say now."""
        return self._talk.agent

    @property
    def model(self) -> str:
        """The model that answers: asked for by name, else the agent's, else the settings'."""
        return self._talk.model

    @property
    def vault(self) -> Vault | None:
        return self._talk.vault

    @property
    def document(self) -> str | None:
        """The document that is open beside the chat."""
        return self._talk.document

    @property
    def strategy(self) -> str | None:
        """The strategy that was chosen for this conversation; None when it follows agent, model and settings."""
        return self._talk.strategy

    @property
    def chosen_settings(self) -> dict[str, Any]:
        """The settings that were chosen for this conversation, by key."""
        return self._talk.chosen_settings

    @property
    def settings(self) -> configuration.Settings:
        """The settings in force here, each with its origin, as far as they are known without the model."""
        return self._talk.settings

    @property
    def context_settings(self) -> configuration.ContextSettings:
        return self._talk.context_settings

    def window(self, given: Given = "", **options: Unpack[AskOptions]) -> Window:
        """What would be sent for this message, without sending or changing anything.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.run(self._talk.window(given, **options))

    @property
    def memory_file(self) -> Path:
        """The file that `remember_in_project` adds to."""
        return self._talk.memory_file

    def memory(self, text: str = "") -> MemoryReport:
        """The memory that would go with this message, or with the user's last one: files and facts, and why."""
        return self._loop.run(self._talk.memory(text))

    def pending_events(self) -> Sequence[Event]:
        """Events of background work since the last message, such as facts learned. Each is given once."""
        return self._talk.pending_events()

    def strategy_in_force(self, strategy: str | None = None) -> str | None:
        """The strategy of the next message, or of one that asks for `strategy`; None where the model cannot be
        reached, since it may bring a strategy of its own.
        """
        return self._loop.run(self._talk.strategy_in_force(strategy))

    def sources(self, kinds: Collection[SourceKind] = SOURCE_KINDS, *, fresh: bool = False) -> SourceList:
        """Rules, references and tools of the agent, and how this conversation has them. Tools may start MCP servers;
        `fresh` asks every server, whatever lists were kept.
        """
        return self._loop.run(self._talk.sources(kinds, fresh=fresh))

    def overrides(self) -> SourceOverrides:
        """What the user added, removed and allowed in this conversation."""
        return self._loop.run(self._talk.overrides())

    def suggest_documents(self, limit: int = 5, progress: Progress | None = None) -> VaultHits[FoundDocument]:
        """Documents of the vault that bear on the latest messages and were not used in this conversation yet; those
        that are used often elsewhere first.
        """
        return self._loop.run(self._talk.suggest_documents(limit, progress))

    def path(self, before: str | None = None) -> Iterator[Message]:
        """From the head, or from the message before this one, back to the first, read a page at a time."""
        return self._loop.iterate(self._talk.path(before))

    def messages(self, **wanted: Unpack[Wanted]) -> list[Message]:
        """The last messages of the path to the head, oldest first; `Wanted` says which.

        Options: limit, since, before, with_tools, with_system.
        """
        return self._loop.run(self._talk.messages(**wanted))

    def transcript(self, **wanted: Unpack[Wanted]) -> list[TranscriptEntry]:
        """The same, each message with whether it is still sent.

        Options: limit, since, before, with_tools, with_system.
        """
        return self._loop.run(self._talk.transcript(**wanted))

    def stored_head(self) -> tuple[str | None, bool]:
        """The conversation's head in the store, which another client may have moved, and whether that message is still
        being written.
        """
        return self._loop.run(self._talk.stored_head())

    def archived(self) -> ArchivedPart:
        """What of the path is archived now."""
        return self._loop.run(self._talk.archived())

    def message(self, named: str) -> Message:
        """By its id or the beginning of it, or by its number on the path (`#57`). NotFound for one of another
        conversation.
        """
        return self._loop.run(self._talk.message(named))

    def tool_result(self, message: str, *, call: int = 1, media: int | None = None) -> bytes:
        """What a tool gave, whole: the text of a call, or one of its pictures and files by number."""
        return self._loop.run(self._talk.tool_result(message, call=call, media=media))

    def alternatives(self, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        """For each message, by id, the ids that stand in its place on other branches, itself included, oldest first."""
        return self._loop.run(self._talk.alternatives(names))

    def branches(self) -> list[BranchEnd]:
        """The last message of every branch, newest first."""
        return self._loop.run(self._talk.branches())

    def request(self, named: str) -> Record:
        """The record of a request: by its id, or by a message's id or number on the path."""
        return self._loop.run(self._talk.request(named))

    def last_request(self) -> Record | None:
        """The record of the last request for a reply."""
        return self._loop.run(self._talk.last_request())

    def numbered(self, value: T) -> T:
        """A JSON value for people: `#12` in place of the ids of messages on the path, `#3` of conversations."""
        return self._loop.run(self._talk.numbered(value))

    def compaction(self) -> Compaction | None:
        """The Compaction in force."""
        return self._loop.run(self._talk.compaction())

    def summary_block(self) -> Compaction:
        """The Compaction that stands for archived messages. NotFound when nothing is compacted; pins alone are not
        enough.
        """
        return self._loop.run(self._talk.summary_block())

    def lost_facts(self, limit: int | None = None) -> list[tuple[int, str, str]]:
        """What is only in the archive: the number of each message, the role of who said it, and the words. Looks at
        the last so many of the messages that the summary in force covers; at all of them unless a limit is given.
        """
        return self._loop.run(self._talk.lost_facts(limit))

    def ledger(self) -> list[tuple[int, str]]:
        """What the ledger of the summary in force quotes, each with the number of its message."""
        return self._loop.run(self._talk.ledger())

    def compactions(self, *, limit: int = 100) -> list[Compaction]:
        """All on the path, the newest first: those that were replaced, edited or taken back too."""
        return self._loop.run(self._talk.compactions(limit=limit))

    def stats(self) -> ConversationStats:
        """Messages, tokens, compactions, window, requests and cost."""
        return self._loop.run(self._talk.stats())

    def what_if(self, message: str, **changes: Unpack[TurnPlanOptions]) -> WhatIf:
        """The window of a past turn, named by its reply or its message, as it was and as it would be with these
        changes. No model is asked, and nothing is stored.

        Options: window, model, settings, strategy, from_start.
        """
        return self._loop.run(self._talk.what_if(message, **changes))

    def compare_strategies(
        self, names: Collection[str] = (), progress: Progress | None = None, **changes: Unpack[PlanOptions]
    ) -> StrategyComparison:
        """All turns of the path planned again with each of these strategies (by default with all), side by side.

        Options: window, model, settings.
        """
        return self._loop.run(self._talk.compare_strategies(names, progress, **changes))

    def request_use(self) -> list[RequestUse]:
        """How full the window of each reply on the path was and what it cost, oldest first."""
        return self._loop.run(self._talk.request_use())

    def open_document(self, path: str | None) -> str | None:
        """A document of the vault goes with every message from now on, as far as it fits; None closes it."""
        return self._loop.run(self._talk.open_document(path))

    def use(self, model: str) -> None:
        """Another model from the next message on, for this conversation. NotFound when nobody knows it."""
        self._loop.run(self._talk.use(model))

    def use_strategy(self, name: str | None) -> None:
        """Another strategy for this conversation from the next message on; None follows the settings again."""
        self._loop.run(self._talk.use_strategy(name))

    def set_setting(self, key: str, value: Any) -> Any:
        """Keeps a setting of context, or spend.conversation, with this conversation, over those of agent, project and
        user; options of a call still win. None follows these again. Gives the value as it was read.
        """
        return self._loop.run(self._talk.set_setting(key, value))

    def wake(self) -> None:
        """Loads the model and what the next message needs in the background, for example while the user types."""
        self._loop.run(self._talk.wake())

    def watch_vault(self) -> None:
        """Keeps the vault's catalogue and search index up to date in the background, while the talk lasts."""
        self._loop.run(self._talk.watch_vault())

    def remember_in_project(self, text: str) -> Path:
        """Adds a line to the memory file of the conversation's project; it stands in every window from then on."""
        return self._loop.run(self._talk.remember_in_project(text))

    def add_source(self, named: str) -> SourceStatus:
        """A source, such as `rule:style`, goes with every message from now on, whatever its include mode."""
        return self._loop.run(self._talk.add_source(named))

    def add_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        """Several at once: where one of them cannot be added, none is."""
        return self._loop.run(self._talk.add_sources(names))

    def remove_source(self, named: str) -> SourceStatus:
        """Also one that was added and whose file is gone: it does not come back when the file does."""
        return self._loop.run(self._talk.remove_source(named))

    def remove_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        """Several at once: where one of them cannot be removed, none is."""
        return self._loop.run(self._talk.remove_sources(names))

    def set_include(self, named: str, mode: str) -> IncludeChange:
        """Writes into the agent's file how a source comes in: always, manual or agent. `tool:SERVER` names all tools
        of a server.
        """
        return self._loop.run(self._talk.set_include(named, mode))

    def allow(self, tool: str) -> None:
        """Lets a tool (`server/tool`), or all of a server, run without asking, as long as this talk lasts. NotFound
        for one that the agent does not have.
        """
        self._loop.run(self._talk.allow(tool))

    def ask_again(self, tool: str) -> ApprovalChange:
        """Takes back that a tool, or all tools of a server, may run without asking."""
        return self._loop.run(self._talk.ask_again(tool))

    def stream(self, given: Given = (), *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        """Sends a message, text or blocks, then what was queued meanwhile; without a message, what waits. Gives the
        events as they come. Closing the generator stops the reply and keeps what came.

        `can_ask`: the reader answers a CompactionProposed or ApprovalAsked before it takes the next event.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.stream(self._talk.stream(given, can_ask=can_ask, **options))

    def stream_edit(
        self, message: str, text: str, *, can_ask: bool = True, **options: Unpack[AskOptions]
    ) -> Generator[Event]:
        """Puts another text in place of an earlier message of the user, with its attachments, on a branch beside it.
        Gives the reply to that as events. Closing the generator stops the reply and keeps what came.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.stream(self._talk.stream_edit(message, text, can_ask=can_ask, **options))

    def stream_regenerate(self, *, can_ask: bool = True, **options: Unpack[AskOptions]) -> Generator[Event]:
        """Asks for another reply to the user's last message, on a branch beside the first one, as events. Closing the
        generator stops the reply and keeps what came.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.stream(self._talk.stream_regenerate(can_ask=can_ask, **options))

    def ask(self, given: Given, **options: Unpack[AskOptions]) -> Reply:
        """The whole reply. Nobody is asked about tools or compactions meanwhile.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.run(self._talk.ask(given, **options))

    def edit(self, message: str, text: str, **options: Unpack[AskOptions]) -> Reply:
        """Another text in place of an earlier message of the user, on a branch beside it, and the reply to that.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.run(self._talk.edit(message, text, **options))

    def regenerate(self, **options: Unpack[AskOptions]) -> Reply:
        """Another reply to the user's last message, for example by another `model`, on a branch beside the first.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.run(self._talk.regenerate(**options))

    def stream_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        can_ask: bool = True,
        **options: Unpack[AskOptions],
    ) -> Generator[Event]:
        """Works toward a goal, turn after turn, as events, of which RunEnded is the last; without a goal the last run
        of this conversation goes on, with its own limits unless others are given. `max_steps`: rounds of tool calls,
        20 unless given; `max_cost`: US dollars. Closing the generator stops the run, which can go on later.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.stream(
            self._talk.stream_goal(goal, max_steps=max_steps, max_cost=max_cost, can_ask=can_ask, **options)
        )

    def run_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        **options: Unpack[AskOptions],
    ) -> RunReport:
        """The same, to its end. Nobody is asked about tools or compactions meanwhile: what needs a yes does not run.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments.
        """
        return self._loop.run(self._talk.run_goal(goal, max_steps=max_steps, max_cost=max_cost, **options))

    def last_run(self) -> TaskRun | None:
        """The last run toward a goal on this path, as far as it has come; None where there was none."""
        return self._loop.run(self._talk.last_run())

    def stop_goal(self) -> bool:
        """Ends the run that is going on from here after its round of tool calls; False where there is none."""
        return self._loop.run(self._talk.stop_goal())

    def queue(self, given: Given, *, attachments: Sequence[Attachment] = ()) -> WaitingMessage:
        """Stores a message while a reply comes. It enters before the next request of that turn, else as the next turn;
        while no turn runs it waits for one.
        """
        return self._loop.run(self._talk.queue(given, attachments=attachments))

    def waiting(self) -> list[WaitingMessage]:
        """What waits to enter this conversation, the oldest first."""
        return self._loop.run(self._talk.waiting())

    def take_back(self, id: str | None = None) -> WaitingMessage:
        """Takes a waiting message back, the newest unless one is named; it is not stored any longer."""
        return self._loop.run(self._talk.take_back(id))

    def undo(self) -> Message:
        """Takes back the last message and its reply; both stay in the store."""
        return self._loop.run(self._talk.undo())

    def fork(self, message: str) -> Message:
        """Goes on from an earlier message, named by id or number: the next one starts a branch there."""
        return self._loop.run(self._talk.fork(message))

    def switch(self, message: str) -> str:
        """Goes to the newest end of the branches that run through a message, and gives the id of that."""
        return self._loop.run(self._talk.switch(message))

    def set_priority(self, message: str, priority: int) -> Message:
        """How much a message matters to `hybrid`, from 1 to 10, in place of the priority that Recto gave it."""
        return self._loop.run(self._talk.set_priority(message, priority))

    def stream_compaction(self, keep: str = "") -> Generator[Event]:
        """Compacts now, as events; `keep` says what must be in the summary above all."""
        return self._loop.stream(self._talk.stream_compaction(keep))

    def compact(self, keep: str = "") -> Compaction:
        return self._loop.run(self._talk.compact(keep))

    def clear(self) -> Compaction:
        """Starts anew for the model; everything said stays in the store."""
        return self._loop.run(self._talk.clear())

    def uncompact(self) -> Compaction:
        """Takes the newest compaction back; what was said since stays."""
        return self._loop.run(self._talk.uncompact())

    def edit_summary(self, text: str) -> Compaction:
        return self._loop.run(self._talk.edit_summary(text))

    def pin(self, message: str) -> Compaction:
        """The message, named by id or number, is in every window from now on."""
        return self._loop.run(self._talk.pin(message))

    def unpin(self, message: str) -> Compaction:
        return self._loop.run(self._talk.unpin(message))

    def extend(self, messages: Sequence[Json]) -> ExtendedPath:
        """Stores messages as OpenAI's or Anthropic's API takes them: those that are new. A list that was given before
        changes nothing, and one that differs goes on as a branch. System messages are kept for `prepare`.
        """
        return self._loop.run(self._talk.extend(messages))

    def prepare(self, given: Given | None = None, **options: Unpack[PrepareOptions]) -> PreparedRequest:
        """The request for a message, or for what was given to `extend`: stored, compacted where it is due, with what
        is recalled, and recorded. Nothing is sent, and no model is asked.

        Options: model, strategy, temperature, top_p, max_tokens, stop, response_format, reasoning_effort,
        tool_choice, tools, attachments, system, summarizer.
        """
        return self._loop.run(self._talk.prepare(given, **options))

    def record(self, prepared: PreparedRequest, reply: Any) -> Reply:
        """Stores the reply to a prepared request: the object or the dict that the provider's API gave, or a text. Its
        tool calls wait for their results, which the next message carries.
        """
        return self._loop.run(self._talk.record(prepared, reply))


class Desk:
    """An open store with settings and a vault. Use it as a context manager, or `close()` it."""

    def __init__(self, desk: AsyncDesk) -> None:
        self._desk, self._loop = desk, Loop()

    @property
    def asynchronous(self) -> AsyncDesk:
        """The same desk for asynchronous code."""
        return self._desk

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the desk's loop."""
        return self._loop.run(work)

    def close(self) -> None:
        self._loop.run(self._desk.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def home(self) -> Path:
        return self._desk.home

    @property
    def project(self) -> Path | None:
        return self._desk.project

    @property
    def settings(self) -> configuration.Settings:
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
        """What is remembered between conversations. Its methods block, and may be called from any thread."""
        return self._desk.facts

    def follow(self, listener: Callable[[], object] | None = None) -> None:
        """For programs that stay open: keeps the search index up to date with what others write to the same database
        server, and calls the listener, in a thread of its own, whenever they do. A store in a file is not followed.
        """
        self._loop.run(self._desk.follow(listener))

    def use(self, *, vault: str | Path | None = None, model: str | None = None) -> None:
        """Other notes, or another model, for conversations that begin from now on. What is stored stays as it is."""
        self._loop.run(self._desk.use(vault=vault, model=model))

    def conversation(self, id: str | int | None = None, **options: Unpack[TalkOptions]) -> Talk:
        """The conversation of this id, number (`#3`) or title, or a new one, which is stored with its first message.

        Options: agent, settings, as_left.
        """
        return Talk(self._loop.run(self._desk.conversation(id, **options)), self._loop)

    def latest(self, *, unsent: bool = False) -> Talk | None:
        """The conversation that was used last. One of which nothing was ever sent, since its first message failed, is
        passed over unless `unsent`.
        """
        talk = self._loop.run(self._desk.latest(unsent=unsent))
        return Talk(talk, self._loop) if talk else None

    def talk_with(self, message: str, conversation: str | None = None) -> Talk:
        """The conversation that a message is in: by the message's id, or by its number (`#57`) in `conversation` or
        in the latest one.
        """
        return Talk(self._loop.run(self._desk.talk_with(message, conversation)), self._loop)

    def rename(self, conversation: str, title: str) -> Conversation:
        return self._loop.run(self._desk.rename(conversation, title))

    def archive(self, conversation: str) -> Conversation:
        """A conversation that is no longer listed, but still searched."""
        return self._loop.run(self._desk.archive(conversation))

    def unarchive(self, conversation: str) -> Conversation:
        return self._loop.run(self._desk.unarchive(conversation))

    def delete(self, conversation: str) -> Conversation:
        """Moves a conversation to the trash: it is not listed, not searched and not continued."""
        return self._loop.run(self._desk.delete(conversation))

    def restore(self, conversation: str) -> Conversation:
        """Brings a conversation back from the trash, also by its title."""
        return self._loop.run(self._desk.restore(conversation))

    def empty_trash(self, older_than: int = 0, progress: Progress | None = None) -> int:
        """Removes for good what has been in the trash for so many days: messages, records, entries of the search index,
        texts that no other conversation needs. Returns how many conversations were removed.
        """
        return self._loop.run(self._desk.empty_trash(older_than, progress))

    def prune(self, older_than: str, progress: Progress | None = None, **options: Unpack[PruneOptions]) -> PruneReport:
        """Removes for good the conversations that nobody has used for so long (`90d`, `12h`, `6w`, `2y`), as
        `empty_trash` does. The report says what went and what stays.

        Options: conversation, key, backups, dry_run.
        """
        return self._loop.run(self._desk.prune(older_than, progress, **options))

    def conversations(self, *, limit: int = 100, state: ConversationState = "active") -> list[Conversation]:
        """The latest first."""
        return self._loop.run(self._desk.conversations(limit=limit, state=state))

    def find_conversations(self, text: str, *, limit: int = 20) -> list[Conversation]:
        """First those whose title holds all these words, the latest first; then those with messages that are found."""
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
        """Messages of all conversations, branches and archived parts, the best first.

        Waits for no index: `note` of the result says what is missing in it. `complete` brings the index up to date
        before, and waits a moment for vectors.
        """
        return self._loop.run(
            self._desk.search(
                text, conversation=conversation, role=role, since=since, before=before, limit=limit, complete=complete
            )
        )

    def index(self, progress: Progress | None = None, *, vectors: bool = False, anew: bool = False) -> IndexStatus:
        """Brings the search index up to date, with all its vectors if asked; `anew` throws it away before."""
        return self._loop.run(self._desk.index(progress, vectors=vectors, anew=anew))

    def index_status(self) -> IndexStatus:
        """How far the search index has come."""
        return self._loop.run(self._desk.index_status())

    def check_embedder(self) -> str:
        """Asks the embedder for a vector; empty when it gave one, else why there is none."""
        return self._loop.run(self._desk.check_embedder())

    def export(self, file: Place, conversation: str | int | None = None, **options: Unpack[ExportOptions]) -> Path:
        """Writes a conversation (by default the latest) into a file, whole or not at all.

        Options: format, everything.
        """
        return self._loop.run(self._desk.export(file, conversation, **options))

    def import_file(self, file: Place, **options: Unpack[ImportOptions]) -> ImportReport:
        """Stores the conversations of a file: an export of Recto or of another program.

        Options: format, as_new, progress.
        """
        return self._loop.run(self._desk.import_file(file, **options))

    @property
    def agents(self) -> Agents:
        return self._desk.agents

    @property
    def servers(self) -> McpServers:
        return self._desk.servers

    @property
    def vault_search(self) -> VaultSearch | None:
        """The search over the vault: `find_documents`, `find_excerpts`; None without a vault."""
        return self._desk.vault_search

    def model(self, name: str) -> Model:
        """What is known about `provider:model`. NotFound when nobody knows it."""
        return self._loop.run(self._desk.model(name))

    def calibration(self, model: str) -> TokenCalibration:
        """How far estimates for a model are off, and from how many replies that is known."""
        return self._loop.run(self._desk.calibration(model))

    def trust(self, server: str, agent: str = DEFAULT_AGENT) -> ServerConfig:
        """Lets an MCP server run that comes with the project, exactly as it is described there now."""
        return self._loop.run(self._desk.trust(server, agent))

    def distrust(self, server: str, agent: str = DEFAULT_AGENT) -> ServerConfig:
        return self._loop.run(self._desk.distrust(server, agent))

    def tool_changes(self, server: str, agent: str = DEFAULT_AGENT) -> tuple[ToolChange, ...]:
        """How tools of a server differ from what the user allowed. Starts the server if any of them was allowed."""
        return self._loop.run(self._desk.tool_changes(server, agent))

    def accept_tools(self, changes: Sequence[ToolChange]) -> None:
        """The tools run without asking again wherever they were allowed, as long as they are what the changes say."""
        self._loop.run(self._desk.accept_tools(changes))

    def record(self, request: str | None = None) -> Record:
        """What is known about a request, all but its bytes; without a name the last of the latest conversation."""
        return self._loop.run(self._desk.record(request))

    def rebuild(self, request: str | None = None) -> bytes:
        """The exact bytes that were sent. Altered when they can no longer be had."""
        return self._loop.run(self._desk.rebuild(request))

    def compare(self, before: str | None = None, after: str | None = None) -> Difference:
        """What came in, went out and changed from one request to another; one alone is compared with the one before
        it.
        """
        return self._loop.run(self._desk.compare(before, after))

    def verify(self, requests: Sequence[str] | None = None) -> list[tuple[str, str | None]]:
        """For each request (all of them by default): None when it rebuilds, else what differs."""
        return self._loop.run(self._desk.verify(requests))

    def sent_source(self, request: str | None, source: str) -> SentText:
        """The text of `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME` as it went with a request."""
        return self._loop.run(self._desk.sent_source(request, source))

    def sent_pick(self, request: str | None, section: str, place: int) -> SentText:
        """The text of anything in a request as it was sent: the pick at this place of a section, from 0 on."""
        return self._loop.run(self._desk.sent_pick(request, section, place))

    def attached(self, message: str, block: int) -> tuple[str, bytes]:
        """The media type and the bytes of an image or a file of a message: its block of this number, from 0 on."""
        return self._loop.run(self._desk.attached(message, block))

    def source_report(self, agent: str | None = None, since: str | None = None) -> SourceReport:
        """How replies used their sources, and what that suggests."""
        return self._loop.run(self._desk.source_report(agent, since))

    def source_periods(
        self, by: Period = "month", agent: str | None = None, since: str | None = None
    ) -> list[SourcePeriod]:
        """How many sources were chosen for replies, how many of them used, and their scores, by month or day."""
        return self._loop.run(self._desk.source_periods(by, agent, since))

    def spending(
        self, by: SpentBy = "day", progress: Progress | None = None, **within: Unpack[SpentWithin]
    ) -> list[Spent]:
        """What requests cost, with summaries: in total, or by day, model, conversation or purpose.

        Options: conversation, since.
        """
        return self._loop.run(self._desk.spending(by, progress, **within))

    def token_use(
        self, by: SpentBy = "day", progress: Progress | None = None, **within: Unpack[SpentWithin]
    ) -> list[TokenUse]:
        """Tokens that requests read and wrote, and what they cost, summed as `spending` sums costs.

        Options: conversation, since.
        """
        return self._loop.run(self._desk.token_use(by, progress, **within))

    def document_stats(self, by: Grouping = "document") -> list[DocumentTally]:
        """Which documents of the vault conversations use."""
        return self._loop.run(self._desk.document_stats(by))

    def used_graph(self, by: Together = "turn") -> Graph:
        """The documents of the vault that were used, and how often two were in one turn or conversation."""
        return self._loop.run(self._desk.used_graph(by))

    def unnamed_documents(self) -> list[DocumentTally]:
        """Documents of the vault that nobody named: first those that tools came upon, then those never used."""
        return self._loop.run(self._desk.unnamed_documents())


def open_desk(**options: Unpack[DeskOptions]) -> Desk:
    """A desk on `home` (default: RECTO_HOME or ~/.recto). Keyword settings win over files and environment."""
    return Desk(new_desk(**options))
