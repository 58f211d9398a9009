"""Conversation, Path, View: values, loaded newest first and bounded. The tree itself lives in the store."""

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
class Path:
    """Messages from the oldest loaded to the head; `older` more lie before them."""

    messages: tuple[Message, ...]
    older: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What may be sent: the newest Compaction, what it lifted, and everything after what it covers.

    `older` counts messages after `last` that were not loaded because they could not fit in any case.
    """

    tail: tuple[Message, ...]
    lifted: tuple[Message, ...] = ()
    compaction: Compaction | None = None
    older: int = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.lifted + self.tail


def view(path: Sequence[Message], older: int = 0) -> View:
    """The view of a path that is loaded whole (`older` = 0) or back to what its newest Compaction covers."""
    newest = next((message for message in reversed(path) if message.compaction), None)
    compaction = newest.compaction if newest else None
    if compaction is None:
        return View(tuple(path), older=older)
    places = {message.id: place for place, message in enumerate(path)}
    start = places[compaction.last] + 1 if compaction.last in places else 0
    lifted = tuple(path[places[id]] for id in compaction.lifted if id in places)
    tail = tuple(message for message in path[start:] if message.compaction is None)
    return View(tail, lifted, compaction, older)


def units(messages: Iterable[Message]) -> list[tuple[Message, ...]]:
    """Messages in groups that belong together: a message with tool calls and the results that answer it."""
    groups: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and groups and any(earlier.calls for earlier in groups[-1]):
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]
