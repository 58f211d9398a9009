"""What later messages put an end to: errors that were mended, questions that were answered after a while."""

import pytest
from tests.summary.samples import covered, quarter

from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.ledger_selection import ledger_lines
from recto.summary.success import is_thin_success, tells_failure, works_now
from recto.summary.verification import FormerSummary, verify_summary


@pytest.mark.parametrize(
    "text", ["fixed, runs green", "it works now!", "hat geklappt", "sí, ya funciona", "ça marche enfin", "修好了"]
)
def test_a_success_is_known_in_several_languages(text: str) -> None:
    assert works_now(text)
    assert is_thin_success(text)


@pytest.mark.parametrize(
    "text", ["it still fails", "does it work now?", "the printer must work again", "2 failed, 7 passed"]
)
def test_what_does_not_work_yet_is_no_success(text: str) -> None:
    assert not works_now(text)


def test_a_success_that_names_something_is_more_than_that() -> None:
    assert works_now("The export to Lisbon runs in 12 minutes, fixed")
    assert not is_thin_success("The export to Lisbon runs in 12 minutes, fixed")


def _said(*texts: str) -> list[PlainMessage]:
    """Before enough that is worth telling: where there is hardly anything, the rest is told too."""
    facts = (
        "The hall above the bakery costs 310 euros a month, and Henrike Maas from Emden has the key.",
        "Good to know.",
        "We never meet on Sundays, because Joost sings in the church of Leer then.",
    )
    return [PlainMessage("assistant" if at % 2 else "user", text) for at, text in enumerate((*texts, *facts))]


def test_an_error_is_past_once_it_works() -> None:
    start = (
        "Help me to move our wiki to the new host in Tromsø.",
        "Sure, start with the export.",
        "the import fails: DatabaseError: relation pages is missing",
        "Then the schema was not created.",
    )
    end = ("The wiki has 4,210 pages and 3 editors.", "Good to know.")
    mended = extract(_said(*start, "it works now", "Good.", *end), 400, quarter)
    broken = extract(_said(*start, "I will look at it tomorrow", "Good.", *end), 400, quarter)
    assert "DatabaseError" not in mended
    assert "4,210 pages" in mended
    assert "DatabaseError" in broken
    assert tells_failure("the import fails: DatabaseError")


def test_a_ledger_lists_no_error_that_was_mended() -> None:
    def lines(last: str) -> str:
        said = covered(
            (
                ("user", "it fails:\nfatal: could not read from remote repository"),
                ("assistant", "The key of the server is missing."),
                ("user", last),
            )
        )
        return "\n".join(ledger_lines(verify_summary("Nothing.", said, FormerSummary()).lost, 200, quarter))

    assert "fatal" in lines("I will ask the admin about it")
    assert "fatal" not in lines("fixed, it works now")


def test_a_question_that_is_answered_later_is_past() -> None:
    start = (
        "Plan the move of our workshop to Graz.",
        "Gladly.",
        "Does the landlord allow heavy machines upstairs? I have to ask him.",
        "Good idea.",
        "The lathe weighs 900 kg.",
        "That is heavy.",
    )
    told = extract(_said(*start, "The landlord said no heavy machines upstairs.", "Pity."), 400, quarter)
    assert "Does the landlord allow" not in told
    assert "said no heavy machines" in told
    assert "Does the landlord allow" in extract(_said(*start), 400, quarter)
