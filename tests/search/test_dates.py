"""Dates that a question mentions."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.dates import DatePart, DayRange, find_dates
from recto.search.terms import normalize_text

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
