"""McpServers: the MCP servers of an agent: their tools, their status, and calls to them.

Starts and imports nothing until a tool is called or an uncached tool list is needed.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from recto.base.concurrency import LoopThread
from recto.base.home_files import make_private_folder
from recto.errors import Invalid, RectoError
from recto.mcp.allowed_tools import AllowedTools, Trust, file_stem
from recto.mcp.server_connection import ConnectionOptions, ServerConnection, ServerStatus
from recto.mcp.server_target import ServerTarget, server_target
from recto.mcp.tool_list import SERVERS_FOLDER, ListedTool, ToolList, ToolListCache, tool_call_name
from recto.sources.server_config import ServerConfig
from recto.sources.source import BUILT_IN_SERVER, Tool
from recto.sources.tool_definition import ServerIdentity
from recto.sources.tools import Arguments, RemoteTool, ToolOutput

CLOSE_TIMEOUT_S = 6.0
"""Longer than it takes to kill a process that will not end."""
RECOVERY_S = 15.0
"""Time allowed before a call is sent, not counting the start: to notice and stop a hanging server."""

log = logging.getLogger(__name__)


class ToolOffer(Struct, frozen=True):
    tools: tuple[RemoteTool, ...] = ()
    """Tools in the order of the configs, then of the server; without disabled and denied ones."""
    notes: tuple[str, ...] = ()
    """Sentences for the user. A lasting problem is repeated, an event reported once."""


class McpServers:
    def __init__(self, home: Path, environment: Mapping[str, str], *, timeout_s: float, start_s: float) -> None:
        self._home, self._environment = home, environment
        self._timeout_s, self._start_s = timeout_s, start_s
        self._cache, self.trust, self.allowed = ToolListCache(home), Trust(home), AllowedTools(home)
        self._loop_thread = LoopThread(self.close)
        self._connections: dict[str, ServerConnection] = {}
        self._closing: list[ServerConnection] = []
        self._keys: dict[tuple[str, Path | None], str] = {}
        self._statuses: dict[str, ServerStatus] = {}

    async def offer(self, configs: Sequence[ServerConfig], project: Path | None, *, fresh: bool = False) -> ToolOffer:
        """The tools of all servers, from the cache for those not running; `fresh` asks every server."""
        offers = await asyncio.gather(*(self._offer(config, project, fresh) for config in _distinct(configs)))
        names = [config.name for config in configs]
        notes = [note for offer in offers for note in offer.notes]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            notes.append(f"there are two MCP servers named {name}: the first is used")
        if any(config.name == BUILT_IN_SERVER and (config.command or config.url) for config in configs):
            notes.append(f"an MCP server cannot be named {BUILT_IN_SERVER}: that is the name of the built-in tools")
        tools: dict[str, RemoteTool] = {}
        for remote in (remote for offer in offers for remote in offer.tools):
            tools.setdefault(remote.tool.name, remote)
        return ToolOffer(tuple(tools.values()), tuple(dict.fromkeys(notes)))

    def wake(self, configs: Sequence[ServerConfig], project: Path | None) -> None:
        """Start the servers without waiting. The next offer reports failures."""
        for config in _distinct(configs):
            with suppress(RectoError):
                self._begin_start(self._connection(config, project))

    def refresh(self) -> None:
        """Ask running servers for their tools again at the next offer."""
        for connection in list(self._connections.values()):
            connection.mark_stale()

    def statuses(self) -> list[ServerStatus]:
        """The status of these servers, in order."""
        current = {connection.target.name: connection.status for connection in list(self._connections.values())}
        return [current.get(name, status) for name, status in list(self._statuses.items())]

    def close(self) -> None:
        """Stop all servers within seconds."""
        connections = [*self._connections.values(), *self._closing]

        async def close_all() -> None:
            await asyncio.gather(*(connection.close() for connection in connections))

        self._loop_thread.close(close_all(), CLOSE_TIMEOUT_S)
        for known in (self._connections, self._closing, self._keys):
            known.clear()

    # -- offering

    async def _offer(self, config: ServerConfig, project: Path | None, fresh: bool) -> ToolOffer:
        tool_list: ToolList | None = None
        try:
            target = self._target(config, project)
        except RectoError as why:
            return ToolOffer(notes=(why.message,) if config.enabled else ())
        connection = self._connections.get(target.key)
        # a server that runs or has failed is asked
        if not fresh and not (connection and (connection.failure or connection.status.state == "running")):
            tool_list = self._cache.read(target.key)
            if tool_list and not connection:
                self._statuses[config.name] = ServerStatus(config.name, "stopped", tools=len(tool_list.tools))
        if tool_list is None:
            connection = self._connection(config, project, target)
            if connection.failure and not fresh:
                # turns do not wait for a server that failed to start; it is retried in the background
                self._begin_start(connection)
                return ToolOffer(notes=(f"{connection.failure}; its tools are missing",))
            try:
                tool_list = await self._loop_thread.run(connection.tools(fresh=fresh))
            except RectoError as why:
                return ToolOffer(notes=(f"{why.message}; its tools are missing",))
            except Exception as why:  # a server must not end the chat
                log.exception("the MCP server %s did not list its tools", config.name)
                error = ": ".join(filter(None, (type(why).__name__, str(why))))
                note = f"the MCP server {config.name} did not list its tools ({error}): they are missing"
                return ToolOffer(notes=(note,))
        reached = config.identity(project)
        # no denied tools: a model would waste tokens on calls that never run
        remotes = (
            self._remote_tool(config, tool, project, reached)
            for tool in tool_list.tools
            if config.tool(tool.name).enabled and config.approval_of(tool.name) != "deny"
        )
        return ToolOffer(tuple(remotes), tool_list.notes)

    def _remote_tool(
        self, config: ServerConfig, listed: ListedTool, project: Path | None, reached: ServerIdentity
    ) -> RemoteTool:
        tool = Tool(
            name=tool_call_name(config.name, listed.name),
            description=listed.description,
            schema=listed.schema,
            include=config.include_of(listed.name),
            server=config.name,
            own_name=listed.name,
        )
        return RemoteTool(
            tool,
            partial(self._call, config, listed, project),
            partial(self._current, config, listed.name, project),
            reached,
            config.approval_of(listed.name),
            config.tool(listed.name).approval is not None,
            config.timeout_s or self._timeout_s,
            self._start_s + RECOVERY_S,
        )

    async def _current(self, config: ServerConfig, tool: str, project: Path | None) -> RemoteTool | None:
        listed = (await self._loop_thread.run(self._connection(config, project).tools())).tool(tool)
        return self._remote_tool(config, listed, project, config.identity(project)) if listed else None

    async def _call(
        self, config: ServerConfig, tool: ListedTool, project: Path | None, arguments: Arguments
    ) -> ToolOutput:
        connection = self._connection(config, project)
        call, timeout_s = object(), config.timeout_s or self._timeout_s
        try:
            return await self._loop_thread.run(connection.call(tool, arguments, call, timeout_s))
        except asyncio.CancelledError:
            # now: the next call may arrive before this one has ended in the other thread
            self._loop_thread.soon(partial(connection.give_up, call))
            raise

    # -- connections

    def _target(self, config: ServerConfig, project: Path | None) -> ServerTarget:
        if not config.enabled:
            self._disconnect(config, project, ServerStatus(config.name, "off"))
            raise RectoError(f"the MCP server {config.name} is switched off")
        if not self.trust.is_trusted(config, project):
            reason = f"`recto sources trust {config.name}` lets it run"
            self._disconnect(config, project, ServerStatus(config.name, "untrusted", reason))
            raise RectoError(f"the project's MCP server {config.name} was not started: {reason}")
        try:
            target = server_target(config, project, self._environment, self._home / SERVERS_FOLDER)
        except Invalid as why:
            self._disconnect(config, project, ServerStatus(config.name, "failed", why.message))
            raise
        known = self._statuses.get(config.name)
        if known is None or known.state != "stopped":
            self._statuses[config.name] = ServerStatus(config.name, "stopped")
        return target

    def _disconnect(self, config: ServerConfig, project: Path | None, status: ServerStatus) -> None:
        self._statuses[config.name] = status
        self._begin_close(self._keys.pop((config.name, project), ""))

    def _connection(
        self, config: ServerConfig, project: Path | None, target: ServerTarget | None = None
    ) -> ServerConnection:
        """The connection. Raises RectoError if the server may not run."""
        target = target or self._target(config, project)
        former, self._keys[config.name, project] = self._keys.get((config.name, project)), target.key
        if former and former not in self._keys.values():  # its entry was changed
            self._begin_close(former)
        if connection := self._connections.get(target.key):
            return connection
        folder = self._home / SERVERS_FOLDER
        with suppress(OSError):  # a server starts even if nothing can be written
            make_private_folder(folder)
        at = (self._cache, target.key, folder / f"{file_stem(config.name)}.log")
        options = ConnectionOptions(*at, self._environment, self._start_s)
        return self._connections.setdefault(target.key, ServerConnection(target, options))

    def _begin_close(self, key: str) -> None:
        if connection := self._connections.pop(key, None):
            self._closing.append(connection)
            self._loop_thread.begin(connection.close())

    def _begin_start(self, connection: ServerConnection) -> None:
        if connection.status.state not in ("running", "starting"):
            self._loop_thread.begin(connection.start())


def _distinct(configs: Sequence[ServerConfig]) -> list[ServerConfig]:
    """The first config of each name, except the one for the built-in tools."""
    return list({config.name: config for config in reversed(configs) if config.name != BUILT_IN_SERVER}.values())[::-1]
