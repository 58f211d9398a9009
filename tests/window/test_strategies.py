"""The laws of cutting, for any history: tool calls in parallel, results missing, a turn that ends inside a loop."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recto.chat.blocks import Compaction, Text, ToolCall, ToolResult
from recto.chat.conversation import View, units, view
from recto.chat.message import Message
from recto.errors import DoesNotFit
from recto.window.budget import Budget
from recto.window.strategies import discard, fit

CURRENT = "now"


def text(id: str, role: str = "user") -> Message:
    return Message(id, role, (Text(id),))  # type: ignore[arg-type]


def rounds(draw: st.DrawFn, name: str, calls: int) -> list[Message]:
    ids = [f"{name}.{n}" for n in range(calls)]
    asked = Message(name, "assistant", tuple(ToolCall(id, "t", "{}") for id in ids))
    answered = draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    results = Message(f"{name}r", "tool", tuple(ToolResult(id, "t", "x") for id in answered))
    return [asked, results] if answered else [asked]


@st.composite
def paths(draw: st.DrawFn) -> list[Message]:
    """A conversation up to a current message, perhaps inside its tool loop, perhaps with compactions."""
    path: list[Message] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "calls", "compaction"]))
        if kind == "calls":
            path += rounds(draw, f"m{number}", draw(st.integers(1, 3)))
        elif kind == "compaction" and path:
            last = draw(st.sampled_from([message.id for message in path if not message.compaction]))
            path.append(Message(f"c{number}", "system", (Compaction(1, "", last, "", 0, 0, 0, "discard", ""),)))
        else:
            path.append(text(f"m{number}", kind if kind != "compaction" else "user"))
    path.append(text(CURRENT))
    for number in range(draw(st.integers(0, 3))):
        path += rounds(draw, f"r{number}", draw(st.integers(1, 2)))
    linked = [replace(path[0], parent=None)]
    for message in path[1:]:
        linked.append(replace(message, parent=linked[-1].id))
    return linked


@st.composite
def cases(draw: st.DrawFn) -> tuple[View, Budget, dict[str, int], list[Message]]:
    path = draw(paths())
    seen = view(path, current=CURRENT)
    counts = {message.id: draw(st.integers(0, 60)) for message in path}
    limit = draw(st.integers(20, 400))
    budget = Budget(limit, draw(st.integers(0, 19)), int(limit * draw(st.sampled_from([0.3, 0.5, 0.8]))))
    fixed = draw(st.integers(0, budget.room))
    return seen, replace(budget, fixed=fixed), counts, path


def sent(seen: View) -> list[str]:
    return [message.id for message in (*seen.still_sent, *seen.history, *seen.rounds)]


@given(cases())
def test_after_the_cut_everything_fits_and_nothing_is_there_twice(
    case: tuple[View, Budget, dict[str, int], list[Message]],
) -> None:
    seen, budget, counts, path = case
    try:
        plan = discard(seen, budget, counts)
    except DoesNotFit:
        last = units(seen.rounds)[-1]
        assert sum(counts[message.id] for message in last) > budget.for_history
        return
    if plan.cut is None:
        assert sum(counts[id] for id in sent(seen)) <= budget.for_history
        return
    block = Compaction(9, "", plan.cut.last, "", 0, 0, 0, "discard", "", plan.cut.lifted)
    made = Message("cut", "system", (block,), parent=path[-1].id)
    after = view([*path, made], current=CURRENT)
    remaining = sent(after)
    assert len(remaining) == len(set(remaining))
    assert sum(counts[id] for id in remaining) <= budget.for_history
    assert plan.kept.tokens == sum(counts[id] for id in remaining)
    assert CURRENT in [message.id for message in after.tail + after.lifted]
    tail = [message.id for message in path if message.id in remaining]
    ids = [message.id for message in path if not message.compaction and message.id != CURRENT]
    assert tail == ids[len(ids) - len(tail) :], "the tail is contiguous"
    calls = {call.id for message in after.history + after.rounds for call in message.calls}
    results = {result.call_id for message in after.history + after.rounds for result in message.results}
    assert results <= calls
    assert discard(after, budget, counts).cut is None, "a cut is not followed by another"
    assert discard(seen, budget, counts) == plan, "the same inputs give the same plan"


@given(cases())
def test_what_is_below_low_water_is_kept(case: tuple[View, Budget, dict[str, int], list[Message]]) -> None:
    seen, budget, counts, _ = case
    assume(not seen.rounds)
    plan = discard(seen, budget, counts)
    if plan.cut:
        assert budget.fixed + plan.kept.tokens <= max(budget.low_water, budget.fixed)


@pytest.mark.parametrize(
    ("tokens", "room", "start"),
    [
        ([5, 19, 18], 97, 0),
        ([30, 30, 5, 19, 18], 47, 2),
        ([10, 15], 27, 0),
        ([10, 15], 7, 2),
        ([], 10, 0),
        ([5, 50, 5], 20, 2),
    ],
)
def test_the_longest_tail_that_fits_starts_here(tokens: list[int], room: int, start: int) -> None:
    assert fit(tokens, room) == start


def test_older_messages_that_were_not_loaded_make_a_cut_necessary() -> None:
    tail = (replace(text("m9"), parent="m8"), replace(text(CURRENT), parent="m9"))
    plan = discard(View(tail, older=8, current=CURRENT), Budget(100, 10, 50, fixed=10), {"m9": 10, CURRENT: 5})
    assert plan.cut is not None
    assert plan.cut.last == "m8"


def test_a_round_that_is_larger_than_the_window_is_named() -> None:
    seen = view([text(CURRENT), Message("r", "assistant", (ToolCall("1", "t", "{}"),))], current=CURRENT)
    with pytest.raises(DoesNotFit, match="the last tool results take 500 tokens") as caught:
        discard(seen, Budget(100, 10, 50, fixed=10), {"r": 500, CURRENT: 5})
    assert caught.value.largest == "tool results"
