"""What was to be on a day that is over by the last message."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import quarter

from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.ledger_selection import ledger_lines
from recto.summary.past_plans import is_only_plan, is_over
from recto.summary.verification import CoveredFacts, former_summary, verify_summary

SAID, LATER = date(2026, 3, 2), date(2026, 6, 20)


@pytest.mark.parametrize(
    "text",
    [
        "The tiler comes on 14 March.",
        "We need the drawings by 3 April",
        "I'll ring the council tomorrow",
        "Wir treffen uns am 12. Mai beim Notar",
        "Abgabe bis zum 14.4. im Büro",
        "nowy termin do 15 maja",
        "consegna entro il 31 marzo",
        "la visita es el 20 de abril",
        "vergadering op 6 mei",
        "reunião a 9 de abril",
        "3月20日までに返事をもらう",
        "the option runs out on April 6th",
    ],
)
def test_a_plan_is_over_once_its_day_is(text: str) -> None:
    assert is_over(text, SAID, LATER)
    assert not is_over(text, SAID, SAID + timedelta(days=1)), "it is still to come"
    assert is_only_plan(text)


@pytest.mark.parametrize(
    "text",
    [
        "The tiler was here on 14 February.",  # history
        "From 1 April on nobody signs alone.",  # it holds since then
        "Ab dem 1. April gilt der neue Beitrag.",
        "Desde el 1 de abril abrimos los lunes.",
        "4月1日から担当が変わります",
        "The contract runs until 28 February 2027.",
        "The party is on 3 July.",
        "week 1 done: 5.1, 5.0, 8.2.",
        "We always meet on Tuesdays.",
        "I filed the application today.",
    ],
)
def test_history_and_what_holds_is_not_over(text: str) -> None:
    assert not is_over(text, SAID, LATER)


def test_a_plan_with_a_price_or_a_name_tells_more_than_its_day() -> None:
    assert not is_only_plan("Printing on 10 July, 500 copies, 385 €")
    assert not is_only_plan("visit on 3 February with the head, Mafalda Quintela")
    assert not is_only_plan("order BD2-2601 ships on 3 March")


def test_a_day_that_is_not_known_is_never_over() -> None:
    assert not is_over("The tiler comes on 14 March.", SAID, None)
    assert not is_over("The tiler comes on 31 February.", SAID, LATER)
    assert not is_over("The tiler comes on 14 May.", None, LATER)


def test_what_a_former_summary_tells_was_to_come_then() -> None:
    assert is_over("The tiler comes on 14 May.", SAID, LATER, is_former=True)
    assert not is_over("The tiler was here on 14 February.", SAID, LATER, is_former=True)
    assert not is_over("The tiler comes on 14 February.", SAID, LATER, is_former=True), "in the next year"


@given(st.dates(date(2020, 1, 1), date(2030, 1, 1)), st.integers(1, 250), st.integers(0, 400))
def test_a_day_without_its_year_is_the_next_one(said: date, ahead: int, passed: int) -> None:
    day, today = said + timedelta(days=ahead), said + timedelta(days=passed)
    if (day.month, day.day) != (2, 29):
        text = f"The tiler comes on {day.day} {day:%B}."
        assert is_over(text, said, today) == (day + timedelta(days=2) <= today and said + timedelta(days=2) < today)


def test_a_summary_leaves_out_what_was_planned_for_a_day_that_is_over() -> None:
    said = [
        PlainMessage("user", "We renovate the kitchen, budget 9,000 euros.", day=SAID),
        PlainMessage("user", "The tiler comes on 14 March.", day=SAID),
        PlainMessage("user", "Never call me before noon.", day=SAID),
        PlainMessage("user", "The worktop is oak.", day=LATER),
        PlainMessage("user", "The fitter comes on 3 July.", day=LATER),
    ]
    told = extract(said, 400, quarter)
    assert "14 March" not in told
    assert all(words in told for words in ("9,000", "before noon", "oak", "3 July"))


def test_a_ledger_leaves_it_out_too() -> None:
    days = (SAID, SAID, LATER)
    texts = (
        "The tiler comes to the house on 14 March.",
        "Rent of the crane: 480 euros.",
        "The fitter comes on 3 July.",
    )
    covered = CoveredFacts()
    covered.add(
        Message(str(at), "user", (Text(text),), said=at + 1, created=f"{day}T10:00:00.000Z")
        for at, (text, day) in enumerate(zip(texts, days, strict=True))
    )
    verified = verify_summary("", covered, former_summary(None), mark=False)
    listed = "\n".join(ledger_lines(verified.lost, 200, quarter))
    assert "14 March" not in listed
    assert "480" in listed
    assert "3 July" in listed
