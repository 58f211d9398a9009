"""The judge of summaries that choose sentences."""

from collections.abc import Callable, Sequence

import pytest
from bench.extractive import chat, covered, ends_of, invented, judge, sentences_of
from bench.planted import Chat, Statement, Turn
from bench.wire import tokens

TALK = Chat(
    "planning",
    (
        Turn("user", "The opening is on 3 May in Graz."),
        *(Turn("assistant", f"Noted, unit{at}.") for at in range(18)),
        Turn("user", "The opening has moved to 9 June.", (Statement("correction", ("9 June", "opening"), "3 May"),)),
    ),
)


def test_a_summary_with_the_former_value_alone_is_outdated() -> None:
    assert judge(TALK, "The opening is on 3 May.").stale == 1
    both = judge(TALK, "The opening is on 3 May. The opening has moved to 9 June.")
    assert (both.kept, both.stale) == (1, 0)


def test_names_and_numbers_that_nobody_said_are_inventions() -> None:
    assert invented(TALK.text, "The opening in Graz is on 9 June.") == set()
    assert invented(TALK.text, "The opening in Linz costs 40 euros.") == {"Linz", "40"}


def test_a_period_is_covered_if_the_summary_has_something_of_it() -> None:
    assert covered(TALK, "") == 0
    assert covered(TALK, "Noted, unit0 and unit17.") == 0.2
    assert covered(TALK, TALK.text) == 1


@pytest.mark.parametrize("sum_up", [sentences_of, ends_of])
def test_summaries_are_within_their_cap(sum_up: Callable[[Sequence[Turn], int], str]) -> None:
    made = sum_up(chat(1, 2_500).turns, 150)
    assert 100 < tokens(made) <= 150
