"""The advice that the statistics of a source give, and when they give none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recto.sources.advice import (
    MIN_REPLIES,
    MIN_UNUSED_REPLIES,
    MIN_UNUSED_RULE_REPLIES,
    Advice,
    SourceStats,
    advise,
    forbids,
)
from recto.sources.source import INCLUDES, SourceId

TOOL = SourceId("tool", "create_issue", "github")
RULE = SourceId("rule", "style")
REFERENCE = SourceId("reference", "api notes")
ALWAYS = SourceStats(TOOL, "default", "always", 57, always=57, tokens=12_340, looked=57, conversations=9)
CHOSEN = SourceStats(REFERENCE, "default", "agent", 40, by_agent=40, tokens=8_000, looked=40, conversations=9)
ADDED = SourceStats(
    REFERENCE, "default", "manual", 30, manual=30, tokens=900, looked=30, quoted=20, conversations=8, added=8
)


def one(stat: SourceStats) -> Advice:
    (advice,) = advise([stat])
    return advice


def test_a_tool_that_is_always_in_and_never_called_should_be_chosen() -> None:
    advice = one(ALWAYS)
    assert advice.because == (
        "tool:github/create_issue took 12,340 tokens in 57 replies and was called in none; make it manual or agent, so "
        "that it comes with the messages that need it."
    )
    assert advice.command(with_agent=False) == "recto sources mode tool:github/create_issue agent"


def test_advice_on_a_rule_is_a_question_and_needs_more_replies() -> None:
    because = one(replace(ALWAYS, id=RULE)).because
    assert "shows no signs of use (rules often show none)" in because
    assert because.endswith("; does every message need it, or is agent enough?")
    assert advise([replace(ALWAYS, id=RULE, looked=MIN_UNUSED_RULE_REPLIES - 1)]) == []


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
    assert (advise([idle, vain], lambda stat: text) == []) is expected


def test_only_an_unused_rule_is_checked_for_what_it_forbids() -> None:
    assert advise([ALWAYS], lambda stat: "Never.") != []


def test_a_source_used_once_in_a_hundred_replies_counts_as_unused() -> None:
    assert "was used in 1 of them" in one(replace(ALWAYS, replies=100, looked=100, called=1)).because
    assert advise([replace(ALWAYS, replies=100, looked=100, called=9)]) == []


def test_a_source_that_is_chosen_and_never_used_should_be_described_better() -> None:
    advice = one(CHOSEN)
    assert "was chosen for 40 replies, took 8,000 tokens and shows signs of use in none" in advice.because
    assert "describe better what it is for, raise context.min_score, or make it manual" in advice.because
    assert advice.command(with_agent=False) == "recto sources mode 'reference:api notes' manual"


def test_the_agent_is_named_where_there_are_others() -> None:
    advice = one(replace(ALWAYS, agent="my boats"))
    assert advice.command(with_agent=True) == "recto sources mode tool:github/create_issue agent --agent 'my boats'"
    assert one(ALWAYS).command(with_agent=True).endswith(" --agent default")


def test_the_source_with_the_most_tokens_comes_first() -> None:
    advice = advise([CHOSEN, ALWAYS, replace(ALWAYS, id=RULE, tokens=3)])
    assert [each.id for each in advice] == [TOOL, REFERENCE, RULE]


def test_unchecked_replies_do_not_count() -> None:
    assert advise([replace(ALWAYS, looked=0)]) == []
    assert advise([replace(ALWAYS, looked=MIN_UNUSED_REPLIES - 1)]) == []
    assert advise([replace(ALWAYS, looked=MIN_UNUSED_REPLIES)]) != []


COUNT = st.integers(0, 200)


@given(st.sampled_from(INCLUDES), COUNT, COUNT, COUNT, COUNT)
def test_few_replies_give_no_advice_and_no_source_gets_two(
    mode: str, looked: int, called: int, quoted: int, added: int
) -> None:
    assert mode in INCLUDES
    counts = {"by_agent": looked, "looked": looked, "called": called, "quoted": quoted, "added": added}
    stat = SourceStats(TOOL, "default", mode, max(looked, called), **counts)  # type: ignore[arg-type]
    advice = advise([stat])
    assert len(advice) <= (looked >= MIN_REPLIES)
    assert all(each.mode != stat.mode for each in advice)
    assert all(each.because.endswith((".", "?")) for each in advice)
