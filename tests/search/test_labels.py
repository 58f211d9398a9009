"""Labels: kinds and days as words of the index."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.dates import Days, Part
from recto.search.labels import between, labels, of_days, of_kind
from recto.search.terms import words

days = st.dates(date(1900, 1, 1), date(2099, 12, 31))


@given(days, days, days)
def test_a_day_between_two_others_holds_just_one_of_their_labels(first: date, second: date, day: date) -> None:
    low, high = sorted((first, second))
    own = set(labels("user", f"{day}T10:00:00").split())
    assert len(own & set(of_days(Days(str(low), str(high))))) == (low <= day <= high)


@given(days, days, days)
def test_since_counts_and_before_does_not(since: date, before: date, day: date) -> None:
    own = set(labels("user", f"{day}T10:00:00").split())
    assert bool(own & set(between(str(since), str(before)))) == (since <= day < before)
    assert bool(own & set(between(str(since), None))) == (since <= day)
    assert bool(own & set(between(None, str(before)))) == (day < before)


@given(days)
def test_a_time_within_a_day_takes_the_whole_day(day: date) -> None:
    noon = f"{day}T12:00:00"
    own = set(labels("", f"{day}T10:00:00").split())
    assert own & set(between(noon, None))
    assert own & set(between(None, noon))


def test_few_labels_are_enough_for_many_days() -> None:
    assert len(between("2021-02-03", None)) < 60
    assert of_days(Days("2023", "2023")) == ["\u00b62023"]
    assert of_days(Days("2023-05", "2023-05")) == ["\u00b6202305"]


def test_a_month_and_a_day_of_any_year() -> None:
    own = labels("user", "2023-05-08T10:00:00").split()
    assert of_days(Part(5))[0] in own
    assert of_days(Part(5, 8))[0] in own
    assert of_days(Part(5, 9))[0] not in own


@pytest.mark.parametrize("time", ["", "soon", "2023-13", "2023-02-31", "0000"])
def test_what_cannot_be_read_is_no_label(time: str) -> None:
    assert between(time, None) == []
    assert of_days(Days(time, time)) == []


def test_without_a_time_there_is_only_the_kind() -> None:
    assert labels("tool", "") == of_kind("tool")
    assert labels("", "") == ""


@given(st.text())
def test_nobody_says_a_label(text: str) -> None:
    assert not set(words(text)) & set(labels("user", "2023-05-08").split())


@given(days)
def test_the_last_day_of_a_month_is_in_it(day: date) -> None:
    last = (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    month = str(day)[:7]
    assert set(labels("", str(last)).split()) & set(of_days(Days(month, month)))
