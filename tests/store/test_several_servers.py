"""Several processes on one database server: they tell each other what they write, and take over from one that died."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import inspect, text
from tests.conftest import Script
from tests.store.conftest import SECRET, make_older, run_processes, say
from tests.store.test_database import create_one

from recto.api.blocking import Desk, open_desk
from recto.chat.message import Message
from recto.compaction.summary_ahead import summary_lease
from recto.errors import Invalid, StoreError
from recto.store import database
from recto.store.database import Change
from recto.store.schema import metadata
from recto.store.store import Store


def until(holds: Callable[[], bool]) -> None:
    """Waits for something that is bound to come."""
    while not holds():
        time.sleep(0.01)


@pytest.mark.untraced
@pytest.mark.parametrize("is_older", [False, True])
def test_one_of_several_processes_makes_or_migrates_a_database(url: str, is_older: bool) -> None:
    if is_older:
        with Store(url) as store, store.database.write() as connection:
            make_older(connection)
    assert run_processes(4, create_one, url) == [0] * 4
    with Store(url) as store, store.database.read() as connection:
        assert len(store.tree.conversations()) == 4
        assert set(metadata.tables) <= set(inspect(connection).get_table_names())


def append(store: Store, home: str, words: str, parent: str | None = None) -> str:
    return store.tree.append(home, say(words, parent)).message.id


def test_a_process_hears_what_others_write_and_not_what_it_writes_itself(url: str) -> None:
    heard: list[Change] = []
    with Store(url) as one, Store(url) as other:
        one.changes.watch(heard.append)
        one.changes.is_listening.wait()
        home = other.tree.create().id
        mine = append(one, home, "mine")
        append(other, home, "theirs", mine)
        until(lambda: "messages" in heard)
        other.trash.remove(text("true"))  # type: ignore[arg-type]
        until(lambda: "removed" in heard)
    assert heard == ["messages", "removed"], "one of each: the own message is not told"


def test_after_a_lost_connection_everything_may_have_changed(url: str) -> None:
    heard: list[Change] = []
    with Store(url) as one, Store(url) as other:
        one.changes.watch(heard.append)
        one.changes.is_listening.wait()
        with other.database.engine.connect() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN recto' "
                "AND datname = current_database()"
            )
        until(lambda: set(heard) == {"messages", "removed"})


@pytest.fixture
def desks(url: str, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> "tuple[Desk, Desk]":
    monkeypatch.setenv("RECTO_DB", url)
    model = script({"text": "It stands well."}, limit=2000)
    return tuple(open_desk(model=model, home=tmp_path / name) for name in ("one", "two"))  # type: ignore[return-value]


def test_a_message_is_found_on_another_server_at_once_and_indexed_there_by_itself(desks: tuple[Desk, Desk]) -> None:
    one, other = desks
    with one, other:
        heard = threading.Event()
        other.follow(heard.set)
        other.store.changes.is_listening.wait()
        one.conversation().ask("Where is the xylophone?")
        assert [hit.message.text for hit in other.search("xylophone")] == ["Where is the xylophone?"]
        heard.wait()
        one.conversation().ask("And the trumpet?")
        until(lambda: other.index_status().indexed == 4)


def test_what_is_removed_leaves_the_index_of_every_server(desks: tuple[Desk, Desk]) -> None:
    one, other = desks
    with one, other:
        other.follow()
        other.store.changes.is_listening.wait()
        one.conversation().ask(SECRET)
        assert len(other.search("xylophone", complete=True)) == 1
        file = other.home / "search.db"
        one.prune("0d")
        held = other.engine.message_index._index.file
        until(lambda: held.read("SELECT count(*) FROM shelves")[0][0] == 0)
    with open_desk(home=other.home):
        pass
    assert b"zanzibar" not in file.read_bytes()


def test_a_server_that_did_not_run_forgets_what_was_removed_meanwhile(desks: tuple[Desk, Desk]) -> None:
    one, other = desks
    with one:
        with other:
            one.conversation().ask(SECRET)
            other.index()
        one.prune("0d")
        with open_desk(home=other.home) as again:
            again.engine.message_index.wake()
            held = again.engine.message_index._index.file
            until(lambda: held.read("SELECT count(*) FROM shelves")[0][0] == 0)


KILLED = """
import os, sys, threading
import recto
with recto.open(model=sys.argv[1]) as desk:
    for event in desk.conversation().stream("Count."):
        print(type(event).__name__, flush=True)
