"""What is told brings what it is about: a cry before facts, what a pronoun stands for, an accepted offer."""

import pytest
from tests.summary.samples import quarter
from tests.summary.test_prohibitions import FILLING, chat, ledger

from recto.summary.extractive_summary import extract


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("the museum wrote back!! 14 May at 11:00, room 3 in the east wing", "museum wrote back"),
        ("Hana accepted!! 52,000 a year, start on 1 October", "Hana accepted"),
        ("Die Bank hat zugesagt!! 2,9 % auf 15 Jahre, Termin am 4. Mai", "Bank hat zugesagt"),
        ("¡nos dieron el piso! 780 euros al mes desde el 1 de julio", "dieron el piso"),
        ("Zosia zdała!! wynik 87 %, wręczenie 12 czerwca", "Zosia zdała"),
    ],
)
def test_facts_come_with_the_cry_that_says_what_they_are_of(text: str, subject: str) -> None:
    assert subject in extract(chat(*FILLING, text, "Great."), 90, quarter)
    lines = ledger(*(("assistant" if at % 2 else "user", one) for at, one in enumerate([*FILLING, text])))
    assert any(subject in line for line in lines)


def test_a_mere_cheer_is_not_told_with_a_fact() -> None:
    told = extract(chat(*FILLING, "so happy today!! the keel is 4.20 m long", "Great."), 90, quarter)
    assert "4.20" in told
    assert "so happy" not in told


def test_a_decision_is_quoted_with_what_it_decides() -> None:
    lines = ledger(("user", "oak frame, linen cover. decided. And no plastic"), ("assistant", "Noted."))
    assert lines == ["#1: oak frame, linen cover. decided. And no plastic"]
