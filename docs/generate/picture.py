"""docs/chat.svg: the screen of a real chat over the example vault. `make picture` runs this.

tmux is the terminal: it gives the screen as it is, with its colours. The embedded model answers.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "chat.svg"
# Low enough for the first line, which names a folder of this machine, to have scrolled away.
WIDTH, HEIGHT = 96, 32
TYPED = ("Which fuse protects the bilge pump?", "/context How long is the boat in [[Sorrel]]?")
STILL_S = 2.0
PATIENCE_S = 120.0
# rich's own format asks a host for its font; a reader's font serves as well, and nobody is asked.
FORMAT = """\
<svg class="{unique_id}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
    font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    screen = _screen()
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(screen), soft_wrap=True, end="")
    drawn = console.export_svg(title="recto chat", theme=MONOKAI, code_format=FORMAT, unique_id="recto")
    FILE.write_text(drawn, "utf-8")


def _screen() -> str:
    """The screen after everything was typed and answered."""
    with tempfile.TemporaryDirectory() as folder:
        surroundings = {name: value for name, value in os.environ.items() if not name.startswith("RECTO_")}
        surroundings |= {"RECTO_HOME": f"{folder}/home", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        index = [sys.executable, "-m", "recto", "vault", "index", "--vectors", "--vault", "examples/vault"]
        subprocess.run(index, cwd=ROOT, env=surroundings, capture_output=True, check=True)
        chat = [sys.executable, "-m", "recto", "chat", "--vault", "examples/vault", "--set", "reply.temperature=0"]

        def tmux(*words: str) -> str:
            command = ["tmux", "-S", f"{folder}/tmux", *words]
            return subprocess.run(
                command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=True
            ).stdout

        def look() -> str:
            return tmux("capture-pane", "-p")

        tmux("new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), shlex.join(chat))
        tmux("set-option", "status", "off")
        try:
            _settle(look, "›")
            for keys in TYPED:
                tmux("send-keys", "-l", keys)
                tmux("send-keys", "Enter")
                _settle(look, "tokens")
            return tmux("capture-pane", "-p", "-e").rstrip("\n")
        finally:
            tmux("kill-server")


def _settle(look: Callable[[], str], wanted: str) -> None:
    """Waits until this is on the screen and nothing changes there any more."""
    until, since, before = time.monotonic() + PATIENCE_S, time.monotonic(), ""
    while wanted not in before or time.monotonic() - since < STILL_S:
        if time.monotonic() > until:
            raise SystemExit(f"the screen never came to rest:\n{before}")
        time.sleep(0.2)
        if (now := look()) != before:
            since, before = time.monotonic(), now


if __name__ == "__main__":
    main()