"""


@pytest.mark.untraced
def test_the_reply_of_a_killed_process_is_ended_with_what_had_come(
    url: str, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_DB", url)
    model = script({"text": "word " * 4000, "delay_s": 0.05})
    with Store(url) as store:
        writing = subprocess.Popen([sys.executable, "-c", KILLED, model], stdout=subprocess.PIPE, env=dict(os.environ))
        assert writing.stdout is not None

        def reply() -> Message | None:
            found = [each.message for each in store.tree.after(0, most=9) if each.message.role == "assistant"]
            return store.tree.message(found[0].id) if found and "word" in found[0].text else None

        until(lambda: reply() is not None)
        assert [store.changes.end_left_replies() for _ in range(3)] == [0, 0, 0], "its process lives"
        writing.send_signal(signal.SIGKILL)
        writing.wait()
        writing.stdout.close()
        until(lambda: store.changes.end_left_replies() == 1)
        ended = reply()
        assert ended is not None
        assert (ended.status, ended.error) == (
            "stopped",
            "the server that wrote this reply ended before it was complete",
        )
        assert store.changes.end_left_replies() == 0
        with pytest.raises(Invalid, match="already finished"):
            store.tree.finish(ended)


def waiting(store: Store) -> int:
    with store.database.read() as connection:
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        return int(connection.execute(text(query)).scalar_one())


def test_one_process_at_a_time_sums_a_conversation_up(desks: tuple[Desk, Desk], url: str) -> None:
    one, other = desks
    done: list[str] = []
    with one, other, Store(url) as third:
        talk = one.conversation()
        for number in range(6):
            talk.ask(f"{number} The mast is of spruce and stands. " * 20)
        assert talk.id

        def compact() -> None:
            other.conversation(talk.id).compact()
            done.append("compacted")

        with third.database.hold(summary_lease(talk.id)) as is_ours:
            assert is_ours
            thread = threading.Thread(target=compact)
            thread.start()
            until(lambda: waiting(third) > 0 or not thread.is_alive())
            done.append("released")
        thread.join()
    assert done == ["released", "compacted"]


def test_a_name_is_free_again_when_its_holder_is_gone(url: str) -> None:
    with Store(url) as other:
        with Store(url) as one:
            one.database.keep_lease("a process")
            with other.database.hold("a process") as is_ours:
                assert not is_ours
        with other.database.hold("a process") as is_ours:
            assert is_ours


def test_a_lease_is_taken_again_after_a_lost_connection(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "FRESH_S", 0.0)
    with Store(url) as one, Store(url) as other:
        one.database.keep_lease("a process")
        with other.database.engine.connect() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            )
        until(lambda: waiting(other) == 0)
        one.database.keep_lease("a process")
        with other.database.hold("a process") as is_ours:
            assert not is_ours


def test_after_the_server_was_away_the_next_transaction_has_a_new_connection(url: str) -> None:
    with Store(url) as one, Store(url) as other:
        home = one.tree.create().id
        append(one, home, "before")
        with one.database.read(), one.database.read():
            pass  # two connections stay open
        with other.database.engine.connect() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid()"
            )
        with pytest.raises(StoreError, match="check RECTO_DB and that the server runs"):
            append(one, home, "lost")
        append(one, home, "after")
        assert [each.message.text for each in one.tree.after(0, most=9)] == ["before", "after"]
