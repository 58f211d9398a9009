"""The list of conversations is the same whether or not the store is opened whole."""

import sqlite3
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.api import conversation_list, store_queries
from recto.api.conversation_list import latest_conversations
from recto.errors import MessagesLost, TooNew


@pytest.fixture
def home(desk: Open, script: Script) -> Path:
    at = desk(script({"text": "ok"}))
    for title in ("First", "Second", "Third"):
        at.conversation().ask(f"{title} question?")
    at.close()
    return at.home


def whole(home: Path, limit: int = 100) -> object:
    with store_queries.open_queries(home) as reader:
        return reader.conversations(limit=limit)


def test_the_quick_list_is_what_the_whole_store_says(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = whole(home), whole(home, 2)
    monkeypatch.setattr(store_queries, "open_queries", None)  # it is not needed
    assert (latest_conversations(100, home), latest_conversations(2, home)) == expected
    assert [each.title for each in latest_conversations(2, home)] == ["Third question?", "Second question?"]


def test_an_empty_store_that_held_messages_is_told_and_its_log_stays(home: Path) -> None:
    store, log = home / "recto.db", home / "recto.db-wal"
    store.write_bytes(b"")
    log.write_bytes(b"what was written last")
    with pytest.raises(MessagesLost):
        latest_conversations(10, home)
    assert log.read_bytes() == b"what was written last"


def test_a_store_that_lost_messages_is_told(home: Path) -> None:
    with sqlite3.connect(home / "recto.db") as file:
        file.execute("PRAGMA foreign_keys=OFF")
        file.execute("DELETE FROM messages")
    with pytest.raises(MessagesLost):
        latest_conversations(10, home)


def test_a_store_of_a_newer_version_is_told(home: Path) -> None:
    with sqlite3.connect(home / "recto.db") as file:
        file.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(TooNew):
        latest_conversations(10, home)


def test_what_cannot_be_read_quickly_is_read_from_the_whole_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = whole(home)

    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", refuse)
    assert conversation_list._quickly(home / "recto.db", 10, "active") is None
    assert latest_conversations(100, home) == expected
