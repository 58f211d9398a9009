"""docs/python.md: its examples run as they stand, and every method of the door is in it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import Script

import recto
from recto.api.blocking import Desk, Talk

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
CALL = {"tool_calls": [{"name": "weather", "arguments": {"place": "Bergen"}}]}


def test_the_examples_of_the_python_page_run_from_top_to_bottom(script: Script, tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    answers = [{"text": "The old one."}] * 4 + [CALL] + [{"text": "It was so."}] * 40
    summary = {"text": "Patches of the sail were counted, from 0 to 7.", "when": "summary"}
    (tmp_path / "engine.log").write_text("started, stopped\n")
    shutil.copytree(ROOT / "examples" / "vault", tmp_path / "notes")
    environment = os.environ | {"RECTO_MODEL": script(*answers, summary), "RECTO_CONTEXT_RECENT_MESSAGES_TO_KEEP": "2"}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "The old one." in ran.stdout
    assert "Patches of the sail" in ran.stdout
    assert "there is no conversation no-such-id" in ran.stdout.lower()


def test_every_method_event_and_error_of_the_door_is_on_the_page() -> None:
    hidden = {"asynchronous", "session", "home", "project", "settings", "store", "engine", "run"}
    for kind in (Desk, Talk):
        names = {name for name in vars(kind) if not name.startswith("_")} - hidden
        missing = {name for name in names if not re.search(rf"\.{name}\b|`{name}\b", PAGE)}
        assert not missing
    assert {name for name in recto.__all__ if name not in PAGE} == {"__version__"}
