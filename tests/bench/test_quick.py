"""The small form of every bench: ratios, what is kept of them, and what counts as worse."""

import platform
import sys
from importlib import import_module
from pathlib import Path

import pytest
from bench.figure import YARDSTICK, Figure, cost, share, wrong, yardstick
from bench.quick import change, read, rows, with_yardstick, write

from bench import __main__ as command
from bench import peers, quick

FIXTURE = Path(__file__).parent / "last.json"
TURN = cost("turn: open", 0.030, "trim_messages", 0.020)
KEPT = share("facts: kept", 0.75)
LOST = wrong("kills: lost", 0)


def test_a_cost_without_a_peer_is_held_against_the_yardstick() -> None:
    made = with_yardstick([cost("soak: a turn", 0.030), TURN, KEPT], 0.010)
    assert [each.of for each in made] == [YARDSTICK, "trim_messages", ""]
    assert [each.value for each in made] == [pytest.approx(3), pytest.approx(1.5), 0.75]


@pytest.mark.parametrize(
    ("figure", "last", "is_worse"),
    [
        (TURN, None, False),
        (TURN, 1.5, False),
        (TURN, 1.2, False),
        (TURN, 1.15, True),
        (TURN, 9.0, False),
        (KEPT, 0.75, False),
        (KEPT, 0.76, True),
        (KEPT, 0.5, False),
        (LOST, 0.0, False),
        (wrong("kills: lost", 1), 0.0, True),
        (LOST, 1.0, False),
    ],
)
def test_worse_is_a_ratio_of_more_than_1_3_times_or_a_quality_that_fell(
    figure: Figure, last: float | None, is_worse: bool
) -> None:
    assert change(figure, last).is_worse == is_worse


def test_the_table_holds_ours_the_reference_both_ratios_and_the_change() -> None:
    assert rows([TURN, KEPT, LOST], {"turn: open": 1.0, "facts: kept": 0.8}) == [
        ["turn: open", "30 ms", "20 (trim_messages)", "1.5×", "1×", "1.50×", "WORSE"],
        ["facts: kept", "0.75 share", "–", "0.75", "0.8", "-0.05", "FELL"],
        ["kills: lost", "0 number", "–", "0", "–", "new", ""],
    ]


def test_what_was_saved_is_read_again_without_figures_that_a_bench_no_longer_has(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    assert read(path) is None
    write(path, [TURN, KEPT, LOST, cost("turn: former", 1.0, "llm", 2.0)])
    write(path, [TURN])
    last = read(path)
    assert last is not None
    assert last.figures == {"facts: kept": 0.75, "kills: lost": 0, "turn: open": 1.5}
    assert last.python == platform.python_version()


def test_without_saving_the_file_is_only_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "last.json"
    path.write_text(FIXTURE.read_text())
    monkeypatch.setattr(peers, "install", lambda: None)
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    monkeypatch.setattr(quick, "measure", lambda name, form, folder: [TURN] if form == "small" else [])
    quick.main(["turn"], save=False, path=path)
    assert path.read_text() == FIXTURE.read_text()
    shown = capsys.readouterr().out
    assert "WORSE" in shown
    assert "not measured this time: facts: kept, window: cold store" in shown
    quick.main(["turn"], save=True, path=path)
    assert read(path) != read(FIXTURE)


def test_what_two_benches_need_is_prepared_once_and_each_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def measure(name: str, form: str, folder: Path) -> list[Figure]:
        asked.append((name, form))
        if form == quick.PREPARED:
            (folder / name).mkdir()
            (folder / name / "chat").write_text("as it was prepared")
        return []

    monkeypatch.setattr(quick, "measure", measure)
    quick.measure_untimed(["turn", "window"], tmp_path)
    assert [each for each in asked if each[1] == quick.PREPARED] == [("turn", quick.PREPARED)]
    (tmp_path / "turn" / "chat").write_text("and used")
    assert (tmp_path / "window" / "chat").read_text() == "as it was prepared"


def test_every_bench_has_a_small_form() -> None:
    modules = {name: import_module(f"bench.{name}") for name in command.NAMES}
    forms = ("small", "small_untimed")
    assert [name for name, module in modules.items() if not any(hasattr(module, form) for form in forms)] == []


def test_a_small_form_gives_its_figures(tmp_path: Path) -> None:
    found = with_yardstick(list(import_module("bench.streams").small(tmp_path)), yardstick())
    assert [each.name for each in found] == ["streams: a commit", "streams: bytes written"]
    assert all(each.value > 0 for each in found)


def test_saving_goes_with_quick_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "turn", "--save"])
    with pytest.raises(SystemExit):
        command.main()
    assert "--save goes with quick" in capsys.readouterr().err
