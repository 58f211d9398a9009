"""What a vault holds as a whole, and why a search of it may find nothing."""

import shutil
from pathlib import Path

from recto.vault.folder import MAX_NOTE_BYTES
from recto.vault.vault import Vault
from recto.vault.vault_answers import unread_notes, vault_overview, why_nothing


def test_an_empty_vault_and_a_folder_that_is_gone_are_told(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    vault = Vault(tmp_path / "notes")
    assert why_nothing(vault).startswith("there are no notes in ")
    (tmp_path / "notes" / "A.md").write_text("Rain.\n")
    vault.refresh()
    assert why_nothing(vault) == ""
    shutil.rmtree(tmp_path / "notes")
    assert "is no longer there" in why_nothing(vault)


def test_notes_that_are_too_large_are_named(tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text("Rain.\n")
    vault = Vault(tmp_path)
    assert unread_notes(vault) == ""
    (tmp_path / "Big.md").write_text("x" * (MAX_NOTE_BYTES + 1))
    vault.refresh()
    assert unread_notes(vault).startswith("not searched: Big.md has 2.0 MB")


def test_notes_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    (tmp_path / "daily").mkdir()
    for name in ("daily/2026-01-01.md", "Welcome.md", "Budget.md"):
        (tmp_path / name).write_text("Rain.\n")
    assert vault_overview(Vault(tmp_path)) == "3 notes: Budget, Welcome, 2026-01-01"
