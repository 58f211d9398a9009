"""The pages in docs/ say what the code does: every setting, field, tool and command they name is there, and what
search.md and vault.md show is run.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest
from tests.journeys.boat import ASKED, REPLY, last_text, tell, write_script

from recto import settings
from recto.chat.blocks import Compaction
from recto.cli.main import recto
from recto.cli.slash import COMMANDS
from recto.desk import open_desk
from recto.sources.reading import reading_tools, writing_tools
from recto.vault.library import Library
from recto.vault.vault import Vault
from recto.walk.reaching import TOOL

ROOT = Path(__file__).parents[2]
COMPACTION = (ROOT / "docs" / "compaction.md").read_text()
SEARCH = (ROOT / "docs" / "search.md").read_text()
VAULT = (ROOT / "docs" / "vault.md").read_text()
PAGES = COMPACTION + SEARCH + VAULT
COMMAND = re.compile(r"(?:`|^|\$ )recto ([a-z]+ [a-z]+)", re.MULTILINE)
_TIME = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d\]")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
READS = {"name": "read_document", "arguments": {"path": "boat/Rigging.md", "section": "Reefing"}}
ANSWERS = {"text": "From 24 knots on, and the jib comes in as well."}
CALLS: dict[str, dict[str, Any]] = {
    "read_document": {"path": "Welcome"},
    "find_excerpts": {"query": "second reef"},
    "find_documents": {"query": "second reef"},
    "list_documents": {"tag": "people"},
    "find_backlinks": {"path": "Budget"},
    "find_forward_links": {"path": "First voyage"},
    "resolve_wikilink": {"wikilink": "[[Budget#Table]]"},
    "write_document": {"path": "New.md", "text": "# New"},
    "rename_document": {"path": "Budget.md", "new_path": "Money.md"},
    "delete_document": {"path": "FAQ.md"},
}


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


def test_every_setting_of_the_vault_is_explained_with_its_default() -> None:
    for spec in settings.specs():
        if spec.key.startswith(("references.", "vault")) or spec.key == "tools.allow_write":
            assert _has_row(VAULT, spec), spec.key


def test_every_field_of_the_block_is_explained() -> None:
    for field in fields(Compaction):
        assert f"`{field.name}`" in COMPACTION, field.name


def test_every_argument_of_the_recall_tool_is_explained() -> None:
    for name in TOOL.schema["properties"]:
        assert f"| `{name}` |" in SEARCH, name


@pytest.mark.parametrize("words", sorted(set(COMMAND.findall(PAGES))))
def test_every_command_that_is_named_exists(words: str) -> None:
    command: click.Command = recto
    for word in words.split():
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None, words
        command = found


def test_every_slash_command_that_is_named_exists() -> None:
    for name in set(re.findall(r"`/([a-z]+)(?=[ `])", PAGES)):
        assert name in COMMANDS


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The conversation that search.md shows, told to a home with the real embedder."""
    name = write_script(tmp_path / "script.json", REPLY)
    monkeypatch.delenv("RECTO_SEARCH_EMBEDDER")
    monkeypatch.setenv("RECTO_MODEL", name)
    tell(tmp_path / "home", name)
    return name


def run(command: str) -> str:
    """What it prints, notes included."""
    arguments = [sys.executable, "-m", "recto", *shlex.split(command)[1:]]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    assert done.stdout.strip(), command
    return done.stdout


def shown(page: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a page in their order, each with what it is said to print, in parts where some is left out."""
    for language, text in _BLOCK.findall(page):
        if language == "sh":
            yield from ((line, []) for line in text.splitlines())
        elif text.startswith("$ recto "):
            for one in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = one.partition("\n")
                yield command, re.split(r"^…\n", printed, flags=re.MULTILINE)


def test_every_command_of_the_search_page_works_in_its_order(model: str) -> None:
    commands = [command for command, printed in shown(SEARCH) if not printed]
    assert len(commands) >= 8
    for command in commands:
        run(command)


def test_what_the_search_page_shows_as_recalled_is_what_is_sent(model: str, tmp_path: Path) -> None:
    shown = next(re.finditer(r"```\n(\[Recalled.*?)```", SEARCH, re.DOTALL))[1]
    with open_desk(home=tmp_path / "home", model=model) as desk:
        talk = desk.latest()
        assert talk is not None
        sent = _TIME.sub("", last_text(desk, talk.ask(ASKED).request_id))
    assert ASKED in SEARCH
    for part in _TIME.sub("", shown).split("…\n"):
        assert part in sent


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A copy of the example vault, where the pages say that it lies."""
    return shutil.copytree(ROOT / "examples" / "vault", tmp_path / "examples" / "vault")


@pytest.fixture
def answering(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that reads a section before it answers, and the real embedder."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"tool_calls": [READS]}, ANSWERS]))
    monkeypatch.setenv("RECTO_MODEL", f"scripted:{script}")
    monkeypatch.delenv("RECTO_SEARCH_EMBEDDER")


@pytest.mark.usefixtures("answering")
def test_what_the_vault_page_shows_is_what_its_commands_print_in_their_order() -> None:
    for command, parts in shown(VAULT):
        printed, at = run(command), 0
        for part in parts:
            at = printed.find(part, at)
            assert at >= 0, f"{command}\n{part}\nis not in\n{printed}"


@pytest.mark.usefixtures("answering")
def test_the_python_of_the_vault_page_runs() -> None:
    (code,) = [text for language, text in _BLOCK.findall(VAULT) if language == "python"]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "[[Rigging#Reefing]] boat/Rigging.md direct" in done.stdout


def test_every_tool_of_the_vault_is_explained_with_what_it_takes_and_gives(notes: Path, tmp_path: Path) -> None:
    vault = Vault(notes)
    library = Library(vault, tmp_path / "search.db", lambda: None)
    rows = {row.split(" | ")[0].strip("|` "): row.split(" | ") for row in re.findall(r"^\| `.*$", VAULT, re.MULTILINE)}
    for each in (*reading_tools(vault, library), *writing_tools(vault)):
        _, takes, gives = rows[each.tool.name]
        assert set(each.tool.schema["properties"]) == set(re.findall(r"`(\w+)`", takes)), each.tool.name
        told = set(re.findall(r"`(\w+)`", gives))
        assert set(_fields(json.loads(each.run(CALLS[each.tool.name])))) <= told, each.tool.name
    library.close()
    vault.close()


def _fields(given: Any) -> Iterator[str]:
    if isinstance(given, dict):
        yield from given
    for each in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        yield from _fields(each)
