"""ServerConnection: starts one MCP server when needed, calls it, watches it, restarts it, stops it.

All servers share one event loop; one task opens and closes each session.
"""

import asyncio
import importlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from msgspec import Struct

from recto.base.home_files import make_private_folder, private
from recto.base.text import clean
from recto.chat.message import now
from recto.errors import RectoError
from recto.mcp.server_target import ServerTarget
from recto.mcp.tool_list import ListedTool, ToolList, ToolListCache
from recto.sources.tools import Arguments, ToolOutput

if TYPE_CHECKING:
    from mcp import Client

log = logging.getLogger(__name__)

ServerState = Literal["running", "stopped", "starting", "failed", "untrusted", "off"]


class ServerStatus(Struct, frozen=True):
    name: str
    state: ServerState
    reason: str = ""
    """Why it is not running, if that needs an explanation."""
    tools: int = 0


PING_TIMEOUT_S = 5.0
"""Longest silence of a server after a cancelled call."""
MAX_LOG_BYTES = 1_000_000
"""A log file that has this size at a start is set aside."""
_TAIL_BYTES, _TAIL_LINES, _MAX_LINE_CHARS = 8_000, 3, 500


class ConnectionOptions(Struct, frozen=True):
    cache: ToolListCache
    cache_key: str
    log_path: Path
    environment: Mapping[str, str]
    start_timeout_s: float


