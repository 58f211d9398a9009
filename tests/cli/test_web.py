"""`recto web` as a command: what it refuses, and the window of its own."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from recto.cli.serve import WINDOW

PATIENCE_S = 60
LINK = "http://127.0.0.1:1/?key=once"


def window(folder: Path, webview: str) -> subprocess.CompletedProcess[str]:
    """The process of the window, with a stand-in for what draws it."""
    (folder / "webview.py").write_text(webview)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", WINDOW, LINK]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_window_opens_the_link(tmp_path: Path) -> None:
    shown = window(tmp_path, "def create_window(title, link, **size): print(title, link)\ndef start(): pass\n")
    assert (shown.returncode, shown.stdout) == (0, f"Recto {LINK}\n")


def test_a_machine_that_draws_no_window_says_so_in_one_sentence(tmp_path: Path) -> None:
    failed = window(
        tmp_path, "def create_window(*a, **size): pass\ndef start(): raise RuntimeError('no GTK\\nlong story')\n"
    )
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


@pytest.fixture
def drawing(display: str) -> dict[str, str]:
    """The environment of a process that can draw a window. As root, in a container, WebKit cannot make its sandbox."""
    made = os.environ | {"DISPLAY": display, "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    probe = "import webview; shown = webview.create_window('probe', html=''); webview.start(shown.destroy)"
    command = [sys.executable, "-c", probe]
    done = subprocess.run(command, env=made, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        pytest.skip(f"pywebview cannot draw here: {(done.stderr.strip().splitlines() or ['it fails'])[-1]}")
    return made


def connections(port: int) -> int:
    """Open connections to a port of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


@pytest.mark.slow
def test_a_real_window_shows_the_page(drawing: dict[str, str], tmp_path: Path) -> None:
    environment = drawing | {"RECTO_HOME": str(tmp_path), "RECTO_SEARCH_EMBEDDER": "none", "RECTO_STORE_BACKUP": "off"}
    with subprocess.Popen(
        [sys.executable, "-m", "recto", "web", "--native"], env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        port = int(
            next(line for line in running.stdout if "listens on" in line).partition("?")[0].rpartition(":")[2][:-1]
        )
        until = time.monotonic() + PATIENCE_S
        while not connections(port) and time.monotonic() < until:
            time.sleep(0.1)
        assert connections(port), "the window holds the socket of the page open"
        running.terminate()
    until = time.monotonic() + PATIENCE_S
    while connections(port) and time.monotonic() < until:
        time.sleep(0.1)
    assert not connections(port), "the window ends with the page"
