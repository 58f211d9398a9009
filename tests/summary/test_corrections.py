"""Corrections: later sentences that take back an earlier one or give another number."""

import pytest

from recto.summary.corrections import find_corrections
from recto.summary.sentences import terms
from recto.summary.source_lines import FORMER_SUMMARY, ScoredSentence
from recto.summary.term_weights import TermWeights


def corrected(*texts: str, in_summary: int = 0) -> dict[str, str]:
    """Each corrected sentence with its correction; the first `in_summary` of them are in the former summary."""
    pool = [
        ScoredSentence(at if at >= in_summary else FORMER_SUMMARY, at, text, terms(text), 1.0)
        for at, text in enumerate(texts)
    ]
    by_key = {sentence.key: sentence.text for sentence in pool}
    return {by_key[key]: sentence.text for key, sentence in find_corrections(pool, TermWeights()).items()}


@pytest.mark.parametrize(
    ("former", "later"),
    [
        ("The deadline is 3 May.", "Our lawyer says the deadline is 10 May."),
        ("The opening is on 28 April.", "Actually the opening has moved to 16 June."),
        ("Let's use SQLite.", "No, use PostgreSQL 16 instead of SQLite."),
        ("Er kommt am 3. Februar.", "Der Termin hat sich verschoben, er kommt am 10. März."),
        ("Die Arbeitsplatte soll aus Eiche sein.", "Nein, nimm doch lieber eine Arbeitsplatte aus Granit."),
        ("Es kommen 84 Gäste.", "Ich habe mich vertan: Es sind nicht 84, sondern 91 Gäste."),
        ("Bei 84 Gästen sind das 71 € pro Person.", "Es sind nicht 84, sondern 91 Gäste."),
        ("Das Catering darf höchstens 6.000 € kosten.", "Wir erhöhen die Grenze fürs Catering auf 6.500 €."),
        ("Wir treffen uns um 13 Uhr.", "nein, doch 14 Uhr"),
        ("Send date: 12 January.", "No wait, I mean 10 January."),
        ("The rent is 980 € a month.", "The rent is now 1,005 €."),
        ("Salimos el lunes 8 de mayo.", "Cambio de planes: salimos el martes 9 de mayo."),
        ("La visita es el jueves 11 de julio.", "Me equivoqué, la visita es el viernes 12 de julio, no el jueves."),
        ("L'exposé doit faire 12 pages.", "Finalement l'exposé sera de 15 pages."),
        ("The dentist is on Tuesday at 8:15.", "The dentist moved to Thursday same time."),
        ("Der Umzugswagen kommt von Kofler.", "Kofler hat leider abgesagt."),
        ("The race is on the 17th.", "Actually the race is on the 24th."),
        ("Der Flohmarkt soll am 22. sein.", "Nein, der Flohmarkt ist am 15., nicht am 22."),
        ("I want the bells to ring at 19:30.", "we agreed in the meeting to go for 20:15, sorry"),
        ("She limps when it rains.", "She limps when she lies, not when it rains."),
        ("会议在3月14日下午2点。", "不对，会议改到3月15日上午10点了。"),
        ("希望五月一日开业。", "开业改成五月十日。"),
        ("二十三名です。", "二十三名ではなく二十五名です。"),
    ],
)
def test_a_corrected_sentence_is_found_with_its_correction(former: str, later: str) -> None:
    assert corrected(former, "The weather was fine all week.", later) == {former: later}
    assert corrected(former, later, in_summary=1) == {former: later}


def test_a_series_is_no_chain_of_corrections() -> None:
    assert corrected(*[f"Room {at} has {at + 3} chairs." for at in range(9)]) == {}


def test_a_value_that_changed_twice_leads_to_the_latest() -> None:
    said = (
        "The go-live must be on 14 June.",
        "Correction: the go-live is not 14 June, it is 21 June.",
        "Noted, the go-live is now 21 June.",
        "Actually the go-live moves to 23 June.",
        "Fine, the go-live is now 23 June.",
    )
    found = corrected(*said)
    assert {found[text] for text in said[:3]} == {said[-1]}


def test_values_of_other_things_correct_nothing() -> None:
    assert corrected("Room A costs 400 €.", "Room B costs 300 €.") == {}
    assert corrected("The keel weighs 900 kg.", "The keel is 4 m long.") == {}
    assert corrected("Ada has 3 boats in Oslo.", "Eve has 5 boats in Riga.") == {}


def test_a_sentence_on_another_topic_corrects_nothing() -> None:
    assert corrected("The keel is 4 m long.", "Actually I would like some tea.") == {}
