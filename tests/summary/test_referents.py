"""What is told brings what it is about: a cry before facts, what a pronoun stands for, an accepted offer."""

import pytest
from tests.summary.samples import quarter
from tests.summary.test_prohibitions import FILLING, chat, ledger

from recto.chat.priority import BINDING
from recto.summary.extractive_summary import extract
from recto.summary.ledger import ledger_items
from recto.summary.sentences import rate_sentence


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


@pytest.mark.parametrize(
    ("said", "changed", "subject"),
    [
        ("The tailor owes the guild 120 francs.", "make it 90, she paid 30", "tailor owes"),
        ("The waiting list of the loan desk closes after 2 h.", "actually 2 h is too short, make it 6", "waiting list"),
        ("Der Schneider schuldet der Zunft 120 Taler.", "mach 90 draus, er hat 30 bezahlt", "Schneider schuldet"),
        ("El sastre debe al gremio 120 monedas.", "que sean 90, pagó 30", "sastre debe"),
    ],
)
def test_a_change_is_listed_with_what_it_changes(said: str, changed: str, subject: str) -> None:
    lines = ledger(("user", said), ("assistant", "Noted."), ("user", changed), ("assistant", "Done."))
    assert [number for number, _ in ledger_items(lines)] == [1, 3]
    assert subject in lines[0]


@pytest.mark.parametrize(
    ("said", "now"),
    [
        ("I cook for 9 people on Saturday.", "update: it's 11 people now"),
        ("There are 140 seats in the hall.", "the fire brigade came, 125 seats now"),
        ("Wir sind 9 Leute beim Essen.", "wir sind jetzt 11 Leute, zwei kommen dazu"),
        ("Somos 9 personas en la cena.", "ahora somos 11 personas"),
    ],
)
def test_a_number_that_is_another_now_takes_the_place_of_the_former(said: str, now: str) -> None:
    assert rate_sentence(now) == BINDING
    lines = ledger(("user", said), ("assistant", "Noted."), ("user", now), ("assistant", "Done."))
    assert [line.partition(":")[0] for line in lines] == ["#3"]


def test_a_prohibition_with_a_pronoun_comes_with_what_it_is_about() -> None:
    text = "Dr. Amari signs the archive list on Friday. don't delete anything before that"
    assert ledger(("user", text)) == [f"#1: {text}"]
    text = "the lamps from Kolm were recalled. please don't order those, take the Brevo ones"
    assert ledger(("user", text)) == [f"#1: {text}"]


@pytest.mark.parametrize(
    "text", ["final: 580, 30 days to pay, 9 months", "Budget: 300 euros", "Frist: 3 Wochen ab heute"]
)
def test_a_line_with_a_label_is_what_somebody_says(text: str) -> None:
    assert ledger(("user", text)) == [f"#1: {text}"]


def test_a_value_that_is_denied_is_corrected_whatever_its_unit() -> None:
    lines = ledger(
        ("user", "Our boat budget is about 2,400 euros."),
        ("assistant", "Noted."),
        ("user", "I was wrong about the boat budget. It's 2,900, not 2,400."),
    )
    assert [line.partition(":")[0] for line in lines] == ["#3"]
    lines = ledger(("user", "keepalive is 3600 it seems"), ("assistant", "Hm."), ("user", "I set keepalive to 60 now"))
    assert [line.partition(":")[0] for line in lines] == ["#3"]
