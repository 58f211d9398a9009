"""IncomingConversation: a conversation that comes from a file, before it is stored. Values, and how times are read."""

from collections.abc import Generator, Iterable
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct

from recto.chat.conversation import Conversation
from recto.chat.message import Message, stored_time
from recto.store.conversation_copy import StoredItem
from recto.transfer.report import ImportFormat


class IncomingConversation(Struct, frozen=True):
    """A conversation with everything that it owns. `items` may be read once."""

    conversation: Conversation
    items: Iterable[StoredItem]
    place: str
    """Where it is in its file, for people."""
    position: int = 0
    """How much of the file is read when it comes."""
    is_complete: bool = False
    """Whether it is told in full, with its records: then it is stored as it is or not at all. Of other programs only
    the messages are known, and a later export of the same conversation adds to it."""
    notes: tuple[str, ...] = ()
    """What could not be brought along."""


class ConversationSource(Protocol):
    """A file with conversations. Each call of `conversations` reads it from its beginning."""

    name: ImportFormat
    size: int
    """What `position` counts up to."""

    def conversations(self) -> Generator[IncomingConversation, None, None]: ...


def milliseconds(moment: str) -> int:
    """Of a stored time, since 1970."""
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def time_of(value: object) -> str | None:
    """A stored time for seconds since 1970 or a written time, which is UTC where it names no zone; None for others."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            # some programs count milliseconds
            seconds = value / 1000 if value > 1e11 else value
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if isinstance(value, str) and value:
            moment = datetime.fromisoformat(value.strip())
            return stored_time((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())
    except (ValueError, OverflowError, OSError):
        return None
    return None


def count_of(items: Iterable[StoredItem]) -> int:
    return sum(isinstance(item, Message) for item in items)
