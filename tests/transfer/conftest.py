"""Stores and files to move conversations between."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Open, Script
from tests.transfer.samples import DOT

from recto.api.blocking import Desk
from recto.store.store import Store
from recto.transfer.formats import open_source
from recto.transfer.importer import Importer
from recto.transfer.recto_json import json_lines
from recto.transfer.report import ImportFormat, ImportReport

Import = Callable[..., ImportReport]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "recto.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    """A store elsewhere."""
    with Store(tmp_path / "other.db") as opened:
        yield opened


def export(store: Store, *ids: str) -> bytes:
    return b"".join(json_lines(store.copies, ids or store.copies.ids()))


def bring(store: Store, file: Path, format: ImportFormat | None = None) -> ImportReport:
    """Imports a file."""
    with open_source(file, format) as source:
        return Importer(store.copies).run(source)


@pytest.fixture
def talked(desk: Open, script: Script, tmp_path: Path) -> Desk:
    """A conversation with a tool, a document, an image, a file, a compaction, a pin and a branch."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Sorrel.md").write_text("# Sorrel\n\nThe boat Sorrel was built in 1934.\n" * 30)
    (tmp_path / "dot.png").write_bytes(DOT)
    (tmp_path / "notes.txt").write_text("Masts are made of spruce.")
    read = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Sorrel.md"}}]}
    answers = [{"text": f"Answer {n} about the boat."} for n in range(9)]
    model = script(read, *answers, {"text": "They spoke of a boat.", "when": "summary"}, limit=4000)
    opened = desk(model, vault=vault)
    talk = opened.conversation()
    talk.ask("How old is [[Sorrel]]?")
    talk.ask("What is this?", attachments=[str(tmp_path / "dot.png"), str(tmp_path / "notes.txt")])
    talk.ask("Question 2?")
    talk.pin("#1")
    talk.compact()
    talk.ask("And after that?")
    talk.undo()
    talk.ask("Rather this.")
    return opened
