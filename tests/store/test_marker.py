"""A store that lost messages is told, never overwritten; one that cannot be written can be read."""

import os
import signal
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from tests.store.conftest import run_processes, say

from recto.errors import MessagesLost, StoreError
from recto.store.marker import NewestMessage, StoreMarker
from recto.store.store import Store


def fill(path: Path, count: int = 3) -> None:
    with Store(path) as store:
        for number in range(count):
            store.tree.append(store.tree.create().id, say(f"message {number}"))


def _fill_and_die(path: Path, count: int) -> None:
    store = Store(path)
    for number in range(count):
        store.tree.append(store.tree.create().id, say(f"message {number}"))
    os.kill(os.getpid(), signal.SIGKILL)


def killed(path: Path, count: int = 3) -> None:
    assert run_processes(1, _fill_and_die, path, count) == [-signal.SIGKILL]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}


def test_an_emptied_or_missing_store_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    fill(path)
    path.write_bytes(b"")
    before = contents(tmp_path)
    with pytest.raises(MessagesLost, match=r"is empty, but 3 messages were stored.*recto store restore"):
        Store(path)
    assert contents(tmp_path) == before
    path.unlink()
    with pytest.raises(MessagesLost, match="is missing"):
        Store(path)
    assert not path.exists()


@pytest.mark.parametrize(("kept", "said"), [(0, "has no messages, but 3 were stored"), (2, "2 of 5 messages")])
def test_a_store_whose_log_was_deleted_after_a_kill_is_told_and_left_alone(
    tmp_path: Path, kept: int, said: str
) -> None:
    path = tmp_path / "recto.db"
    if kept:
        fill(path, kept)
    killed(path)
    Path(f"{path}-wal").unlink()
    before = contents(tmp_path)
    with pytest.raises(MessagesLost, match=said):
        Store(path)
    assert contents(tmp_path)["recto.db"] == before["recto.db"]


def test_a_store_that_was_exchanged_for_another_is_told(tmp_path: Path) -> None:
    fill(tmp_path / "recto.db", 2)
    fill(tmp_path / "other.db", 4)
    (tmp_path / "other.db").replace(tmp_path / "recto.db")
    with pytest.raises(MessagesLost, match="is another store"):
        Store(tmp_path / "recto.db")


def test_an_empty_store_with_a_log_is_not_opened_since_sqlite_would_delete_the_log(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    killed(path)
    Path(f"{path}.newest").unlink()
    path.write_bytes(b"")
    log = Path(f"{path}-wal").read_bytes()
    with pytest.raises(MessagesLost, match="its -wal file is not"):
        Store(path)
    assert Path(f"{path}-wal").read_bytes() == log


def test_a_store_that_is_ahead_of_its_marker_opens(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    fill(path, 2)
    older = Path(f"{path}.newest").read_bytes()
    fill(path, 2)
    Path(f"{path}.newest").write_bytes(older)
    with Store(path) as store:
        assert store.tree.newest_number() == 4


@pytest.mark.parametrize("damage", [b"", b"\x00" * 30, b"abc", b"12"])
def test_a_damaged_marker_hinders_nobody(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "recto.db"
    fill(path)
    Path(f"{path}.newest").write_bytes(damage)
    fill(path, 1)
    assert StoreMarker(path).read() is not None


def test_a_message_that_was_not_committed_is_not_in_the_marker(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    with Store(path) as store:
        first = store.tree.append(store.tree.create().id, say("kept")).message

        with suppress(ZeroDivisionError), store.database.write():
            store.tree.append(store.tree.create().id, say("gone"))
            raise ZeroDivisionError
    assert StoreMarker(path).read() == NewestMessage(1, first.id)


def test_a_store_that_cannot_be_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "odd name?#%.db"
    fill(path)
    before = sorted(os.listdir(tmp_path))
    # root writes whatever the modes say, so the question is answered here
    monkeypatch.setattr("recto.store.database.is_writable", lambda file: False)
    with Store(path) as store:
        assert len(store.tree.conversations()) == 3
        with pytest.raises(StoreError, match="is read-only"):
            store.tree.create()
    assert sorted(os.listdir(tmp_path)) == before


def test_a_store_that_was_left_with_a_log_can_be_read_without_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recto.db"
    killed(path)
    before = contents(tmp_path)
    monkeypatch.setattr("recto.store.database.is_writable", lambda file: False)
    with Store(path) as store:
        assert len(store.tree.conversations()) == 3
    assert contents(tmp_path) == before
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (3,)
