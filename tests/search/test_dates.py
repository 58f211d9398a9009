"""Days in texts, and labels of passages."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.dates import LABEL_MARK, Day, date_labels, named_days, passage_labels, take_days
from recto.search.terms import words

JUNE, TODAY = Day(2026, 6, 14), date(2026, 6, 15)


@pytest.mark.parametrize(
    "text",
    [
        "2026-06-14",
        "on 2026/06/14",
        "20260614",
        "14.6.2026",
        "14. 06. 2026",
        "14/06/2026",
        "06/14/2026",
        "14 June 2026",
        "14th of June 2026",
        "June 14th, 2026",
        "am 14. Juni 2026",
        "el 14 de junio de 2026",
        "le 14 juin 2026",
    ],
)
def test_a_day_is_read_in_every_usual_form(text: str) -> None:
    assert named_days(text) == (JUNE,)


@pytest.mark.parametrize("text", ["14 June", "June 14", "am 14.6. war Regen", "14. Juni"])
def test_a_day_may_have_no_year(text: str) -> None:
    assert named_days(text) == (Day(None, 6, 14),)


@pytest.mark.parametrize("text", ["in June 2026", "June 2026", "2026-06", "im Juni 2026", "en junio de 2026"])
def test_a_month_is_read(text: str) -> None:
    assert named_days(text) == (Day(2026, 6, None),)


@pytest.mark.parametrize(
    "text", ["We may march.", "version 3.1", "0117 496 0211", "It costs 4.20.", "2026", "21-31-2026"]
)
def test_other_figures_and_words_are_no_days(text: str) -> None:
    assert named_days(text) == ()


def test_a_day_without_a_year_may_be_of_any_and_a_month_holds_its_days() -> None:
    assert Day(None, 6, 14).holds(JUNE)
    assert JUNE.holds(Day(None, 6, 14))
    assert Day(2026, 6, None).holds(JUNE)
    assert not JUNE.holds(Day(2026, 6, None))
    assert not JUNE.holds(Day(2025, 6, 14))


def test_a_question_is_left_without_its_days() -> None:
    days, rest = take_days("What did Ned say on June 14th, 2026?", TODAY)
    assert days == (JUNE,)
    assert rest.split() == ["what", "did", "ned", "say", "on", "?"]
    assert take_days("Wer ist Ned?", TODAY) == ((), "Wer ist Ned?")
    assert take_days("What did I do yesterday?", TODAY)[0] == (JUNE,)


# -- labels of passages

WEDNESDAY = date(2024, 3, 13)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("on 2023-05-08", ["m05", "m0508", "2023"]),
        ("in 2023", ["2023"]),
        ("8 May", ["m05", "m0508"]),
        ("in August", ["m08"]),
        ("im Oktober", ["m10"]),
        ("yesterday?", ["m03", "m0312", "2024"]),
        ("last month", [f"202402{day:02}" for day in range(1, 30)]),
        ("this week", ["20240311", "20240312", "20240313"]),
        ("last week", [f"202403{day:02}" for day in range(4, 11)]),
        ("last year", [f"2023{month:02}" for month in range(1, 13)]),
        ("two days ago", ["20240311"]),
        ("may I march on? jan said mars is red", []),
    ],
)
def test_a_question_has_labels_for_its_days(text: str, labels: list[str]) -> None:
    found = [each.removeprefix(LABEL_MARK) for group in date_labels(text, WEDNESDAY) for each in group]
    assert sorted(found) == sorted(labels)


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_a_passage_has_the_labels_of_its_day(day: date) -> None:
    own = set(passage_labels(str(day)).split())
    assert len(own) == 5
    assert all(own.intersection(group) for group in date_labels(f"on {day}", WEDNESDAY))


@given(st.text(), st.dates())
def test_any_text_can_be_read(text: str, today: date) -> None:
    date_labels(text, today)
    assert not set(words(text)) & set(passage_labels("2023-05-08").split())
    assert passage_labels(text) == "" or text[:4].isdigit()
