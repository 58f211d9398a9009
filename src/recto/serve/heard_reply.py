"""The copy of a reply that is passed on: read beside the client, kept up to a limit."""

import logging
from collections.abc import Callable, Sequence

from recto.chat.blocks import Block, Text, Thinking, ToolCall
from recto.chat.message import MessageBuilder
from recto.providers.http import BAD_DATA, ReplyReader, ReportedError
from recto.providers.model import Attempt, Done, ReplyPart
from recto.providers.reply_limit import ReplyMeter
from recto.providers.sse import MAX_EVENT_BYTES, EventReader
from recto.turn.incoming_message import delta_of
from recto.wire import loads

log = logging.getLogger(__name__)


class HeardReply:
    """The copy of a reply that is stored: all of it, or as much as its limit allows."""

    def __init__(self, meter: ReplyMeter) -> None:
        self.done: Done | None = None
        self._meter, self._builder = meter, MessageBuilder()

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._builder.blocks

    @property
    def text(self) -> str:
        """Everything that the model wrote, as far as it can be seen."""
        return "".join(map(_text, self.blocks))

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

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be kept."""
        return self._is_lost or bool(self._reply.note)

    def add(self, chunk: bytes) -> None:
        if self._is_lost:
            return
        if self._is_stream:
            self._read(lambda: [part for event in self._events.feed(chunk) for part in self._reader.read(event)])
        else:
            self._whole += chunk
            if len(self._whole) > MAX_EVENT_BYTES:
                log.warning("a reply that was passed on is too large to be kept")
                self._is_lost, self._whole = True, bytearray()

    def end(self) -> None:
        if self._is_lost:
            return
        if not self._is_stream:
            self._read(lambda: self._reader.whole(loads(bytes(self._whole))))
        elif self._reply.done is None:
            self._read(self._reader.end)

    def _read(self, read: Callable[[], Sequence[ReplyPart]]) -> None:
        try:
            for part in read():
                self._reply.take(part)
        except (*BAD_DATA, ReportedError):
            log.warning("a reply that was passed on could not be read", exc_info=True)
            self._is_lost = True


def _text(block: Block) -> str:
    if isinstance(block, ToolCall):
        return block.name + block.arguments
    return block.text if isinstance(block, Text | Thinking) else ""
