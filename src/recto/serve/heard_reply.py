"""The copy of a reply that is passed on: read beside the client, kept up to a limit."""

import logging
from collections.abc import Callable, Iterator, Sequence

from recto.chat.blocks import Block, written_text
from recto.chat.message import MessageBuilder
from recto.providers.http import BAD_DATA, MAX_EVENT_BYTES, EventReader, ReplyReader, ReportedError, ServerEvent
from recto.providers.model import Attempt, Done, ReplyMeter, ReplyPart, says_something
from recto.turn.incoming_message import delta_of
from recto.wire import Json, loads

log = logging.getLogger(__name__)

# What providers wrap a reply in, and what they say of it there. The model wrote everything else, also below fields with
# these names: a tool's arguments have the names that a client chose.
WRAPPERS = frozenset(
    {"choices", "delta", "message", "content", "content_block", "tool_calls", "function", "custom", "reasoning_details"}
)
ABOUT = frozenset(
    {"id", "object", "created", "model", "role", "type", "finish_reason", "native_finish_reason", "stop_reason"}
    | {"system_fingerprint", "service_tier", "provider", "logprobs", "usage", "timings"}
)


class HeardReply:
    """The copy of a reply that is stored: all of it, or as much as its limit allows."""

    def __init__(self, meter: ReplyMeter) -> None:
        self.done: Done | None = None
        self._meter, self._builder = meter, MessageBuilder()
        self._sent: list[str] = []
        self.sent_chars = 0

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._builder.blocks

    @property
    def text(self) -> str:
        """Everything that the model wrote, as far as it can be seen. By the provider's own data, where there are: they
        may hold what no block does."""
        return "".join(self._sent or map(written_text, self.blocks))

    def note_sent(self, data: Json) -> None:
        texts = list(_texts(data, is_wrapper=True))
        self._sent += texts
        self.sent_chars += sum(map(len, texts))

    @property
    def note(self) -> str:
        """Why the copy ends before the reply does."""
        return self._meter.note or (self.done.note if self.done else "")

    def take(self, part: ReplyPart) -> None:
        if isinstance(part, Done):
            self.done = part
        elif (taken := self._meter.take(part)) and not isinstance(taken, Attempt | Done):
            self._builder.add(delta_of(taken))


class HeardBytes:
    """Reads a provider's bytes beside passing them on. What cannot be read is passed on all the same."""

    def __init__(self, reader: ReplyReader, reply: HeardReply, *, is_stream: bool) -> None:
        self._reader, self._reply, self._is_stream = reader, reply, is_stream
        self._events, self._whole, self._is_lost = EventReader(), bytearray(), False
        self._unread = 0
        """Bytes since the last part of the reply."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be kept."""
        return self._is_lost or bool(self._reply.note)

    @property
    def is_read(self) -> bool:
        """Whether what the model wrote is known: all of it, or of a stream that broke off what had come. A reply in one
        piece may have been written without having come."""
        if self.is_over or self._reply.done:
            return not self.is_over
        return self._is_stream and (not self._unread or bool(self._reply.text))

    def add(self, chunk: bytes) -> None:
        if self._is_lost:
            return
        if self._is_stream:
            self._unread += len(chunk)
            self._read(lambda: [part for event in self._events.feed(chunk) for part in self._parts(event)])
            if max(self._unread, self._reply.sent_chars) > MAX_EVENT_BYTES:
                log.warning("a reply that was passed on is too large to be read to its end")
                self._is_lost = True
        else:
            self._whole += chunk
            if len(self._whole) > MAX_EVENT_BYTES:
                log.warning("a reply that was passed on is too large to be kept")
                self._is_lost, self._whole = True, bytearray()

    def end(self) -> None:
        if self._is_lost:
            return
        if not self._is_stream:
            self._read(lambda: self._whole_parts(loads(bytes(self._whole))))
        elif self._reply.done is None:
            self._read(self._reader.end)

    def _parts(self, event: ServerEvent) -> Sequence[ReplyPart]:
        parts = self._reader.read(event)
        if event.data.lstrip().startswith("{"):
            if not self._reply.note:  # else it counts with its bound
                self._reply.note_sent(loads(event.data))
            self._unread = 0 if any(map(says_something, parts)) else self._unread
        return parts

    def _whole_parts(self, data: Json) -> Sequence[ReplyPart]:
        self._reply.note_sent(data)
        return self._reader.whole(data)

    def _read(self, read: Callable[[], Sequence[ReplyPart]]) -> None:
        try:
            for part in read():
                self._reply.take(part)
        except (*BAD_DATA, ReportedError):
            log.warning("a reply that was passed on could not be read", exc_info=True)
            self._is_lost = True


def _texts(data: Json, *, is_wrapper: bool) -> Iterator[str]:
    """All texts in an answer that the model may have written."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for each in data:
            yield from _texts(each, is_wrapper=is_wrapper)
    elif isinstance(data, dict):
        for name, each in data.items():
            if not (is_wrapper and name in ABOUT):
                yield from _texts(each, is_wrapper=is_wrapper and name in WRAPPERS)
