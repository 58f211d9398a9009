"""`make demo` runs to its end: the embedded model, the window, a summary, the proof. So does `examples/by_hand.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.usefixtures("any_model")
def test_the_demo_runs_to_its_end() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "examples/demo.sh"], cwd=ROOT, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "compaction 1: " in done.stdout
    # a model that is too small quotes the notes itself: nothing was sent for these replies
    told = done.stdout.count("\nok ") + done.stdout.count("\nnot sent ")
    assert told >= 2, "each reply, and the summary where a model wrote it"


def test_one_message_can_be_sent_with_parts_put_together_by_hand() -> None:
    command = [sys.executable, "examples/by_hand.py"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tokens: ['system', 'message']\nShe is seven metres long.\n" in shown
    assert '{"role":"user","content":"How long is the boat?"}]}' in shown
