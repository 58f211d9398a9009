"""What a ledger's line says of a fact: terse, and still to be understood by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.summary.bindings import decisions, shortest
from recto.summary.check import Covered
from recto.summary.facts import facts
from recto.summary.items import DANGLING, item


def items(text: str) -> set[str]:
    found = Covered()
    found.add([Message("1", "user", (Text(text),), said=1)])
    return {lead.item for lead in found.leads.values()}


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
def test_a_figure_comes_with_what_it_is_of_and_per(text: str, expected: str) -> None:
    assert expected in items(text)


WORDS = "we pay 400 € per the for 12 boats a of and must never on May 1 rent is"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=14))
def test_no_item_ends_with_a_word_that_something_must_follow(words: list[str]) -> None:
    text = " ".join(words)
    for fact in [*facts(text), *decisions(text)]:
        last = item(fact, text).split()[-1]
        assert last not in DANGLING or text.endswith(last)


def test_a_long_item_is_cut_where_a_word_ends_and_not_behind_a_small_one() -> None:
    text = "You must always check the code after you issue an edit to make sure that it reflects what you had in mind."
    (said,) = [item(fact, text) for fact in decisions(text)]
    assert said.endswith("reflects…")
    assert len(said) <= 91


def test_what_has_no_spaces_is_cut_where_its_script_changes() -> None:
    text = "必ず" + "テストサーバーで確認してから" * 12 + "ください。"
    (said,) = [item(fact, text) for fact in decisions(text)]
    assert len(said) <= 91
    assert said.removesuffix("…").endswith(("テストサーバー", "で", "から"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "We looked at three, so after all that we went with SQLite because it needs no server.",
            "we went with SQLite",
        ),
        ("ok, SQLite it is", "SQLite it is"),
        ("I'd rather keep it in one file", "I'd rather keep it in one file"),
        ("Hm, then let's do Tuesday", "let's do Tuesday"),
        ("I talked to Ada yesterday and in the end we chose the smaller venue.", "we chose the smaller venue"),
        ("We looked at five of them, some quite slow, so we decided to use Redis.", "we decided to use Redis"),
        ("Am Ende haben wir uns auf Hamburg geeinigt.", "Am Ende haben wir uns auf Hamburg geeinigt"),
        ("Bon, ce sera mardi alors.", "Bon, ce sera mardi alors"),
        ("Al final optamos por el hotel pequeño.", "Al final optamos por el hotel pequeño"),
        ("预算改为三千元。", "预算改为三千元"),
    ],
)
def test_a_decision_is_found_wherever_it_stands_in_a_sentence(text: str, expected: str) -> None:
    (decision,) = decisions(text)
    assert shortest(decision.text) == expected
    assert text[decision.start : decision.end] == decision.text


@pytest.mark.parametrize(
    "text",
    [
        "It is what it is.",
        "I know how hard it is, believe me.",
        "I went with my sister to the lake.",
        "She picked me up at the station.",
        "Let's do it!",
        "Which one would you have picked?",
        "The winner was chosen by lot.",
    ],
)
def test_words_that_only_sound_like_a_decision_are_none(text: str) -> None:
    assert decisions(text) == []
