"""Slash commands about the chat itself: help whose examples run, settings, exports, trust."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure
from tests.cli.harbour import BERTH, write_agent, write_server
from tests.cli.terminal import Terminal
from tests.conftest import Script, mostly_slow

from recto.cli.slash import COMMANDS

LONG = "The boat Sorrel has two masts, and the winter berth costs 400 a month. " * 30
BEFORE = {
    "uncompact": "/compact",
    "summary": "/compact",
    "unpin": "/pin 1",
    "redo": "/undo",
    "unset": "/set context.threshold 0.7",
}
"""What makes a command useful."""


@pytest.fixture
def talked(run: Run, script: Script, home: Path, notes: Path) -> str:
    """Two conversations, an agent with sources, a vault; the name of the model."""
    write_agent(home / "agents/default")
    write_server(home)
    model = script(*[{"text": LONG}] * 12, {"text": "They talked of a boat.", "when": "summary"}, limit=16_000)
    run("ask", "-m", model, "hello")
    run("chat", "-m", model, "--vault", str(notes), input="\n".join(f"{n} about the boat" for n in range(5)))
    return model


@pytest.mark.parametrize("name", mostly_slow(COMMANDS, list(COMMANDS)[::6]))
def test_every_command_has_examples_that_run(
    run: Run, name: str, talked: str, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert COMMANDS[name].examples
    lines = [line for line in (BEFORE.get(name), *COMMANDS[name].examples) if line]
    assert all(line.split()[0] == f"/{name}" for line in COMMANDS[name].examples)
    said = run("chat", "-c", "2", "-m", talked, "--vault", str(notes), input="\n".join(lines))
    assert said.exit_code == 0, said.stderr


def test_an_export_is_named_by_the_title_and_replaces_nothing(
    run: Run, talked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "written to" in run("chat", "-c", "1", input="/rename My boat: Sorrel!\n/export\n").stdout
    written = tmp_path / "My-boat-Sorrel.md"
    assert "hello" in written.read_text()
    written.write_text("mine")
    assert "exists already" in failure(run("chat", "-c", "1", input="/export\n"))
    assert written.read_text() == "mine"
    run("chat", "-c", "1", input="/export out.jsonl\n")
    assert json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])


def test_an_export_that_cannot_be_writes_nothing(
    run: Run, talked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty/drawer").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "empty")
    assert "drawer is a folder: name a file in it" in failure(run("chat", "-c", "1", input="/export drawer\n"))
    assert [path.name for path in Path().rglob("*")] == ["drawer"]


@pytest.fixture
def project(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a server that nobody has trusted."""
    folder = tmp_path / "project"
    folder.mkdir()
    home.mkdir(exist_ok=True)
    write_server(home)
    (home / ".mcp.json").rename(folder / ".mcp.json")
    monkeypatch.chdir(folder)
    return folder


def test_a_server_that_needs_trust_is_asked_about_and_runs_in_this_turn(
    terminal: type[Terminal], script: Script, run: Run, project: Path
) -> None:
    chat = terminal("chat", "-m", script({"tool_calls": [BERTH]}, {"text": "Booked."}), "--allow-tool", "harbour")
    chat.wait_for_prompt()
    chat.type("book\r")
    told = chat.wait_for("let it run? [y]es / [N]o ")
    assert "harbour is an MCP server of this project" in told
    assert "harbour.py" in told.replace("\r\n", ""), "wherever a long path is folded"
    chat.settle()
    chat.type("y\r")
    chat.wait_for("harbour is trusted")
    chat.wait_for("→ 34 characters")
    chat.wait_for("Booked.")