class ServerLog:
    """The file that a server writes its stderr to, beside one older file."""

    def __init__(self, path: Path) -> None:
        self._path, self._start = path, 0

    @contextmanager
    def opened(self) -> Iterator[TextIO]:
        """Appends, because another process may run a server of the same name."""
        try:
            make_private_folder(self._path.parent)
            if self._path.exists() and self._path.stat().st_size > MAX_LOG_BYTES:
                self._path.replace(self._path.with_suffix(".old.log"))
            handle = private(str(self._path), os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        except OSError:
            handle = os.open(os.devnull, os.O_WRONLY)  # a server starts even if its log cannot be written
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            print(f"[{now()}: started by process {os.getpid()}]", file=file, flush=True)
            self._start = file.tell()
            yield file

    @property
    def tail(self) -> str:
        """What this run wrote last, as a part of a sentence; empty if nothing."""
        lines = list[str]()
        with suppress(OSError), open(self._path, "rb") as file:
            file.seek(max(self._start, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = [line for each in file.read().splitlines() if (line := clean(each)[0].strip())]
        return f" (stderr: {' / '.join(line[:_MAX_LINE_CHARS] for line in lines[-_TAIL_LINES:])})" if lines else ""


class Connection:
    """What is known of one connection: whether it has ended, and the last error of HTTP."""

    def __init__(self, name: str, log: ServerLog, on_tools_changed: Callable[[], None]) -> None:
        self.name, self.log, self.on_tools_changed = name, log, on_tools_changed
        self.closed = asyncio.Event()
        """Set once no more messages will come."""
        self.violation = ""
        """The protocol violation that ended the connection, if any."""
        self.http_error = ""
        """The status of the last HTTP response, if it was an error."""


class _Session(Struct, frozen=True):
    client: "Client"
    connection: Connection
    task: asyncio.Task[str]


class ServerConnection:
    def __init__(self, target: ServerTarget, options: ConnectionOptions) -> None:
        self.target, self._options = target, options
        self.tool_list = options.cache.read(options.cache_key) or ToolList()
        self.failure = ""
        """Why the last start failed, until one succeeds; a sentence without its full stop."""
        self._server_state: ServerState = "stopped"
        self._reason = ""
        self._connection: Connection | None = None
        self._task: asyncio.Task[str] | None = None
        self._ready: asyncio.Future[_Session] | None = None
        self._is_closed = False
        self._stop_reason = ""
        self._calls: set[object] = set()
        self._ping_task: asyncio.Task[None] | None = None
        self._is_stale = False

    @property
    def status(self) -> ServerStatus:
        return ServerStatus(self.target.name, self._server_state, self._reason, len(self.tool_list.tools))

    async def start(self) -> None:
        await self._session()

    async def tools(self, *, fresh: bool = False) -> ToolList:
        """The current tools. Starts the server if needed."""
        self._is_stale |= fresh and self._server_state == "running"
        session = await self._session()
        await self._refresh(session.client)
        return self.tool_list

    def mark_stale(self) -> None:
        """List the tools again before they are next offered or called."""
        self._is_stale = True

    async def _refresh(self, client: "Client") -> None:
        if self._is_stale:
            self._is_stale = False
            await self._list_tools(client)

    async def call(self, tool: ListedTool, arguments: Arguments, call: object, timeout_s: float) -> ToolOutput:
        """Call a tool, if the server lists it as it was approved. `call` identifies the call for `give_up()`.

        The timeout begins when the call is sent, after starting the server or stopping a hanging one.
        """
        from recto.mcp.client import ServerGone, call_tool  # slow to load

        if self._ping_task:
            await asyncio.wait({self._ping_task})
        session = await self._session()
        await self._refresh(session.client)
        if self.tool_list.tool(tool.name) != tool:
            return ToolOutput(f"{tool.name} was not run: its server has just changed or removed it", is_error=True)
        self._calls.add(call)
        try:
            async with asyncio.timeout(timeout_s):
                output = await call_tool(session.client, session.connection, tool.name, arguments)
        except (asyncio.CancelledError, TimeoutError):
            self.give_up(call)
            raise
        except ServerGone:
            # the task takes a moment to end and to give the reason
            session.connection.closed.set()
            await asyncio.wait({session.task})
            reason = session.task.result()
            return ToolOutput(f"{self._sentence(reason)}; the call was in progress and is not repeated", True)
        finally:
            self._calls.discard(call)
        return output

    def give_up(self, call: object) -> None:
        """Abandon a call. A server that then stays silent hangs, unless it is busy with another call."""
        if call not in self._calls:
            return
        self._calls.discard(call)
        if not self._calls and self._ready and not self._ping_task:
            self._ping_task = asyncio.create_task(self._ping(self._ready.result()))

    async def close(self) -> None:
        self._is_closed = True
        await self._stop("was stopped")

    # -- starting and stopping

    async def _session(self) -> _Session:
        if self._task and (self._task.cancelling() or (self._connection and self._connection.closed.is_set())):
            await asyncio.wait({self._task})
        if self._is_closed:
            raise RectoError(self._sentence("was stopped"))
        if self._ready is None:
            self._start()
        assert self._ready
        # several callers may wait for one start: cancelling one must not cancel it for the others
        return await asyncio.shield(self._ready)

    def _start(self) -> None:
        importlib.import_module("recto.mcp.client")  # takes a second, so before the clock starts
        loop = asyncio.get_running_loop()
        self._server_state, self._reason, self._stop_reason = "starting", "", ""
        self._is_stale = False
        self._ready = loop.create_future()
        self._task = loop.create_task(self._run(self._ready))

    async def _run(self, ready: "asyncio.Future[_Session]") -> str:
        """Run one session. Returns why it ended, as the predicate of a sentence about the server."""
        log_file = ServerLog(self._options.log_path)
        self._connection = connection = Connection(self.target.name, log_file, self.mark_stale)
        timer = asyncio.get_running_loop().call_later(self._options.start_timeout_s, self._on_start_timeout, ready)
        error = ""
        try:
            from recto.mcp.client import error_text, list_tools, open_session  # slow to load

            async with open_session(self.target, self._options.environment, connection) as client:
                self._set_tool_list(await list_tools(client, self.target.name))
                timer.cancel()
                if not ready.done() and self._task:
                    ready.set_result(_Session(client, connection, self._task))
                    self._server_state, self.failure = "running", ""
                    await connection.closed.wait()
        except asyncio.CancelledError:
            error = "it was stopped"
        except (Exception, BaseExceptionGroup) as problem:
            log.exception("the session with the MCP server %s failed", self.target.name)
            error = error_text(problem)
        timer.cancel()
        reason = self._stop_reason or _end_reason(connection, error, was_running=ready.done())
        self._finish(ready, reason)
        return reason

    def _on_start_timeout(self, ready: "asyncio.Future[_Session]") -> None:
        """Fail the callers now; the process may take a moment longer to end."""
        if not ready.done():
            tail = self._connection.log.tail if self._connection else ""
            self._stop_reason = f"did not start within {self._options.start_timeout_s:g} s{tail}"
            self._fail(ready, self._stop_reason)
            if self._task:
                _cancel_once(self._task)

    async def _stop(self, reason: str) -> None:
        if self._task:
            self._stop_reason = self._stop_reason or reason
            _cancel_once(self._task)
            await asyncio.wait({self._task})

    def _finish(self, ready: "asyncio.Future[_Session]", reason: str) -> None:
        self._task = self._ready = None
        if not ready.done() and not self._stop_reason:
            self._fail(ready, reason)
        elif not ready.done():
            ready.cancel()
        if self._server_state != "failed":
            self._server_state, self._reason = "stopped", reason

    def _fail(self, ready: "asyncio.Future[_Session]", reason: str) -> None:
        self._server_state, self._reason, self.failure = "failed", reason, self._sentence(reason)
        self._options.cache.forget(self._options.cache_key)
        ready.set_exception(RectoError(self.failure))
        ready.exception()  # mark it as retrieved: there may be no caller

    def _sentence(self, predicate: str) -> str:
        return f"the MCP server {self.target.name} {predicate}"

    async def _ping(self, session: _Session) -> None:
        from recto.mcp.client import is_alive  # slow to load

        try:
            if not await is_alive(session.client, PING_TIMEOUT_S) and self._task is session.task:
                await self._stop("was stopped: it did not respond after a call was cancelled")
        finally:
            self._ping_task = None

    async def _list_tools(self, client: "Client") -> None:
        from recto.mcp.client import list_tools  # slow to load

        async with asyncio.timeout(self._options.start_timeout_s):
            self._set_tool_list(await list_tools(client, self.target.name))

    def _set_tool_list(self, tool_list: ToolList) -> None:
        self.tool_list = tool_list
        self._options.cache.write(self._options.cache_key, tool_list)


def _cancel_once(task: asyncio.Task[str]) -> None:
    """Cancel the task, but only once: a second cancellation would interrupt it while it ends its process."""
    if not task.cancelling():
        task.cancel()


def _end_reason(connection: Connection, error: str, *, was_running: bool) -> str:
    """Why a session ended, as the predicate of a sentence about the server."""
    tail = connection.log.tail
    if connection.violation:
        return f"was stopped: {connection.violation}"
    if not connection.http_error and connection.closed.is_set():
        return f"ended{tail}" if was_running else f"did not start: it ended{tail}"
    error = ": ".join(filter(None, (connection.http_error, error))) or "the connection ended"
    return f"is gone: {error}{tail}" if was_running else f"did not start: {error}{tail}"
