"""Seen: what came from a server in one run of it, and what of it is let through to the session.

The session of the SDK rejects a whole list of tools for one that is wrong, and starts a task for every notification:
so lists are mended here, and what nobody listens to ends here. Knows JSON-RPC by its fields, not the SDK.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from recto.servers.tail import Tail

RAW = "recto/tools"
"""Where in a mended list the tools stand as they came."""
MOST_ASKED = 100
PAUSE_EVERY, PAUSE_S = 1_000, 0.1
CHANGED = "notifications/tools/list_changed"
_HEARD = {CHANGED, "notifications/cancelled", "notifications/subscriptions/acknowledged"}
_WISHES = {
    "sampling/createMessage": "have the model write something",
    "elicitation/create": "put a question to you",
    "roots/list": "see your folders",
}


class Seen:
    def __init__(self, name: str, tail: Tail, changed: Callable[[], None]) -> None:
        self.name, self.tail = name, tail
        self.gone = asyncio.Event()
        """Nothing will come any more."""
        self.broken = ""
        """Why it was ended, where it broke the protocol."""
        self.failure = ""
        """The last HTTP status that was an error."""
        self.pid: int | None = None
        self.code: int | None = None
        self._changed = changed
        self._news: dict[str, str] = {}
        self._garbage, self._first_garbage = 0, ""
        self._skipped = 0
        self._lists: set[int | str] = set()
        self._open: set[int | str] = set()

    def take_news(self) -> list[str]:
        """What the user should know and was not told yet, a sentence each."""
        news, self._news = [text for text in self._news.values() if text], dict.fromkeys(self._news, "")
        if self._garbage:
            lines = "a line that is" if self._garbage == 1 else f"{self._garbage:,} lines that are"
            news.append(f"the MCP server {self.name} sent {lines} not its protocol, skipped: {self._first_garbage}")
            self._garbage, self._first_garbage = 0, ""
        return news

    def garbage(self, line: str) -> None:
        self._first_garbage = self._first_garbage or line[:80]
        self._garbage += 1
        self._skipped += 1

    async def breathe(self) -> None:
        """Slows down a server that sends without end: others have their turn, and its pipe fills up."""
        if self._skipped >= PAUSE_EVERY:
            self._skipped = 0
            await asyncio.sleep(PAUSE_S)

    def notified(self, method: str) -> bool:
        """Whether the session is to hear of it."""
        if method == CHANGED:
            self._changed()
        if method in _HEARD:
            return True
        self._skipped += 1
        return False

    def asked(self, id: int | str, method: str) -> None:
        """The session refuses what was not given; here it is told, once."""
        self._open.add(id)
        if len(self._open) > MOST_ASKED:
            self.broken = f"it asked for more than {MOST_ASKED} things at once"
        if method != "ping":
            self._wished(method)

    def answered(self, id: int | str) -> None:
        self._open.discard(id)

    def requested(self, id: int | str, method: str) -> None:
        if method == "tools/list":
            self._lists.add(id)

    def result(self, id: int | str, result: dict[str, Any]) -> dict[str, Any]:
        """The result as the session can take it."""
        wishes = result.get("inputRequests")
        for wish in wishes.values() if isinstance(wishes, dict) else ():
            self._wished(wish.get("method") if isinstance(wish, dict) else None)
        is_list = id in self._lists
        self._lists.discard(id)
        tools = result.get("tools")
        if not is_list or not isinstance(tools, list):
            return result
        return result | {"tools": _mended(tools), "_meta": {RAW: tools}}

    def _wished(self, method: object) -> None:
        wish = _WISHES.get(str(method), f"do {str(method)[:80]}")
        # a server may think of any number of names
        if len(self._news) < MOST_ASKED:
            self._news.setdefault(wish, f"the MCP server {self.name} asked to {wish}: refused")


def _mended(tools: list[Any]) -> list[dict[str, Any]]:
    """What the session needs to know: the names, and the properties for what it sends as headers.

    Schemas of results are left out: a result that does not match is still the best there is, and to check it would run
    patterns of the server's choice.
    """
    out: list[dict[str, Any]] = []
    for tool in tools:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            schema = tool.get("inputSchema")
            properties = schema.get("properties") if isinstance(schema, dict) else None
            is_fine = isinstance(properties, dict) and all(isinstance(each, dict) for each in properties.values())
            given = {"properties": properties} if is_fine else {}
            out.append({"name": tool["name"], "inputSchema": {"type": "object", **given}})
    return out
