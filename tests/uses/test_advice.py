"""What the numbers of a source suggest, and when they suggest nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.sources.source import INCLUDES, SourceId
from recto.uses.advice import ENOUGH, ENOUGH_OF_A_RULE, LEAST, Advice, advise, forbids
from recto.uses.stat import Stat, Total

TOOL = SourceId("tool", "create_issue", "github")
RULE = SourceId("rule", "style")
REFERENCE = SourceId("reference", "api notes")
ALWAYS = Stat(TOOL, "default", "always", 57, always=57, tokens=12_340, looked=57, conversations=9)
CHOSEN = Stat(REFERENCE, "default", "agent", 40, by_agent=40, tokens=8_000, looked=40, conversations=9)
ADDED = Stat(REFERENCE, "default", "manual", 30, manual=30, tokens=900, looked=30, quoted=20, conversations=8, added=8)
TOTAL = Total("default", 60, 10)


def one(stat: Stat, total: Total = TOTAL) -> Advice:
    (advice,) = advise([stat], [total])
    return advice


def test_a_tool_that_is_always_in_and_never_called_should_be_chosen() -> None:
    advice = one(ALWAYS)
    assert advice.because == (
        "tool:github/create_issue took 12,340 tokens in 57 replies and was called in none; make it manual or agent, so "
        "that it comes with the messages that need it."
    )
    assert advice.command() == "recto sources mode tool:github/create_issue agent"


def test_of_a_rule_it_is_asked_and_only_after_many_replies() -> None:
    because = one(replace(ALWAYS, id=RULE)).because
    assert "shows no signs of use, which rules often do not" in because
    assert because.endswith("; is it meant for every message, or would agent do for it?")
    assert advise([replace(ALWAYS, id=RULE, looked=ENOUGH_OF_A_RULE - 1)], [TOTAL]) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Never give a price.", True),
        ("Write briefly; do not flatter.", True),
        ("You MUST NOT guess.", True),
        ("Don’t use lists.", True),
        ("It can't be said often enough.", True),
        ("Nenne niemals Preise.", True),
        ("Answer in Latin.", False),
        ("Write a knot as `clove hitch`; the denotation counts.", False),
        ("", False),
    ],
)
def test_a_rule_that_forbids_leaves_no_sign_and_gets_no_advice(text: str, expected: bool) -> None:
    assert forbids(text) is expected
    idle, vain = replace(ALWAYS, id=RULE), replace(CHOSEN, id=RULE)
    assert (advise([idle, vain], [TOTAL], lambda stat: text) == []) is expected


def test_what_is_no_rule_or_is_used_may_say_what_it_likes() -> None:
    assert advise([ALWAYS], [TOTAL], lambda stat: "Never.") != []
    assert advise([replace(ADDED, id=RULE)], [TOTAL], lambda stat: "Never.") != []


def test_what_is_used_once_in_a_hundred_replies_is_as_good_as_unused() -> None:
    assert "was used in 1 of them" in one(replace(ALWAYS, replies=100, looked=100, called=1)).because
    assert advise([replace(ALWAYS, replies=100, looked=100, called=9)], [TOTAL]) == []


def test_what_is_chosen_and_never_used_should_be_described_better() -> None:
    advice = one(CHOSEN)
    assert "was chosen for 40 replies, took 8,000 tokens and shows signs of use in none" in advice.because
    assert "describe better what it is for, raise context.min_score, or make it manual" in advice.because
    assert advice.command() == "recto sources mode 'reference:api notes' manual"


def test_what_is_added_by_hand_again_and_again_should_always_be_in() -> None:
    advice = one(ADDED)
    assert "was added by hand in 8 of 10 conversations and used in 20 of 30 replies; make it always" in advice.because
    assert advice.mode == "always"


@pytest.mark.parametrize("changed", [{"added": 4}, {"quoted": 3}, {"mode": "always", "always": 30}])
def test_adding_by_hand_is_left_alone_where_it_is_no_habit_or_of_no_use(changed: dict[str, object]) -> None:
    assert advise([replace(ADDED, **changed)], [TOTAL]) == []  # type: ignore[arg-type]


def test_what_is_chosen_and_used_nearly_always_should_always_be_in() -> None:
    advice = one(replace(CHOSEN, replies=58, by_agent=58, looked=58, quoted=50))
    assert "was chosen and used in 50 of 60 replies; make it always" in advice.because
    assert advise([replace(CHOSEN, replies=58, by_agent=58, looked=58, quoted=30)], [TOTAL]) == []


def test_the_agent_is_named_where_there_are_others() -> None:
    advice = one(replace(ALWAYS, agent="my boats"), Total("my boats", 60, 10))
    assert advice.command() == "recto sources mode tool:github/create_issue agent --agent 'my boats'"
    assert one(ALWAYS).command(naming=True).endswith(" --agent default")


def test_what_takes_the_most_tokens_comes_first() -> None:
    advice = advise([CHOSEN, ALWAYS, replace(ALWAYS, id=RULE, tokens=3)], [TOTAL])
    assert [each.id for each in advice] == [TOOL, REFERENCE, RULE]


def test_replies_that_nobody_looked_at_prove_nothing() -> None:
    assert advise([replace(ALWAYS, looked=0)], [TOTAL]) == []
    assert advise([replace(ALWAYS, looked=ENOUGH - 1)], [TOTAL]) == []
    assert advise([replace(ALWAYS, looked=ENOUGH)], [TOTAL]) != []


def test_without_any_totals_nothing_is_compared() -> None:
    assert advise([replace(CHOSEN, quoted=40)], []) == []


COUNT = st.integers(0, 200)


@given(st.sampled_from(INCLUDES), COUNT, COUNT, COUNT, COUNT, COUNT, COUNT)
def test_few_replies_say_nothing_and_no_source_gets_two_pieces_of_advice(
    mode: str, looked: int, called: int, quoted: int, added: int, replies: int, conversations: int
) -> None:
    assert mode in INCLUDES
    counts = {"by_agent": looked, "looked": looked, "called": called, "quoted": quoted, "added": added}
    stat = Stat(TOOL, "default", mode, max(looked, called), **counts)  # type: ignore[arg-type]
    advice = advise([stat], [Total("default", replies, conversations)])
    assert len(advice) <= (looked >= LEAST)
    assert all(each.mode != stat.mode for each in advice)
    assert all(each.because.endswith((".", "?")) for each in advice)
