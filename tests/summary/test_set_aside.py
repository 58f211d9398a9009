"""Set aside: what a new summary drops is listed once by number, returns with its topic, and stands in the contents."""

import re
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.summary.samples import counters, quarter

from recto.summary.extractive_summary import former_messages
from recto.summary.ledger import SEPARATOR, KeyStatement, parse_ledger
from recto.summary.set_aside import (
    RETURNED,
    add_to_contents,
    find_dropped,
    find_returning,
    find_topic,
    parse_contents,
    split_returned,
    with_returned,
)
from recto.summary.verification import FormerSummary

pytestmark = pytest.mark.untraced

FORMER = FormerSummary(
    "User (#3): The boat Meltemi is berthed at quay 7.\nUser: Wir behalten den Garten.\n"
    "User (#5): Never call before 9:30.",
    ("#9: the budget is 12,000 €", "#12 assistant: Как называется лодка? → #13: её зовут «Ласточка»"),
    {"The boat Meltemi is berthed at quay 7.": 3, "Never call before 9:30.": 5},
)
ASIDE = (
    "#3: The boat Meltemi is berthed at quay 7",
    "#5: Never call the harbour master before 9:30",
    "#9: the budget for the boat is 400 €",
    "#12 assistant: Das Rezept braucht vier Eier und Mehl",
    "#15: Les tomates veulent de l'eau deux fois par jour",
    "#18 assistant: Which colour shall the sails of the dinghy have?",
    "#19: red ones, dark as wine",
    "#22: Кран на кухне протекает с марта",
    "#25: 番茄每天要浇水两次",
    "User: A minha tia gosta de orquídeas brancas",
)


def dropped(told: str, *lost: KeyStatement, known: tuple[str, ...] = (), by_sentence: bool = True) -> tuple[str, ...]:
    return find_dropped(FORMER.summary, FORMER.statements, told, lost, known, by_sentence=by_sentence)


# -- what is dropped


def test_what_is_not_told_again_is_listed_once_with_its_number() -> None:
    assert dropped("User: Never call before 9:30.") == (
        "User: Wir behalten den Garten",
        "#3: The boat Meltemi is berthed at quay 7",
        "#9: the budget is 12,000 €",
        "#13: её зовут «Ласточка»",
    )


def test_what_is_told_in_the_ledger_or_in_other_words_is_not_set_aside() -> None:
    told = "The boat Meltemi lies at quay 7 now. Never call before 9:30, he said.\n#9: the budget is 12,000 €"
    assert dropped(told) == ("User: Wir behalten den Garten", "#13: её зовут «Ласточка»")


def test_of_a_models_summary_only_statements_are_set_aside() -> None:
    assert not any("Garten" in line for line in dropped("Hello.", by_sentence=False))
    assert "#3: The boat Meltemi is berthed at quay 7" in dropped("Hello.", by_sentence=False)


def test_what_is_set_aside_already_is_not_set_aside_again() -> None:
    first = dropped("Hello.")
    assert dropped("Hello.", known=first) == ()


def test_what_new_messages_lose_is_set_aside_the_most_needed_first() -> None:
    lost = [
        KeyStatement(20 + at, "user", f"Crate {at} of the ship goes to hall {at * 7 + 100}.", at / 90)
        for at in range(90)
    ]
    lines = dropped(FORMER.summary + "\n".join(FORMER.ledger), *lost)
    numbers = [item.number for item in parse_ledger(lines)]
    assert numbers == list(range(110 - len(numbers), 110))
    assert sum(map(len, lines)) <= 2000


words = st.sampled_from(
    re.split(" ", "the boat Meltemi budget 12,000 € never before 9:30 Garten 船 は 12隻 кран → #4: [unverified] .")
)
sayings = st.lists(words, min_size=1, max_size=9).map(" ".join)


@given(st.lists(sayings, max_size=8), st.lists(sayings, max_size=4), st.booleans())
def test_what_is_set_aside_was_told_before_and_is_not_told_now(former: list[str], now: list[str], whole: bool) -> None:
    statements = [KeyStatement(at, "user", text) for at, text in enumerate(former, 1)]
    summary, told = ("\n".join(f"User: {text}" for text in texts) for texts in (former, now))
    lines = find_dropped(summary, statements, told, [], by_sentence=whole)
    before = [segment.text for message in former_messages(summary) for segment in message.segments]
    items = parse_ledger(lines)
    assert len({(item.number, item.text) for item in items}) == len(items)
    for line in lines:
        for text in line.partition(": ")[2].split(SEPARATOR):
            assert any(text.removesuffix("…") in said for said in (*before, *(each.item for each in statements)))
            assert text not in told


def test_a_dot_between_words_makes_no_two_items() -> None:
    (line,) = find_dropped("User (#3): Pay Ben only · never pay Ada.", [], "Hello.", [], by_sentence=True)
    assert len(parse_ledger([line])) == 1


