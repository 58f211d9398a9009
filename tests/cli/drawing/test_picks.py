from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.cli.drawing.picks import badge, called, counts_line


def pick(kind: str, mode: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": "x", "mode": mode, **more}


def test_the_counts_are_told_by_kind_and_mode() -> None:
    rules = [pick("rule", mode) for mode in ("always", "agent", "agent", "always", "agent")]
    references = [pick("reference", "manual"), pick("reference", "agent")]
    tools = [pick("tool", "manual") for _ in range(3)]
    told = "5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"
    assert counts_line([*rules, *references, *tools]) == told
    assert counts_line([*tools, *references, *rules]) == told


def test_one_is_told_without_a_number_of_modes_and_none_not_at_all() -> None:
    assert counts_line([pick("rule", "always")]) == "1 rule (always)"
    assert counts_line([pick("tool", "agent"), pick("message", "agent")]) == "1 tool (agent)"
    assert counts_line([pick("document", "manual")]) == ""
    assert counts_line([{"kind": "tool"}]) == "1 tool (always)"


@given(st.lists(st.tuples(st.sampled_from(["rule", "tool"]), st.sampled_from(["always", "manual", "agent"]))))
def test_the_counts_add_up(picks: list[tuple[str, str]]) -> None:
    told = counts_line([pick(kind, mode) for kind, mode in picks])
    for kind, number in Counter(kind for kind, _ in picks).items():
        assert f"{number} {kind}{'s' * (number > 1)} (" in told
    assert told.count("(") == len({kind for kind, _ in picks})


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (pick("rule", "always"), "[Always]"),
        (pick("rule", "manual"), "[Manual]"),
        (pick("rule", "agent", score=0.8749), "[Agent 0.87]"),
        (pick("rule", "agent", score=None), "[Agent]"),
        (pick("rule", "always", score=0.5), "[Always]"),
        ({}, "[Always]"),
        (pick("rule", "\x1b[31m"), "[�[31m]"),
    ],
)
def test_a_badge_says_how_it_came_in(given: dict[str, Any], shown: str) -> None:
    assert badge(given).plain == shown


def test_a_tool_is_called_with_its_server() -> None:
    assert called({"kind": "tool", "name": "read_file", "server": "files"}) == "files:read_file"
    assert called({"kind": "rule", "name": "style"}) == "style"
