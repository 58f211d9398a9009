"""What later messages put an end to: errors that were mended, questions that were answered after a while."""

import pytest
from tests.summary.samples import covered, quarter

from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.ledger_selection import ledger_lines
from recto.summary.settled import lifted_prohibitions, tells_asked
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


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("When does the lease of the studio end?", "The lease runs until 31 March."),
        ("Who repairs the boiler?", "Jan Verhoeven repairs the boiler, he comes at noon."),
        ("How much is the piano?", "The piano is 2,300 without the stool."),
        ("Wann kommt der Klempner?", "Der Klempner kommt am 4. Mai."),
        ("¿Quién lleva la tarta?", "La tarta la lleva mi prima Nuria."),
        ("Chi guida il furgone?", "Il furgone lo guida Sandro Conti."),
        ("Kto gotuje bigos?", "Bigos gotuje babcia Halina."),
        ("Quando chega o sofá?", "O sofá chega dia 8 de junho."),
        ("司会は誰ですか？", "司会は岡さんに頼みました。"),
        ("Jeszcze nie wiemy, czy kawiarnia w parku jest otwarta.", "Kawiarnia w parku jest otwarta od maja."),
    ],
)
def test_a_later_statement_tells_what_was_asked(question: str, statement: str) -> None:
    assert tells_asked(question, statement)


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("When does the lease of the studio end?", "The lease is in the drawer."),
        ("Who repairs the boiler?", "The boiler is old."),
        ("How much is the piano?", "The piano is black."),
        ("Do we need a permit for the fence?", "The fence is green."),
    ],
)
def test_another_statement_about_it_does_not(question: str, statement: str) -> None:
    assert not tells_asked(question, statement)


@pytest.mark.parametrize(
    ("forbidden", "allowed"),
    [
        ("Don't call the landlord yet, he is ill.", "ok, you can call the landlord now"),
        ("Bitte ruf Herrn Lindner nicht an.", "Herrn Lindner kannst du jetzt wieder anrufen."),
        ("No llames a la abuela todavía.", "Ya puedes llamar a la abuela."),
        ("N'appelle pas le notaire avant lundi.", "Tu peux appeler le notaire maintenant."),
        ("Bel de makelaar niet.", "Je mag de makelaar nu weer bellen."),
        ("Non invitate i Bruni, hanno litigato.", "Ora potete invitare i Bruni, hanno fatto pace."),
        ("Nie dzwoń do sąsiadki.", "Możesz już dzwonić do sąsiadki."),
        ("Não convide o Rui.", "Agora pode convidar o Rui."),
        ("まだ部長には話さないでください。", "部長に話しても大丈夫です。"),
    ],
)
def test_a_prohibition_that_was_lifted_is_past(forbidden: str, allowed: str) -> None:
    assert lifted_prohibitions([(1, forbidden), (9, allowed)]) == {(1, forbidden)}
    told = extract(_said("We plan a big party for Edda.", "Nice.", forbidden, "Noted.", allowed, "Good."), 400, quarter)
    assert forbidden not in told
    said = covered((("user", forbidden), ("assistant", "Noted."), ("user", allowed), ("assistant", "Good.")))
    lines = ledger_lines(verify_summary("Nothing.", said, FormerSummary()).lost, 200, quarter)
    assert forbidden.rstrip(".") not in "\n".join(lines)


def test_a_plan_that_goes_against_a_prohibition_does_not_lift_it() -> None:
    said = [(1, "Never deploy the shop on a Friday."), (9, "We deploy the shop, then the blog.")]
    assert lifted_prohibitions(said) == set()


def test_other_prohibitions_stay() -> None:
    forbidden = "Don't call the landlord yet, he is ill."
    for later in ("you can paint the door now", "don't call the landlord at night", "can I call the landlord?"):
        assert lifted_prohibitions([(1, forbidden), (9, later)]) == set()


def test_after_an_agreement_earlier_offers_are_past() -> None:
    told = extract(
        _said(
            "I'm buying a used kiln from a potter in Delft.",
            "Good luck.",
            "He asks 1,450 for it.",
            "That is a lot.",
            "I offered 1,100.",
            "Good start.",
            "I won't pay more than 1,300.",
            "Noted.",
            "He says 1,380.",
            "Stay firm.",
            "He agreed: 1,290 with the shelves.",
            "Great.",
        ),
        400,
        quarter,
    )
    assert "agreed: 1,290" in told
    assert "won't pay more than 1,300" in told
    for offer in ("1,450", "1,100", "1,380"):
        assert offer not in told