# -- what returns


def returning(message: str, *latest: str, current: tuple[str, ...] = (), lines: tuple[str, ...] = ASIDE) -> list[int]:
    now = [KeyStatement(90, "user", text) for text in current]
    return [item.number for item in find_returning(lines, find_topic(message, latest), now, 600, len)]


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        ("Where is the Meltemi berthed?", [3]),
        ("Wie viele Eier braucht das Rezept?", [12]),
        ("Combien d'eau pour les tomates ?", [15]),
        ("Когда протекает кран?", [22]),
        ("番茄什么时候浇水？", [25]),
        ("A tia gosta de orquídeas?", [0]),
        ("How are we today?", []),
        ("¿Qué hora es?", []),
    ],
)
def test_what_shares_rare_words_with_the_message_returns_in_any_language(message: str, numbers: list[int]) -> None:
    assert returning(message) == numbers


@pytest.mark.xfail(strict=True, reason="of few lines a common word is rare, and twice on the topic it is enough")
def test_a_common_word_is_no_topic() -> None:
    assert returning("And the weather?", "Look at the weather.") == []


@pytest.mark.parametrize(
    ("said", "now"),
    [
        (ASIDE[2], "the budget for the boat is 500 €"),
        (ASIDE[2], "The boat: a budget of 950 € for it"),
        ("#9: the budget for the boat is 12,000 €", "the budget for the boat is 15,000 €"),
    ],
)
def test_a_changed_figure_does_not_return(said: str, now: str) -> None:
    lines = (*ASIDE[:2], said, *ASIDE[3:])
    assert returning("What is the budget?", "budget", lines=lines) == [9]
    assert returning("What is the budget?", "budget", current=(now,), lines=lines) == []


@given(st.lists(sayings, min_size=1, max_size=12), sayings, st.integers(0, 300), counters)
def test_what_returns_was_set_aside_in_order_and_fits(said: list[str], message: str, limit: int, count) -> None:  # type: ignore[no-untyped-def]
    lines = [f"#{number}: {text}" for number, text in enumerate(said, 1)]
    items = find_returning(lines, find_topic(message), (), limit, count)
    assert [item.number for item in items] == sorted(item.number for item in items)
    assert set(items) <= set(parse_ledger(lines))
    assert sum(count(item.spoken) + 1 for item in items) <= max(0, limit - count(RETURNED) - 1)


def test_what_returned_is_split_off_again() -> None:
    items = [KeyStatement(3, "user", "The boat is red"), KeyStatement(0, "tool", "3 passed")]
    summary = with_returned("User: Hello.", items)
    assert split_returned(summary) == ("User: Hello.", ["User (#3): The boat is red", "Tool: 3 passed"])
    assert split_returned("User: Hello.") == ("User: Hello.", [])
    assert with_returned("User: Hello.", []) == "User: Hello."


# -- contents


def contents(former: tuple[str, ...], *lines: str, room: int = 400) -> tuple[str, ...]:
    return add_to_contents(former, lines, lambda ranges: sum(map(quarter, ranges)) <= room // 4)


def test_the_contents_name_each_range_by_the_beginning_of_its_best_sentence() -> None:
    first = contents(
        (), "#3: ok", "#5: Never call the harbour master of Porto before 9:30 in winter or in May", "#7: ja"
    )
    assert first == ("#3–#7: Never call the harbour master of Porto before…",)
    assert contents(first, "#9: Кран на кухне протекает") == (*first, "#9: Кран на кухне протекает")
    assert contents(first, "User: no number") == first


@given(
    st.lists(st.tuples(st.integers(1, 9), st.lists(sayings, min_size=1, max_size=4)), max_size=14), st.integers(0, 600)
)
def test_contents_stay_in_order_within_their_room(steps: list[tuple[int, list[str]]], room: int) -> None:
    # an answer is quoted with its own number, which is that of a later message
    assume(not any("→ #" in text for _, said in steps for text in said))
    former, number = tuple[str, ...](), 0
    for step, said in steps:
        lines = [f"#{number + at}: {text}" for at, text in enumerate(said, step)]
        number += step + len(said)
        former = contents(former, *lines, room=room)
        ranges = parse_contents(former)
        assert list(map(str, ranges)) == list(former)
        assert all(one.last < other.first for one, other in pairwise(ranges))
        assert all(one.first <= one.last and len(one.title.split()) <= 8 and one.title for one in ranges)
        assert len(ranges) <= 8
        assert not ranges or ranges[-1].last == number - 1


def test_older_ranges_become_coarser() -> None:
    former: tuple[str, ...] = ()
    for at in range(40):
        former = contents(former, f"#{at * 3 + 1}: Topic {at} of the harbour master {at * 7}", room=900)
    spans = [each.last - each.first for each in parse_contents(former)]
    assert len(spans) > 3
    assert spans[0] == max(spans)
    assert spans[-1] == min(spans)
