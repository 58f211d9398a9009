import resource
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy.pool import QueuePool
from tests.store.conftest import PROCESSES, run_processes, say

from recto.errors import Busy, StoreError, TooNew
from recto.store.database import MAX_IDLE
from recto.store.store import Store


def test_opening_makes_the_folder_and_uses_a_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "new/home/recto.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_store_of_a_newer_version_is_refused_and_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(TooNew, match="newer Recto"):
        Store(path)
    assert path.read_bytes() == before


def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    path.write_bytes(b"these are not the pages of a database at all" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is damaged"):
        Store(path)
    assert path.read_bytes() == before


def test_a_file_in_place_of_the_home_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match="is not a folder; set RECTO_HOME"):
        Store(tmp_path / "home/recto.db")


def test_a_full_disk_is_said_and_what_was_stored_stays(store: Store) -> None:
    conversation = store.tree.create().id
    kept = store.tree.append(conversation, say("kept")).message
    with store.database.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="is full"):
        store.tree.append(conversation, say("x" * 100_000, kept.id))
    assert store.tree.conversation(conversation).head == kept.id


def test_a_read_only_store_can_be_read_but_not_written(store: Store) -> None:
    conversation = store.tree.create().id
    with store.database.read() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
    with pytest.raises(StoreError, match="is read-only"):
        store.tree.append(conversation, say("no"))
    assert store.tree.conversation(conversation).head is None


def test_a_busy_store_waits_then_says_so(tmp_path: Path) -> None:
    with Store(tmp_path / "recto.db", busy_timeout_s=0.05) as store:
        conversation = store.tree.create().id
        other = sqlite3.connect(tmp_path / "recto.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy, match="another process"):
            store.tree.append(conversation, say("wait"))
        other.execute("ROLLBACK")
        other.close()
        assert store.tree.append(conversation, say("now")).moved


def test_a_checkpoint_on_a_full_disk_is_made_up_for_later(store: Store) -> None:
    conversation, file = store.tree.create().id, file_of(store)
    store.database.checkpoint()
    store.tree.append(conversation, say("long " * 50_000))
    size, limit = file.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        assert store.database.checkpoint() is False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert file.stat().st_size == size
    store.database.checkpoint()
    assert file.stat().st_size > size


def file_of(store: Store) -> Path:
    assert store.database.file
    return store.database.file


def append_many(path: str, conversation: str, count: int) -> int:
    with Store(path, busy_timeout_s=30) as store:
        heads = (store.tree.conversation(conversation).head for _ in range(count))
        return sum(store.tree.append(conversation, say("hello", head)).moved for head in heads)


def test_several_processes_write_to_one_conversation_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    with Store(path) as store:
        conversation = store.tree.create().id
        with ProcessPoolExecutor(3, PROCESSES) as pool:
            jobs = [pool.submit(append_many, str(path), conversation, 40) for _ in range(3)]
            moved = sum(job.result() for job in jobs)
        assert len(store.tree.after(0, most=1000)) == 120
        head = store.tree.conversation(conversation).head
        assert head is not None
        assert len(store.tree.page(head, most=1000)) == moved
        assert 1 + 120 - moved >= len(store.tree.leaves(conversation))


def append_own(path: str, count: int) -> int:
    with Store(path) as store:
        conversation, parent = store.tree.create().id, None
        for number in range(count):
            parent = store.tree.append(conversation, say(f"message {number}", parent)).message.id
    return count


@pytest.mark.slow
@pytest.mark.parametrize("writers", [20, 40])
def test_many_processes_that_write_at_once_all_succeed(tmp_path: Path, writers: int) -> None:
    with ProcessPoolExecutor(writers, PROCESSES) as pool:
        jobs = [pool.submit(append_own, str(tmp_path / "recto.db"), 40) for _ in range(writers)]
        assert {job.result() for job in jobs} == {40}


def create_one(path: str) -> None:
    with Store(path) as store:
        store.tree.create()


def test_processes_that_open_a_new_store_at_once_all_can(tmp_path: Path) -> None:
    assert run_processes(3, create_one, str(tmp_path / "recto.db")) == [0] * 3
    with Store(tmp_path / "recto.db") as store:
        assert len(store.tree.conversations()) == 3


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://host/name", "mysql is not supported"),
        ("postgresql+nothing://host/name", "is not installed"),
        ("://", "is not a database URL"),
    ],
)
def test_a_url_that_names_no_database_of_ours_is_one_sentence(url: str, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        Store(url)


def test_many_stores_of_one_file_share_its_connections(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "store.db") for _ in range(20)]
    for store in stores:
        store.tree.create()
        assert store.tree.newest_number() == 0
    pool = stores[0].database.engine.pool
    assert isinstance(pool, QueuePool)
    assert pool.checkedout() <= MAX_IDLE
    stores[0].close()
    assert stores[1].tree.newest_number() == 0
    for store in stores[1:]:
        store.close()
    assert pool.checkedout() == 0


def test_reads_within_a_shared_read_see_its_state_and_a_write_within_it_is_its_own(tmp_path: Path) -> None:
    with Store(tmp_path / "recto.db") as store:
        with store.database.read(shared=True) as outer, store.database.read() as inner:
            assert inner is outer
            assert store.tree.conversations() == []
            store.tree.create(title="since")
            assert store.tree.conversations() == [], "as it was when the outer one began"
        assert [each.title for each in store.tree.conversations()] == ["since"]
        with store.database.read() as outer, store.database.read() as inner:
            assert inner is not outer
