"""Backups are whole, made while others write, and put back without losing what was there."""

import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.store.conftest import PROCESSES, damage_pages, run_processes, say

from recto.errors import Busy, Invalid, MessagesLost, NotFound, StoreError
from recto.store import backup as module
from recto.store.backup import (
    KEPT_DAYS,
    DailyBackup,
    accept_store,
    backup_by_hand,
    backup_folder,
    backups,
    restore_backup,
)
from recto.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "recto.db"


def fill(path: Path, count: int = 3, words: str = "hello") -> None:
    with Store(path) as store:
        for _ in range(count):
            store.tree.append(store.tree.create().id, say(words))


def size(path: Path) -> int:
    with Store(path) as store:
        return store.tree.newest_number()


def made_today(path: Path) -> list[str]:
    daily = DailyBackup(path)
    daily.wake()
    daily.close()
    return names(path)


def names(path: Path) -> list[str]:
    return [backup.file.name for backup in backups(path)]


def test_a_backup_is_one_file_with_everything_in_it(path: Path, tmp_path: Path) -> None:
    fill(path)
    with Store(path) as store:
        store.tree.append(store.tree.create().id, say("still in the log"))
        made = backup_by_hand(path, tmp_path / "copies" / "mine.db")
    assert [file.name for file in made.parent.iterdir()] == ["mine.db"]
    assert size(made) == 4


def test_a_backup_is_one_state_though_others_write_between_its_steps(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, 20, "x" * 5000)
    monkeypatch.setattr(module, "PAGES_PER_STEP", 2)
    steps: list[int] = []

    def write(done: int, total: int) -> None:
        steps.append(total)
        if len(steps) < 10:
            fill(path, 1)

    made = backup_by_hand(path, None, write)
    assert len(steps) > 10
    assert len(set(steps)) == 1, "it never began anew"
    assert size(made) == 20
    assert size(path) == 29


def test_a_backup_replaces_no_file(path: Path, tmp_path: Path) -> None:
    fill(path)
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(Invalid, match="exists already"):
        backup_by_hand(path, tmp_path / "taken")
    with pytest.raises(NotFound, match="no store yet"):
        backup_by_hand(tmp_path / "none.db", None)


def test_a_full_disk_leaves_no_half_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)
    monkeypatch.setattr(module, "SPARE_BYTES", 10**18)
    with pytest.raises(StoreError, match="no room"):
        backup_by_hand(path, None)
    assert list(backup_folder(path).iterdir()) == []


def test_a_restored_backup_is_the_store_and_the_former_one_is_kept(path: Path) -> None:
    fill(path, 2)
    made = backup_by_hand(path, None)
    fill(path, 3)
    restored = restore_backup(path, None)
    former = next(backup_folder(path).glob("replaced-*.db"))
    assert (restored.backup.file, restored.former) == (made, former)
    assert size(path) == 2
    assert size(former) == 5
    fill(path, 1)
    assert size(path) == 3


def test_the_newest_backup_is_the_whole_one_with_the_newest_messages_whatever_its_name(path: Path) -> None:
    fill(path, 2)
    (daily,) = made_today(path)
    fill(path, 4)
    by_hand = backup_by_hand(path, None)
    (backup_folder(path) / "recto-2026-01-01-120000.db").write_bytes(b"not a database" * 100)
    assert names(path) == [by_hand.name, daily]
    fill(path, 3)
    restored = restore_backup(path, None)
    assert (restored.backup.file, restored.backup.messages, restored.missing) == (by_hand, 6, 3)
    assert size(path) == 6


def test_a_damaged_store_is_neither_kept_as_a_backup_nor_accepted(path: Path) -> None:
    fill(path, 50, "x" * 5000)
    damage_pages(path)
    with pytest.raises(StoreError, match="damaged"):
        backup_by_hand(path, None)
    assert list(backup_folder(path).iterdir()) == []
    with pytest.raises(StoreError, match=r"damaged .* and accepting does not repair it"):
        accept_store(path)
    assert Path(f"{path}.newest").exists()


def test_what_was_only_in_the_log_is_kept_aside_too(path: Path) -> None:
    fill(path, 1)
    made = backup_by_hand(path, None)
    _killed(path)
    assert Path(f"{path}-wal").stat().st_size > 0
    former = restore_backup(path, made).former
    assert former is not None
    assert size(former) == 2


def _die_writing(path: Path) -> None:
    store = Store(path)
    store.tree.append(store.tree.create().id, say("in the log"))
    os._exit(9)


