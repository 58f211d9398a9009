"""Strategies: (view, budget, counts) -> Plan. They see numbers only and change nothing."""

from collections.abc import Mapping, Sequence

from recto.chat.conversation import View, units
from recto.chat.message import Message
from recto.errors import DoesNotFit
from recto.window.budget import Budget
from recto.window.plan import NOTHING, Cut, Plan, Range

Unit = tuple[Message, ...]


def discard(view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """Keeps everything while it fits, then the newest that stay below low water. The current message is in `fixed`."""
    history, rounds = units(view.history), units(view.rounds)
    groups = history + rounds
    tokens = [sum(counts[message.id] for message in group) for group in groups]
    total = sum(tokens) + sum(counts[message.id] for message in view.still_sent)
    if not view.older and total <= budget.for_history:
        return Plan("discard", _range(groups, tokens), NOTHING, "everything fits")
    start = _first_kept(tokens, budget, must_keep=1 if rounds else 0)
    # a window starts with a question: some providers refuse one that starts with an answer
    while start < len(history) and history[start][0].role != "user":
        start += 1
    _check(sum(tokens[start:]), budget)
    kept, left_out = _range(groups[start:], tokens[start:]), _range(groups[:start], tokens[:start])
    because = f"{budget.fixed + total} tokens or more are over {budget.room}; cut down to {budget.low_water}"
    return Plan("discard", kept, left_out, because, _cut(view, groups, start, len(history)))


def fit(tokens: Sequence[int], room: int) -> int:
    """Where the longest tail that takes at most `room` starts."""
    start = len(tokens)
    while start and tokens[start - 1] <= room:
        room -= tokens[start - 1]
        start -= 1
    return start


def _first_kept(tokens: Sequence[int], budget: Budget, must_keep: int) -> int:
    """The round that the model waits for stays, even above low water."""
    start = fit(tokens, min(budget.low_water - budget.fixed - budget.drift, budget.for_history))
    return min(start, len(tokens) - must_keep)


def _check(kept: int, budget: Budget) -> None:
    if kept <= budget.for_history:
        return
    room = max(0, budget.for_history)
    raise DoesNotFit(
        f"the last tool results take {kept} tokens and only {room} are left in the window; "
        "choose a model with a larger window, or ask for less at once",
        needed=kept,
        room=room,
        largest="tool results",
    )


def _cut(view: View, groups: Sequence[Unit], start: int, history: int) -> Cut:
    """Covers root up to the message before the first that stays; a current message that is behind it is lifted."""
    if start > history:
        return Cut(groups[start - 1][-1].id, (view.current,) if view.current else ())
    behind = groups[start - 1][-1].id if start else view.tail[0].parent
    last = behind or (view.compaction.last if view.compaction else None)
    assert last is not None, "over the room with nothing to cover: `fixed` alone was too large"
    is_lifted = any(message.id == view.current for message in view.lifted)
    return Cut(last, (view.current,) if is_lifted and view.current else ())


def _range(groups: Sequence[Unit], tokens: Sequence[int]) -> Range:
    if not groups:
        return NOTHING
    return Range(groups[0][0].id, groups[-1][-1].id, sum(len(group) for group in groups), sum(tokens))
