"""Which sentences of a message are looked up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.sayings import (
    EACH,
    LONGEST,
    MOST_READ,
    MOST_SAYINGS,
    MOST_SIGNS,
    SHORT,
    sayings,
    sentences,
    shortened,
)


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
    assert sentences(text) == parts


def test_code_is_left_out_unless_there_is_nothing_else() -> None:
    assert sentences("Why does this fail?\n```python\nimport os\n```\nIt worked before.") == [
        "Why does this fail?",
        "It worked before.",
    ]
    assert sentences("```\nselect 1\n```") == ["select 1"]
    assert sentences("What is it?\n```\nnever closed") == ["What is it?"]


def test_a_short_message_is_one_saying() -> None:
    assert sayings("Thanks. Read the file. Go.") == ["Thanks. Read the file. Go."]


def test_of_a_long_message_the_questions_are_looked_up_first() -> None:
    talk = ["We sat in the garden and the day was as long as days can be in summer, nobody said a word."] * 12
    talk.insert(7, "Can you put the meeting into my calendar?")
    assert "Can you put the meeting into my calendar?" in sayings(" ".join(talk))


def test_then_what_is_of_worth() -> None:
    talk = [f"Sentence number {number} speaks of nothing in particular, as most of them do." for number in range(12)]
    talk.insert(5, "The invoice has to be paid.")
    assert "The invoice has to be paid." in sayings(" ".join(talk), lambda said: "invoice" in said)


def test_a_very_long_message_is_read_at_both_ends() -> None:
    text = "Begin here. " + "x " * MOST_READ + ". End there."
    assert len(shortened(text)) <= MOST_READ + 2
    assert sentences(shortened(text))[0] == "Begin here."
    assert sentences(shortened(text))[-1] == "End there."
    assert shortened("short") == "short"


@given(st.text(max_size=2000))
def test_sayings_are_few_short_and_in_order(text: str) -> None:
    said = sayings(text)
    assert len(said) <= MOST_SAYINGS
    assert all(len(each) <= max(LONGEST, SHORT) and each.strip() for each in said)
    assert len(said) <= 1 or sum(len(each) + EACH for each in said) <= MOST_SIGNS
    assert bool(said) == bool(sentences(text))


@given(st.sampled_from(["?", ".", "!", "```", "\n", "1.", "(", " "]), st.integers(1, 5000))
def test_any_run_of_signs_can_be_taken_apart(sign: str, times: int) -> None:
    assert sentences(sign * times + "a") is not None
