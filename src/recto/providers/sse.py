"""Server-sent events: read from chunks of bytes, and written to bytes. Knows no wire format and no network.

httpx2 has its own reader, but that requires a content type that some servers omit, trusts their charset, and loses a
last event without its blank line, such as a final `[DONE]`.
"""

from msgspec import Struct

FIELDS = frozenset({"data", "event", "id", "retry", "error", ""})  # the empty one is a comment
MAX_EVENT_BYTES = 32 * 1024 * 1024


class EventTooLarge(ValueError):
    """An event is larger than any real one, so this is not a stream of events."""


class ServerEvent(Struct, frozen=True):
    data: str
    name: str = "message"

    @property
    def encoded(self) -> bytes:
        """The bytes on the wire; the default name is left out."""
        named = "" if self.name == "message" else f"event: {self.name}\n"
        lines = "".join(f"data: {line}\n" for line in self.data.split("\n"))
        return f"{named}{lines}\n".encode()


class EventReader:
    """Takes chunks and returns complete events; `end` returns a last event without its blank line."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_return = False
        self._data: list[str] = []
        self._name = ""
        self._size = 0
        self.strange = False
        """True after a line that does not belong to a stream of events."""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        self._rest += chunk
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return self._lines() if b"\n" in chunk or b"\r" in chunk else []

    def end(self) -> list[ServerEvent]:
        last = self._line(bytes(self._rest)) if self._rest else []
        self._rest.clear()
        return last + self._line(b"")

    def _lines(self) -> list[ServerEvent]:
        # bytes split at \n, \r and \r\n only, as the standard requires; str would split at U+2028 too
        lines = self._rest.splitlines(keepends=True)
        self._rest = bytearray() if lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        return [event for line in lines for event in self._line(bytes(line).rstrip(b"\r\n"))]

    def _line(self, line: bytes) -> list[ServerEvent]:
        """Reads one complete line, so that no character is decoded in parts."""
        if not line:
            return self._dispatch() if self._data or self._name else []
        field, _, value = line.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field in ("data", "error"):  # llama.cpp reports errors in a field of that name
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
