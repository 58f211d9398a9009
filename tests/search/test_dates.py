"""Dates that a question mentions, and labels of passages."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.dates import (
    DatePart,
    DayRange,
    date_labels,
    find_dates,
    kind_label,
    passage_labels,
    time_range_labels,
)
from recto.search.terms import normalize_text, words

TODAY = date(2024, 3, 13)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        (
            "on 2023-05-08",
            [DayRange("2023-05", "2023-05"), DayRange("2023-05-08", "2023-05-08"), DayRange("2023", "2023")],
        ),
        ("in 2023", [DayRange("2023", "2023")]),
        ("8 May", [DatePart(5), DatePart(5, 8)]),
        ("May 8th, 2023", [DatePart(5), DatePart(5, 8), DayRange("2023", "2023")]),
        ("in August", [DatePart(8)]),
        ("im Oktober", [DatePart(10)]),
        ("le 3 août", [DatePart(8), DatePart(8, 3)]),
        ("yesterday", [DayRange("2024-03-12", "2024-03-12")]),
        ("last week", [DayRange("2024-03-04", "2024-03-10")]),
        ("last month", [DayRange("2024-02", "2024-02")]),
        ("last year", [DayRange("2023", "2023")]),
        ("this week", [DayRange("2024-03-11", "2024-03-13")]),
        ("two days ago", [DayRange("2024-03-11", "2024-03-11")]),
    ],
)
def test_dates_are_found(text: str, days: list[object]) -> None:
    assert find_dates(normalize_text(text), TODAY) == days


@pytest.mark.parametrize("text", ["may I go?", "march on", "mars is red", "jan said so", "", "at 9 pm", "room 2"])
def test_text_that_only_looks_like_a_date_is_ignored(text: str) -> None:
    assert find_dates(normalize_text(text), TODAY) == []


def test_ambiguous_months_need_a_day_or_a_preposition() -> None:
    assert find_dates("in may", TODAY) == [DatePart(5)]
    assert find_dates("march 3", TODAY) == [DatePart(3), DatePart(3, 3)]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    found = find_dates(normalize_text(text), TODAY)
    assert len(set(found)) == len(found)


@given(st.integers(0, 999), st.sampled_from(["day", "week", "month", "year"]), st.dates(date(1990, 1, 1)))
def test_a_time_ago_is_before_today(count: int, span: str, today: date) -> None:
    (found,) = find_dates(f"{count} {span}s ago", today)
    assert isinstance(found, DayRange)
    assert found.first <= found.last


# -- labels of passages


days = st.dates(date(1900, 1, 1), date(2099, 12, 31))


@given(days, days, days)
def test_a_day_between_two_others_has_exactly_one_of_their_labels(first: date, second: date, day: date) -> None:
    low, high = sorted((first, second))
    own = set(passage_labels("user", f"{day}T10:00:00").split())
    assert len(own & set(date_labels(DayRange(str(low), str(high))))) == (low <= day <= high)


@given(days, days, days)
def test_since_is_inclusive_and_before_is_exclusive(since: date, before: date, day: date) -> None:
    own = set(passage_labels("user", f"{day}T10:00:00").split())
    assert bool(own & set(time_range_labels(str(since), str(before)))) == (since <= day < before)
    assert bool(own & set(time_range_labels(str(since), None))) == (since <= day)
    assert bool(own & set(time_range_labels(None, str(before)))) == (day < before)


@given(days)
def test_a_time_within_a_day_includes_the_whole_day(day: date) -> None:
    noon = f"{day}T12:00:00"
    own = set(passage_labels("", f"{day}T10:00:00").split())
    assert own & set(time_range_labels(noon, None))
    assert own & set(time_range_labels(None, noon))


def test_few_labels_are_enough_for_many_days() -> None:
    assert len(time_range_labels("2021-02-03", None)) < 60
    assert date_labels(DayRange("2023", "2023")) == ["\u00b62023"]
    assert date_labels(DayRange("2023-05", "2023-05")) == ["\u00b6202305"]


def test_a_month_and_a_day_of_any_year() -> None:
    own = passage_labels("user", "2023-05-08T10:00:00").split()
    assert date_labels(DatePart(5))[0] in own
    assert date_labels(DatePart(5, 8))[0] in own
    assert date_labels(DatePart(5, 9))[0] not in own


@pytest.mark.parametrize("time", ["", "soon", "2023-13", "2023-02-31", "0000"])
def test_unreadable_times_give_no_label(time: str) -> None:
    assert time_range_labels(time, None) == []
    assert date_labels(DayRange(time, time)) == []


def test_without_a_time_there_is_only_the_kind() -> None:
    assert passage_labels("tool", "") == kind_label("tool")
    assert passage_labels("", "") == ""


@given(st.text())
def test_no_word_is_a_label(text: str) -> None:
    assert not set(words(text)) & set(passage_labels("user", "2023-05-08").split())


@given(days)
def test_the_last_day_of_a_month_is_in_it(day: date) -> None:
    last = (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    month = str(day)[:7]
    assert set(passage_labels("", str(last)).split()) & set(date_labels(DayRange(month, month)))
