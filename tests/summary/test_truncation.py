"""Texts within a limit: whole words and lines where possible, never longer than allowed."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import counters, fragments, quarter, texts

from recto.summary.truncation import cut_to_fit, excerpt, leading_lines, leading_words, trailing_lines


@given(texts, st.integers(-2, 200))
def test_both_ends_are_parts_of_the_text_and_short_enough(text: str, size: int) -> None:
    size = min(size, len(text))
    for part in (leading_words(text, size), leading_lines(text, max(size, 0))):
        assert len(part) <= max(size, 0)
        assert text.startswith(part)
    last = trailing_lines(text, max(size, 0))
    assert len(last) <= max(size, 0)
    assert text.rstrip().endswith(last)


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("one two three", 9, "one two"),
        ("one two three", 7, "one two"),
        ("one two three", 99, "one two three"),
        ("incomprehensibilities", 5, "incom"),
        ("我们明天去北京", 3, "我们明"),
        ("cafe\u0301 au lait", 4, "caf"),
        ("👍🏽👍🏽", 3, "👍🏽"),
        ("👩\u200d👩\u200d👧 family", 2, ""),
    ],
)
def test_leading_words_end_with_a_word(text: str, size: int, expected: str) -> None:
    assert leading_words(text, size) == expected


def test_leading_and_trailing_lines_are_whole_where_possible() -> None:
    text = "line one\nline two\nline three\nline four"
    assert leading_lines(text, 22) == "line one\nline two"
    assert trailing_lines(text, 22) == "line three\nline four"
    prose = "It began well. Then it rained. Nobody came."
    assert leading_lines(prose, 34) == "It began well. Then it rained."
    assert trailing_lines(prose, 22) == "Nobody came."


@given(st.text() | fragments, st.integers(-1, 120), counters)
def test_a_cut_is_a_beginning_within_the_limit(text: str, limit: int, count: Callable[[str], int]) -> None:
    made = cut_to_fit(text, limit, count)
    assert not made or count(made) <= limit
    assert made == text or made == "" or (made.endswith("…") and text.startswith(made[:-1]))
    if limit > 0 and count(text) <= limit:
        assert made == text


@given(st.integers(1, 400))
def test_a_cut_is_as_long_as_it_can_be(limit: int) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    made = cut_to_fit(text, limit, len)
    assert made == text or len(made) > limit - 9 or limit < 9


@given(fragments.map(lambda text: text * 8), st.integers(-1, 150), counters)
def test_an_excerpt_is_within_the_limit_and_adds_up(text: str, limit: int, count: Callable[[str], int]) -> None:
    made = excerpt(text, limit, count, "01ABC")
    assert not made or count(made) <= limit
    notice = re.search(r"(?:^|\n)\[… (\d+) of (\d+) characters are left out here; .* 01ABC …\](?:\n|$)", made)
    if notice:
        first, last = made[: notice.start()], made[notice.end() :]
        assert text.startswith(first)
        assert text.rstrip().endswith(last)
        assert int(notice[1]) == len(text) - len(first) - len(last)
        assert int(notice[2]) == len(text)


def test_an_excerpt_shows_whole_lines_of_both_ends() -> None:
    text = "\n".join(f"{number}: step {number} of the build went well" for number in range(1000))
    made = excerpt(text, 120, quarter, "01ABC").split("\n")
    assert made[0] == "0: step 0 of the build went well"
    assert made[-1] == "999: step 999 of the build went well"
    assert set(made) - set(text.split("\n")) == {next(line for line in made if line.startswith("[…"))}


def test_a_text_that_fits_is_its_own_excerpt() -> None:
    assert excerpt("short enough", 50, quarter, "01ABC") == "short enough"
