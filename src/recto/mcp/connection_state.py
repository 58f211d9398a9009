"""ConnectionState: tracks what one connection received, and filters messages to the session. StderrLog: a server's
stderr.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from recto.base.home_files import make_private_folder, private
from recto.base.text import clean
from recto.chat.message import now

MAX_LINES, MAX_LINE_CHARS = 20, 500
MAX_LOG_BYTES = 1_000_000
"""A log file that reaches this size is rotated."""
PAUSE_EVERY, PAUSE_S = 1_000, 0.1


class StderrLog:
    """The last lines in memory, the rest in a log file of limited size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._rest = b""

    @property
    def lines(self) -> list[str]:
        last = _clean_line(self._rest)
        return [*self._lines, last] if last else list(self._lines)

    @property
    def last_lines(self) -> str:
        """The last three lines as one text."""
        return " / ".join(self.lines[-3:])

    async def drain(self, stream: asyncio.StreamReader) -> None:
        """Copy stderr to the log. Appends, because another process may run a server of the same name; keeps one rotated
        file."""
        file, chunk = self._opened(), f"[{now()}: started by process {os.getpid()}]\n".encode()
        try:
            while chunk:
                if file.tell() + len(chunk) > MAX_LOG_BYTES:
                    file.close()
                    with suppress(OSError):
                        self._path.replace(self._path.with_suffix(".old.log"))
                    file = self._opened()
                    await asyncio.sleep(PAUSE_S)  # a server that never stops writing must not take the whole processor
                with suppress(OSError):  # a full disk must not block the server
                    file.write(chunk)
                chunk = await stream.read(65536)
                self._add(chunk)
        finally:
            file.close()

    def _opened(self) -> BinaryIO:
        try:
            make_private_folder(self._path.parent)
            return open(self._path, "ab", buffering=0, opener=private)
        except OSError:
            return open(os.devnull, "ab", buffering=0)  # a server starts even if its log cannot be written

    def _add(self, chunk: bytes) -> None:
        *whole, rest = (self._rest + chunk).split(b"\n")
        self._lines.extend(filter(None, map(_clean_line, whole[-MAX_LINES - 1 :])))
        self._rest = rest[: 4 * MAX_LINE_CHARS]


def _clean_line(raw: bytes) -> str:
    text = clean(raw[: 4 * MAX_LINE_CHARS])[0].strip()
    return text if len(text) <= MAX_LINE_CHARS else text[: MAX_LINE_CHARS - 1] + "…"


RAW_TOOLS = "recto/tools"
"""The key in `_meta` under which a simplified list keeps the tools as the server sent them."""
MAX_OPEN_REQUESTS = 100
"""Most unanswered requests of a server, and most different notices about one."""
TOOLS_CHANGED = "notifications/tools/list_changed"
_PASSED_NOTIFICATIONS = {TOOLS_CHANGED, "notifications/cancelled", "notifications/subscriptions/acknowledged"}
_REQUEST_TEXTS = {
    "sampling/createMessage": "generate text with the model",
    "elicitation/create": "ask you a question",
    "roots/list": "list your folders",
}


class ConnectionState:
    def __init__(self, name: str, stderr: StderrLog, on_tools_changed: Callable[[], None]) -> None:
        self.name, self.stderr = name, stderr
        self.closed = asyncio.Event()
        """Set once no more messages will come."""
        self.violation = ""
        """The protocol violation that ended the connection, if any."""
        self.http_error = ""
        """The status of the last HTTP response, if it was an error."""
        self.pid: int | None = None
        self.exit_code: int | None = None
        self._on_tools_changed = on_tools_changed
        self._notices: dict[str, str] = {}
        self._invalid_lines, self._first_invalid_line = 0, ""
        self._skipped = 0
        self._list_requests: set[int | str] = set()
        self._open_requests: set[int | str] = set()

    def take_notices(self) -> list[str]:
        """Sentences for the user, each returned once."""
        notices, self._notices = [text for text in self._notices.values() if text], dict.fromkeys(self._notices, "")
        if self._invalid_lines:
            lines = "a line that is" if self._invalid_lines == 1 else f"{self._invalid_lines:,} lines that are"
            notices.append(f"the MCP server {self.name} sent {lines} not valid, skipped: {self._first_invalid_line}")
            self._invalid_lines, self._first_invalid_line = 0, ""
        return notices

    def skip_line(self, line: str) -> None:
        self._first_invalid_line = self._first_invalid_line or line[:80]
        self._invalid_lines += 1
        self._skipped += 1

    async def throttle(self) -> None:
        """Slow down a server that never stops sending, so that other tasks run and its pipe fills up."""
        if self._skipped >= PAUSE_EVERY:
            self._skipped = 0
            await asyncio.sleep(PAUSE_S)

    def on_notification(self, method: str) -> bool:
        if method == TOOLS_CHANGED:
            self._on_tools_changed()
        if method in _PASSED_NOTIFICATIONS:
            return True
        self._skipped += 1
        return False

    def on_request_received(self, id: int | str, method: str) -> None:
        """Note a request of the server, once per method. The session refuses it."""
        self._open_requests.add(id)
        if len(self._open_requests) > MAX_OPEN_REQUESTS:
            self.violation = f"it sent more than {MAX_OPEN_REQUESTS} requests without waiting for answers"
        if method != "ping":
            self._note_refusal(method)

    def on_response_sent(self, id: int | str) -> None:
        self._open_requests.discard(id)

    def on_request_sent(self, id: int | str, method: str) -> None:
        if method == "tools/list":
            self._list_requests.add(id)

    def on_result(self, id: int | str, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result in a form that the session accepts."""
        requests = result.get("inputRequests")
        for request in requests.values() if isinstance(requests, dict) else ():
            self._note_refusal(request.get("method") if isinstance(request, dict) else None)
        is_list = id in self._list_requests
        self._list_requests.discard(id)
        tools = result.get("tools")
        if not is_list or not isinstance(tools, list):
            return result
        return result | {"tools": _simplify(tools), "_meta": {RAW_TOOLS: tools}}

    def _note_refusal(self, method: object) -> None:
        request = _REQUEST_TEXTS.get(str(method), f"use {str(method)[:80]}")
        # a server may invent any number of methods
        if len(self._notices) < MAX_OPEN_REQUESTS:
            self._notices.setdefault(request, f"the MCP server {self.name} asked to {request}: refused")


def _simplify(tools: list[Any]) -> list[dict[str, Any]]:
    """Reduce tools to what the session needs: names, and the properties that it sends as headers.

    Without output schemas: a result that does not match is still the best available, and the check would run the
    server's regular expressions.
    """
    simplified: list[dict[str, Any]] = []
    for tool in tools:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            schema = tool.get("inputSchema")
            properties = schema.get("properties") if isinstance(schema, dict) else None
            is_valid = isinstance(properties, dict) and all(isinstance(item, dict) for item in properties.values())
            extra = {"properties": properties} if is_valid else {}
            simplified.append({"name": tool["name"], "inputSchema": {"type": "object", **extra}})
    return simplified
