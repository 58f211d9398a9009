"""AsyncDesk: the entry to the Python API. `recto.open_async()` returns a desk, and a desk opens talks.

`blocking.py` has the blocking twin, returned by `recto.open()`."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack

from recto.agents.agents import Agents
from recto.api.arguments import checked, checked_door
from recto.api.loop import in_store, in_thread
from recto.api.store_queries import StoreQueries
from recto.api.talk import AsyncTalk
from recto.base import locations
from recto.base.home_files import private_home
from recto.base.text import clean
from recto.chat.conversation import Conversation, ConversationState
from recto.chat.message import Role, now
from recto.engine import Engine
from recto.errors import Invalid, NotFound, RectoError
from recto.mcp.allowed_tools import Trust
from recto.mcp.servers import McpServers
from recto.memory.fact_memory import FactMemory
from recto.providers.model import Model
from recto.recall.indexed_message import IndexStatus
from recto.recall.message_search import FoundMessages, MessageQuery, Time, search_messages
from recto.search.hybrid_index import Progress
from recto.settings import settings as configuration
from recto.sources.server_config import ServerConfig
from recto.sources.source import DEFAULT_AGENT
from recto.sources.tool_definition import ToolChange
from recto.store.document_uses import DocumentTally, Grouping
from recto.store.store import Store
from recto.store.trash import PruneReport, time_before
from recto.transfer.report import ImportOptions, ImportReport, Place
from recto.turn.messages import pending_reply
from recto.turn.session import PROJECT, SETTINGS, ChatSession
from recto.vault.vault import NO_VAULT, Vault
from recto.vault.vault_search import VaultSearch
from recto.window.calibration import TokenCalibration, learned

P = ParamSpec("P")
T = TypeVar("T")
# Search hits to collect conversations from: many may be in the same one.
HITS_LOOKED_AT = 100


class TalkOptions(TypedDict, total=False):
    agent: str
    """The agent of a new conversation (default: `default`)."""
    settings: dict[str, Any] | None
    """Context settings by key, kept with the conversation."""
    as_left: bool
    """Keep the conversation's own model and vault, even if the desk was opened with others."""


checked_door(FactMemory)


