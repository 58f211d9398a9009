"""Token counts. A Count says whether it is exact; a TokenCounter counts wire pieces for one model.

Measured: the token counts of a view, for the planner. Also computes which tail fits and what must shrink.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from recto.chat.conversation import View, units
from recto.chat.message import Message
from recto.errors import DoesNotFit
from recto.window.plan import Budget
from recto.window.request import Piece


class Count(Struct, frozen=True):
    tokens: int
    exact: bool = True

    def __add__(self, other: "Count") -> "Count":
        return Count(self.tokens + other.tokens, self.exact and other.exact)

    def scaled(self, factor: float) -> "Count":
        """Calibrated, unless exact."""
        return self if self.exact or factor == 1.0 else Count(round(self.tokens * factor), False)


ZERO = Count(0)


class TokenCounter(Protocol):
    """Counts pieces as one model's provider charges them."""

    key: str
    """Counts are stored by piece and this key; anything that changes counts must change the key."""
    priming: Count
    """Cost of every request besides its pieces: the start of the reply, a first token."""
    without_system: Count
    """Extra cost of a request without a system message: some templates then insert their own."""
    is_quick: bool
    """True if counting a short text is faster than finding a stored count."""
    note: str | None
    """Why this counter only estimates, for example a tokenizer that failed. Shown to the user."""

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        """One count per piece; 0 for kinds that cost nothing. Message pieces are passed without their comma."""
        ...


def estimate_text(text: str) -> int:
    """The estimate without a working tokenizer: a quarter of the characters plus 5 % (400 characters: 105)."""
    return math.ceil(math.ceil(len(text) / 4) * 1.05)


def estimate_message(text: str) -> int:
    return estimate_text(text) + 2


def proportional_shares(tokens: int, weights: Sequence[int]) -> list[int]:
    """Divides tokens into whole shares in proportion to the weights; the shares add up to `tokens`."""
    total, spent, out, run = sum(weights) or 1, 0, [], 0
    for weight in weights:
        run += weight
        share = tokens * run // total - spent
        spent += share
        out.append(share)
    if out:
        out[-1] += tokens - spent
    return out


SUMMARY = "summary"
"""The key in `counts` for the tokens of the current summary."""

NOTICE = 32
"""Tokens of the line with the number of archived messages; enough for any tokenizer."""

Unit = tuple[Message, ...]


class Group(Struct, frozen=True):
    """A message, or a message with tool calls and their results."""

    messages: Unit
    tokens: int
    pinned: bool = False

    @property
    def first(self) -> str:
        """The id of its first message, the key of its counts and savings."""
        return self.messages[0].id

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(message.id for message in self.messages)

    @property
    def priority(self) -> int:
        return max(message.priority for message in self.messages)


class Measured(Struct, frozen=True):
    view: View
    budget: Budget
    groups: tuple[Group, ...]
    """The history, then the rounds of this turn, without the current message."""
    history: int
    lifted: tuple[Group, ...]
    summary: int
    results: Mapping[str, int]
    """Tokens of each tool result of the last round, by `message/call`."""

    @property
    def size(self) -> int:
        """Tokens of the whole window without a cut."""
        groups = sum(group.tokens for group in (*self.groups, *self.lifted))
        return self.budget.fixed + self.summary + groups

    @property
    def is_over(self) -> bool:
        return bool(self.view.older) or self.size > self.budget.room

    @property
    def pins(self) -> int:
        """Tokens of the pinned groups, with the line that precedes them in a window without a summary."""
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
        Group(unit, counts[unit[0].id], unit[0].id in pinned)
        if len(unit) == 1
        else Group(unit, sum(counts[message.id] for message in unit), any(message.id in pinned for message in unit))
        for unit in found
    ]


SMALLEST_EXCERPT = 64
"""The least tokens of a user's message worth sending."""
SMALLEST_RESULT = 64
SMALLEST_SUMMARY = 96
"""Including its frame; a shorter summary says nothing."""
# sizes of excerpts are estimates until the excerpt is made and counted
SLACK = 0.95


def fit(tokens: Sequence[int], room: int) -> int:
    """The start of the longest tail that takes at most `room`."""
    start = len(tokens)
    while start and tokens[start - 1] <= room:
        room -= tokens[start - 1]
        start -= 1
    return start


