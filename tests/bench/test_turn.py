"""The tables of the turn, window and start benches: which goal stands beside which row, and where the time went."""

from importlib.metadata import Distribution
from pathlib import Path

import pytest
from bench.start import Place, _open_rows, _register
from bench.steps import REST, STEPS
from bench.table import Times
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
    _show_steps,
    growth,
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


def test_growth_is_from_the_smallest_to_the_largest_that_was_measured() -> None:
    told = growth(OPEN, {1_000: Times((0.010,)), 10_000: Times((0.5,)), 100_000: Times((0.020,))})
    assert (
        told == "growth from 1,000 to 100,000 messages, desk left open: p50 2.00×, p95 2.00× (goal p50 ≤ 1.3×: MISSED)"
    )
    assert "too few" in growth(OPEN, {1_000: Times((0.010,))})


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


def test_turns_with_a_compaction_are_in_no_other_row() -> None:
    for recalled in (False, True):
        turn = Turn(0.018, 0.004, 0.020, has_recalled=recalled, has_compacted=True)
        assert [what for what in (OFF, NOTHING, RECALLED, COMPACTED) if turn.belongs_to(what)] == [COMPACTED]


def test_the_second_table_names_every_step_and_what_runs_beside(capsys: pytest.CaptureFixture[str]) -> None:
    turn = Turn(0.018, 0.004, 0.020, steps=dict.fromkeys(STEPS, 0.002) | {REST: 0.004})
    _show_steps({(OPEN, OFF): {1_000: [turn]}, (OPEN, RECALLED): {1_000: []}})
    shown = capsys.readouterr().out
    assert all(step in shown for step in (*STEPS, REST))
    assert "embed, beside" in shown
    assert "desk left open, recalled" not in shown


def test_windows_where_nothing_is_recalled_have_the_goal(tmp_path: Path) -> None:
    made = [Made(0.009, 0.009, has_recalled=False)]
    assert window_row("", 1000, made, judge=True)[-1] == "p95 ≤ 10 ms: met"
    assert window_row("", 1000, made)[-1] == ""
    rows = windows({20: import_history(tmp_path / "chat", 20)}, 1)
    assert set(rows) == set(GOALS)
    assert len(rows[COLD, OFF][20]) == 1


def test_a_desk_is_judged_by_what_it_takes_beyond_the_import() -> None:
    *_, beyond = _open_rows(Times((0.400,)), Times((0.200,)))
    assert beyond[1] == "200"
    assert beyond[-1] == "≤ 150 ms: MISSED"


def test_the_instant_model_is_a_plugin_of_llm(tmp_path: Path) -> None:
    _register(tmp_path)
    [found] = Distribution.discover(path=[str(tmp_path)])
    assert [(point.group, point.value) for point in found.entry_points] == [("llm", "instant_model")]
    assert "instant" in (tmp_path / "instant_model.py").read_text("utf-8")


def test_commands_are_started_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def timed(command: list[str], *_: object) -> float:
        started.append(command[0])
        return float(len(started))

    monkeypatch.setattr("bench.start._timed", timed)
    place, commands = Place(tmp_path), (["recto"], ["llm"])
    place.warm_up(*commands)
    ours, theirs = place.in_turn(*commands, runs=2)
    assert started == ["recto", "llm"] * 3
    assert (ours.seconds, theirs.seconds) == ((3.0, 5.0), (4.0, 6.0))