def _killed(path: Path) -> None:
    assert run_processes(1, _die_writing, path) == [9]


@pytest.mark.parametrize("damage", [b"", b"not a database" * 100, None])
def test_an_emptied_damaged_or_missing_store_can_be_restored(path: Path, damage: bytes | None) -> None:
    fill(path, 2)
    backup_by_hand(path, None)
    path.unlink() if damage is None else path.write_bytes(damage)
    with pytest.raises(StoreError, match="recto store restore"):
        Store(path)
    restore_backup(path, None)
    assert size(path) == 2


def test_a_file_that_is_no_store_is_not_restored(path: Path, tmp_path: Path) -> None:
    fill(path)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE things (n)")
    other.close()
    (tmp_path / "text").write_text("hello")
    for name in ("other.db", "text"):
        with pytest.raises(Invalid, match="not a backup of a store"):
            restore_backup(path, tmp_path / name)
    with pytest.raises(NotFound):
        restore_backup(path, tmp_path / "nothing")
    with pytest.raises(NotFound, match="there is no backup"):
        restore_backup(path, None)
    assert size(path) == 3


def _hold(path: Path, ready: object, done: object) -> None:
    with Store(path) as store:
        store.tree.newest_number()
        ready.set()  # type: ignore[attr-defined]
        done.wait(60)  # type: ignore[attr-defined]


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks for the locks as Linux tells them")
def test_a_store_that_another_process_has_open_is_not_replaced(path: Path) -> None:
    fill(path)
    backup_by_hand(path, None)
    ready, done = PROCESSES.Event(), PROCESSES.Event()
    other = PROCESSES.Process(target=_hold, args=(path, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(Busy, match="in use"):
            restore_backup(path, None)
    finally:
        done.set()
        other.join()
    restore_backup(path, None)


def test_an_accepted_store_opens_and_the_empty_file_is_kept_with_its_log(path: Path) -> None:
    fill(path, 1)
    _killed(path)
    path.write_bytes(b"")
    with pytest.raises(MessagesLost):
        Store(path)
    aside = accept_store(path)
    assert aside is not None
    assert Path(f"{aside}-wal").stat().st_size > 0
    assert size(path) == 0


# -- every day


def test_the_first_message_of_a_day_makes_a_backup_and_the_next_ones_none(path: Path) -> None:
    fill(path)
    (name,) = made_today(path)
    stamp = (backup_folder(path) / name).stat().st_mtime_ns
    fill(path)
    assert made_today(path) == [name]
    assert (backup_folder(path) / name).stat().st_mtime_ns == stamp
    assert size(backup_folder(path) / name) == 3


def test_the_daily_backups_of_a_week_are_kept_and_those_by_hand_all(path: Path) -> None:
    fill(path)
    folder = backup_folder(path)
    by_hand = backup_by_hand(path, None)
    for day in range(1, 12):
        shutil.copy(by_hand, folder / f"recto-2026-01-{day:02}.db")
    shutil.copy(by_hand, folder / "recto-2026-01-01-120000.db")
    shutil.copy(by_hand, folder / "holiday.db")
    made_today(path)
    daily = sorted(name for name in names(path) if len(name) == len("recto-2026-01-01.db"))
    assert len(daily) == KEPT_DAYS
    assert daily[0] == "recto-2026-01-06.db"
    assert {by_hand.name, "recto-2026-01-01-120000.db", "holiday.db"} <= {file.name for file in folder.iterdir()}


def test_what_a_killed_backup_left_is_cleared_away(path: Path) -> None:
    fill(path)
    backup_folder(path).mkdir()
    left = backup_folder(path) / ".recto-2026-01-01.db-abc.part"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    made_today(path)
    assert not list(backup_folder(path).glob(".*.part"))


def test_a_backup_that_takes_too_long_is_given_up_at_the_end_and_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, 20, "x" * 5000)
    monkeypatch.setattr(module, "PAGES_PER_STEP", 1)
    monkeypatch.setattr(module, "FINISH_S", 0.0)
    daily = DailyBackup(path)
    monkeypatch.setattr(daily, "_stop", _Set())
    daily.wake()
    daily.close()
    assert backups(path) == []
    assert not list(backup_folder(path).glob(".*.part*"))


class _Set(threading.Event):
    """Set from the beginning: the desk is closed before the first step."""

    def is_set(self) -> bool:
        return True
