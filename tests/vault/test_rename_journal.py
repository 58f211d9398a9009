"""A rename that is killed on its way: nothing is lost, and the next one who opens the vault finishes it."""

import os
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.vault.folder import Folder
from recto.vault.rename import JOURNAL, BegunRename, RenameJournal
from recto.vault.vault import Vault

NOTES = {
    "Plan.md": "# Plan\n[[Ned]] and [a map](maps/coast.md)\n",
    "people/Ned.md": "[[Plan]] and [the plan](../Plan.md#Goals)\n",
    "people/Zoe.md": "![[Plan|ours]] and [[Ned]]\n",
    "maps/coast.md": "no link\n",
    "work/Scheme.md": "another one of that name\n",
    "work/List.md": "[[Scheme]] and [[Plan]]\n",
}


class Killed(BaseException):
    """As nothing in the program catches it."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def opened(root: Path) -> Vault:
    return Vault(root, root.parent / "home" / "catalog.db")


def led(vault: Vault, old: str, new: str) -> list[tuple[str, str | None]]:
    """Where every link leads, as paths before the rename."""
    found = [(each.source, each.path) for each in vault.all_links()]
    return sorted((old if source == new else source, old if path == new else path) for source, path in found)


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """The disk obeys so many times, and then the process is gone."""
    left = iter(range(step))

    def dying(change: str) -> None:
        real = getattr(Folder, change)

        def act(*args: object) -> object:
            if next(left, None) is None:
                raise Killed
            return real(*args)

        monkeypatch.setattr(Folder, change, act)

    dying("move")
    dying("write")


@pytest.mark.parametrize("new", ["Scheme.md", "work/Agenda.md", "people/Scheme.md"])
@pytest.mark.parametrize("step", range(5))
def test_a_killed_rename_is_finished_by_the_next_one_who_opens_the_vault(
    root: Path, monkeypatch: pytest.MonkeyPatch, new: str, step: int
) -> None:
    vault = opened(root)
    before = led(vault, "Plan.md", new)
    with monkeypatch.context() as patch:
        kill_at(patch, step)
        try:
            vault.rename("Plan.md", new)
        except Killed:
            assert (root.parent / "home" / JOURNAL).exists()
    vault.close()
    again = opened(root)
    assert led(again, "Plan.md", new) == before, "every link leads where it led"
    assert (root / "Plan.md").exists() != (root / new).exists()
    assert not (root.parent / "home" / JOURNAL).exists()
    assert not list(root.rglob(".*.tmp"))
    again.close()


def test_that_is_told_with_what_was_rewritten(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        kill_at(patch, 1)
        with pytest.raises(Killed):
            opened(root).rename("Plan.md", "Agenda.md")
    again = opened(root)
    again.refresh()
    assert again.broken_links() == []
    (told,) = again.warnings
    assert (
        told == "the rename of Plan.md to Agenda.md was interrupted and has been finished now: 4 links were rewritten"
    )
    assert opened(root).warnings == []


def test_a_chat_tells_it_once(root: Path, desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    model = script({"text": "ok"})
    with monkeypatch.context() as patch, desk(model, vault=root) as first:
        kill_at(patch, 1)
        vault = first.conversation().vault
        assert vault is not None
        with pytest.raises(Killed):
            vault.rename("Plan.md", "Agenda.md")
    at = desk(model, vault=root)
    talk = at.conversation()
    finished = "the rename of Plan.md to Agenda.md was interrupted and has been finished now: 4 links were rewritten"
    assert talk.ask("What is in [[Agenda]]?").notes.count(finished) == 1
    assert finished not in talk.ask("And [[Agenda]] again?").notes
    assert finished not in at.conversation().ask("What is in [[Agenda]]?").notes


def test_what_the_user_has_changed_since_stays_and_its_old_links_are_mended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_at(patch, 1)
        with pytest.raises(Killed):
            opened(root).rename("Plan.md", "Agenda.md")
    (root / "people" / "Zoe.md").write_text("My own words, and [[Plan]], and [[Scheme]].\n")
    assert opened(root).broken_links() == []
    assert (root / "people" / "Zoe.md").read_text() == "My own words, and [[Agenda]], and [[Scheme]].\n"


@pytest.mark.parametrize("there", [("Plan.md", "Agenda.md"), ("Plan.md",), ()])
def test_where_the_files_tell_another_story_nothing_is_touched(root: Path, there: tuple[str, ...]) -> None:
    (root / "Plan.md").unlink()
    for name in there:
        (root / name).write_text("mine\n")
    journal = RenameJournal(root.parent / "home")
    file = journal._begin(BegunRename("Plan.md", "Agenda.md", {"people/Ned.md": ""}))
    assert file
    file.close()
    opened(root).refresh()
    opened(root).documents()
    assert (root / "people" / "Ned.md").read_text() == NOTES["people/Ned.md"]
    assert (root.parent / "home" / JOURNAL).exists() == (not there), "a disk that is away may come back"


def test_a_rename_that_another_process_is_making_is_left_to_it(root: Path) -> None:
    journal = RenameJournal(root.parent / "home")
    os.rename(root / "Plan.md", root / "Agenda.md")
    with journal.remembered(BegunRename("Plan.md", "Agenda.md", {"people/Ned.md": ""})):
        assert opened(root).broken_links()
        assert (root / "people" / "Ned.md").read_text() == NOTES["people/Ned.md"]
    assert not (root.parent / "home" / JOURNAL).exists()


@pytest.mark.parametrize("written", [b"", b'{"old": "Pl', b"[]"])
def test_a_journal_that_was_half_written_is_forgotten(root: Path, written: bytes) -> None:
    (root.parent / "home").mkdir()
    (root.parent / "home" / JOURNAL).write_bytes(written)
    assert len(opened(root).documents()) == len(NOTES)
    assert not (root.parent / "home" / JOURNAL).exists()


def test_a_rename_works_where_no_journal_can_be_written(root: Path) -> None:
    (root.parent / "home").write_text("a file in the place of the folder")
    assert opened(root).rename("Plan.md", "Agenda.md").links == {
        "people/Ned.md": 2,
        "people/Zoe.md": 1,
        "work/List.md": 1,
    }
