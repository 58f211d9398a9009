"""`recto context whatif`: what the command says; the planning itself has tests of its own."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one
from tests.compaction.test_compaction_work import REPLY, SAID, SUMMARY
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


def test_without_a_reply_the_last_turn_is_meant(run: Run, model: str) -> None:
    assert one(run("context", "whatif", "--json"))["number"] == 23
    assert "nothing else than it was" in run("context", "whatif").stdout


def test_a_window_in_which_nothing_fits_is_told_beside_the_one_that_was(run: Run, model: str) -> None:
    shown = run("context", "whatif", "--window", "60").stdout
    assert "it would not fit" in shown
    assert "–" in shown


def test_every_strategy_is_compared_in_one_table(run: Run, model: str) -> None:
    shown = run("context", "whatif", "--all", "--window", "500").stdout
    for name in ("as it was", "discard", "summarize", "hybrid"):
        assert name in shown
    assert "leave out --strategy" in failure(run("context", "whatif", "--all", "--strategy", "hybrid"), 2)


def test_what_cannot_be_planned_is_said_in_one_sentence(run: Run, model: str, tmp_path: Path) -> None:
    assert "strategy" in failure(run("context", "whatif", "--strategy", "forget"))
    assert "#999" in failure(run("context", "whatif", "999"))
    assert "KEY=VALUE" in failure(run("context", "whatif", "--set", "threshold"), 2)
