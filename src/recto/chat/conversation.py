"""Conversation, View, units: values, loaded newest first and bounded. The tree itself lives in the store."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from recto.chat.blocks import Compaction
from recto.chat.message import Message


@dataclass(frozen=True, slots=True)
class Conversation:
    """A tree of messages with a head; grows only."""

    id: str
    title: str
    head: str | None
    created: str
    updated: str
    agent: str = "default"
    details: dict[str, Any] = field(default_factory=dict)
    """Choices that belong to this conversation: model, strategy, system prompt file."""
    messages: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What may be sent: the newest Compaction, what it lifted, and everything after what it covers.

    `older` is not 0 when messages after `last` were not loaded because they could not fit in any case. `current` is the
    user's message that is being answered: what follows it are the rounds of tool calls of this turn.
    """

    tail: tuple[Message, ...]
    lifted: tuple[Message, ...] = ()
    compaction: Compaction | None = None
    older: int = 0
    current: str | None = None

    @property
    def history(self) -> tuple[Message, ...]:
        """What of the tail came before the current message; none of it when that one is lifted."""
        place = self._place
        return self.tail[:place] if place is not None else () if self.current_is_lifted else self.tail

    @property
    def rounds(self) -> tuple[Message, ...]:
        place = self._place
        return self.tail[place + 1 :] if place is not None else self.tail if self.current_is_lifted else ()

    @property
    def still_sent(self) -> tuple[Message, ...]:
        """What is lifted besides the current message."""
        return tuple(message for message in self.lifted if message.id != self.current)

    @property
    def _place(self) -> int | None:
        # from the end: that is where it is
        places = range(len(self.tail) - 1, -1, -1)
        return next((place for place in places if self.tail[place].id == self.current), None) if self.current else None

    @property
    def current_is_lifted(self) -> bool:
        return any(message.id == self.current for message in self.lifted)

    def split(self, last: str | None) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
        """What of the tail a cut up to `last` covers, and what stays; nothing is covered when `last` is before it."""
        place = next((place for place, message in enumerate(self.tail, 1) if message.id == last), 0)
        return self.tail[:place], self.tail[place:]


def view(path: Sequence[Message], older: int = 0, current: str | None = None) -> View:
    """The view of a path that is loaded whole (`older` = 0) or back to what its newest Compaction covers."""
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
    """Messages in groups that belong together: a message with tool calls and the results that answer it."""
    groups: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and groups and any(earlier.calls for earlier in groups[-1]):
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]
