"""Dates: the days of which a question speaks."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.dates import Days, Part, mentioned
from recto.search.terms import folded

TODAY = date(2024, 3, 13)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 2023-05-08", [Days("2023-05", "2023-05"), Days("2023-05-08", "2023-05-08"), Days("2023", "2023")]),
        ("in 2023", [Days("2023", "2023")]),
        ("8 May", [Part(5), Part(5, 8)]),
        ("May 8th, 2023", [Part(5), Part(5, 8), Days("2023", "2023")]),
        ("in August", [Part(8)]),
        ("im Oktober", [Part(10)]),
        ("le 3 août", [Part(8), Part(8, 3)]),
        ("yesterday", [Days("2024-03-12", "2024-03-12")]),
        ("last week", [Days("2024-03-04", "2024-03-10")]),
        ("last month", [Days("2024-02", "2024-02")]),
        ("last year", [Days("2023", "2023")]),
        ("this week", [Days("2024-03-11", "2024-03-13")]),
        ("two days ago", [Days("2024-03-11", "2024-03-11")]),
    ],
)
def test_days_are_told(text: str, days: list[object]) -> None:
    assert mentioned(folded(text), TODAY) == days


@pytest.mark.parametrize("text", ["may I go?", "march on", "mars is red", "jan said so", "", "at 9 pm", "room 2"])
def test_what_only_looks_like_a_day_is_none(text: str) -> None:
    assert mentioned(folded(text), TODAY) == []


def test_doubtful_months_count_where_a_day_or_in_stands_beside_them() -> None:
    assert mentioned("in may", TODAY) == [Part(5)]
    assert mentioned("march 3", TODAY) == [Part(3), Part(3, 3)]


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    found = mentioned(folded(text), TODAY)
    assert len(set(found)) == len(found)


@given(st.integers(0, 999), st.sampled_from(["day", "week", "month", "year"]), st.dates(date(1990, 1, 1)))
def test_what_was_some_time_ago_lies_before_today(count: int, span: str, today: date) -> None:
    (found,) = mentioned(f"{count} {span}s ago", today)
    assert isinstance(found, Days)
    assert found.first <= found.last
