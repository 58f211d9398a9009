"""A whole store in another database: the same rows, or none."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Open, Script
from tests.store.test_migrations import shape

from recto.api.blocking import Desk, open_desk
from recto.errors import Invalid, NotFound, StoreError
from recto.store.check import check_store
from recto.store.store import Store
from recto.store.store_copy import copy_store


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
    assert there == back
    assert there["messages"] == 6
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


def test_an_interrupted_copy_leaves_the_target_empty(opened: Desk, target: Path | str) -> None:
    def stop(done: int, total: int) -> None:
        if done > 8:
            raise InterruptedError

    with pytest.raises((InterruptedError, StoreError)):
        copy_store(opened.home / "recto.db", target, stop)
    with Store(target) as store:
        assert store.tree.conversations() == []
    assert copy_store(opened.home / "recto.db", target)["messages"] == 6


def test_a_target_with_other_data_is_refused(opened: Desk, target: Path | str) -> None:
    with Store(target) as store:
        store.tree.create(title="mine")
    with pytest.raises(Invalid, match="holds other data"):
        copy_store(opened.home / "recto.db", target)


def test_the_same_store_and_one_that_is_missing_are_refused(opened: Desk, tmp_path: Path) -> None:
    own = opened.home / "recto.db"
    with pytest.raises(Invalid, match="the same"):
        copy_store(own, f"sqlite:///{own}")
    with pytest.raises(NotFound, match="there is no store"):
        copy_store(tmp_path / "nowhere.db", tmp_path / "copy.db")
    assert not (tmp_path / "nowhere.db").exists()


@pytest.mark.parametrize("target", ["sqlite", "postgresql"], indirect=True)
def test_a_row_that_refers_to_a_missing_one_is_told(opened: Desk, target: Path | str) -> None:
    own = opened.home / "recto.db"
    opened.close()
    with sqlite3.connect(own) as connection:
        connection.execute("UPDATE messages SET request = 99 WHERE n = 2")
    connection.close()
    with pytest.raises(StoreError, match="refer to missing rows"):
        copy_store(own, target)


def test_the_store_may_be_used_while_it_is_copied(opened: Desk, target: Path | str) -> None:
    own, asked = opened.home / "recto.db", threading.Event()

    def tell(done: int, total: int) -> None:
        if not asked.is_set():
            asked.set()
            opened.conversation(1).ask("said meanwhile")

    done = copy_store(own, target, tell)
    assert done["messages"] == 6, "one state is copied"
    assert proved(target) == proved(own) - 1
