"""A whole store in another database: the same rows, proved by hash, after any interruption."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Open, Script
from tests.store.test_migrations import shape

from recto.api.blocking import Desk, open_desk
from recto.errors import Invalid, NotFound, StoreError
from recto.store import store_copy
from recto.store.check import check_store
from recto.store.store import Store
from recto.store.store_copy import copy_store, insert_rows


@pytest.fixture
def opened(desk: Open, script: Script, tmp_path: Path) -> Desk:
    """A store with something in nearly every table."""
    at = desk(script({"text": "It stands well."}))
    talk = at.conversation()
    talk.ask("How tall is the mast?")
    (tmp_path / "log.txt").write_text("the log of the Albatross", "utf-8")
    talk.ask("And this?", attachments=[tmp_path / "log.txt"])
    talk.undo()
    talk.ask("And the boom?")
    talk.queue("not yet")
    at.facts.learn("The mast is 14 metres tall")
    at.store.access_keys.add("alice")
    at.store.client_messages.own(talk.id or "", "alice", "mine")
    return at


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where PostgreSQL makes no difference, `make test` copies into a file."""
    return tmp_path / "copy.db" if request.param == "sqlite" else request.getfixturevalue("postgresql")()


def proved(location: Path | str) -> int:
    with Store(location) as store:
        assert check_store(store).problems == ()
        return len(store.records.ids())


def test_a_store_goes_to_postgresql_and_back_row_by_row(opened: Desk, url: str, tmp_path: Path) -> None:
    own = opened.home / "recto.db"
    there = copy_store(own, url)
    back = copy_store(url, tmp_path / "back.db")
    assert there.sha256 == back.sha256
    assert there.rows == back.rows
    assert there.written == sum(there.rows.values())
    assert there.rows["messages"] == 6
    assert proved(url) == proved(tmp_path / "back.db") == proved(own)
    sent = {id: opened.rebuild(id) for id, _ in opened.verify()}
    with Store(url) as store:
        assert {id: store.records.rebuild(id) for id in sent} == sent


def test_a_copy_is_a_store_that_goes_on(
    opened: Desk, url: str, script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy_store(opened.home / "recto.db", url)
    model = script({"text": "Yes."})
    for place in (url, str(tmp_path / "second.db")):
        if place != url:
            copy_store(url, place)
        monkeypatch.setenv("RECTO_DB", place)
        with open_desk(model=model, home=tmp_path / f"home of {place[:6]}") as at:
            before = len(at.conversation(1).messages())
            at.conversation(1).ask("And now?")
            assert len(at.conversation(1).messages()) > before
            assert {difference for _, difference in at.verify()} == {None}


def test_a_copy_has_the_schema_of_a_new_database(opened: Desk, postgresql: Callable[[], str]) -> None:
    copied, fresh = postgresql(), postgresql()
    copy_store(opened.home / "recto.db", copied)
    with Store(copied) as one, Store(fresh) as other:
        assert shape(one) == shape(other)


class Interrupted(Exception):
    pass


def interrupt_at(row: int) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        if done >= row:
            raise Interrupted

    return tell


def test_a_copy_that_was_interrupted_is_opened_by_nobody_and_goes_on(
    opened: Desk, target: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "BATCH", 2)
    own = opened.home / "recto.db"
    with pytest.raises(Interrupted):
        copy_store(own, target, interrupt_at(9))
    with pytest.raises(StoreError, match="an unfinished copy of another store; `recto store copy` finishes it"):
        Store(target)
    opened.conversation(1).ask("said since")
    done = copy_store(own, target)
    assert 0 < done.written < sum(done.rows.values())
    assert done.rows["messages"] == 8
    assert proved(target) == proved(own)


def test_what_changed_or_went_in_the_source_meanwhile_is_so_in_the_copy(
    opened: Desk, target: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.conversation().ask("a second one")
    own = opened.home / "recto.db"
    last = sum(copy_store(own, opened.home / "whole.db").rows.values())
    with pytest.raises(Interrupted):
        copy_store(own, target, interrupt_at(last))
    opened.rename("1", "Masts")
    opened.prune("0d", conversation=2)
    copy_store(own, target)
    with Store(target) as store:
        assert [each.title for each in store.tree.conversations()] == ["Masts"]
    assert proved(target) == proved(own)


def test_the_unfinished_copy_of_another_store_is_left_alone(opened: Desk, target: Path | str, tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        copy_store(opened.home / "recto.db", target, interrupt_at(1))
    with Store(tmp_path / "other.db") as other:
        other.tree.create(title="Another")
    with pytest.raises(StoreError, match="copy into an empty database"):
        copy_store(tmp_path / "other.db", target)


def test_a_target_with_other_data_is_refused_and_a_whole_copy_is_only_compared(
    opened: Desk, target: Path | str
) -> None:
    own = opened.home / "recto.db"
    first = copy_store(own, target)
    again = copy_store(own, target)
    assert (again.sha256, again.written) == (first.sha256, 0)
    with Store(target) as store:
        store.tree.change(store.tree.conversations()[0].id, title="changed there")
    with pytest.raises(Invalid, match="holds other data: copy into an empty database"):
        copy_store(own, target)
    with Store(target) as store:
        assert store.tree.conversations()[0].title == "changed there"


def test_the_same_store_and_one_that_is_missing_are_refused(opened: Desk, tmp_path: Path) -> None:
    own = opened.home / "recto.db"
    with pytest.raises(Invalid, match="the same"):
        copy_store(own, f"sqlite:///{own}")
    with pytest.raises(NotFound, match="there is no store"):
        copy_store(tmp_path / "nowhere.db", tmp_path / "copy.db")
    assert not (tmp_path / "nowhere.db").exists()


def test_a_row_that_the_target_did_not_keep_is_noticed(
    opened: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "insert_rows", lambda at, table, rows: insert_rows(at, table, rows[:1]))
    with pytest.raises(StoreError, match="does not match the source"):
        copy_store(opened.home / "recto.db", tmp_path / "copy.db")
    with pytest.raises(StoreError, match="unfinished"):
        Store(tmp_path / "copy.db")


@pytest.mark.parametrize("target", ["sqlite", "postgresql"], indirect=True)
def test_a_row_that_refers_to_a_missing_one_is_told(opened: Desk, target: Path | str) -> None:
    own = opened.home / "recto.db"
    opened.close()
    with sqlite3.connect(own) as connection:
        connection.execute("UPDATE messages SET request = 99 WHERE n = 2")
    connection.close()
    with pytest.raises(StoreError, match="rows of messages refer to rows that are missing"):
        copy_store(own, target)


def test_the_store_may_be_used_while_it_is_copied(opened: Desk, target: Path | str) -> None:
    own, asked = opened.home / "recto.db", threading.Event()

    def tell(done: int, total: int) -> None:
        if not asked.is_set():
            asked.set()
            opened.conversation(1).ask("said meanwhile")

    done = copy_store(own, target, tell)
    assert done.rows["messages"] == 6, "one state is copied"
    assert proved(target) == proved(own) - 1
