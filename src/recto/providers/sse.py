"""Server-sent events out of bytes, however the network cut them. Knows no format and no network.

httpx2 has a reader of its own; it insists on a content type that some servers omit, trusts their charset, and loses a
last event without its blank line, such as the `[DONE]` of a hasty server.
"""

from dataclasses import dataclass

FIELDS = frozenset({"data", "event", "id", "retry", "error", ""})  # the empty one is a comment
LARGEST_EVENT = 32 * 1024 * 1024


class EventTooLarge(ValueError):
    """A line that never ends is no stream of events."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    data: str
    name: str = "message"


class EventReader:
    """Feed it chunks, take the events that are complete; `end` gives what stood without its blank line."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_return = False
        self._data: list[str] = []
        self._name = ""
        self._size = 0
        self.strange = False
        """A line was seen that no server would send in a stream of events."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        self._rest += chunk
        if len(self._rest) + self._size > LARGEST_EVENT:
            raise EventTooLarge(f"an event of more than {LARGEST_EVENT} bytes")
        return self._lines() if b"\n" in chunk or b"\r" in chunk else []

    def end(self) -> list[ServerEvent]:
        last = self._line(bytes(self._rest)) if self._rest else []
        self._rest.clear()
        return last + self._line(b"")

    def _lines(self) -> list[ServerEvent]:
        # bytes split at \n, \r and \r\n only, as the standard wants; str would split at U+2028 too
        lines = self._rest.splitlines(keepends=True)
        self._rest = bytearray() if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        return [event for line in lines for event in self._line(bytes(line).rstrip(b"\r\n"))]

    def _line(self, line: bytes) -> list[ServerEvent]:
        """Takes one whole line, so that no character is ever decoded in halves."""
        if not line:
            return self._dispatch()
        field, _, value = line.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field in ("data", "error"):  # llama.cpp reports with a field named error
            self._data.append(value)
            self._size += len(line)
        if field in ("event", "error"):
            self._name = value if field == "event" else "error"
        self.strange = self.strange or field not in FIELDS
        return []

    def _dispatch(self) -> list[ServerEvent]:
        events = [ServerEvent("\n".join(self._data), self._name or "message")] if self._data else []
        self._data, self._name, self._size = [], "", 0
        return events
