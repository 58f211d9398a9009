"""Measured: a view as the numbers that strategies decide on. Groups are what stays or goes together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recto.chat.conversation import View, units
from recto.chat.message import Message
from recto.window.budget import Budget

SUMMARY = "summary"
"""Under this name the counts hold what the summary in force takes."""

NOTICE = 32
"""A line that says how many messages are archived, in any tokenizer."""

Unit = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A message, or one with calls and their results."""

    messages: Unit
    tokens: int
    pinned: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.messages)

    @property
    def priority(self) -> int:
        return max(message.priority for message in self.messages)


@dataclass(frozen=True, slots=True)
class Measured:
    view: View
    budget: Budget
    groups: tuple[Group, ...]
    """The history, then the rounds of this turn; the current message is neither."""
    history: int
    """How many of the groups are history."""
    lifted: tuple[Group, ...]
    """Covered groups that are still sent."""
    summary: int
    results: Mapping[str, int]
    """Tokens of each tool result of the last round, by `message/call`."""

    @property
    def size(self) -> int:
        """The whole window if nothing is done."""
        groups = sum(group.tokens for group in (*self.groups, *self.lifted))
        return self.budget.fixed + self.summary + groups

    @property
    def is_over(self) -> bool:
        return bool(self.view.older) or self.size > self.budget.room

    @property
    def pins(self) -> int:
        """What is pinned, with the line in front of it that a window without a summary begins with."""
        pinned = [group.tokens for group in (*self.groups, *self.lifted) if group.pinned]
        return sum(pinned) + NOTICE if pinned else 0

    @property
    def last_round(self) -> Group | None:
        return self.groups[-1] if len(self.groups) > self.history else None


def measure(view: View, budget: Budget, counts: Mapping[str, int]) -> Measured:
    pinned = frozenset(view.compaction.pinned) if view.compaction else frozenset()
    history = _groups(units(view.history), counts, pinned)
    rounds = _groups(units(view.rounds), counts, pinned)
    lifted = _groups(units(view.still_sent), counts, pinned)
    results = {key: tokens for key, tokens in counts.items() if "/" in key}
    return Measured(view, budget, (*history, *rounds), len(history), tuple(lifted), counts.get(SUMMARY, 0), results)


def _groups(found: Sequence[Unit], counts: Mapping[str, int], pinned: frozenset[str]) -> list[Group]:
    return [
        Group(unit, sum(counts[message.id] for message in unit), any(message.id in pinned for message in unit))
        for unit in found
    ]
