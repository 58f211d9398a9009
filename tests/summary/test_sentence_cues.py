"""Cues: back references, questions and headings are recognised."""

import pytest

from recto.summary.reference import refers_back
from recto.summary.sentences import is_heading, is_question


@pytest.mark.parametrize(
    "text", ["It is red.", "Das ist rot.", "这是红色的。", "それは赤いです。", "Yeah, that was it."]
)
def test_a_sentence_that_starts_with_a_pronoun_refers_back(text: str) -> None:
    assert refers_back(text)


@pytest.mark.parametrize("text", ["This week we paint.", "Das Budget ist klein.", "Items are red.", "Heredity"])
def test_other_sentences_do_not_refer_back(text: str) -> None:
    assert not refers_back(text)


def test_questions_and_headings_are_recognised_by_their_end() -> None:
    assert is_question('Is it "red"?')
    assert is_question("散歩しますか。")
    assert not is_question("The file is at /search?q=red")
    assert is_heading("Found 3 matches:")
    assert not is_heading("At 10:30")
