"""Folders that somebody may choose as a vault, and what their notes ask."""

from pathlib import Path

import pytest

from recto.vault.folder import folders_like, look_at_folder
from recto.vault.vault import Vault
from recto.vault.vault_answers import questions_in_notes


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "people").mkdir(parents=True)
    (folder / "FAQ.md").write_text(
        "# FAQ\n\n## Where is the **mast**?\n\nIn the shed.\n\n- Who owns [[Sorrel]]? (see it)\n"
    )
    (folder / "people" / "Ann.md").write_text("# Ann\n\n1. Does Ann like oysters at all?\n\nWhy not? She does.\n")
    (folder / "photo.png").write_bytes(b"png")
    return folder


def test_a_folder_says_how_many_notes_it_holds(notes: Path) -> None:
    found = look_at_folder(str(notes))
    assert (found.path, found.notes, found.problem) == (notes, 2, "")
    assert set(found.names) == {"FAQ", "Ann"}


def test_what_is_no_folder_of_notes_is_told(notes: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no note" in look_at_folder(str(tmp_path / "empty")).problem
    assert look_at_folder(str(tmp_path / "nowhere")).problem
    assert look_at_folder(str(notes / "FAQ.md")).problem
    assert "full path" in look_at_folder("notes").problem
    assert look_at_folder("~nobody-has-this-name/notes").problem
    assert look_at_folder("/tmp/\0").problem


def test_folders_go_on_as_they_were_typed(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(notes))
    assert folders_like(f"{notes}/") == [f"{notes}/people"]
    assert folders_like(f"{notes}/Peo") == [f"{notes}/people"]
    assert folders_like("") == folders_like("~") == folders_like("peo") == ["~/people"]
    assert folders_like("/nowhere/at all") == []
    assert folders_like("~nobody-has-this-name/") == []


def test_notes_are_asked_what_they_ask_themselves(notes: Path) -> None:
    vault = Vault(notes)
    assert questions_in_notes(vault, 3) == ["Where is the mast?", "Who owns Sorrel?", "Does Ann like oysters at all?"]
    assert questions_in_notes(vault, 1) == ["Where is the mast?"]
    vault.close()
