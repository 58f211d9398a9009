"""Desk: the Python door. `recto.open()` gives a desk, a desk gives talks; everything else is behind them."""

import os
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from recto import places
from recto import settings as configuration
from recto.agents.agent import DEFAULT
from recto.agents.agents import Agents
from recto.chat.conversation import Conversation
from recto.engine import Engine
from recto.errors import NotFound
from recto.loop import Loop
from recto.providers.model import Model
from recto.search.lookup import Progress
from recto.servers.servers import Servers
from recto.servers.trust import Trust
from recto.sources.server import ServerConfig
from recto.store.comparing import Difference
from recto.store.records import Record
from recto.store.store import Store
from recto.talk import Talk
from recto.vault.library import Library
from recto.vault.vault import Vault
from recto.walk.archive import Filled
from recto.walk.searching import Findings, Sought, Time, search

T = TypeVar("T")


class Desk:
    """A store, settings and a vault, open. Use it as a context manager, or `close()` it."""

    def __init__(self, *, home: Path, project: Path | None, settings: configuration.Settings) -> None:
        self.home, self.project = home, project
        self.settings = settings
        if settings.vault:
            Vault(Path(settings.vault).expanduser()).close()  # one that is none is told before anything is opened
        self.store = Store(home / places.STORE_FILE)
        self.engine = Engine(self.store, settings, home=home, project=project, environment=os.environ)
        self.vault = self.engine.libraries.open(Path(settings.vault)) if settings.vault else None
        self.loop = Loop()

    # -- conversations

    def conversation(self, id: str | None = None, *, agent: str = "default") -> Talk:
        """The conversation of this id, or a new one of this agent, which is stored with its first message."""
        if id is None:
            self.agents.check(agent)
            return self._talk(None, agent)
        return self._talk(self.store.tree.conversation(id))

    @property
    def agents(self) -> Agents:
        return self.engine.agents

    @property
    def servers(self) -> Servers:
        return self.engine.servers

    def trust(self, server: str, agent: str = DEFAULT) -> ServerConfig:
        """Lets an MCP server run that comes with the project, exactly as it is described there now."""
        config = self._server(server, agent)
        Trust(self.home).trust(config, self.project)
        return config

    def distrust(self, server: str, agent: str = DEFAULT) -> ServerConfig:
        config = self._server(server, agent)
        Trust(self.home).distrust(server, self.project)
        return config

    def _server(self, name: str, agent: str) -> ServerConfig:
        found = self.agents.read(agent)
        if (config := found.server(name)) is None:
            known = ", ".join(each.name for each in found.servers) or "none"
            raise NotFound(f"the agent {agent} has no MCP server {name}; it has: {known}", name=name)
        return config

    def latest(self) -> Talk | None:
        found = self.store.tree.latest()
        return self._talk(found) if found else None

    def _talk(self, conversation: Conversation | None, agent: str = "default") -> Talk:
        return Talk(self.engine, self.loop, self.vault, conversation, agent)

    def conversations(self, *, limit: int = 100) -> list[Conversation]:
        return self.store.tree.conversations(limit=limit)

    def search(
        self,
        text: str,
        *,
        conversation: str | None = None,
        role: str | None = None,
        since: Time | None = None,
        before: Time | None = None,
        limit: int = 20,
    ) -> Findings:
        """Messages of all conversations, branches and archived parts, the best first. Waits for no index: `note` of
        what is found says what is missing in it, and `index()` makes that."""
        sought = Sought(text, conversation, role, since, before, limit)
        return search(self.engine.archive, self.store, sought)

    @property
    def library(self) -> Library | None:
        """The vault as it is searched: `find_documents`, `find_excerpts`; None without a vault."""
        return self.engine.libraries.of(self.vault) if self.vault else None

    def index(self, progress: Progress | None = None, *, vectors: bool = False, anew: bool = False) -> Filled:
        """Brings the search index up to date, with all its vectors if asked; `anew` throws it away before."""
        archive = self.engine.archive
        if anew:
            archive.renew()
        archive.catch_up(progress, vectors=vectors)
        return archive.filled

    def model(self, name: str) -> Model:
        """What is known about `provider:model`. NotFound when nobody knows it."""
        return self.run(self.engine.setup.provider(name).model(name))

    # -- records

    def record(self, request: str) -> Record:
        return self.store.records.record(request)

    def rebuild(self, request: str) -> bytes:
        """The exact bytes that were sent. Altered when they can no longer be had."""
        return self.store.records.rebuild(request)

    def compare(self, before: str, after: str) -> Difference:
        """What came in, went out and changed from one request to another; a reply's id stands for its request."""
        records = self.store.records
        return records.compare(records.named(before), records.named(after))

    def verify(self, requests: Sequence[str] | None = None) -> list[tuple[str, str | None]]:
        """For each request (all of them by default): None when it rebuilds, else what differs."""
        ids = self.store.records.ids() if requests is None else requests
        return list(self.store.records.differences(ids))

    # -- running

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs on the desk's own loop in the background."""
        return self.loop.run(work)

    def close(self) -> None:
        if self.loop.is_running:
            self.loop.run(self.engine.close())
            self.loop.close()
        else:
            self.engine.servers.close()
            self.engine.chooser.close()
            self.engine.archive.close()
            self.engine.libraries.close()
            self.engine.clerk.close()
        self.store.close()

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
    place = Path(home).expanduser() if home else places.find_home()
    root = Path(project) if project else places.find_project(Path.cwd(), place)
    flags = {"vault": str(vault) if vault else None, "model": model, **(settings or {})}
    return Desk(home=place, project=root, settings=configuration.load(place, root, flags=flags))
