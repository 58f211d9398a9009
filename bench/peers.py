"""The peers: an environment of their own in `.bench/venv`, and how their scripts and commands are run from here.

Each peer script prints one JSON value. Bytecode is compiled on both sides, so that nobody pays for compiling.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDER = HERE.parent / ".bench"
BIN = FOLDER / "venv" / "bin"
WANTED = HERE / "peers.txt"
STAMP = FOLDER / "venv" / "ready.txt"


def surroundings(**more: str) -> dict[str, str]:
    """This machine's environment without what would steer us or the peers; Python may keep its bytecode."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("RECTO_", "LLM_", "PYTHON"))}
    return ours | more


@cache
def install() -> None:
    """Makes the peers' environment, once; again when `peers.txt` has changed."""
    wanted = WANTED.read_text("utf-8")
    if not STAMP.is_file() or STAMP.read_text("utf-8") != wanted:
        print("installing the peers into .bench/venv (once; about a minute)", file=sys.stderr)
        _run(sys.executable, "-m", "venv", "--clear", str(FOLDER / "venv"))
        _run(str(BIN / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(WANTED))
        STAMP.write_text(wanted, "utf-8")
    _compile_all()


_COMPILE = (
    "import compileall, sys, sysconfig\nfor folder in (sysconfig.get_path('purelib'), *sys.argv[1:]):\n"
    "    compileall.compile_dir(folder, quiet=2)"
)


def compile_ours() -> None:
    """What earlier runs have compiled is only looked at."""
    _run(sys.executable, "-c", _COMPILE, str(HERE.parent / "src"))


def _compile_all() -> None:
    compile_ours()
    _run(str(BIN / "python"), "-c", _COMPILE)


def _run(*command: str) -> None:
    done = subprocess.run(command, env=surroundings(), capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no word why").splitlines()[-1]
        raise SystemExit(f"the peers could not be set up ({last}); check the package index and try again")


def ask(script: str, *arguments: str | Path, **environment: str) -> Any:
    """Runs `bench/peer_SCRIPT.py` with the peers' Python and gives back what it printed."""
    install()
    # -P: names in this folder must not hide modules of the peers
    command = [str(BIN / "python"), "-P", str(HERE / f"peer_{script}.py"), *map(str, arguments)]
    # the project's folder for what both sides share, as bench.name
    known = surroundings(PYTHONPATH=str(HERE.parent), **environment)
    done = subprocess.run(command, env=known, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"peer_{script}.py failed with code {done.returncode}; what it said is above")
    return json.loads(done.stdout)
