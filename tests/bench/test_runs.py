"""Recorded runs become turns."""

from itertools import count

from bench.judge import unpaired
from bench.runs import CLOSING, long_run, turns_of
from bench.wire import Wire, weights

SYSTEM: Wire = {"role": "system", "content": "Work."}
CALL: Wire = {"id": "c", "type": "function", "function": {"name": "open", "arguments": "{}"}}
WITH_TOOLS: list[Wire] = [
    SYSTEM,
    {"role": "user", "content": "Mend it."},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "content": "a file", "tool_call_id": "c"},
]
IN_WORDS: list[Wire] = [
    SYSTEM,
    {"role": "user", "content": "An example."},
    {"role": "user", "content": "The task."},
    {"role": "assistant", "content": "ls"},
    {"role": "user", "content": "a b c"},
    {"role": "assistant", "content": "cat a"},
]


def test_questions_that_follow_each_other_are_one() -> None:
    first, second = turns_of(IN_WORDS, count(1))
    assert (first.question, first.reply) == ("[1] An example.\n\n[2] The task.", "ls")
    assert (second.question, second.reply) == ("[3] a b c", "cat a")


def test_a_run_that_ends_with_a_result_is_closed_with_a_reply() -> None:
    [turn] = turns_of(WITH_TOOLS, count(1))
    assert turn.rounds[0].results == {"c_2": "[3] a file"}
    assert turn.reply == CLOSING


def test_a_long_run_goes_round_with_every_call_paired_and_no_question_twice() -> None:
    run = long_run([WITH_TOOLS, IN_WORDS], 1, 500).wire()
    asked = [message["content"] for message in run if message["role"] in ("user", "tool")]
    assert run[0] == SYSTEM
    assert unpaired(run) == (0, 0)
    assert weights(run) >= 500
    assert len(asked) == len(set(asked)) > 10
