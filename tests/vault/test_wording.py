"""Wording: which words of a question a text holds, and where most of them stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.vault.wording import best_part, wording


@pytest.mark.parametrize(
    ("question", "text", "word"),
    [
        ("which planks are replaced", "One plank must be REPLACED.", "planks"),
        ("running costs", "It runs; the cost is low.", "costs"),
        ("who went there", "They go home.", "went"),
        ("Größe", "die grösse", "grosse"),
        ("東京タワー", "昨日東京へ行った", "東京"),
        ("🙂", "fine 🙂", "🙂"),
        ("part FM-1147", "impeller FM 1147", "1147"),
    ],
)
def test_words_are_held_whatever_their_form(question: str, text: str, word: str) -> None:
    assert word in wording(question).held(text)


def test_a_lone_character_is_the_beginning_of_a_word() -> None:
    assert wording("茶").held("紅茶と茶碗") == {"茶"}


def test_what_does_not_bear_on_it_is_not_held() -> None:
    assert wording("the engine").held("the mast and the sails of it") == set()
    assert wording("").held("anything") == set()


def test_the_best_part_is_around_what_was_asked_for() -> None:
    text = "\n".join([*(f"Line {n} is about Ned and rope." for n in range(40)), "Ned is tall.", "More of it."] * 2)
    start, end = best_part(text, wording("how tall is Ned"), 200)
    assert "Ned is tall." in text[start:end]
    assert text[start - 1] == "\n"
    assert end - start <= 200


@given(st.text(max_size=2000), st.text(max_size=60), st.integers(1, 700))
def test_a_part_is_within_its_size_and_bare_of_space(text: str, question: str, most: int) -> None:
    start, end = best_part(text, wording(question), most)
    assert 0 <= start <= end <= len(text)
    assert end - start <= most
    if len(text) > most:
        assert text[start:end] == text[start:end].strip()


def test_a_question_of_ten_thousand_words_is_no_trouble() -> None:
    assert wording("word " * 5000 + " ".join(map(str, range(5000)))).held("some word")
