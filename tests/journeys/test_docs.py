"""The pages in docs/ say what the code does: every setting, field and command they name is there, and what search.md
shows is run.
"""

import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest
from tests.journeys.boat import ASKED, REPLY, last_text, tell, write_script

from recto import settings
from recto.chat.blocks import Compaction
from recto.cli.main import recto
from recto.cli.slash import COMMANDS
from recto.desk import open_desk
from recto.walk.reaching import TOOL

ROOT = Path(__file__).parents[2]
COMPACTION = (ROOT / "docs" / "compaction.md").read_text()
SEARCH = (ROOT / "docs" / "search.md").read_text()
BOTH = COMPACTION + SEARCH
COMMAND = re.compile(r"(?:`|^|\$ )recto ([a-z]+ [a-z]+)", re.MULTILINE)
_TIME = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d\]")


def _has_row(page: str, spec: settings.Spec) -> bool:
    default = str(spec.default).lower() if isinstance(spec.default, bool) else f"{spec.default}"
    shown = re.sub(r"\.0`$", "`", f"`{default}`") if default else "empty"
    return f"| `{spec.key}` | {shown} |" in page


def test_every_setting_of_the_context_is_explained_with_its_default() -> None:
    for spec in settings.specs():
        if spec.key.startswith("context.") and "budgets" not in spec.key:
            assert _has_row(COMPACTION, spec), spec.key


def test_every_setting_of_search_and_recall_is_explained_with_its_default() -> None:
    for spec in settings.specs():
        if spec.key.startswith(("search.", "context.recall")):
            assert _has_row(SEARCH, spec), spec.key


def test_every_field_of_the_block_is_explained() -> None:
    for field in fields(Compaction):
        assert f"`{field.name}`" in COMPACTION, field.name


def test_every_argument_of_the_recall_tool_is_explained() -> None:
    for name in TOOL.schema["properties"]:
        assert f"| `{name}` |" in SEARCH, name


@pytest.mark.parametrize("words", sorted(set(COMMAND.findall(BOTH))))
def test_every_command_that_is_named_exists(words: str) -> None:
    command: click.Command = recto
    for word in words.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, words
        command = found


def test_every_slash_command_that_is_named_exists() -> None:
    for name in set(re.findall(r"`/([a-z]+)(?=[ `])", BOTH)):
        assert name in COMMANDS


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The conversation that search.md shows, told to a home with the real embedder."""
    name = write_script(tmp_path / "script.json", REPLY)
    monkeypatch.delenv("RECTO_SEARCH_EMBEDDER")
    monkeypatch.setenv("RECTO_MODEL", name)
    tell(tmp_path / "home", name)
    return name


def test_every_command_of_the_search_page_works_in_its_order(model: str) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", SEARCH, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) >= 8
    for command in commands:
        arguments = [sys.executable, "-m", "recto", *shlex.split(command)[1:]]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.strip(), command


def test_what_the_search_page_shows_as_recalled_is_what_is_sent(model: str, tmp_path: Path) -> None:
    shown = next(re.finditer(r"```\n(\[Recalled.*?)```", SEARCH, re.DOTALL))[1]
    with open_desk(home=tmp_path / "home", model=model) as desk:
        talk = desk.latest()
        assert talk is not None
        sent = _TIME.sub("", last_text(desk, talk.ask(ASKED).request_id))
    assert ASKED in SEARCH
    for part in _TIME.sub("", shown).split("…\n"):
        assert part in sent
