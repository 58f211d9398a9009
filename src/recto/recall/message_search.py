"""Message search for the user: over all conversations, including archived messages and branches.

Recall is the counterpart for the model: it searches only the path of the current conversation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Literal, overload

from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.chat.trail import Trail
from recto.errors import Invalid
from recto.recall.archive import Archive, ArchivedHit
from recto.search.finder import Hit
from recto.search.keyword_index import Filter
from recto.store.store import Store
from recto.text import clean

MessagePlace = Literal["active", "archived", "branch"]
"""In the view of its conversation, covered by a compaction, or not on the path to the head."""
Time = str | datetime
# The minimum similarity of a hit without a shared word.
MIN_SIMILARITY = 0.25
# The index stores local time in seconds, and clocks are set back by an hour.
SLACK = timedelta(hours=1, seconds=1)


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A found message, with the passage that matches."""

    conversation: str
    title: str
    message: Message
    place: MessagePlace
    score: float
    """Between 0 and 1: half for the matching words, half for the rank by words and meaning."""
    because: str
    text: str
    """The passage, verbatim."""
    start: int
    """The offset of the passage in the message's text, including files, tool arguments and tool results."""
    end: int
    conversation_number: int = 0
    """What people call the conversation by, as in `#3`."""


@dataclass(frozen=True, slots=True)
class FoundMessages(Sequence[FoundMessage]):
    """The found messages, best first."""

    found: tuple[FoundMessage, ...] = ()
    note: str = ""
    """A limit of the result: no vectors, or an index that is still being built."""

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> FoundMessage: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[FoundMessage, ...]: ...
    def __getitem__(self, place: int | slice) -> FoundMessage | tuple[FoundMessage, ...]:
        return self.found[place]


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """A search over messages."""

    text: str
    conversation: str | None = None
    role: str | None = None
    since: Time | None = None
    before: Time | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class ConversationPosition:
    """Tells whether a message of a conversation is active, archived or on a branch."""

    conversation: Conversation
    trail: Trail
    covered: int
    lifted: frozenset[str]

    def place(self, found: ArchivedHit) -> MessagePlace:
        passage = found.hit.passage
        if not self.trail.holds(passage.branch, passage.position):
            return "branch"
        return "archived" if passage.position <= self.covered and found.message.id not in self.lifted else "active"


def search_messages(archive: Archive, store: Store, query: MessageQuery) -> FoundMessages:
    """Raises NotFound for an unknown conversation. Does not wait for the index; a note says what is missing in it."""
    if query.conversation is not None:
        store.tree.conversation(query.conversation)
    since, before = _stored_time(query.since), _stored_time(query.before)
    only = Filter(query.role, _local_time(since, -SLACK), _local_time(before, SLACK))
    text = clean(query.text)[0]
    hits, note = archive.search(text, home=query.conversation, only=only, most=query.limit)
    best = sorted(filter(_is_relevant, hits), key=_score, reverse=True)
    read = (hit for batch in _batched(best, query.limit) for hit in archive.read(batch))
    between = (hit for hit in read if _is_between(hit.message.created, since, before))
    return FoundMessages(tuple(_found(store, list(islice(between, query.limit)))), note)


def _batched(hits: Sequence[Hit], size: int) -> Iterator[Sequence[Hit]]:
    """Splits the hits into batches of `size`; the first one is usually enough."""
    return (hits[start : start + size] for start in range(0, len(hits), max(1, size)))


def _score(hit: Hit) -> float:
    """Includes the word score: by rank alone, similar passages would precede those with the exact words."""
    return round((hit.word_score + hit.score) / 2, 4)


def _is_relevant(hit: Hit) -> bool:
    return hit.word_score > 0 or (hit.similarity or 0.0) >= MIN_SIMILARITY


def _is_between(created: str, since: str | None, before: str | None) -> bool:
    return (since is None or created >= since) and (before is None or created < before)


def _stored_time(time: Time | None) -> str | None:
    """The time in the store's format; a time without a zone is local."""
    if time is None:
        return None
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError) as why:
        raise Invalid(f"{time} is not a time; write 2026-01-31 or 2026-01-31T18:00", time=str(time)) from why


def _local_time(stored: str | None, shift: timedelta) -> str | None:
    """The shifted time in the index's format, local; None for a time outside of the calendar."""
    if stored is None:
        return None
    try:
        return (datetime.fromisoformat(stored) + shift).astimezone().isoformat(timespec="seconds")[:19]
    except (ValueError, OverflowError):
        return None


def _found(store: Store, hits: Sequence[ArchivedHit]) -> Iterator[FoundMessage]:
    positions = {id: _position(store, id) for id in dict.fromkeys(found.home for found in hits)}
    for found in hits:
        position, hit = positions[found.home], found.hit
        yield FoundMessage(
            found.home,
            position.conversation.title,
            found.message,
            position.place(found),
            _score(hit),
            hit.because,
            found.text,
            hit.passage.start,
            hit.passage.end,
            position.conversation.number,
        )


def _position(store: Store, id: str) -> ConversationPosition:
    conversation = store.tree.conversation(id)
    if conversation.head is None:
        return ConversationPosition(conversation, Trail(), 0, frozenset())
    block = _newest_compaction(store, conversation.head)
    last = store.tree.message(block.last).depth if block and block.last else 0
    return ConversationPosition(
        conversation, store.tree.trail(conversation.head), last, frozenset(block.lifted if block else ())
    )


def _newest_compaction(store: Store, head: str) -> Compaction | None:
    newest = store.tree.compaction(head)
    return newest.compaction if newest else None
