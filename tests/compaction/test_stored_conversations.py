"""Thirty stored conversations with one to ten compactions, as earlier code made them, go on."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recto.api.blocking import Desk, Talk, open_desk

pytestmark = pytest.mark.untraced

STORED = Path(__file__).parent / "stored" / "stored.tar.xz"
GOES_ON = "And what else was there to think of? " * 24


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with tarfile.open(STORED) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path / "home")  # the paths of its scripts are those of the folder
    with open_desk(home=tmp_path / "home") as desk:
        yield desk


def talks(desk: Desk) -> list[Talk]:
    found = [desk.conversation(each.id) for each in desk.conversations(limit=100)]
    assert len(found) == 30
    return found


def test_each_shows_its_summary_and_its_ledger(desk: Desk) -> None:
    made_by = set()
    for talk in talks(desk):
        blocks = talk.compactions()
        assert blocks
        made_by |= {block.made_by for block in blocks}
        if (block := talk.compaction()) and block.summary:
            assert talk.summary_block() == block
            quoted = "\n".join(block.ledger)
            assert all(item in quoted for _, item in talk.ledger())
    assert made_by >= {"model", "extractive", "user"}


def test_each_is_edited_and_what_was_edited_is_undone(desk: Desk) -> None:
    for talk in talks(desk):
        before = talk.compaction()
        if before is None or not before.summary:
            continue
        edited = talk.edit_summary(f"{before.summary}\nAda pays 340 euros.")
        assert edited.summary.endswith("Ada pays 340 euros.")
        assert edited.ledger == before.ledger
        talk.uncompact()
        now = talk.compaction()
        assert now is None or now.summary != edited.summary


def test_each_goes_on_to_its_next_compaction(desk: Desk) -> None:
    for talk in talks(desk)[::3]:
        before = talk.compaction()
        for _ in range(12):
            talk.ask(GOES_ON)
            if (block := talk.compaction()) != before:
                break
        assert block is not None
        assert block.summary
