"""A goal, a real server for files, a model that makes mistakes, kill -9 in the middle: the work goes on from there."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harbour import WAIT, write_server
from tests.conftest import Script

from recto.api.blocking import open_desk

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / ".venv/node/node_modules/.bin/mcp-server-filesystem"
PATIENCE_S = 120


@pytest.fixture(params=["sdk", pytest.param("npm", marks=pytest.mark.slow)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of files, and a server for them in the user's home."""
    files = tmp_path / "boats"
    files.mkdir()
    (files / "sorrel.txt").write_text("Sorrel: 9 m, built in 1934\n")
    (files / "heron.txt").write_text("Heron: 7 m, built in 1961\n")
    if request.param == "npm":
        assert PUBLISHED.exists(), "the server is not installed: make .venv/node.ready"
        server = {"command": str(PUBLISHED), "args": [str(files)]}
    else:
        server = {"command": sys.executable, "args": [str(ROOT / "tests/mcp/parts/files.py"), str(files)]}
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.mcp.json").write_text(json.dumps({"mcpServers": {"files": server}}))
    return files


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": json.dumps(arguments)}]}


def plan(*statuses: str, **more: Any) -> dict[str, Any]:
    texts = ("list the boats", "read each of them", "write fleet.txt")
    steps = [{"text": text, "status": status} for text, status in zip(texts, statuses, strict=True)]
    return call("update_plan", steps=steps, **more)


def bodies(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.slow
def test_a_killed_run_goes_on_and_reaches_its_goal(
    folder: Path, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, fleet = tmp_path / "log", folder / "fleet.txt"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    wrong = call("files__read_text_file", path=str(folder / "sorel.txt"))
    first = [
        plan("active", "pending", "pending"),
        call("files__list_directory", path=str(folder)),
        wrong,
        wrong,
        call("files__read_text_file", path=str(folder / "sorrel.txt")),
        call("files__write_file", path=str(fleet), content="Sorrel 1934\n"),
        {"text": "Now for the next one", "hang_s": 600},
    ]
    command = [sys.executable, "-m", "recto", "agent", "run", "--allow-tool", "files", "--json"]
    model = script(*first)
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen([*command, "List the fleet", "-m", model], stderr=errors, stdout=errors)
    until = time.monotonic() + PATIENCE_S
    while len(bodies(log)) < len(first):
        assert process.poll() is None, (tmp_path / "errors").read_text()
        assert time.monotonic() < until, (tmp_path / "errors").read_text()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert fleet.read_text() == "Sorrel 1934\n"

    second = [
        call("files__read_text_file", path=str(folder / "heron.txt")),
        call("files__write_file", path=str(fleet), content="Sorrel 1934\nHeron 1961\n"),
        {"text": "The fleet is listed."},  # without a word about the plan
        plan("done", "done", "done", outcome="done", because="fleet.txt has both boats"),
        {"text": "fleet.txt has both boats."},
    ]
    going_on = subprocess.run([*command, "--continue", "-m", script(*second)], capture_output=True, timeout=PATIENCE_S)
    assert going_on.returncode == 0, going_on.stderr
    report = json.loads(going_on.stdout)
    assert (report["outcome"], report["steps"]) == ("done", 9), "the steps before the crash count"
    assert fleet.read_text() == "Sorrel 1934\nHeron 1961\n"
    _check(bodies(log), len(first))


def _check(sent: list[dict[str, Any]], before_crash: int) -> None:
    """What the model was told on the way, and that every call of a request has its result."""
    results = [message for message in sent[before_crash - 1]["messages"] if message["role"] == "tool"]
    told = ["you made this very call before" in str(message["content"]) for message in results]
    assert told == [False, False, False, True, False, False]
    again = sent[before_crash]["messages"]
    assert "Go on with the goal" in str(again[-1]["content"])
    assert any("list the boats" in json.dumps(message.get("tool_calls") or "") for message in again)
    assert "3 steps are open" in str(sent[before_crash + 3]["messages"][-1]["content"])
    for body in sent:
        calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
        answered = Counter(message["tool_call_id"] for message in body["messages"] if message["role"] == "tool")
        assert answered == Counter(calls)


def test_a_run_that_is_killed_while_a_tool_works_goes_on(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    write_server(tmp_path / "home")
    (tmp_path / "home/agents/default").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "recto", "agent", "run", "--allow-tool", "harbour", "--json"]
    model = script(plan("active", "pending", "pending"), {"tool_calls": [WAIT]})
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen([*command, "Wait for the tide", "-m", model], stderr=errors, stdout=errors)
    until = time.monotonic() + PATIENCE_S
    with open_desk(home=tmp_path / "home", model=model) as desk:
        while not ((talk := desk.latest()) and len(talk.messages()) == 4):  # the call is stored, its result is not
            assert process.poll() is None, (tmp_path / "errors").read_text()
            assert time.monotonic() < until, (tmp_path / "errors").read_text()
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        talk = desk.latest()
        assert talk is not None
        run = talk.last_run()
    assert run is not None
    assert (run.status, run.steps) == ("running", 1)
    again = script(plan("done", "dropped", "dropped"), {"text": "The tide is in."})
    going_on = subprocess.run([*command, "--continue", "-m", again], capture_output=True, timeout=PATIENCE_S)
    assert going_on.returncode == 0, going_on.stderr
    assert json.loads(going_on.stdout)["steps"] == 2
    for body in bodies(log):
        calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
        assert calls == [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
