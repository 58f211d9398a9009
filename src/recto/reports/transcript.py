"""Transcript: the messages of a path as people read them, each marked if it is still sent; the ends of branches.

People name a message on a path by its number (`#12`), and a conversation too (`#3`). Programs keep the ids."""

from collections.abc import AsyncIterator

from msgspec import Struct

from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.store.tree import Tree


class ArchivedPart(Struct, frozen=True):
    """The part of a path that its newest Compaction has archived."""

    depth: int = 0
    """Messages up to here are covered."""
    lifted: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    compaction: str | None = None

    def active(self, message: Message) -> bool:
        if message.compaction:
            return message.id == self.compaction
        return message.depth > self.depth or message.id in self.lifted


class TranscriptEntry(Struct, frozen=True):
    message: Message
    active: bool = True
    lifted: bool = False
    """Covered by a compaction, but still sent."""
    pinned: bool = False


class TranscriptFilter(Struct, frozen=True):
    """A bound is a time as stored, or a place on the path by its depth."""

    since: str | int | None = None
    before: str | int | None = None
    limit: int | None = None
    """Only the last ones."""
    with_tools: bool = True
    with_system: bool = True

    def accepts(self, message: Message) -> bool:
        wanted = (self.with_tools or message.role != "tool") and (self.with_system or message.role != "system")
        return wanted and self._has_reached(self.since, message) and not self._has_reached(self.before, message, False)

    def ends_before(self, message: Message) -> bool:
        """True if nothing is wanted from this message back to the first."""
        return isinstance(self.since, int) and message.depth < self.since

    @staticmethod
    def _has_reached(bound: str | int | None, message: Message, otherwise: bool = True) -> bool:
        if bound is None:
            return otherwise
        return message.depth >= bound if isinstance(bound, int) else message.created >= bound


class BranchEnd(Struct, frozen=True):
    message: Message
    is_head: bool
    """The next message of the conversation follows here."""


def archived_part(tree: Tree, head: str | None) -> ArchivedPart:
    newest = tree.compaction(head) if head else None
    block = newest.compaction if newest else None
    if newest is None or block is None:
        return ArchivedPart()
    depth = tree.message(block.last).depth if block.last else 0
    return ArchivedPart(depth, frozenset(block.lifted), frozenset(block.pinned), newest.id)


async def transcript(
    path: AsyncIterator[Message], archived: ArchivedPart, wanted: TranscriptFilter
) -> list[TranscriptEntry]:
    """Oldest first; `path` runs from the head back."""
    found: list[TranscriptEntry] = []
    async for message in path:
        if len(found) == wanted.limit or wanted.ends_before(message):
            break
        if wanted.accepts(message):
            is_lifted, is_pinned = message.id in archived.lifted, message.id in archived.pinned
            found.append(TranscriptEntry(message, archived.active(message), is_lifted, is_pinned))
    return found[::-1]


def stands_for_something(block: Compaction | None) -> bool:
    """True if a Compaction replaces messages, rather than only pinning them."""
    return block is not None and (block.last is not None or bool(block.excerpts))


# An id has 26 characters: anything this short can only be a number.
_MOST_DIGITS = 9


def number_in(named: str | int) -> int | None:
    """57 for `#57` or `57`; None for an id."""
    digits = str(named).strip().removeprefix("#")
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) <= _MOST_DIGITS else None
