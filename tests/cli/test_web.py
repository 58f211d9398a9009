"""`recto web` as a command: what it refuses, and the window of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from recto.cli.web import WINDOW

LINK = "http://127.0.0.1:1/?key=once"


def window(folder: Path, webview: str) -> subprocess.CompletedProcess[str]:
    """The process of the window, with a stand-in for what draws it."""
    (folder / "webview.py").write_text(webview)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", WINDOW, LINK]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_window_opens_the_link(tmp_path: Path) -> None:
    shown = window(tmp_path, "def create_window(title, link): print(title, link)\ndef start(): pass\n")
    assert (shown.returncode, shown.stdout) == (0, f"Recto {LINK}\n")


def test_a_machine_that_draws_no_window_says_so_in_one_sentence(tmp_path: Path) -> None:
    failed = window(tmp_path, "def create_window(*a): pass\ndef start(): raise RuntimeError('no GTK\\nlong story')\n")
    assert failed.returncode == 1
    assert failed.stderr == "recto: no window can be opened (no GTK); open the link above in a browser\n"


def test_without_a_display_the_window_is_refused() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    if sys.platform in ("darwin", "win32"):
        pytest.skip("this system always has a display")
    done = subprocess.run(
        [sys.executable, "-m", "recto", "web", "--native"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "--native needs a display and pywebview" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def display() -> Iterator[str]:
    xvfb = shutil.which("Xvfb")
    if xvfb is None or find_spec("webview") is None:
        pytest.skip("a real window needs pywebview and Xvfb (`apt-get install xvfb`)")
    reading, writing = os.pipe()
    with subprocess.Popen([xvfb, "-displayfd", str(writing)], pass_fds=[writing]) as running:
        os.close(writing)
        with os.fdopen(reading) as told:
            yield f":{told.readline().strip()}"
        running.terminate()


@pytest.mark.slow
def test_a_real_window_stays_open(display: str) -> None:
    with subprocess.Popen([sys.executable, "-c", WINDOW, LINK], env=os.environ | {"DISPLAY": display}) as running:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(5)
        running.terminate()
