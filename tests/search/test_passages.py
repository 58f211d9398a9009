"""Passages: long texts split into pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recto.search.passages import MAX_PASSAGE_CHARS, MIN_PASSAGE_CHARS, split_passages

texts = st.lists(st.sampled_from(["word", "Sentence. ", "\n", "\n\n", " ", "東京", "x" * 40]), max_size=400).map(
    "".join
)


@given(texts, st.integers(20, 200))
def test_passages_leave_out_nothing_but_white_space(text: str, most: int) -> None:
    found = split_passages(text, most)
    kept = "".join(text[start:end] for start, end in found)
    assert "".join(kept.split()) == "".join(text.split())
    assert all(before[1] <= after[0] for before, after in pairwise(found))


@given(texts, st.integers(20, 200))
def test_no_passage_is_empty_or_too_long(text: str, most: int) -> None:
    for start, end in split_passages(text, most):
        assert 0 < end - start <= most + MIN_PASSAGE_CHARS
        assert text[start:end].strip()


def test_a_short_text_is_one_passage_and_an_empty_one_none() -> None:
    assert split_passages("Hello there.") == [(0, 12)]
    assert split_passages("") == split_passages(" \n ") == []


def test_texts_split_at_paragraphs_then_sentences_then_words() -> None:
    first, second = "One. Two words here. " * 30, "And then another. " * 30
    (start, end), *_ = split_passages(f"{first}\n\n{second}")
    assert (start, f"{first}\n\n{second}"[:end].strip()) == (0, first.strip())
    whole = "Some words that go on. " * 80
    assert all(whole[begin:stop].strip().endswith(".") for begin, stop in split_passages(whole))


def test_a_text_without_a_break_is_cut_anywhere() -> None:
    assert [end - start for start, end in split_passages("x" * 3 * MAX_PASSAGE_CHARS)] == [MAX_PASSAGE_CHARS] * 3
