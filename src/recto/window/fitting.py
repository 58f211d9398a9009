"""Fitting: where a tail starts that keeps within a room, and what must shrink when even the least is too large."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from recto.errors import DoesNotFit
from recto.window.budget import Budget
from recto.window.measure import Group, Measured

SMALLEST_EXCERPT = 64
"""A user's message is sent with at least so many tokens of it, or not at all."""
SMALLEST_RESULT = 64
SMALLEST_SUMMARY = 96
"""With its frame; less says nothing."""
# counts of cut text are a little off before the cut is made; the cut itself is counted
SLACK = 0.95


def fit(tokens: Sequence[int], room: int) -> int:
    """Where the longest tail that takes at most `room` starts."""
    start = len(tokens)
    while start and tokens[start - 1] <= room:
        room -= tokens[start - 1]
        start -= 1
    return start


def start_of_last(groups: Sequence[Group], messages: int) -> int:
    """Where the tail starts that holds at least so many messages, groups whole."""
    start = len(groups)
    while start and messages > 0:
        start -= 1
        messages -= len(groups[start].messages)
    return start


def recent_start(groups: Sequence[Group], costs: Sequence[int], budget: Budget, soft: int, hard: int) -> int:
    """Where the latest messages start: as many as wanted while they take at most `soft`; fewer, down to the least, and
    still fewer only where even those are over `hard`. The current message counts as one of them."""
    for wanted in range(budget.recent, budget.least_recent - 1, -1):
        start = start_of_last(groups, wanted - 1)
        if sum(costs[start:]) <= soft:
            return start
    for wanted in range(budget.least_recent, 0, -1):
        start = start_of_last(groups, wanted - 1)
        if sum(costs[start:]) <= hard:
            return start
    return len(groups)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What of the current message and of the last round of tool calls can be sent."""

    current: int
    round: int
    """What the last round takes now."""
    excerpts: Mapping[str, int] = field(default_factory=dict)
    keeps_round: bool = True


def shrink(measured: Measured, summary: int, squeeze: Mapping[str, int]) -> Shrunk:
    """The largest parts cut down until the least that must be sent fits: tool results first, then the user's message.

    `squeeze` are excerpts that are wanted in any case. Tool results also make room for a small summary, the user's
    message does not. DoesNotFit when 64 tokens of the message are too many.
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
    least = min(current, SMALLEST_EXCERPT)
    room = budget.room - budget.around - pins
    if room < least:
        raise _does_not_fit(measured, least)
    room = max(least, int(room * SLACK) - min(summary, room // 4))
    message = min(current, max(least, room - calls - min(sum(results.values()), room // 3)))
    left = room - message - calls
    if last is None or left < min(sum(results.values()), SMALLEST_RESULT * len(results)):
        message = min(current, room)
        return Shrunk(message, 0, _of_message(measured, message), keeps_round=last is None)
    shares = level(results, left)
    cut = {key: most for key, most in shares.items() if most < measured.results[key]}
    return Shrunk(message, calls + sum(shares.values()), {**_of_message(measured, message), **cut})


def level(sizes: Mapping[str, int], room: int) -> dict[str, int]:
    """What each may take so that all take `room` at most: small ones whole, the largest cut to the same length."""
    left, shares = room, {}
    for place, (key, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        shares[key] = min(size, max(left, 0) // (len(sizes) - place))
        left -= shares[key]
    return shares


def _of_message(measured: Measured, most: int) -> dict[str, int]:
    current = measured.view.current
    return {current: most} if current and most < measured.budget.current else {}


def _does_not_fit(measured: Measured, least: int) -> DoesNotFit:
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
    needed = budget.around + measured.pins + least
    verb = "take" if largest.endswith("s") else "takes"
    return DoesNotFit(
        f"{largest} {verb} {parts[largest]} tokens; with {least} of your message {needed} are needed and the window "
        f"has room for {max(0, budget.room)} ({budget.limit} less {budget.reserve} for the reply)",
        needed=needed,
        room=budget.room,
        largest=largest,
    )
