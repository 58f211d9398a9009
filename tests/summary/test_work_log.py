"""Work logs: what matters is told in little room, the rest comes back when there is room, and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import quarter

from recto.summary.work_log import LoggedStep, WorkLog, list_files, parse_files, split_work_log, whole_log, with_files

ERROR = LoggedStep("mypy src", "a.py:3: error: bad", is_failed=True, is_shell=True)
TASK, DONE = "Move the harbour tables to the new store.", (("Build the chart.", "The charts are drawn."),)
LOG = WorkLog(
    TASK, DONE, "The types are wrong.", "Draw charts", ("a.py",), ("b.md",), (LoggedStep("find x", "1 hit"), ERROR)
)


def test_the_lines_have_the_order_that_a_reader_wants() -> None:
    assert LOG.render(400, quarter).split("\n") == [
        "Work log:",
        "Task: Move the harbour tables to the new store.",
        "Earlier task: Build the chart. → The charts are drawn.",
        "State: The types are wrong.",
        "Left: Draw charts",
        "Changed: a.py",
        "Read: b.md",
        "Ran: find x → 1 hit",
        "Failed: `mypy src` → a.py:3: error: bad",
    ]


def test_in_little_room_task_changed_files_and_errors_stay_and_lines_are_shortened() -> None:
    steps = tuple(LoggedStep(f"tool{number} --all", "it was done " * 20) for number in range(12))
    log = WorkLog(TASK, DONE, "", "", LOG.changed, LOG.read, (*steps, ERROR))
    told = f"Work log:\nTask: {TASK}\nChanged: a.py\nFailed: `mypy src` → a.py:3: error: bad"
    assert log.render(35, quarter) == told
    assert log.render(100, quarter, 500).count("Ran: ") == 12


def test_the_whole_log_is_kept_beside_a_part_of_it_unless_that_part_is_edited() -> None:
    little = f"{LOG.render(30, quarter)}\n\nUser: Be quick."
    assert split_work_log(f"{LOG.whole_beside(little)}\n\n{little}") == (LOG, little)
    assert LOG.whole_beside(f"{LOG.render(400, quarter)}\n\nUser: Be quick.") == ""
    assert whole_log(little.replace("quick", "slow"), little, "whole") == "whole"
    assert whole_log(little.replace("Move", "Drop"), little, "whole") == ""


texts = st.text(st.characters(exclude_characters="`→", codec="utf-8"), max_size=30)
lines = texts.map(lambda text: " ".join(text.split())).filter(bool)
steps = st.builds(LoggedStep, lines, lines, st.booleans(), st.just(False), st.booleans())


@given(lines, st.lists(st.tuples(lines, lines), unique=True), lines, lines, st.lists(steps, unique=True))
def test_a_log_is_read_back_as_it_was_written(
    task: str, earlier: list[tuple[str, str]], state: str, left: str, done: list[LoggedStep]
) -> None:
    done.sort(key=lambda step: (step.is_failed, step.is_shell))  # as the lines are
    log = WorkLog(task, tuple(earlier), state, left, steps=tuple(done))
    assert split_work_log(f"{log.whole_beside('')}\n\nUser: Be quick.") == (log, "User: Be quick.")


def test_the_newest_files_are_told_and_a_path_once() -> None:
    files = ("src/tides/port.py", "src/tides/table.py", "src/tides/chart.py")
    told = list_files(files, 48, len, "")
    assert (told, parse_files(told)) == ("src/tides/table.py, src/tides/chart.py (+1 more)", files[1:])
    assert with_files((r"C:\repo\b.cs", "c.py"), ["b.cs", "xb.cs"]) == ("c.py", r"C:\repo\b.cs", "xb.cs")
