"""Days in texts and names of notes."""

from datetime import date

import pytest

from recto.vault.document import Document
from recto.vault.note_dates import Day, named_days, note_day, take_days

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


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("daily/2026-06-14.md", "Rain."),
        ("14.06.2026 Sitzung.md", "Rain."),
        ("Board.md", "---\ndate: 2026-06-14\n---\nRain."),
        ("Vorstand.md", "---\ndatum: 14.6.2026\n---\nRegen."),
    ],
)
def test_a_note_has_the_day_of_its_name_or_its_properties(path: str, text: str) -> None:
    assert note_day(Document(path, text)) == JUNE


def test_a_note_without_a_day_has_none() -> None:
    assert note_day(Document("Version 3.md", "14 June 2026")) is None
