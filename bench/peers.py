"""The peers: an environment of their own in `.bench/venv`, and how their scripts and commands are run from here.
One that does not get along with the others has an environment to itself.

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
PEERS = "peers"
BIN = FOLDER / "venv" / "bin"


def surroundings(**more: str) -> dict[str, str]:
    """This machine's environment without what would steer us or the peers; Python may keep its bytecode."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("RECTO_", "LLM_", "PYTHON"))}
    return ours | more


def bin_of(which: str) -> Path:
    return BIN if which == PEERS else FOLDER / which / "bin"


@cache
def install(which: str = PEERS) -> None:
    """Makes the environment of `bench/WHICH.txt`, once; again when that has changed."""
    wanted, folder = (HERE / f"{which}.txt").read_text("utf-8"), bin_of(which).parent
    stamp = folder / "ready.txt"
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        print(f"installing the peers into .bench/{folder.name} (once; about a minute)", file=sys.stderr)
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check")
        _run(*pip, "-r", str(HERE / f"{which}.txt"))
        stamp.write_text(wanted, "utf-8")
    _compile_all(folder / "bin" / "python")


_COMPILE = (
    "import compileall, sys, sysconfig\nfor folder in (sysconfig.get_path('purelib'), *sys.argv[1:]):\n"
    "    compileall.compile_dir(folder, quiet=2)"
)


def compile_ours() -> None:
    """What earlier runs have compiled is only looked at."""
    _run(sys.executable, "-c", _COMPILE, str(HERE.parent / "src"))


def _compile_all(theirs: Path) -> None:
    compile_ours()
    _run(str(theirs), "-c", _COMPILE)


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
