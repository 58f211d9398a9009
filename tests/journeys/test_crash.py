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

from recto.api.blocking import open_desk


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_a_killed_process_keeps_what_was_shown_before(script: Script, tmp_path: Path, command: str) -> None:
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
    shown = b""
    while b"word5 " not in shown:
        text = os.read(process.stdout.fileno(), 65536)
        assert text, "it ended before it was killed"
        shown += text
    with open_desk(home=tmp_path / "home", model=script({"text": "on we go"})) as desk:
        while not desk.latest().messages()[-1].text.startswith(shown.decode().strip()):  # type: ignore[union-attr]
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    with open_desk(home=tmp_path / "home", model=script({"text": "on we go"})) as desk:
        talk = desk.latest()
        assert talk is not None
        left = talk.messages()[-1]
        assert left.status == "unfinished"
        assert left.text.startswith(shown.decode().strip())
        assert talk.ask("go on").text == "on we go"
        sent = json.loads(desk.rebuild(talk.messages()[-1].request or ""))
        assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "user"]
