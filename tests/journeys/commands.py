"""Commands as the pages show them, run in this process, which is quick, or each in one of its own, as users do."""

import shlex
import subprocess
import sys

from click.testing import CliRunner

from recto.cli.main import recto


def in_a_process(command: str) -> str:
    """What it prints, notes included."""
    arguments = [sys.executable, "-m", "recto", *shlex.split(command)[1:]]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


def in_this_process(command: str) -> str:
    """The same."""
    done = CliRunner().invoke(recto, shlex.split(command)[1:])
    assert done.exit_code == 0, f"{command}\n{done.output}"
    return done.output
