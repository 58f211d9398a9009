"""Corrections: later sentences that take back an earlier one or give another number."""

import pytest

from recto.summary.decisions import find_corrections
from recto.summary.sentence_score import TermWeights
from recto.summary.sentences import terms
from recto.summary.source_lines import FORMER_SUMMARY, ScoredSentence


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
        ("希望五月一日开业。", "开业改成五月十日。"),
        ("二十三名です。", "二十三名ではなく二十五名です。"),
    ],
)
def test_a_corrected_sentence_is_found_with_its_correction(former: str, later: str) -> None:
    assert corrected(former, "The weather was fine all week.", later) == {former: later}
    assert corrected(former, later, in_summary=1) == {former: later}


def test_a_series_is_no_chain_of_corrections() -> None:
    assert corrected(*[f"Room {at} has {at + 3} chairs." for at in range(9)]) == {}


def test_a_sentence_on_another_topic_corrects_nothing() -> None:
    assert corrected("The keel is 4 m long.", "Actually I would like some tea.") == {}
