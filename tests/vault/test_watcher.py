import sys
import threading
import time
from pathlib import Path

import pytest

from recto.vault.links import Link
from recto.vault.vault import Vault, Watcher

LONG_ENOUGH_S = 30.0


def heard(seen: list[str], path: str) -> bool:
    until = time.monotonic() + LONG_ENOUGH_S
    while path not in seen and time.monotonic() < until:
        time.sleep(0.01)
    return path in seen


def test_changes_are_reported_and_hidden_ones_are_not(tmp_path: Path) -> None:
    for folder in ("sub", ".obsidian", "sub/.git"):
        (tmp_path / folder).mkdir()
    begun = threading.Event()
    seen: list[str] = []
    watcher = Watcher(tmp_path, lambda paths: seen.extend(paths) if paths else begun.set())
    assert watcher.wait(LONG_ENOUGH_S)
    assert begun.is_set()
    for path in (".obsidian/x.json", "sub/.git/x", ".tmp", "sub/.gitignore", "sub/Note.md"):
        (tmp_path / path).write_text("x")
    assert heard(seen, "sub/Note.md")
    (tmp_path / "sub" / "Note.md").rename(tmp_path / "Other.md")
    assert heard(seen, "Other.md")
    watcher.stop()
    assert not watcher.is_watching
    assert set(seen) == {"sub/Note.md", "sub/.gitignore", "Other.md"}


def test_a_watched_vault_knows_what_was_saved(tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text("---\naliases: [One]\n---\n")
    vault = Vault(tmp_path)
    assert vault.watch() is vault.watch()
    assert vault.watch().wait(LONG_ENOUGH_S)
    one, two, new = (Link("", name) for name in ("One", "Two", "New"))
    assert (vault.resolve(one), vault.resolve(two)) == ("A.md", None)
    (tmp_path / "A.md").write_text("---\naliases: [Two]\n---\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "New.md").write_text("")
    until = time.monotonic() + LONG_ENOUGH_S
    while not (vault.resolve(two) and vault.resolve(new)) and time.monotonic() < until:
        time.sleep(0.01)
    assert (vault.resolve(one), vault.resolve(two), vault.resolve(new)) == (None, "A.md", "sub/New.md")
    assert vault.warnings == []
    vault.close()
    assert vault.resolve(two) == "A.md"


def test_a_vault_that_cannot_be_watched_has_a_warning_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    (tmp_path / "A.md").write_text("")
    vault = Vault(tmp_path)
    watcher = vault.watch()
    watcher.stop()
    assert not watcher.is_watching
    assert "cannot be watched" in vault.warnings[0]
    assert vault.resolve(Link("", "A")) == "A.md"
    vault.close()


def test_a_folder_that_goes_away_is_no_longer_watched(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    watcher = Watcher(tmp_path / "notes", lambda paths: None)
    assert watcher.wait(LONG_ENOUGH_S)
    (tmp_path / "notes").rename(tmp_path / "away")
    (tmp_path / "notes").mkdir()
    until = time.monotonic() + LONG_ENOUGH_S
    while watcher.is_watching and time.monotonic() < until:
        time.sleep(0.01)
    assert "the folder was moved" in watcher.warning
    watcher.stop()
