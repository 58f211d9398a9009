"""The conversations that every peer is given."""

import pytest
from bench.cases import Case, cases
from bench.judge import holds, unpaired
from bench.wire import weights

WINDOW = 1_024


@pytest.fixture(scope="module")
def made() -> list[Case]:
    return list(cases(80, WINDOW))


def test_none_of_them_fits(made: list[Case]) -> None:
    assert all(weights(case.wire("")) > WINDOW for case in made)


def test_they_end_with_the_question_or_inside_a_tool_loop(made: list[Case]) -> None:
    ends = [case.wire("")[-1]["role"] for case in made]
    assert set(ends) == {"user", "tool"}
    assert all(holds(case.wire(""), case.question) for case in made)


def test_no_result_is_without_its_call_though_some_never_came(made: list[Case]) -> None:
    found = [unpaired(case.wire("")) for case in made]
    assert all(loose == 0 for loose, _ in found)
    assert any(unanswered for _, unanswered in found)
