"""What the README shows is run: its commands, its Python, its promises about files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journeys.commands import in_a_process, in_this_process

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_every_recto_command_in_the_readme_works_in_its_order(any_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_command = in_a_process if any_model == "embedded" else in_this_process
    monkeypatch.chdir(ROOT)
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith(("recto ", "cp "))]
    assert len(commands) >= 12
    for command in commands:
        if command.startswith("cp "):
            subprocess.run(["sh", "-c", command], check=True)
        else:
            assert run_command(command).strip(), command


@pytest.mark.usefixtures("any_model")
def test_the_python_of_the_readme_runs() -> None:
    (code,) = blocks("python")
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    assert "system" in done.stdout


def test_every_make_target_of_the_readme_is_listed_by_make() -> None:
    wanted = set(re.findall(r"\bmake ([a-z]+)\b", README))
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert wanted <= set(re.findall(r"make ([a-z]+)", listed))


def test_every_page_is_named_in_the_readme_and_every_file_it_names_exists() -> None:
    named = set(re.findall(r"`((?:docs|examples)/[\w./-]+|CHANGELOG\.md)`", README))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_links_of_the_readme_work_on_a_package_index_too() -> None:
    """A package index shows the README alone: links relative to the repository would lead nowhere."""
    assert [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("https://")] == []


def test_the_readme_stays_short() -> None:
    assert README.count("\n") < 150


def test_the_picture_is_of_the_chat_and_asks_nobody_for_anything() -> None:
    name, page = re.findall(r'<img src="([^"]+)"', README)
    assert (ROOT / page).stat().st_size < 200_000
    picture = (ROOT / name).read_text("utf-8")
    assert set(re.findall(r"https?://[^\s\"')<]+", picture)) == {"http://www.w3.org/2000/svg"}
    text = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture)).replace("&#160;", " ")
    for part in ("recto chat", "[[Electrics]]", "reserve", "Fuse 5 protects the bilge pump.", "tokens"):
        assert part in text
    assert str(ROOT) not in text
