"""Completion in the shells themselves; a shell that is not installed is skipped."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.conftest import Run
from tests.conftest import Script

from recto.cli.main import recto

EMBEDDED = ["embedded:qwen2.5-coder-0.5b", "embedded:qwen2.5-coder-1.5b", "embedded:smollm2"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with a `recto` command."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "recto").write_text(f'#!/bin/sh\nexec {sys.executable} -m recto "$@"\n')
    (folder / "recto").chmod(0o755)
    return folder


def in_shell(shell: str, code: str, program: Path) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = f"{program}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([shell, "-c", code], env=os.environ | {"PATH": path}, capture_output=True, timeout=60)
    assert not done.stderr, done.stderr
    return done.stdout.decode()


def in_bash(words: list[str], program: Path) -> list[str]:
    typed = " ".join(f"'{word}'" for word in words)
    code = f"""eval "$(recto completion bash)"
COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}
_recto_completion recto "${{COMP_WORDS[COMP_CWORD]}}" ""
printf '%s\\n' "${{COMPREPLY[@]}}\""""
    return in_shell("bash", code, program).splitlines()


def completed(run: Run, typed: str) -> list[str]:
    """What the command of the shells' scripts says, in this process."""
    words = ["recto", *typed.split(" ")]
    surroundings = {"COMP_WORDS": shlex.join(words[:-1]) + f" {words[-1]}", "COMP_CWORD": str(len(words) - 1)}
    with pytest.MonkeyPatch.context() as patches:
        for name, value in (surroundings | {"_RECTO_COMPLETE": "bash_complete"}).items():
            patches.setenv(name, value)
        shown = CliRunner().invoke(recto, [], prog_name="recto", complete_var="_RECTO_COMPLETE")
    return [line.partition(",")[2] for line in shown.output.splitlines()]


def test_bash_completes_commands_options_and_names(run: Run, script: Script, program: Path, home: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), "Plan the apples")
    (home / "agents" / "reviewer").mkdir(parents=True)
    (home / "models.toml").write_text('[best]\nprovider = "openai"\nid = "gpt-4o"\n')
    assert in_bash(["recto", "chat", "-c", ""], program) == ["1", "Plan\\ the\\ apples"]
    for words, expected in (
        ("ch", ["chat"]),
        ("conversations hi", ["hide"]),
        ("chat --resu", ["--resume"]),
        ("chat --agent rev", ["reviewer"]),
        ("ask -m embedded", [EMBEDDED[1], EMBEDDED[0], EMBEDDED[2]]),
        ("ask -m be", ["best"]),
        ("config get context.thr", ["context.threshold"]),
        ("chat --set reply.tr", ["reply.tries="]),
        ("chat --strategy h", ["hybrid"]),
    ):
        assert completed(run, words) == expected
    (home / "recto.db").write_text("no store")
    assert completed(run, "chat -c ") == [""]


def test_fish_completes_commands(program: Path) -> None:
    told = in_shell("fish", 'recto completion fish | source; complete --do-complete "recto conf"', program)
    assert told.split("\t")[0] == "config"


def test_zsh_takes_the_script(program: Path) -> None:
    code = 'autoload -Uz compinit; compinit -u -D; eval "$(recto completion zsh)"; print $_comps[recto]'
    assert in_shell("zsh", code, program).strip() == "_recto_completion"
    asked = "env COMP_WORDS='recto conf' COMP_CWORD=1 _RECTO_COMPLETE=zsh_complete recto"
    assert in_shell("zsh", asked, program).splitlines()[:2] == ["plain", "config"]
