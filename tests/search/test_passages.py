"""Passages and sentences of long texts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.passages import (
    MIN_PASSAGE_CHARS,
    key_sentences,
    split_passages,
    split_sentences,
)

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


def test_texts_split_at_paragraphs_then_sentences_then_words() -> None:
    first, second = "One. Two words here. " * 30, "And then another. " * 30
    (start, end), *_ = split_passages(f"{first}\n\n{second}")
    assert (start, f"{first}\n\n{second}"[:end].strip()) == (0, first.strip())
    whole = "Some words that go on. " * 80
    assert all(whole[begin:stop].strip().endswith(".") for begin, stop in split_passages(whole))


# -- sentences


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Hello there. How do I log in?", ["Hello there.", "How do I log in?"]),
        ("See https://example.com/a.b?c=d. Then go on!", ["See https://example.com/a.b?c=d.", "Then go on!"]),
        ("Ask Dr. Weber, e.g. by mail. Thanks.", ["Ask Dr. Weber, e.g. by mail.", "Thanks."]),
        ("Frag z.B. Herrn J. Krause. Danke.", ["Frag z.B. Herrn J. Krause.", "Danke."]),
        ("1. First thing\n2. Second thing", ["1. First thing", "2. Second thing"]),
        ("天気はどうですか？明日は雨です。", ["天気はどうですか？", "明日は雨です。"]),
        ("Version 2.1 of main.py is slow.", ["Version 2.1 of main.py is slow."]),
        ("one\n\n\ntwo", ["one", "two"]),
        ("👍 !!! …", []),
        ("", []),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(text: str, parts: list[str]) -> None:
    assert split_sentences(text) == parts


def test_code_is_left_out_unless_there_is_nothing_else() -> None:
    assert split_sentences("Why does this fail?\n```python\nimport os\n```\nIt worked before.") == [
        "Why does this fail?",
        "It worked before.",
    ]
    assert split_sentences("```\nselect 1\n```") == ["select 1"]
    assert split_sentences("What is it?\n```\nnever closed") == ["What is it?"]


def test_a_short_message_stays_whole() -> None:
    assert key_sentences("Thanks. Read the file. Go.") == ["Thanks. Read the file. Go."]


def test_questions_of_a_long_message_come_first() -> None:
    talk = ["We sat in the garden and the day was as long as days can be in summer, nobody said a word."] * 12
    talk.insert(7, "Can you put the meeting into my calendar?")
    assert "Can you put the meeting into my calendar?" in key_sentences(" ".join(talk))
