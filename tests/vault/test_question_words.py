"""QuestionWords: which words of a question a text contains, and where most of them are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.vault.note_chunks import best_part, question_words


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
def test_words_are_found_in_every_form(question: str, text: str, word: str) -> None:
    assert word in question_words(question).found_in(text)


def test_a_lone_character_matches_the_beginning_of_a_word() -> None:
    assert question_words("茶").found_in("紅茶と茶碗") == {"茶"}


def test_unrelated_text_contains_no_question_words() -> None:
    assert question_words("the engine").found_in("the mast and the sails of it") == set()
    assert question_words("").found_in("anything") == set()


def test_the_best_part_is_around_the_question_words() -> None:
    text = "\n".join([*(f"Line {n} is about Ned and rope." for n in range(40)), "Ned is tall.", "More of it."] * 2)
    start, end = best_part(text, question_words("how tall is Ned"), 200)
    assert "Ned is tall." in text[start:end]
    assert text[start - 1] == "\n"
    assert end - start <= 200


@given(st.text(max_size=2000), st.text(max_size=60), st.integers(1, 700))
def test_a_part_is_within_its_limit_and_trimmed(text: str, question: str, most: int) -> None:
    start, end = best_part(text, question_words(question), most)
    assert 0 <= start <= end <= len(text)
    assert end - start <= most
    if len(text) > most:
        assert text[start:end] == text[start:end].strip()


def test_a_question_of_ten_thousand_words_is_answered() -> None:
    assert question_words("word " * 5000 + " ".join(map(str, range(5000)))).found_in("some word")
