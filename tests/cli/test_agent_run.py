"""`recto agent run` and `/goal`: the plan as it changes, the report, going on, bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, failure
from tests.cli.harbour import BERTH, write_agent, write_server
from tests.cli.terminal import Terminal
from tests.conftest import Script


def plan(*steps: tuple[str, str], **more: Any) -> dict[str, Any]:
    told = [{"text": text, "status": status, "files": ["Welcome.md"]} for text, status in steps]
    return {"tool_calls": [{"name": "update_plan", "arguments": json.dumps({"steps": told} | more)}]}


READ = {"tool_calls": [{"name": "read_document", "arguments": '{"path": "Welcome.md"}'}]}
WORK = (
    plan(("read the note", "active"), ("answer", "pending")),
    READ,
    plan(("read the note", "done"), ("answer", "done"), outcome="done", because="the note says it"),
    {"text": "She is called Sorrel."},
)


def test_a_run_shows_its_plan_and_ends_with_a_report(run: Run, script: Script, notes: Path) -> None:
    done = run("agent", "run", "Find the name of the boat", "-m", script(*WORK), "--vault", str(notes))
    assert done.exit_code == 0, done.stderr
    assert "note: step 1 of 20: 0 of 2 steps done, 1 pending, 1 active\n" in done.stderr
    assert "├─ ▶ read the note\n│    └─ Welcome.md\n└─ ○ answer\n     └─ Welcome.md\n" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "She is called Sorrel."
    assert lines[1:7] == [
        "done: the note says it",
        "Find the name of the boat",
        "├─ ✔ read the note",
        "│    └─ Welcome.md",
        "└─ ✔ answer",
        "     └─ Welcome.md",
    ]
    assert "notes: Welcome.md" in lines
    assert "looked at: Welcome.md" in lines
    assert any(line.startswith("3 of 20 steps, ") for line in lines)


def test_a_run_that_a_provider_ends_still_reports(run: Run, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_REPLY_TRIES", "1")
    model = script(WORK[0], {"error": "unreachable"})
    told = run("agent", "run", "Find it", "-m", model)
    assert "stopped: The script breaks off here" in told.stdout
    assert "The script breaks off here" in failure(told)
    as_json = run("agent", "run", "Find it", "-m", model, "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["outcome"] == "stopped"
    assert json.loads(as_json.stderr)["error"]["type"] == "Unreachable"


def test_a_run_out_of_steps_fails_and_goes_on(run: Run, script: Script, notes: Path) -> None:
    first = run("agent", "run", "Find it", "-m", script(WORK[0], {"text": "so far"}), "--max-steps", "1")
    assert first.exit_code == 1
    assert "out of steps: all 1 steps are used (--max-steps)" in first.stdout
    assert "`recto agent run --continue -c 1` continues" in first.stdout
    again = run("agent", "run", "--continue", "-m", script(*WORK[2:]))
    assert "all 1 steps of this run are used: --max-steps 2" in failure(again)
    more = run("agent", "run", "--continue", "-c", "1", "--max-steps", "9", "-m", script(*WORK[2:]))
    assert more.exit_code == 0, more.stderr
    assert "2 of 9 steps" in more.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        ((), 2, "Give a goal, or --continue"),
        (("a goal", "--continue"), 2, "Give a goal, or --continue"),
        (("",), 1, "the goal is empty"),
        (("x", "--max-steps", "0"), 2, "0 is not in the range"),
        (("x", "--max-cost", "0"), 2, "is not in the range"),
        (("x", "-c", "77"), 1, "there is no conversation"),
        (("--continue",), 1, "there is no conversation yet"),
        (("x", "-c", "1", "--agent", "clerk"), 2, "--agent is for a new conversation"),
    ],
)
def test_bad_input_is_one_sentence(run: Run, script: Script, arguments: tuple[str, ...], code: int, why: str) -> None:
    done = run("agent", "run", *arguments, "-m", script({"text": "?"}))
    assert done.exit_code == code
    assert why in done.stderr


def test_a_goal_of_the_chat_is_worked_on_and_its_plan_shown(run: Run, script: Script, notes: Path) -> None:
    lines = "/goal\n/goal Find the name\n/goal\n/goal stop\n"
    done = run("chat", "-m", script(*WORK), "--vault", str(notes), input=lines)
    assert "there is no goal yet" in done.stdout
    assert "done: the note says it; 3 of 20 steps used" in done.stdout
    assert "no goal is being worked on" in done.stderr


def test_a_goal_of_the_chat_goes_on_with_more_steps(run: Run, script: Script) -> None:
    run("agent", "run", "Find it", "-m", script(WORK[0], {"text": "so far"}), "--max-steps", "1")
    done = run("chat", "-c", "1", "-m", script(*WORK[2:]), input="/goal continue\n/goal continue 0\n/goal continue 9\n")
    assert "all 1 steps of this run are used" in done.stderr
    assert "max_steps must be a whole number from 1" in done.stderr
    assert "2 of 9 steps" in done.stdout


def test_hostile_text_of_a_plan_does_not_reach_the_terminal(run: Run, script: Script) -> None:
    model = script(plan(("clear\x1b[2J the screen", "done"), because="\x1b]0;x\x07"), {"text": "ok"})
    done = run("agent", "run", "Do \x1b[31mit", "-m", model)
    assert done.exit_code == 0
    assert "\x1b[2J" not in done.output
    assert "\x1b[31m" not in done.output
    assert "\x1b]0" not in done.output


def test_the_plan_stays_below_what_scrolls_and_a_tool_is_asked_about(
    terminal: type[Terminal], script: Script, home: Path
) -> None:
    write_agent(home / "agents/default")
    write_server(home)
    model = script(WORK[0], {"tool_calls": [BERTH]}, WORK[2], {"text": "It is booked.", "delay_s": 0.3})
    shown = terminal("agent", "run", "Book a berth", "-m", f"scripted:{Path(model).name}")
    told = shown.wait_for("run it? [y]es")
    assert "▶ read the note" in told
    shown.settle()
    shown.type("y\r")
    assert "├─ ✔ read the note" in shown.wait_for("└─ ✔ answer")
    shown.wait_for("done: the note says it")
    assert shown.code() == 0


def test_ctrl_c_stops_a_run_which_then_goes_on(terminal: type[Terminal], script: Script, run: Run) -> None:
    model = script(WORK[0], {"text": "word " * 200, "delay_s": 0.2})
    shown = terminal("agent", "run", "Find it", "-m", f"scripted:{Path(model).name}")
    shown.wait_for("word word")
    shown.type("\x03")
    shown.wait_for("continues")
    assert shown.code() == 130
    told = json.loads(run("agent", "run", "--continue", "--json", "-m", script(*WORK[2:])).stdout)
    assert (told["outcome"], told["steps"]) == ("done", 2)


def test_a_run_is_stopped_by_what_is_typed_below_it(terminal: type[Terminal], script: Script) -> None:
    model = script(WORK[0], {"text": "thinking", "delay_s": 0.1, **READ, "hang_s": 3.0})
    chat = terminal("chat", "-m", f"scripted:{Path(model).name}")
    chat.wait_for("› ")
    chat.type("/goal Find it\r")
    chat.wait_for("▶ read the note")
    chat.type("/goal stop\r")
    chat.wait_for("stopped: you stopped it")
    chat.wait_for("› ")
    chat.type("\x04")
    assert chat.code() == 0
