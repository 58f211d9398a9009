"""The judge of summaries, and the chats that it judges them by."""

from collections.abc import Callable, Sequence

import pytest
from bench.planted import Chat, Fact, Turn, chat, is_told
from bench.summary import covered, ends_of, invented, judge, parts, repeated, sentences_of
from bench.wire import tokens


def test_a_chat_is_deterministic_and_contains_all_its_facts() -> None:
    whole = chat(3, 8_000)
    assert whole == chat(3, 8_000)
    assert len(whole.facts) > 20
    assert all(is_told(fact.value, whole.text) for fact in whole.facts)
    assert {turn.role for turn in whole.turns} == {"user", "assistant", "tool"}
    assert "{" not in " ".join(fact.value for fact in whole.facts)


def test_facts_are_spread_over_a_chat() -> None:
    assert all(sum(len(turn.facts) for turn in part) for part in parts(chat(5, 30_000)))


def test_parts_make_up_the_whole() -> None:
    whole = chat(2, 8_000)
    assert tuple(turn for part in parts(whole) for turn in part) == whole.turns


@pytest.mark.parametrize(
    ("value", "text", "told"),
    [
        ("3 May", "We meet on 3 May.", True),
        ("3 May", "We meet on 13 May.", False),
        ("src/a.py", "See src/a.py, line 3", True),
        ("src/a.py", "See lib/src/a.py", False),
        ("4.5.1", "It is 4.5.17", False),
        ("1,200 euros", "It costs 1,200 Euros.", True),
    ],
)
def test_only_a_whole_fact_counts(value: str, text: str, told: bool) -> None:
    assert is_told(value, text) is told


TALK = Chat(
    (
        Turn("user", "The opening is on 3 May in Graz."),
        *(Turn("assistant", f"Noted, unit{at}.") for at in range(18)),
        Turn("user", "The opening has moved to 9 June.", (Fact("9 June", was="3 May"),)),
    )
)


def test_a_summary_with_the_former_value_alone_is_outdated() -> None:
    assert judge(TALK, "The opening is on 3 May.").stale == 1
    both = judge(TALK, "The opening is on 3 May. It has moved to 9 June.")
    assert (both.kept, both.stale) == (1, 0)


def test_names_and_numbers_that_nobody_said_are_inventions() -> None:
    assert invented(TALK.text, "The opening in Graz is on 9 June.") == set()
    assert invented(TALK.text, "The opening in Linz costs 40 euros.") == {"Linz", "40"}


def test_each_repetition_of_a_sentence_is_counted() -> None:
    assert repeated("The hall is red.\nThe hall is red. The hall is red!\nThe door is blue.") == 2


def test_a_period_is_covered_if_the_summary_has_something_of_it() -> None:
    assert covered(TALK, "") == 0
    assert covered(TALK, "Noted, unit0 and unit17.") == 0.2
    assert covered(TALK, TALK.text) == 1


@pytest.mark.parametrize("sum_up", [sentences_of, ends_of])
def test_summaries_are_within_their_cap(sum_up: Callable[[Sequence[Turn], int], str]) -> None:
    made = sum_up(chat(1, 8_000).turns, 150)
    assert 100 < tokens(made) <= 150
