"""Scores of single sentences: higher for binding sentences and facts, lower for those that cannot stand alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.summary.samples import fragments

from recto.summary.sentence_score import MIN_USEFUL_SCORE, NOISE_SCORE, frequent_sentences, promise_of, score_sentence
from recto.summary.source_lines import ASSISTANT, TOOL, USER, LineReader, SourceLine
from recto.summary.term_weights import TermWeights, numeric_terms


def score(text: str, label: str = USER, *, position: int = 1, is_task: bool = False, frequent: str = "") -> float:
    found = LineReader([SourceLine(label, text, 1.0)]).sentences(0)
    assert len(found) == 1, "one sentence"
    sentence = replace(found[0], position=position)
    return score_sentence(sentence, SourceLine(label, text, 1.0, is_task), TermWeights(), frozenset({frequent}))


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("From now on please answer in French.", "It was a long day at the office."),
        ("We moved the office to Lübeck.", "We moved the office somewhere else."),
        ("The budget is 12,400 euros.", "We talked about the budget again."),
        ("项目必须在星期五之前完成。", "我们今天讨论了这个项目。"),
        ("二十三名ではなく二十五名です。", "今日はとても楽しかったです。"),
        ("The disk is full since Friday.", "It is full since some time ago."),
        ("We have chosen the red one for the door.", "Have we chosen the red one for the door?"),
        ("I bought the ticket to Graz.", "Here is the ticket to Graz:"),
    ],
)
def test_binding_and_factual_sentences_score_more(more: str, less: str) -> None:
    assert score(more) > score(less)


@pytest.mark.parametrize("text", ["Thanks!", "ok", "谢谢！", "ありがとうございます！", "}", "```"])
def test_chatter_and_noise_score_next_to_nothing(text: str) -> None:
    assert NOISE_SCORE <= score(text) < MIN_USEFUL_SCORE


def test_plans_of_the_assistant_score_less_than_results() -> None:
    assert score("Let's use the `grep` command to look for it.", ASSISTANT) < score("It is in src/app.py.", ASSISTANT)


def test_machine_output_scores_no_more_when_a_user_pastes_it() -> None:
    log = "2024-05-01 10:00:01 INFO [worker-1] GET /api/items/244 must never be 200"
    assert score(log) < score("It must never be 200.") / 2


def test_in_machine_output_events_score_most() -> None:
    assert score("3 tests failed", TOOL) > score("collecting 3 files", TOOL)
    assert score("Please check it", TOOL, frequent="Please check it") < score("Please check it", TOOL)


def test_rows_of_numbers_score_little() -> None:
    assert score("100 672 0 652 100 20 7728 237 0 0 8296", TOOL) < score("672 files were copied", TOOL)


def test_the_start_of_a_task_scores_more() -> None:
    assert score("Find the leak.", position=0, is_task=True) > score("Find the leak.", position=9, is_task=True)


def test_only_recurring_sentences_are_frequent() -> None:
    assert frequent_sentences(["ready", "ready", "done", "ready", "done"]) == {"ready"}


def test_numeric_terms_are_digits_characters_and_dates() -> None:
    assert numeric_terms({"12", "v1.2", "april", "五月", "budget", "may"}) == {"12", "v1.2", "april", "五月"}


@given(fragments, st.sampled_from([USER, ASSISTANT, TOOL]), st.booleans(), st.booleans())
def test_no_sentence_scores_above_its_promise(text: str, label: str, is_settled: bool, is_task: bool) -> None:
    line = SourceLine(label, text, 1.3, is_task, is_settled=is_settled, is_answer=is_settled)
    for sentence in LineReader([line]).sentences(0):
        promise = promise_of(sentence, line, TermWeights())
        assert score_sentence(sentence, line, TermWeights(), promise=promise) <= promise.highest