def queried(
    query: Callable[Concatenate[StoreQueries, P], T],
) -> Callable[Concatenate["AsyncDesk", P], Coroutine[Any, Any, T]]:
    """A method of the desk that answers as the reader of its store does, in another thread."""

    @wraps(query)
    async def wait(self: "AsyncDesk", /, *args: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(query, self._reader, *args, **named)

    return wait


@checked_door
class AsyncDesk:
    """An open store with settings and a vault. Use it as an asynchronous context manager, or `close()` it."""

    home: Path
    project: Path | None
    settings: configuration.Settings
    store: Store
    engine: Engine
    vault: Vault | None

    def __init__(self, *, home: Path, project: Path | None, settings: configuration.Settings) -> None:
        self.home, self.project, self.settings = home, project, settings
        if settings.vault:
            Vault(Path(settings.vault).expanduser()).close()  # an invalid one is rejected before anything is opened
        with private_home(home):
            self.store = self._store = Store(locations.find_store(home))
        self._reader = StoreQueries(self.store, home, project)
        self.engine = Engine(self.store, settings, home=home, project=project, environment=os.environ)
        self.vault = self.engine.vaults.open(Path(settings.vault)) if settings.vault else None
        self._model = ""

    @property
    def facts(self) -> FactMemory:
        """The facts remembered between conversations. Its methods block, and may be called from any thread."""
        return self.engine.facts

    async def follow(self, listener: Callable[[], object] | None = None) -> None:
        """For long-running programs: keeps the search index up to date with what others write to the same database
        server, and calls the listener in its own thread each time. Does nothing for a store in a file."""
        self.store.changes.watch(self.engine.message_index.follow)
        if listener:
            self.store.changes.watch(lambda _: listener())

    async def use(self, *, vault: str | Path | None = None, model: str | None = None) -> None:
        """Sets another vault or model for conversations that begin from now on. Stored ones keep theirs."""
        if model is not None:
            await self.engine.models.model(model)
            self._model = model
        if vault is not None:
            self.vault = await asyncio.to_thread(self.engine.vaults.open, Path(vault))
            self.settings = configuration.changed(self.settings, {"vault": str(self.vault.root)}, "chosen")

    # -- conversations

    async def conversation(self, id: str | int | None = None, **options: Unpack[TalkOptions]) -> AsyncTalk:
        """A conversation by id, number (`#3`) or title; by default a new one, which is stored with its first
        message."""
        if id is None:
            agent = options.get("agent", DEFAULT_AGENT)
            await asyncio.to_thread(self.agents.check, agent)
            talk = AsyncTalk(self.engine, _new_session(self.engine, self.vault, agent, self._model), self._reader)
        else:
            found = await self.store.do(self._reader.conversation, id)
            talk = await self._talk(found, as_left=options.get("as_left", False))
        for key, value in (options.get("settings") or {}).items():
            await talk.set_setting(key, value)
        return talk

    async def latest(self, *, unsent: bool = False) -> AsyncTalk | None:
        """The most recently used one. Unless `unsent`, skips conversations whose first message failed before anything
        was sent."""
        found = await self.store.do(self.store.tree.latest, unsent=unsent)
        return await self._talk(found) if found else None

    async def _talk(self, conversation: Conversation, *, as_left: bool = False) -> AsyncTalk:
        settings = await asyncio.to_thread(configuration.load, self.home, self.project) if as_left else self.settings
        session = await asyncio.to_thread(_stored_session, self.engine, settings, conversation)
        return AsyncTalk(self.engine, session, self._reader, conversation.number)

    async def talk_with(self, message: str, conversation: str | None = None) -> AsyncTalk:
        """The conversation of a message: by the message's id, or by its number (`#57`) in `conversation` or in the
        latest one."""
        return await self._talk((await self.store.do(self._reader.message, message, conversation))[0])

    @in_store
    def rename(self, conversation: str, title: str) -> Conversation:
        named = " ".join(clean(title)[0].split())
        if not named:
            raise Invalid("the title is empty: write something to call it by")
        return self.store.tree.change(self._reader.conversation(conversation).id, title=named)

    @in_store
    def hide(self, conversation: str) -> Conversation:
        """Hides a conversation: it is no longer listed, but still searched."""
        return self.store.tree.hide(self._reader.conversation(conversation).id)

    @in_store
    def unhide(self, conversation: str) -> Conversation:
        return self.store.tree.hide(self._reader.conversation(conversation).id, is_hidden=False)

    @in_store
    def delete(self, conversation: str) -> Conversation:
        """Moves a conversation to the trash: it is not listed, not searched and not continued."""
        return self.store.tree.delete(self._reader.conversation(conversation).id)

    @in_store
    def restore(self, conversation: str) -> Conversation:
        """Brings a conversation back from the trash; titles work too."""
        found = self._reader.conversation(conversation, deleted=True)
        if not found.deleted:
            raise Invalid(f"conversation #{found.number} is not in the trash", id=found.id)
        return self.store.tree.delete(found.id, is_deleted=False)

    @in_thread
    def empty_trash(self, older_than: int = 0, progress: Progress | None = None) -> int:
        """Permanently removes what has been in the trash for this many days: messages, records, entries of the search
        index, texts that no other conversation needs. Returns the number of removed conversations."""
        removed = self.store.trash.empty(now(days_ago=older_than), progress)
        self.engine.message_index.forget_removed()
        return removed

    @in_thread
    def prune(self, older_than: str, progress: Progress | None = None, *, dry_run: bool = False) -> PruneReport:
        """Permanently removes conversations not used for this long (`90d`, `12h`, `6w`, `2y`), like `empty_trash`. The
        report says what was removed and what stays."""
        report = self.store.retention.prune(time_before(older_than), progress, dry_run=dry_run)
        self.engine.message_index.forget_removed()
        return report

    @in_store
    def conversations(self, *, limit: int = 100, state: ConversationState = "active") -> list[Conversation]:
        """The latest first."""
        return self._reader.conversations(limit=limit, state=state)

    async def find_conversations(self, text: str, *, limit: int = 20) -> list[Conversation]:
        """Conversations with all these words in the title, latest first; then those with matching messages."""
        titled = await self.store.do(self._reader.titled, text)
        found = {each.id: each for each in titled[:limit]}
        if len(found) < limit:
            for hit in await self.search(text, limit=HITS_LOOKED_AT):
                if hit.conversation not in found and len(found) < limit:
                    found[hit.conversation] = await self.store.do(self.store.tree.conversation, hit.conversation)
        return list(found.values())

    async def search(
        self,
        text: str,
        *,
        conversation: str | None = None,
        role: Role | None = None,
        since: Time | None = None,
        before: Time | None = None,
        limit: int = 20,
        complete: bool = False,
    ) -> FoundMessages:
        """Messages of all conversations, branches and archived parts, best first.

        Does not wait for the index: `note` of the result says what is missing in it. `complete` brings the index up to
        date first, and waits a moment for vectors."""
        home = await self.store.do(self._reader.conversation, conversation) if conversation else None
        query = MessageQuery(text, home.id if home else None, role, since, before, limit)
        search = self._search_complete if complete else self._search
        return await asyncio.to_thread(search, query)

    def _search(self, query: MessageQuery) -> FoundMessages:
        return search_messages(self.engine.message_index, self.store, query)

    def _search_complete(self, query: MessageQuery) -> FoundMessages:
        self.engine.message_index.catch_up()
        self.engine.message_index.settle(self.settings.search.timeout_s)
        return self._search(query)

    @in_thread
    def index(self, progress: Progress | None = None, *, vectors: bool = False, anew: bool = False) -> IndexStatus:
        """Brings the search index up to date, with all its vectors if requested; `anew` rebuilds it."""
        archive = self.engine.message_index
        if anew:
            archive.renew()
        archive.catch_up(progress, vectors=vectors)
        return archive.filled

    @in_thread
    def index_status(self) -> IndexStatus:
        """How far the search index has come."""
        return self.engine.message_index.filled

    @in_thread
    def check_embedder(self) -> str:
        """Asks the embedder for a vector; empty on success, else the error."""
        return self.engine.message_index.check()

    # -- in and out

    export = queried(StoreQueries.export_file)

    @in_thread
    def import_file(self, file: Place, **options: Unpack[ImportOptions]) -> ImportReport:
        """Stores the conversations of a file: an export of Recto or of another program."""
        from recto.transfer.formats import open_source  # readers of all formats: only for imports
        from recto.transfer.importer import Importer

        with open_source(Path(file).expanduser(), options.get("format")) as source:
            return Importer(self.store.copies, options.get("progress")).run(source)

    # -- who and what there is

    @property
    def agents(self) -> Agents:
        return self.engine.agents

    @property
    def servers(self) -> McpServers:
        return self.engine.servers

    @property
    def vault_search(self) -> VaultSearch | None:
        """The search over the vault: `find_documents`, `find_excerpts`; None without a vault."""
        return self.engine.vaults.search(self.vault) if self.vault else None

    async def model(self, name: str) -> Model:
        """The facts about `provider:model`. Raises NotFound if it is unknown."""
        return await self.engine.models.model(name)

    @in_store
    def calibration(self, model: str) -> TokenCalibration:
        """The calibration of a model's token estimates, and how many replies it is based on."""
        reports = self.store.usage_reports.latest(model)
        return learned([report for report in reports if report.meter == reports[0].meter])

    @in_thread
    def trust(self, server: str, agent: str = DEFAULT_AGENT) -> ServerConfig:
        """Lets a project's MCP server run, exactly as it is configured now."""
        config = self._server(server, agent)
        Trust(self.home).trust(config, self.project)
        return config

    @in_thread
    def distrust(self, server: str, agent: str = DEFAULT_AGENT) -> ServerConfig:
        config = self._server(server, agent)
        Trust(self.home).distrust(server, self.project)
        return config

    async def tool_changes(self, server: str, agent: str = DEFAULT_AGENT) -> tuple[ToolChange, ...]:
        """How a server's tools differ from what the user allowed. Starts the server if any of them was allowed."""
        config, servers = await asyncio.to_thread(self._server, server, agent), self.engine.servers
        if not await asyncio.to_thread(servers.allowed.has, server, config.identity(self.project)):
            return ()
        offer = await servers.offer([config], self.project, fresh=True)
        if not offer.tools and offer.notes:
            raise RectoError(offer.notes[0], name=server)
        return await asyncio.to_thread(servers.allowed.changes, offer.tools)

    @in_thread
    def accept_tools(self, changes: Sequence[ToolChange]) -> None:
        """Accepts tools in the form given by `changes`: they run again without asking wherever they were allowed."""
        self.engine.servers.allowed.accept([change.after for change in changes])

    def _server(self, name: str, agent: str) -> ServerConfig:
        found = self.agents.read(agent)
        if (config := found.server(name)) is None:
            known = ", ".join(each.name for each in found.servers) or "none"
            raise NotFound(f"the agent {agent} has no MCP server {name}; it has: {known}", name=name)
        return config

    # -- records. A request is named by its id, by a message's id or number (`#12`), as `last` or `previous`.

    record = queried(StoreQueries.record)
    rebuild = queried(StoreQueries.rebuild)
    compare = queried(StoreQueries.compare)
    sent_source = queried(StoreQueries.sent_source)
    sent_pick = queried(StoreQueries.sent_pick)
    attached = queried(StoreQueries.attached)

    @in_thread
    def verify(self, requests: Sequence[str] | None = None) -> list[tuple[str, str | None]]:
        """For each request (all by default): None if it rebuilds, else the difference."""
        return list(self._reader.verify(requests))

    # -- reports over all conversations

    source_report = queried(StoreQueries.source_report)
    spending = queried(StoreQueries.spending)
    token_use = queried(StoreQueries.token_use)

    @in_thread
    def document_stats(self, by: Grouping = "document") -> list[DocumentTally]:
        """The documents of the vault that conversations use."""
        return self._reader.document_stats(self._vault().root, by)

    @in_thread
    def unnamed_documents(self) -> list[DocumentTally]:
        """Documents of the vault that were never named: first those found by tools, then those never used."""
        vault = self._vault()
        return self._reader.unnamed_documents(vault.root, [note.path for note in vault.documents()])

    def _vault(self) -> Vault:
        if self.vault is None:
            raise Invalid(NO_VAULT)
        return self.vault

    # -- the end

    async def close(self) -> None:
        await self.engine.close()
        self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _new_session(engine: Engine, vault: Vault | None, agent: str, model: str = "") -> ChatSession:
    return ChatSession("", None, model or _named_model(engine.settings), vault, agent=agent, project=engine.folder)


def _stored_session(engine: Engine, settings: configuration.Settings, conversation: Conversation) -> ChatSession:
    """A session at the head of a stored conversation, with its own settings unless options name a model or vault."""
    details, agent = conversation.details, conversation.agent
    model = _named_model(settings) or str(details.get("model") or "")
    if not model and settings is not engine.settings and settings.origin("model") != "default":
        model = engine.agents.read_or_last(agent).model or settings.model  # otherwise the desk's option would apply
    project = Path(details[PROJECT]) if details.get(PROJECT) else engine.folder
    session = ChatSession(conversation.id, conversation.head, model, agent=agent, project=project)
    session.apply(chosen=details.get(SETTINGS) or {}, pending=pending_reply(engine.store, conversation.head))
    own = str(details.get("vault") or "") if settings.origin("vault") != "option" else ""
    for place in filter(None, (settings.vault, own)):
        try:
            session.apply(vault=engine.vaults.open(Path(place)))
        except RectoError as why:
            session.note_later(f"the vault of this conversation cannot be used: {why.message}")
    return session


def _named_model(settings: configuration.Settings) -> str:
    """A model requested by name stays with the conversation; one from the settings changes with them."""
    return settings.model if settings.origin("model") == "option" else ""


class DeskOptions(TypedDict, total=False):
    home: str | Path | None
    vault: str | Path | None
    model: str | None
    project: str | Path | None
    settings: dict[str, Any] | None


@checked
def new_desk(**options: Unpack[DeskOptions]) -> AsyncDesk:
    home, vault, project = options.get("home"), options.get("vault"), options.get("project")
    place = Path(home).expanduser() if home else locations.find_home()
    root = Path(project) if project else locations.find_project(Path.cwd(), place)
    given = {"vault": str(vault) if vault else None, "model": options.get("model")}
    flags = given | (options.get("settings") or {})
    loaded = configuration.load(place, root, flags=flags)
    return AsyncDesk(home=place, project=root, settings=loaded)


async def open_async(**options: Unpack[DeskOptions]) -> AsyncDesk:
    """A desk on `home` (default: RECTO_HOME or ~/.recto). Keyword settings override files and environment."""
    return await asyncio.to_thread(new_desk, **options)
