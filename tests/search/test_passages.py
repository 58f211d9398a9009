"""Passages: long texts in pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recto.search.passages import LONGEST, SHORTEST, spans

texts = st.lists(st.sampled_from(["word", "Sentence. ", "\n", "\n\n", " ", "東京", "x" * 40]), max_size=400).map(
    "".join
)


@given(texts, st.integers(20, 200))
def test_together_they_leave_out_nothing_but_white_space(text: str, most: int) -> None:
    found = spans(text, most)
    kept = "".join(text[start:end] for start, end in found)
    assert "".join(kept.split()) == "".join(text.split())
    assert all(before[1] <= after[0] for before, after in pairwise(found))


@given(texts, st.integers(20, 200))
def test_none_is_longer_than_it_may_be_and_none_is_empty(text: str, most: int) -> None:
    for start, end in spans(text, most):
        assert 0 < end - start <= most + SHORTEST
        assert text[start:end].strip()


def test_a_short_text_is_one_piece_and_an_empty_one_none() -> None:
    assert spans("Hello there.") == [(0, 12)]
    assert spans("") == spans(" \n ") == []


def test_paragraphs_part_before_sentences_and_sentences_before_words() -> None:
    first, second = "One. Two words here. " * 30, "And then another. " * 30
    (start, end), *_ = spans(f"{first}\n\n{second}")
    assert (start, f"{first}\n\n{second}"[:end].strip()) == (0, first.strip())
    whole = "Some words that go on. " * 80
    assert all(whole[begin:stop].strip().endswith(".") for begin, stop in spans(whole))


def test_a_text_without_a_place_to_part_is_cut_in_mid_word() -> None:
    assert [end - start for start, end in spans("x" * 3 * LONGEST)] == [LONGEST] * 3
