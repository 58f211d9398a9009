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
    told = [{"text": text, "status": status} for text, status in steps]
    return {"tool_calls": [{"name": "update_plan", "arguments": json.dumps({"steps": told} | more)}]}


READ = {"tool_calls": [{"name": "read_document", "arguments": '{"path": "Welcome.md"}'}]}
WORK = (
    plan(("read the note", "active"), ("answer", "pending")),
    READ,
    plan(("read the note", "done"), ("answer", "done"), outcome="done", because="the note says it"),
    {"text": "She is called Sorrel."},
)


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


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 2),
        (("a goal", "--continue"), 2),
        (("",), 1),
        (("x", "--max-steps", "0"), 2),
        (("x", "--max-cost", "0"), 2),
        (("x", "-c", "77"), 1),
        (("--continue",), 1),
        (("x", "-c", "1", "--agent", "clerk"), 2),
    ],
)
def test_bad_input_is_refused(run: Run, script: Script, arguments: tuple[str, ...], code: int) -> None:
    failure(run("agent", "run", *arguments, "-m", script({"text": "?"})), code)


def test_a_goal_of_the_chat_is_worked_on_and_its_plan_shown(run: Run, script: Script, notes: Path) -> None:
    lines = "/goal\n/goal Find the name\n/goal\n/goal stop\n"
    done = run("chat", "-m", script(*WORK), "--vault", str(notes), input=lines)
    assert done.stdout.count("no goal is being worked on") == 2
    assert "done: the note says it; 3 of 20 steps used" in done.stdout


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
