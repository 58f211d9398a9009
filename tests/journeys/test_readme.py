"""What the README shows is run: its commands, its Python, its promises about files."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_every_recto_command_in_the_readme_works_in_its_order() -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith(("recto ", "cp "))]
    assert len(commands) >= 12
    for command in commands:
        if command.startswith("cp "):
            subprocess.run(["sh", "-c", command], cwd=ROOT, check=True)
            continue
        done = run("-m", "recto", *shlex.split(command)[1:])
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip(), command


def test_the_python_of_the_readme_runs() -> None:
    (code,) = blocks("python")
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    assert "system" in done.stdout


def test_every_make_target_of_the_readme_is_listed_by_make() -> None:
    wanted = set(re.findall(r"\bmake ([a-z]+)\b", README))
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert wanted <= set(re.findall(r"make ([a-z]+)", listed))


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_of_the_readme_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_readme_stays_short() -> None:
    assert README.count("\n") < 150
