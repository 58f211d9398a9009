"""The ledger: terse lines that can be understood alone, within a limit, carried over from one summary to the next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import covered

from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.summary.decisions import find_decisions
from recto.summary.facts import find_facts
from recto.summary.ledger import DANGLING_WORDS, describe_fact, ledger_lines
from recto.summary.verification import CoveredFacts, FormerSummary, verify_summary


def items(text: str) -> set[str]:
    found = CoveredFacts()
    found.add([Message("1", "user", (Text(text),), said=1)])
    return {entry.text for entry in found.entries.values()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The rent is $1,200 per month.", "rent $1,200 per month"),
        ("We pay 400 € a night.", "pay 400 € a night"),
        ("It handles 900 requests per second.", "900 requests per second"),
        ("There are 14 blue boats in the harbour.", "14 blue boats"),
        ("The upload took 188 seconds today.", "upload took 188 seconds"),
        ("The opening has moved to 1 July, because the hall was taken.", "opening moved 1 July"),
        ("The invoice has not been paid yet. It is about 5,250 euros.", "invoice 5,250 euros"),
        ("The rent for the flat in Berlin is 900 €.", "rent 900 €"),
        ("The budget that the board approved last week is 12,000 €.", "budget 12,000 €"),
        ("The upload is 69 % slower than last week.", "upload 69 % slower"),
        ("About 40 % of users stay.", "40 % of users"),
        ("I've had them for 3 years now.", "had 3 years"),
        ("Last Friday, I finished the presentation.", "Last Friday: finished presentation"),
        ("At most 563 MB for one message.", "563 MB for one message"),
        ("The response is 125379498.", "response 125379498"),
        ("It fails in line 293 according to the trace.", "line 293"),
        ("来年のサーバー予算は3000円です。", "来年のサーバー予算は3000円"),
        ("费用大约是3000元。", "费用大约是3000元"),
    ],
)
def test_a_number_comes_with_its_topic_and_what_it_is_per(text: str, expected: str) -> None:
    assert expected in items(text)


WORDS = "we pay 400 € per the for 12 boats a of and must never on May 1 rent is"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=14))
def test_no_item_ends_with_a_dangling_word(words: list[str]) -> None:
    text = " ".join(words)
    for fact in [*find_facts(text), *find_decisions(text)]:
        last = describe_fact(fact, text).split()[-1]
        assert last not in DANGLING_WORDS or text.endswith(last)


def test_a_long_item_is_cut_at_the_end_of_a_word_and_not_behind_a_small_one() -> None:
    text = "You must always check the code after you issue an edit to make sure that it reflects what you had in mind."
    (item,) = [describe_fact(fact, text) for fact in find_decisions(text)]
    assert item.endswith("reflects…")
    assert len(item) <= 91


def test_an_item_without_spaces_is_cut_where_its_script_changes() -> None:
    text = "必ず" + "テストサーバーで確認してから" * 12 + "ください。"
    (item,) = [describe_fact(fact, text) for fact in find_decisions(text)]
    assert len(item) <= 91
    assert item.removesuffix("…").endswith(("テストサーバー", "で", "から"))


def test_a_line_names_its_message_and_describes_numbers_by_their_topic() -> None:
    found = verify_summary("Nothing.", covered(), FormerSummary())
    lines = ledger_lines(found.lost, 1000, len)
    assert lines[0].startswith("#1 ")
    assert "budget" in lines[0]
    assert [int(line[1:].partition(" ")[0]) for line in lines] == [1, 2, 3, 4]
    assert "12 passed" in lines[2]


def test_a_ledger_is_carried_over_and_yields_only_to_better_lines() -> None:
    former = FormerSummary("", ("#3 src/zip.py; deploy 2024-05-01", "#9 Grace Hopper"))
    found = verify_summary("Nothing.", covered((("tool", "12 passed"),)), former)
    lines = ledger_lines(found.lost, 1000, len)
    assert lines[1:] == former.ledger
    assert ledger_lines(found.lost, 40, len) == ("#3 src/zip.py", "#9 Grace Hopper")


@given(st.integers(0, 400))
def test_a_ledger_never_exceeds_its_limit(limit: int) -> None:
    found = verify_summary("Nothing.", covered(), FormerSummary())
    assert len("\n".join(ledger_lines(found.lost, limit, len))) <= limit
