"""Servers: the MCP servers of an agent: what they offer, how they are doing, and the way to call them.

Imports and starts nothing before a tool is called, or before a list of tools is needed that nobody has kept.
"""

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from recto.errors import Invalid, RectoError
from recto.servers.aside import Aside
from recto.servers.files import private
from recto.servers.kept import FOLDER, Kept, key_of
from recto.servers.link import Link, Place
from recto.servers.listing import Listed, Listing
from recto.servers.names import name_of
from recto.servers.reach import Reach, reach_of
from recto.servers.state import State
from recto.servers.trust import Trust
from recto.sources.server import ServerConfig
from recto.sources.source import OWN, Tool
from recto.sources.tools import Arguments, Outcome, Remote

CLOSE_S = 6.0
IDLE_S = 60.0
BEFORE_S = 15.0
"""Besides its start, what may pass before a call is sent: a server that hangs is found out and ended."""
ANEW_S = 3.0
_NOT_A_FILE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Offer:
    tools: tuple[Remote, ...] = ()
    """By config, then in the server's own order; those that are not enabled, or denied, are left out."""
    notes: tuple[str, ...] = ()
    """What the user should know, a sentence each: what lasts is told each time, what happened once."""


class Servers:
    def __init__(self, home: Path, environment: Mapping[str, str], *, timeout_s: float, start_s: float) -> None:
        self._home, self._environment = home, environment
        self._timeout_s, self._start_s = timeout_s, start_s
        self._kept, self.trust = Kept(home), Trust(home)
        self._aside = Aside(self.close)
        self._links: dict[str, Link] = {}
        self._left: list[Link] = []
        self._by_name: dict[tuple[str, Path | None], str] = {}
        self._states: dict[str, State] = {}

    async def offer(self, configs: Sequence[ServerConfig], project: Path | None, *, fresh: bool = False) -> Offer:
        """From the kept lists where they are young and the servers do not run; `fresh` asks every server."""
        asked = await asyncio.gather(*(self._offered(config, project, fresh) for config in _real(configs)))
        remotes: dict[str, Remote] = {}
        notes = [note for offer in asked for note in offer.notes] + _twice(configs)
        for remote in (remote for offer in asked for remote in offer.tools):
            remotes.setdefault(remote.tool.name, remote)
        return Offer(tuple(remotes.values()), tuple(dict.fromkeys(notes)))

    def stir(self, configs: Sequence[ServerConfig], project: Path | None) -> None:
        """Begins to start them; waits for nothing, and what fails is told with the next offer."""
        for config in _real(configs):
            try:
                link = self._link(config, self._reach(config, project), project)
            except RectoError:
                continue
            self._stir(link)

    def known(self, config: ServerConfig, project: Path | None) -> tuple[str, ...] | None:
        """The names of a server's tools, as far as they are known without asking it; None where they are not."""
        link = self._links.get(self._by_name.get((config.name, project), ""))
        listing = link.listing if link and link.listing.tools else self._kept.read(key_of(config, project))
        return tuple(tool.name for tool in listing.tools) if listing else None

    def renew(self) -> None:
        """Asks the servers that run for their lists anew, and waits a moment; none is started."""
        running = [link for link in list(self._links.values()) if link.state.state == "running"]
        wait([self._aside.begin(link.renewed()) for link in running], ANEW_S)

    def states(self) -> list[State]:
        """Of the servers that were asked about, in their order."""
        running = {link.reach.name: link.state for link in list(self._links.values())}
        return [running.get(name, state) for name, state in list(self._states.items())]

    def close(self) -> None:
        """Ends all servers, within seconds; what does not end is killed."""
        pids = [pid for link in (*self._links.values(), *self._left) if (pid := link.state.pid)]
        if not self._aside.close(_closed([*self._links.values(), *self._left]), CLOSE_S):
            for pid in pids:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        self._links.clear()
        self._left.clear()
        self._by_name.clear()

    async def _offered(self, config: ServerConfig, project: Path | None, fresh: bool) -> Offer:
        try:
            reach = self._reach(config, project)
        except RectoError as why:
            return Offer(notes=(why.message,) if config.enabled else ())
        kept = None if fresh else self._at_hand(config, reach, project)
        if kept:
            return Offer(self._remotes(config, kept, project), kept.notes)
        link = self._link(config, reach, project)
        if link.failure and not fresh:
            # a server that did not come once is not waited for in every turn
            note = f"{link.failure}; its tools are missing"
            self._stir(link)
            return Offer(notes=(note,))
        return await self._asked(config, link, project, fresh)

    async def _asked(self, config: ServerConfig, link: Link, project: Path | None, fresh: bool) -> Offer:
        try:
            listing = await self._aside.run(link.tools(fresh=fresh))
        except RectoError as why:
            return Offer(notes=(f"{why.message}; its tools are missing",))
        except Exception as why:  # whatever a server does wrong must not end the chat
            told = f"{type(why).__name__}: {why}" if str(why) else type(why).__name__
            return Offer(notes=(f"the MCP server {config.name} did not list its tools ({told}): they are missing",))
        return Offer(self._remotes(config, listing, project), listing.notes)

    def _at_hand(self, config: ServerConfig, reach: Reach, project: Path | None) -> Listing | None:
        link = self._links.get(reach.key)
        if link and (link.failure or link.state.state == "running"):
            return None
        kept = self._kept.read(key_of(config, project))
        if kept and not link:
            self._states[config.name] = State(config.name, "stopped", tools=len(kept.tools))
        return kept

    def _reach(self, config: ServerConfig, project: Path | None) -> Reach:
        """Raises, in one sentence, why it does not run."""
        if not config.enabled:
            self._drop(config, project, State(config.name, "off"))
            raise RectoError(f"the MCP server {config.name} is switched off")
        if not self.trust.is_trusted(config, project):
            why = f"`recto sources trust {config.name}` lets it run"
            self._drop(config, project, State(config.name, "untrusted", why))
            raise RectoError(f"the project's MCP server {config.name} was not started: {why}")
        try:
            reach = reach_of(config, project, self._environment, self._home / FOLDER)
        except Invalid as why:
            self._drop(config, project, State(config.name, "failed", why.message))
            raise
        if config.name not in self._states or self._states[config.name].state != "stopped":
            self._states[config.name] = State(config.name, "stopped")
        return reach

    def _drop(self, config: ServerConfig, project: Path | None, state: State) -> None:
        """A server that may not run any more is ended."""
        self._states[config.name] = state
        self._leave(self._by_name.pop((config.name, project), ""))

    def _link(self, config: ServerConfig, reach: Reach, project: Path | None) -> Link:
        self._by_name[config.name, project] = reach.key
        self._sweep()
        if link := self._links.get(reach.key):
            return link
        folder = private(self._home / FOLDER)
        log = folder / f"{_NOT_A_FILE.sub('_', config.name)}.log"
        place = Place(self._kept, key_of(config, project), log, self._environment, self._start_s)
        return self._links.setdefault(reach.key, Link(reach, place))

    def _sweep(self) -> None:
        """Ends servers that nothing names any more; after a while, for another agent may have one of the same name."""
        named = set(self._by_name.values())
        for key, link in list(self._links.items()):
            if key not in named and link.is_idle(IDLE_S):
                self._leave(key)

    def _leave(self, key: str) -> None:
        if link := self._links.pop(key, None):
            self._left.append(link)
            self._aside.begin(link.close())

    def _stir(self, link: Link) -> None:
        if link.state.state not in ("running", "starting"):
            self._aside.begin(link.start())

    def _remotes(self, config: ServerConfig, listing: Listing, project: Path | None) -> tuple[Remote, ...]:
        tools = (tool for tool in listing.tools if _is_offered(config, tool.name))
        return tuple(self._remote(config, tool, project) for tool in tools)

    def _remote(self, config: ServerConfig, listed: Listed, project: Path | None) -> Remote:
        tool = Tool(
            name=name_of(config.name, listed.name),
            description=listed.description,
            schema=listed.schema,
            include=config.include_of(listed.name),
            server=config.name,
            own_name=listed.name,
        )
        call = partial(self._call, config, listed.name, project)
        timeout_s = config.timeout_s or self._timeout_s
        return Remote(tool, call, config.approval_of(listed.name), timeout_s, self._start_s + BEFORE_S)

    async def _call(self, config: ServerConfig, tool: str, project: Path | None, arguments: Arguments) -> Outcome:
        link = self._link(config, self._reach(config, project), project)
        call = object()
        try:
            within_s = config.timeout_s or self._timeout_s
            return await self._aside.run(link.call(tool, arguments, call, within_s))
        except asyncio.CancelledError:
            # at once: the next call may be on its way before this one has ended over there
            self._aside.soon(partial(link.give_up, call))
            raise


def _real(configs: Sequence[ServerConfig]) -> list[ServerConfig]:
    """One of each name; the one named as our own says what to do with the tools that are built in."""
    return list({config.name: config for config in reversed(configs) if config.name != OWN}.values())[::-1]


def _is_offered(config: ServerConfig, tool: str) -> bool:
    """A model that is offered what it may never call wastes its words on it."""
    return config.tool(tool).enabled and config.approval_of(tool) != "deny"


def _twice(configs: Sequence[ServerConfig]) -> list[str]:
    names = [config.name for config in configs]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    own = [each for each in configs if each.name == OWN and (each.command or each.url)]
    notes = [f"there are two MCP servers named {name}: the first is used" for name in twice]
    return notes + [f"an MCP server cannot be named {OWN}: so are the tools that are built in" for _ in own[:1]]


async def _closed(links: list[Link]) -> None:
    await asyncio.gather(*(link.close() for link in links))
