"""A program that is told to end ends in order: its servers end with it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Script
from tests.mcp.conftest import PARTS, is_alive

from recto.cli.terminal import ENDING, end_in_order


@pytest.fixture
def hangs(home: Path, tmp_path: Path, script: Script) -> subprocess.Popen[bytes]:
    """A question that waits for a tool, which waits for ever."""
    server = {"command": sys.executable, "args": ["-S", str(PARTS / "odd.py")], "approval": "allow"}
    home.mkdir()
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": {"odd": server}}))
    call = {"name": "odd__hang", "arguments": {"path": str(tmp_path / "hangs")}}
    model = script({"tool_calls": [{"name": "odd__pid", "arguments": {}}]}, {"tool_calls": [call]}, {"text": "never"})
    return subprocess.Popen(
        [sys.executable, "-m", "recto", "ask", "-m", model, "go"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=unmeasured(),
    )


def unmeasured() -> dict[str, str]:
    """What measures coverage listens to signals itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


def until(true: Callable[[], object]) -> None:
    for _ in range(3_000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


@pytest.mark.slow
@pytest.mark.parametrize("which", ENDING)
def test_a_program_that_is_told_to_end_takes_its_servers_with_it(
    hangs: subprocess.Popen[bytes], tmp_path: Path, which: signal.Signals
) -> None:
    until((tmp_path / "hangs").exists)
    servers = children(hangs.pid)
    assert servers
    os.kill(hangs.pid, which)
    out, err = hangs.communicate(timeout=30)
    assert hangs.returncode == 128 + which
    assert b"Traceback" not in out + err
    assert not any(map(is_alive, servers))


def test_a_second_signal_does_not_disturb_the_end_and_what_is_ignored_stays_so() -> None:
    code = (
        "import os, signal, sys, time; from recto.cli.terminal import end_in_order;"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); end_in_order(); os.kill(os.getpid(), signal.SIGHUP)\n"
        "try:\n    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(9)\n"
        "finally:\n    os.kill(os.getpid(), signal.SIGTERM)\n    print('in order', flush=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=unmeasured())
    assert (done.returncode, done.stdout) == (143, "in order\n")


def test_a_program_that_listens_itself_goes_on_to() -> None:
    before = [signal.getsignal(each) for each in ENDING]
    try:
        for each in ENDING:
            signal.signal(each, print)
        end_in_order()
        assert [signal.getsignal(each) for each in ENDING] == [print, print]
    finally:
        for each, handler in zip(ENDING, before, strict=True):
            signal.signal(each, handler)
