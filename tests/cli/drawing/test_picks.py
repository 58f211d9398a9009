from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recto.cli.drawing.windows import counts_line


def pick(kind: str, mode: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "name": "x", "mode": mode, **more}


def test_the_counts_are_told_by_kind_and_mode() -> None:
    rules = [pick("rule", mode) for mode in ("always", "agent", "agent", "always", "agent")]
    references = [pick("reference", "manual"), pick("reference", "agent")]
    tools = [pick("tool", "manual") for _ in range(3)]
    told = "5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"
    assert counts_line([*rules, *references, *tools]) == told
    assert counts_line([*tools, *references, *rules]) == told


@given(st.lists(st.tuples(st.sampled_from(["rule", "tool"]), st.sampled_from(["always", "manual", "agent"]))))
def test_the_counts_add_up(picks: list[tuple[str, str]]) -> None:
    told = counts_line([pick(kind, mode) for kind, mode in picks])
    for kind, number in Counter(kind for kind, _ in picks).items():
        assert f"{number} {kind}{'s' * (number > 1)} (" in told
    assert told.count("(") == len({kind for kind, _ in picks})
