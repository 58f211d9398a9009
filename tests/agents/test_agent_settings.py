"""An agent's settings that conflict with each other or with the user's: ignored, reported, resolved."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agents.conftest import Write, only_note

from recto.agents.agent import Agent, apply_agent, without_conflicts
from recto.agents.agents import Agents
from recto.errors import Invalid
from recto.settings import settings

SCORES = "[context]\nmin_score = 0.8\ninclude_score = 0.5\n"
WATER = "[context]\nlow_water = 0.9\nthreshold = 0.5\n"


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        (SCORES, "context.min_score", "context.min_score = 0.8 is not allowed; it takes a number from 0 to 0.5"),
        (
            WATER,
            "context.low_water",
            "context.low_water = 0.9 is not allowed; it takes a number below 0.5",
        ),
        ("[context]\nlow_water = 0.9\n", "context.low_water", "it takes a number below 0.85"),
        ("[context]\nsummary_tokens = 5\n", "context.summary_tokens", "it takes 0, or a whole number from 96"),
    ],
)
def test_a_conflicting_setting_is_ignored_with_a_note(
    agents: Agents, yours: Write, text: str, key: str, said: str
) -> None:
    path = yours("agent.toml", text.replace("[context]", '[context]\nstrategy = "hybrid"'))
    agent = agents.read("clerk")
    assert key not in agent.context
    assert len(agent.context) == text.count("=")  # the others, and the strategy
    note = only_note(agent)
    assert note.startswith(f"{path}: ")
    assert said in note
    assert note.endswith(f"; the agent's {key} is ignored")
    assert apply_agent(settings.Settings(), agent).context.strategy == "hybrid"


def test_the_users_settings_win_over_a_conflicting_agent(home: Path, yours: Write) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[context]\nmin_score = 0.6\n")
    yours("agent.toml", "[context]\ninclude_score = 0.5\ntop_n = 3\n")
    below = settings.load(home, None, {})
    agent = Agents(home, None, below).read("clerk")
    assert agent.context == {"context.top_n": 3}
    assert only_note(agent).endswith("; the agent's context.include_score is ignored")
    # whoever has not looked before applying it loses nothing but the setting
    own = apply_agent(below, Agent("clerk", context={"context.include_score": 0.5, "context.top_n": 3})).context
    assert (own.include_score, own.min_score, own.top_n) == (0.7, 0.6, 3)


def test_an_option_never_counts_as_a_conflict_of_the_agent() -> None:
    below = settings.changed(settings.Settings(), {"context.low_water": 0.3}, "option")
    agent = Agent("bare", context={"context.low_water": 0.9})
    assert without_conflicts(below, agent) == agent
    assert apply_agent(below, agent).context.low_water == 0.3


def test_setting_a_conflicting_value_is_refused(agents: Agents, yours: Write) -> None:
    file = yours("agent.toml", SCORES)
    with pytest.raises(Invalid, match=r"context\.min_score = 0\.9 is not allowed; it takes a number from 0 to 0\.5"):
        agents.set_value("clerk", "context.min_score", "0.9")
    assert file.read_text() == SCORES
    agents.set_value("clerk", "context.top_n", "3")
    assert agents.read("clerk").context == {"context.include_score": 0.5, "context.top_n": 3}


share = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
said = st.fixed_dictionaries(
    {},
    optional={
        "context.min_score": share,
        "context.include_score": share,
        "context.low_water": st.sampled_from([0.1, 0.5, 0.9]),
        "context.threshold": st.sampled_from([0.1, 0.5, 0.9, 1.0]),
        "context.budgets.system": share,
        "context.budgets.tools": share,
        "context.budgets.messages": share,
        "context.recent_messages_to_keep": st.integers(0, 9),
        "context.min_recent_messages_to_keep": st.integers(0, 9),
        "context.max_prompt_tokens": st.sampled_from([0, 100, 5000]),
        "context.reserved_response_tokens": st.sampled_from([0, 100, 6000]),
        "context.summary_tokens": st.sampled_from([0, 5, 500]),
    },
)


LEAST_RECENT = "context.min_recent_messages_to_keep"


@given(said, said)
def test_any_agent_is_accepted_and_every_ignored_setting_has_a_note(mine: dict[str, Any], its: dict[str, Any]) -> None:
    try:
        below = settings.changed(settings.Settings(), mine, "config.toml")
    except Invalid:
        return
    agent = without_conflicts(below, Agent("bare", context=its))
    own = apply_agent(below, agent)
    assert len(agent.notes) == len(its) - len(agent.context)
    held = {key: value for key, value in agent.context.items() if own.get(key) != value}
    # none of the latest messages implies no least number of them, whatever is said
    assert set(held) <= ({LEAST_RECENT} if own.get("context.recent_messages_to_keep") == 0 else set())
    assert without_conflicts(below, agent) == agent
