"""Plans as models give them: bounded, on one line each, and told where they are kept in another form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import RectoError
from recto.tasks.plan import LONGEST_PLAN, MOST_STEPS, plan_from


def test_a_plan_is_read_as_it_is_given() -> None:
    plan = plan_from({"steps": [{"text": "read\x1b[2J the\nnote", "status": "done"}, {"text": "write"}]})
    assert plan.text == "[x] 1. read [2J the note\n[ ] 2. write"
    assert plan.in_words == "1 of 2 steps done, 1 pending"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "steps must be a list"),
        ({"steps": "read, write"}, "steps must be a list"),
        ({"steps": [7]}, "step 1 must be an object"),
        ({"steps": [{"text": " "}]}, "step 1 needs a text of at most 300 characters"),
        ({"steps": [{"text": "x" * 301}]}, "step 1 needs a text of at most 300 characters"),
        ({"steps": [{"text": "x"}] * 10_000}, "at most 100 steps, and this one has 10,000"),
        ({"steps": [{"text": "x" * 200}] * 50}, "at most 4,000 characters"),
        ({"steps": [{"text": "x", "status": "later"}]}, "the status of step 1 must be one of pending"),
        ({"steps": [], "outcome": "maybe"}, "outcome must be done or blocked"),
    ],
)
def test_what_cannot_be_read_is_told_to_the_model(arguments: dict[str, object], why: str) -> None:
    with pytest.raises(RectoError, match=why):
        plan_from(arguments)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["text", "status", "files", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["steps", "outcome", "because"]), anything, max_size=3))
def test_whatever_a_model_gives_is_a_bounded_plan_or_a_sentence(arguments: dict[str, object]) -> None:
    try:
        plan = plan_from(arguments)
    except RectoError:
        return
    assert len(plan.steps) <= MOST_STEPS
    assert len(plan.text) <= LONGEST_PLAN
    assert plan.text.count("\n") == max(0, len(plan.steps) - 1)
