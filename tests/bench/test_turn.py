"""The tables of the turn, window and start benches: which goal stands beside which row, and where the time went."""

from pathlib import Path

import pytest
from bench.steps import REST, STEPS
from bench.turn import (
    COLD,
    COMPACTED,
    GOALS,
    NOTHING,
    OFF,
    OPEN,
    PAUSE_S,
    RECALLED,
    Turn,
    _our_row,
    import_history,
    later_turns,
)
from bench.window import Made, windows
from bench.window import _our_row as window_row


def test_every_row_has_its_goals_and_turns_that_recall_may_take_longer() -> None:
    turn = Turn(0.018, 0.004, 0.020)
    goals = {row: _our_row("", 1000, [turn], goal)[-1] for row, goal in GOALS.items()}
    assert goals[OPEN, NOTHING] == goals[OPEN, OFF] == "≤ 15: MISSED, CPU ≤ 15: MISSED"
    assert goals[OPEN, RECALLED] == "≤ 30: met, CPU ≤ 40: met"
    assert goals[COLD, NOTHING] == goals[COLD, OFF] == "≤ 20: MISSED, CPU ≤ 15: MISSED"
    assert goals[COLD, RECALLED] == "≤ 45: met, CPU ≤ 40: met"


def test_turns_are_taken_with_recall_and_without_and_none_is_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.turn.PAUSE_S", PAUSE_S / 50)
    rows = later_turns({20: import_history(tmp_path / "chat", 20)}, 2)
    assert set(rows) == {*GOALS, (COLD, COMPACTED), (OPEN, COMPACTED)}
    for way in (COLD, OPEN):
        assert len(rows[way, OFF][20]) == len(rows[way, NOTHING][20]) + len(rows[way, RECALLED][20]) == 2
    assert not any(turn.has_recalled for turn in rows[OPEN, NOTHING][20])
    assert set(rows[OPEN, OFF][20][0].steps) == {*STEPS, REST}


def test_windows_where_nothing_is_recalled_have_the_goal(tmp_path: Path) -> None:
    made = [Made(0.009, 0.009, has_recalled=False)]
    assert window_row("", 1000, made, judge=True)[-1] == "p95 ≤ 10 ms: met"
    assert window_row("", 1000, made)[-1] == ""
    rows = windows({20: import_history(tmp_path / "chat", 20)}, 1)
    assert set(rows) == set(GOALS)
    assert len(rows[COLD, OFF][20]) == 1
