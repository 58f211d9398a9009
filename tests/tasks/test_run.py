"""A run as it is told round by round, and as it is read back from its messages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.sources.tools import CANCELLED
from recto.tasks.plan import plan_from
from recto.tasks.run import TaskRun, rebuilt_run

Round = tuple[ToolCall, ToolResult]


def called(name: str, text: str = "fine", *, is_error: bool = False, approval: str = "", **arguments: Any) -> Round:
    call = ToolCall("c", name, json.dumps(arguments))
    return call, ToolResult("c", name, text, is_error, approval=approval)


def take(run: TaskRun, *rounds: Round) -> list[str]:
    """What the model reads of each."""
    return [run.take([call], [result])[0].text for call, result in rounds]


def test_the_order_of_arguments_does_not_hide_a_repetition() -> None:
    run = TaskRun("r", "goal")
    first = ToolCall("c", "x", '{"a": 1, "b": 2}')
    again = ToolCall("d", "x", '{"b":2,"a":1}')
    assert run.take([first], [ToolResult("c", "x", "same")])[0].text == "same"
    assert "you made this very call before" in run.take([again], [ToolResult("d", "x", "same")])[0].text


def test_two_calls_that_take_turns_are_a_loop() -> None:
    run = TaskRun("r", "goal")
    take(run, *[called("one"), called("two")] * 2)
    assert not run.stops
    take(run, called("one"))
    assert "one was called with the same arguments" in run.stops


def test_a_round_that_was_stopped_is_no_step() -> None:
    run = TaskRun("r", "goal")
    take(run, called("read", text=CANCELLED, is_error=True))
    assert run.steps == 0


def test_the_last_rounds_say_how_few_are_left() -> None:
    run = TaskRun("r", "goal", max_steps=5)
    told = take(run, *[called("read", path=f"{n}.md") for n in range(5)])
    assert ["are left" in text for text in told] == [False, True, True, True, False]


def test_a_small_window_gets_the_open_steps() -> None:
    run = TaskRun("r", "goal")
    steps = [{"text": f"step {n} " + "x" * 150, "status": "done" if n < 15 else "pending"} for n in range(20)]
    take(run, called("update_plan", steps=steps))
    large, small = run.text_within(8_000), run.text_within(1_500)
    assert run.plan.text in large
    assert "16. step 15" in small
    assert "2. step 1 " not in small
    assert len(small) < 1_500 * 3 * 0.35


texts, names = st.text(max_size=12), st.sampled_from(["read", "write", "x__edit_file"])
plans = st.lists(
    st.fixed_dictionaries({"text": st.text(min_size=1, max_size=8), "status": st.sampled_from(["done", "active"])}),
    max_size=3,
)
rounds = st.one_of(
    st.builds(
        lambda name, path, text, bad: called(name, text, is_error=bad, path=path), names, texts, texts, st.booleans()
    ),
    st.builds(lambda steps: called("update_plan", "kept", steps=steps), plans),
)


@given(st.lists(rounds, max_size=12))
def test_a_run_is_read_back_from_its_messages(given_rounds: list[Round]) -> None:
    run = TaskRun("r", "goal", max_steps=30, max_cost=1.5)
    messages = [Message("m", "user", (Text("goal"),), task_runs=(run.record(begins=True),))]
    run.begin_turn("m")
    for call, result in given_rounds:
        record = (run.record(),)
        (told,) = run.take([call], [_as_the_tool_says(call, result)])
        messages.append(Message("a", "assistant", (call,), task_runs=record))
        messages.append(Message("t", "tool", (told,), task_runs=record))
    assert rebuilt_run(messages) == run.reopened()


def _as_the_tool_says(call: ToolCall, result: ToolResult) -> ToolResult:
    """A plan that cannot be read gets an error."""
    if call.name == "update_plan":
        try:
            plan_from(json.loads(call.arguments))
        except Exception:
            return ToolResult(result.call_id, result.name, "no", is_error=True)
    return result


@pytest.mark.parametrize("entry", [{"run": "r", "goal": "g", "max_steps": "many", "max_cost_usd": -1, "status": 7}])
def test_whatever_an_import_says_of_a_run_is_read_without_harm(entry: dict[str, object]) -> None:
    run = rebuilt_run([Message("m", "user", (Text("g"),), task_runs=(entry,))])
    assert (run.goal, run.max_steps, run.max_cost, run.status) == ("g", 20, None, "running")
