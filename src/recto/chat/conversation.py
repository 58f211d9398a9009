"""Conversation, and View: the part of it that may be sent. Values; the tree of messages itself is in the store.

Trail: a path described by its branches, so that membership needs no walk over messages. Knows numbers only.

A branch is an unforked run of messages, named by the number of its first. At any depth a path is on exactly one branch.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from msgspec import Struct, field

from recto.chat.blocks import Compaction, MessageRange
from recto.chat.message import Message

ConversationState = Literal["active", "hidden", "deleted"]
"""Hidden: not listed, but searched. Deleted: in the trash."""


class Conversation(Struct, frozen=True):
    """Messages are only ever added."""

    id: str
    title: str
    head: str | None
    created: str
    updated: str
    agent: str = "default"
    details: dict[str, Any] = field(default_factory=dict)
    """Settings of this conversation: model, strategy, system prompt file."""
    messages: int = 0
    number: int = 0
    """The short number that people see, such as `#3`; local to this store."""
    hidden: str | None = None
    deleted: str | None = None


class View(Struct, frozen=True, dict=True):
    """The messages that may be sent: the newest Compaction, the messages it lifts, and all messages after those it
    covers.

    `older` counts messages after `last` that were not loaded because they cannot fit. `current` is the user's message
    being answered; the messages after it are the tool rounds of this turn.
    """

    tail: tuple[Message, ...]
    lifted: tuple[Message, ...] = ()
    compaction: Compaction | None = None
    older: int = 0
    current: str | None = None

    @cached_property
    def history(self) -> tuple[Message, ...]:
        """The messages of the tail before the current one; empty if the current message is lifted."""
        place = self._place
        return self.tail[:place] if place is not None else () if self.current_is_lifted else self.tail

    @cached_property
    def rounds(self) -> tuple[Message, ...]:
        place = self._place
        return self.tail[place + 1 :] if place is not None else self.tail if self.current_is_lifted else ()

    @property
    def still_sent(self) -> tuple[Message, ...]:
        """The lifted messages, without the current one."""
        return tuple(message for message in self.lifted if message.id != self.current)

    @cached_property
    def _place(self) -> int | None:
        # search from the end, because the current message is near it
        places = range(len(self.tail) - 1, -1, -1)
        return next((place for place in places if self.tail[place].id == self.current), None) if self.current else None

    @property
    def current_is_lifted(self) -> bool:
        return any(message.id == self.current for message in self.lifted)

    def split(self, last: str | None) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
        """The tail up to and including `last`, and the rest. The first part is empty if `last` is not in the tail."""
        place = next((place for place, message in enumerate(self.tail, 1) if message.id == last), 0)
        return self.tail[:place], self.tail[place:]


def view(path: Sequence[Message], older: int = 0, current: str | None = None) -> View:
    """The view of a path that is complete, or loaded back to the last message covered by its newest Compaction."""
    newest = next((message for message in reversed(path) if message.compaction), None)
    compaction = newest.compaction if newest else None
    if compaction is None:
        return View(tuple(path), older=older, current=current)
    places = {message.id: place for place, message in enumerate(path)}
    start = places[compaction.last] + 1 if compaction.last in places else 0
    lifted = tuple(path[places[id]] for id in compaction.lifted if id in places)
    tail = tuple(message for message in path[start:] if message.compaction is None)
    return View(tail, lifted, compaction, older, current)


def units(messages: Iterable[Message]) -> list[tuple[Message, ...]]:
    """Group messages that must stay together: a message with tool calls and the messages with their results."""
    groups: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and groups and any(earlier.calls for earlier in groups[-1]):
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]


BranchDepth = tuple[int, int]
"""A branch, and the deepest message of it that is on the path."""


class Trail(Struct, frozen=True):
    branches: tuple[BranchDepth, ...] = ()
    """Newest first, so depths decrease."""

    def holds(self, branch: int, depth: int) -> bool:
        """True if the message of this branch at this depth is on the path."""
        return self.at(depth) == branch

    def at(self, depth: int) -> int | None:
        """The branch of the path at this depth; None beyond its end."""
        place = bisect_right(self.branches, -depth, key=lambda branch: -branch[1])
        return self.branches[place - 1][0] if place else None

    def between(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The segments of the path between two depths, in order, each as branch, first and last depth."""
        for (_, before), (branch, depth) in pairwise([(0, 0), *reversed(self.branches)]):
            start, end = max(first, before + 1), min(last, depth)
            if start <= end:
                yield branch, start, end


def ranges_of(numbers: Iterable[int]) -> tuple[MessageRange, ...]:
    found: list[MessageRange] = []
    for number in sorted(numbers):
        if found and number <= found[-1].last + 1:
            found[-1] = MessageRange(found[-1].first, number)
        else:
            found.append(MessageRange(number, number))
    return tuple(found)


def ranges_without(ranges: Iterable[MessageRange], others: Sequence[MessageRange]) -> tuple[MessageRange, ...]:
    """The rest of `ranges` without `others`, which are in order."""
    found: list[MessageRange] = []
    for first, last in ranges:
        for other in others:
            if other.last < first or other.first > last:
                continue
            if other.first > first:
                found.append(MessageRange(first, other.first - 1))
            first = other.last + 1
        if first <= last:
            found.append(MessageRange(first, last))
    return tuple(found)
