"""What the benchmark calls a request that goes wrong."""

import pytest
from bench.judge import Verdict, holds, judge, unpaired
from bench.wire import Wire

QUESTION = "Which of the masts that we looked at last spring was the one with the crack near its foot?"


def call(*ids: str) -> Wire:
    calls = [{"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id: str) -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": "a note"}


def said(role: str, text: str) -> Wire:
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("messages", "loose", "unanswered"),
    [
        ([said("user", "hm?"), call("a", "b"), result("b"), result("a"), said("assistant", "so")], 0, 0),
        ([result("a"), said("user", "hm?")], 1, 0),
        ([call("a"), said("user", "hm?"), result("a")], 1, 1),
        ([said("user", "hm?"), call("a", "b"), result("a")], 0, 1),
        ([call("a"), result("a"), result("a")], 1, 0),
    ],
)
def test_results_belong_right_after_their_calls(messages: list[Wire], loose: int, unanswered: int) -> None:
    assert unpaired(messages) == (loose, unanswered)


def test_a_question_is_known_by_its_beginning_where_the_user_asks_it() -> None:
    assert holds([said("user", f"documents first\n\n{QUESTION[:70]} [cut]")], QUESTION)
    assert not holds([said("assistant", QUESTION), said("user", "and?")], QUESTION)


def test_tools_count_against_the_budget() -> None:
    alone = judge([said("user", QUESTION)], QUESTION, 1_000)
    assert judge([said("user", QUESTION)], QUESTION, 1_000, besides=500).over == alone.over + 0.5


def test_the_verdict_on_several_requests_is_the_worst_of_each() -> None:
    assert Verdict(1, 0, False, 0.5) | Verdict(0, 2, True, 0.4) == Verdict(1, 2, True, 0.5)
