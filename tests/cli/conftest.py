"""The command line, in this process for most, and as a process of its own where that makes a difference."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.preloaded import Preloaded
from tests.cli.terminal import Terminal

from recto.cli.main import recto

Run = Callable[..., Result]
Spawn = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run() -> Run:
    def invoke(*args: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(recto, list(args), input=input)

    return invoke


@pytest.fixture
def spawn() -> Spawn:
    """The real command, with the surroundings that the test has set."""

    def start(*args: str, input: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run([sys.executable, "-m", "recto", *args], input=input, capture_output=True, timeout=120)

    return start


@pytest.fixture
def fork(preloaded: Preloaded) -> Spawn:
    """The same without importing first."""
    return preloaded.run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Welcome.md").write_text("# Welcome\n\nThe boat is called Sorrel.\n")
    return folder


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, preloaded: Preloaded) -> Iterator[type[Terminal]]:
    monkeypatch.setenv("TERM", "xterm-256color")
    for size in ("COLUMNS", "LINES"):
        monkeypatch.delenv(size, raising=False)
    opened: list[Terminal] = []

    class Kept(Terminal):
        starter = preloaded

        def __init__(self, *args: str, columns: int = 100) -> None:
            super().__init__(*args, columns=columns)
            opened.append(self)

    yield Kept
    for each in opened:
        each.close()


def rows(result: Result) -> list[dict[str, Any]]:
    """The JSON objects of an answer, one per line."""
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def one(result: Result) -> dict[str, Any]:
    (row,) = rows(result)
    return row


def failure(result: Result, code: int = 1) -> str:
    """What a failed command says; never a traceback, nothing on stdout."""
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    assert "Traceback" not in result.stderr
    return result.stderr
