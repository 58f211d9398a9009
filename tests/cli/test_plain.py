"""Plain mode: nothing that a screen reader would spell out or lose."""

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.harbour import BERTH, write_agent, write_server
from tests.cli.terminal import Terminal
from tests.conftest import Script

from recto.cli.slash import COMMANDS

DRAWN = re.compile("[\u2500-\u259f\u25b0\u25b1\u2800-\u28ff\x1b]")
OUTSIDE = (
    ["context", "show"],
    ["context", "stats"],
    ["context", "cost"],
    ["context", "summary"],
    ["request", "show"],
    ["sources", "list"],
    ["sources", "stats"],
    ["conversations", "list"],
    ["conversations", "show"],
    ["conversations", "search", "boat"],
    ["agent", "list"],
    ["agent", "show", "default"],
    ["config", "show"],
    ["models", "list"],
    ["--help"],
)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_PLAIN", "1")


@pytest.fixture
def talked(run: Run, script: Script, home: Path, notes: Path) -> str:
    write_agent(home / "agents/default")
    write_server(home)
    long = "The boat Sorrel has two masts. " * 60
    model = script(*[{"text": long}] * 12, {"text": "They talked of a boat.", "when": "summary"}, limit=16_000)
    lines = [*(f"{n} about [[Welcome]]" for n in range(5)), "/compact", "more"]
    run("chat", "-m", model, "--vault", str(notes), input="\n".join(lines))
    return model


def test_no_command_draws(run: Run, talked: str) -> None:
    for command in OUTSIDE:
        told = run(*command)
        assert not DRAWN.search(told.output), command
    assert "documents" in run("context", "show", "--message", "[[Welcome]]").stdout


def test_no_slash_command_draws(run: Run, talked: str, notes: Path) -> None:
    left_out = {"quit", "delete", "archive", "trust", "export", "switch", "attach"}
    lines = [line for name in COMMANDS if name not in left_out for line in COMMANDS[name].examples]
    told = run("chat", "-c", "1", "-m", talked, "--vault", str(notes), input="\n".join(lines)).output
    assert not DRAWN.search(told)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "dumb"])
def test_a_plain_chat_moves_no_cursor(
    terminal: type[Terminal],
    script: Script,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    monkeypatch.delenv("RECTO_PLAIN")
    write_server(home)
    write_agent(home / "agents/default")
    if how == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    model = script({"tool_calls": [BERTH]}, {"text": "# Title\n\nBooked.", "until": str(tmp_path / "seen")})
    chat = terminal("chat", "-m", model, *(["--plain"] if how == "option" else []))
    chat.wait_for("> ")
    chat.type("book a berth\r")
    chat.wait_for("harbour wants to run berth")
    chat.wait_for("run it?")
    chat.settle()
    chat.type("y\r")
    (tmp_path / "seen").touch()
    chat.wait_for("Booked.")
    chat.wait_for("% of 8,192 tokens used")
    chat.wait_for("> ")
    chat.type("/context\r")
    chat.wait_for("8,192 tokens = ")
    chat.wait_for("> ")
    chat.type("\x04")
    assert chat.code() == 0
    assert not DRAWN.search(chat.raw), chat.raw
