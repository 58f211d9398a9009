"""kill -9 in the middle of a reply: what was shown is there, and the conversation goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import Script

from recto.blocking import open_desk


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_a_killed_process_loses_nothing_that_was_shown_for_a_second(
    script: Script, tmp_path: Path, command: str
) -> None:
    model = script({"text": " ".join(f"word{n}" for n in range(500)), "delay_s": 0.02})
    arguments = [sys.executable, "-u", "-m", "recto", command, "--model", model]
    process = subprocess.Popen(
        [*arguments, "count"] if command == "ask" else arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "RECTO_HOME": str(tmp_path / "home")},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"count\n" if command == "chat" else b"")
    process.stdin.close()
    shown: list[tuple[float, bytes]] = []
    told = 0.0
    while not told or shown[-1][0] - told < 1.2:
        text = os.read(process.stdout.fileno(), 65536)
        assert text, "it ended before it was killed"
        shown.append((time.monotonic(), text))
        if not told and b"word5 " in b"".join(text for _, text in shown):
            told = shown[-1][0]
    os.kill(process.pid, signal.SIGKILL)
    killed = time.monotonic()
    process.wait()
    process.stdout.close()
    old = b"".join(text for when, text in shown if killed - when > 1.0).decode()
    assert "word5" in old

    with open_desk(home=tmp_path / "home", model=script({"text": "on we go"})) as desk:
        talk = desk.latest()
        assert talk is not None
        left = talk.messages()[-1]
        assert left.status == "unfinished"
        assert left.text.startswith(old.strip())
        assert talk.ask("go on").text == "on we go"
        sent = json.loads(desk.rebuild(talk.messages()[-1].request or ""))
        assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "user"]
