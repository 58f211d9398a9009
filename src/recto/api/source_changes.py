"""SourceChanges: the user's changes to the sources of one conversation, and to their include modes."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from recto.agents.agent import Agent
from recto.chat.message import now
from recto.engine import Engine
from recto.errors import NotFound
from recto.plugins import plugins_of
from recto.sources.overrides import SourceList, SourceOverrides, SourceStatus, find_source
from recto.sources.source import BUILT_IN_SERVER, Source, SourceId, SourceKind, placeholder_source
from recto.turn.session import ChatSession

Change = Callable[[SourceOverrides, Source], SourceOverrides]


class IncludeChange(Struct, frozen=True):
    """An include mode written into an agent's file."""

    name: str
    """As in commands: `rule:style`, `tool:github/create_issue`, `tool:github` for all tools of a server."""
    include: str
    agent: str
    file: Path


class ApprovalChange(Struct, frozen=True):
    """A tool, or a server, whose "always" was withdrawn."""

    tool: str
    """A server, or `server/tool`."""
    allowed_by: str = ""
    """The file that still lets it run without asking; empty if it asks."""

    @property
    def asks(self) -> bool:
        return not self.allowed_by


def add(overrides: SourceOverrides, source: Source) -> SourceOverrides:
    return overrides.add(source, now())


def remove(overrides: SourceOverrides, source: Source) -> SourceOverrides:
    return overrides.remove(source, now())


class SourceChanges:
    """Changes the sources of one session, using the agent's current files. Nothing here stores a conversation: the talk
    does that first."""

    def __init__(self, engine: Engine, session: ChatSession, agent: Agent) -> None:
        self._engine, self._session, self._agent = engine, session, agent

    async def listing(self, *kinds: SourceKind) -> SourceList:
        return await self._engine.sources.listing(self._session, self._agent, kinds)

    async def overrides(self) -> SourceOverrides:
        return await self._engine.store.do(self._engine.sources.overrides, self._session.conversation)

    # -- added and removed

    async def check(self, names: Sequence[str], change: Change) -> None:
        """Raises the errors of the changes before anything is stored."""
        kinds = {SourceId.parse(name).kind for name in names}
        listing, overrides = await self.listing(*kinds), await self.overrides()
        for name in names:
            try:
                overrides = change(overrides, find_source(listing, name).source)
            except NotFound:
                if change is not remove or (without := overrides.forget(name)) is None:
                    raise
                overrides = without

    async def apply(self, name: str, change: Change) -> SourceStatus:
        """An added source whose file is gone can be removed too: it does not return with the file."""
        try:
            status = find_source(await self.listing(SourceId.parse(name).kind), name)
        except NotFound:
            if change is not remove:
                raise
            await self._amend(lambda known: known.forget(name) or known)
            return SourceStatus(placeholder_source(SourceId.parse(name)), "manual", None)
        overrides = await self._amend(lambda known: change(known, status.source))
        return overrides.listed(status.source, status.approval)

    async def _amend(self, change: Callable[[SourceOverrides], SourceOverrides]) -> SourceOverrides:
        amend = self._engine.sources.amend
        return await self._engine.store.do(amend, self._session.conversation, change)

    # -- include modes

    async def set_include(self, name: str, mode: str) -> IncludeChange:
        """Writes to the agent's file. Raises NotFound for a source that the agent does not have."""
        id = SourceId.parse(name)
        if id.kind == "tool" and id.server != BUILT_IN_SERVER:
            offered = [each.source.id for each in (await self.listing("tool")).items]
            theirs, config = [each for each in offered if each.server == id.server], self._agent.server(id.server)
            # an unreachable server may have any tool, and its settings may name one that is not offered
            if theirs and id not in theirs and not (config and id.name in config.tools):
                hint = "`recto sources list --kind tool` shows what there is"
                raise NotFound(f"the MCP server {id.server} has no tool {id.name}; {hint}", name=name)
        file = await asyncio.to_thread(self._engine.agents.set_include, self._agent.name, name, mode)
        return IncludeChange(name if id.kind == "tool" else str(id), mode, self._agent.name, file)

    # -- approvals

    def allowed(self, named: str) -> str:
        """The server or `server/tool` that is meant. Raises NotFound for a server that the agent does not have."""
        tool = named.removeprefix("tool:")
        theirs = [*(each.name for each in self._agent.servers), *(each.name for each in plugins_of("tool"))]
        servers = list(dict.fromkeys((BUILT_IN_SERVER, *theirs)))
        if tool.partition("/")[0] not in servers:
            known = ", ".join(servers)
            raise NotFound(f"a tool is named SERVER or SERVER/TOOL, not {named}; the servers are: {known}", name=named)
        return tool

    async def ask_again(self, named: str) -> ApprovalChange:
        """Raises NotFound unless the tool is allowed in the conversation or belongs to one of the agent's servers."""
        tool = named.strip().removeprefix("tool:").strip('"')
        allowed = (await self.overrides()).allowed
        server, _, name = tool.partition("/")
        config = self._agent.server(server)
        if config is None and server != BUILT_IN_SERVER and tool not in (*allowed, *self._session.allowed):
            known = ", ".join(allowed) or "nothing"
            raise NotFound(f"there is no tool {tool}; what was always allowed here: {known}", name=tool)
        if self._session.conversation:
            await self._amend(lambda overrides: overrides.disallow(tool))
        approval = (config.approval_of(name) if name else config.approval) if config else None
        return ApprovalChange(tool, config.origin if config and approval == "allow" else "")
