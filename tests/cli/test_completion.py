"""Completion in the shells themselves; a shell that is not installed is skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.conftest import Script

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


def test_bash_completes_commands_options_and_names(run: Run, script: Script, program: Path, home: Path) -> None:
    run("ask", "-m", script({"text": "Yes."}), "Plan the apples")
    (home / "agents" / "reviewer").mkdir(parents=True)
    (home / "models.toml").write_text('[best]\nprovider = "openai"\nid = "gpt-4o"\n')
    assert in_bash(["recto", "ch"], program) == ["chat"]
    assert in_bash(["recto", "conversations", "hi"], program) == ["hide"]
    assert in_bash(["recto", "chat", "--resu"], program) == ["--resume"]
    assert in_bash(["recto", "chat", "-c", ""], program) == ["1", "Plan\\ the\\ apples"]
    assert in_bash(["recto", "chat", "--agent", "rev"], program) == ["reviewer"]
    assert in_bash(["recto", "ask", "-m", "embedded"], program) == [EMBEDDED[1], EMBEDDED[0], EMBEDDED[2]]
    assert in_bash(["recto", "ask", "-m", "be"], program) == ["best"]
    assert in_bash(["recto", "config", "get", "context.thr"], program) == ["context.threshold"]
    assert in_bash(["recto", "chat", "--set", "reply.tr"], program) == ["reply.tries="]
    assert in_bash(["recto", "chat", "--strategy", "h"], program) == ["hybrid"]


def test_fish_completes_commands(program: Path) -> None:
    told = in_shell("fish", 'recto completion fish | source; complete --do-complete "recto conf"', program)
    assert told.split("\t")[0] == "config"


def test_zsh_takes_the_script(program: Path) -> None:
    code = 'autoload -Uz compinit; compinit -u -D; eval "$(recto completion zsh)"; print $_comps[recto]'
    assert in_shell("zsh", code, program).strip() == "_recto_completion"
    asked = "env COMP_WORDS='recto conf' COMP_CWORD=1 _RECTO_COMPLETE=zsh_complete recto"
    assert in_shell("zsh", asked, program).splitlines()[:2] == ["plain", "config"]


def test_a_store_that_cannot_be_read_offers_nothing(program: Path, home: Path) -> None:
    home.mkdir()
    (home / "recto.db").write_text("no store")
    assert in_bash(["recto", "chat", "-c", ""], program) == [""]


def test_completion_imports_nothing_heavy(home: Path) -> None:
    modules = "recto.cli.completion, recto.api.conversation_list, recto.providers.catalog"
    code = f"import sys\nimport {modules}\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout.split()
    assert not {"rich", "sqlalchemy", "prompt_toolkit", "genai_prices", "recto.engine"} & set(loaded)
