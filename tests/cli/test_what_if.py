"""`recto context whatif`: what the command says; the planning itself has tests of its own."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one
from tests.compaction.test_run import REPLY, SAID, SUMMARY
from tests.conftest import Open, Script

SMALL = {"context__reserved_response_tokens": 100, "context__prepare_at": 0.0}


@pytest.fixture
def model(desk: Open, script: Script) -> str:
    """A conversation of a dozen turns."""
    made = script(REPLY, SUMMARY, limit=1200, prices={"input": 10, "output": 30})
    talk = desk(made, **SMALL).conversation()
    for number in range(12):
        talk.ask(SAID.format(number))
    return made


def test_a_turn_is_shown_as_it_was_and_as_it_would_be(run: Run, model: str) -> None:
    shown = run("context", "whatif", "20", "--window", "1100", "--strategy", "hybrid", "--set", "threshold=0.4").stdout
    assert "message #19 of conversation #1" in shown
    assert "what if: strategy hybrid, window 1,100, context.threshold 0.4" in shown
    assert "summarize" in shown
    assert "#1…#19" in shown
    assert "summed up" in shown
    assert "a compaction would be due" in shown
    assert "stand in for it" in " ".join(shown.split())


def test_without_a_reply_the_last_turn_is_meant(run: Run, model: str) -> None:
    assert one(run("context", "whatif", "--json"))["number"] == 23
    assert "nothing else than it was" in run("context", "whatif").stdout


def test_json_has_both_windows_and_what_differs(run: Run, model: str) -> None:
    found = one(run("context", "whatif", "#20", "--window", "50000", "--json"))
    assert found["changes"] == {"window": 50_000}
    assert (found["was"]["limit"], found["would"]["limit"]) == (1200, 50_000)
    assert found["would"]["messages"]["verbatim"] == [[1, 19]]
    assert found["difference"]["came_in"] == []
    assert found["compaction"] is None


def test_a_window_in_which_nothing_fits_is_told_beside_the_one_that_was(run: Run, model: str) -> None:
    shown = run("context", "whatif", "--window", "60").stdout
    assert "it would not fit" in shown
    assert "–" in shown


def test_all_turns_are_compared_strategy_by_strategy(run: Run, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("context", "whatif", "--all").stdout
    for name in ("as it was", "discard", "summarize", "hybrid", "tokens", "cached", "compactions", "facts kept"):
        assert name in shown
    monkeypatch.setenv("COLUMNS", "40")
    narrow = run("context", "whatif", "--all", "--strategy", "hybrid").stdout
    assert "discard" not in narrow
    assert max(map(len, narrow.splitlines())) <= 40
    found = one(run("context", "whatif", "--all", "--strategy", "discard", "--strategy", "hybrid", "--json"))
    assert [each["name"] for each in found["strategies"]] == ["discard", "hybrid"]
    assert len(found["recorded"]["requests"]) == 12
    assert found["recorded"]["cost_usd"] > 0


def test_what_cannot_be_planned_is_said_in_one_sentence(run: Run, model: str, tmp_path: Path) -> None:
    assert "there is no strategy" in failure(run("context", "whatif", "--all", "--strategy", "forget"))
    assert "strategy" in failure(run("context", "whatif", "--strategy", "forget"))
    assert "#999" in failure(run("context", "whatif", "999"))
    assert "KEY=VALUE" in failure(run("context", "whatif", "--set", "threshold"), 2)
    assert "give no REPLY" in failure(run("context", "whatif", "4", "--all"), 2)
    assert "one --strategy" in failure(run("context", "whatif", "--strategy", "hybrid", "--strategy", "discard"), 2)


def test_a_new_store_has_no_turn_to_plan_again(run: Run, script: Script) -> None:
    assert "there is no conversation yet" in failure(run("context", "whatif"))