def start_of_last(groups: Sequence[Group], messages: int) -> int:
    """The start of the shortest tail of whole groups with at least this many messages."""
    start = len(groups)
    while start and messages > 0:
        start -= 1
        messages -= len(groups[start].messages)
    return start


def recent_start(groups: Sequence[Group], costs: Sequence[int], budget: Budget, soft: int, hard: int) -> int:
    """The start of the latest messages: `budget.recent` of them, or fewer (down to `least_recent`) so that they take at
    most `soft`; still fewer only if even those exceed `hard`. The current message counts as one of them."""
    for messages in range(budget.recent, budget.least_recent - 1, -1):
        start = start_of_last(groups, messages - 1)
        if sum(costs[start:]) <= soft:
            return start
    for messages in range(budget.least_recent, 0, -1):
        start = start_of_last(groups, messages - 1)
        if sum(costs[start:]) <= hard:
            return start
    return len(groups)


class Shrunk(Struct, frozen=True):
    """The sizes to which the current message and the last tool round are cut."""

    current: int
    round: int
    excerpts: Mapping[str, int] = field(default_factory=dict)
    keeps_round: bool = True


def shrink(measured: Measured, summary: int, squeeze: Mapping[str, int]) -> Shrunk:
    """Cuts the largest parts until what must be sent fits: tool results first, then the user's message.

    `squeeze` are excerpts to make in any case. Tool results also make room for a small summary, the user's message does
    not. Raises DoesNotFit if even 64 tokens of the message do not fit.
    """
    budget, last = measured.budget, measured.last_round
    results = {key: min(size, squeeze.get(key, size)) for key, size in measured.results.items()}
    current = min(budget.current, squeeze.get(measured.view.current or "", budget.current))
    calls = last.tokens - sum(measured.results.values()) if last else 0
    whole = calls + sum(results.values())
    pins = measured.pins - (last.tokens if last and last.pinned else 0)
    spare = min(summary, SMALLEST_SUMMARY) if results else 0
    if budget.around + pins + current + whole + spare <= budget.room:
        return Shrunk(current, whole, squeeze)
    min_message = min(current, SMALLEST_EXCERPT)
    room = budget.room - budget.around - pins
    if room < min_message:
        raise _does_not_fit(measured, min_message)
    room = max(min_message, int(room * SLACK) - min(summary, room // 4))
    message = min(current, max(min_message, room - calls - min(sum(results.values()), room // 3)))
    left = room - message - calls
    if last is None or left < min(sum(results.values()), SMALLEST_RESULT * len(results)):
        message = min(current, room)
        return Shrunk(message, 0, _message_excerpt(measured, message), keeps_round=last is None)
    shares = level_sizes(results, left)
    cut = {key: size for key, size in shares.items() if size < measured.results[key]}
    return Shrunk(message, calls + sum(shares.values()), {**_message_excerpt(measured, message), **cut})


def level_sizes(sizes: Mapping[str, int], room: int) -> dict[str, int]:
    """Sizes that add up to at most `room`: small ones stay whole, the largest are cut to equal length."""
    left, shares = room, {}
    for place, (key, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        shares[key] = min(size, max(left, 0) // (len(sizes) - place))
        left -= shares[key]
    return shares


def _message_excerpt(measured: Measured, size: int) -> dict[str, int]:
    current = measured.view.current
    return {current: size} if current and size < measured.budget.current else {}


def _does_not_fit(measured: Measured, min_message: int) -> DoesNotFit:
    budget = measured.budget
    parts = {
        "the system prompt": budget.instructions - budget.written,
        "rules and references": budget.written,
        "the tools": budget.tools,
        "the pinned messages": measured.pins,
        "the documents picked for your message": budget.picked,
        "the reply's reserve": budget.reserve if budget.room <= 0 else 0,
    }
    largest = max(parts, key=lambda name: parts[name])
    needed = budget.around + measured.pins + min_message
    verb = "take" if largest.endswith("s") else "takes"
    return DoesNotFit(
        f"{largest} {verb} {parts[largest]} tokens; with {min_message} of your message {needed} are needed and the "
        f"window has room for {max(0, budget.room)} ({budget.limit} less {budget.reserve} for the reply)",
        needed=needed,
        room=budget.room,
        largest=largest,
    )
