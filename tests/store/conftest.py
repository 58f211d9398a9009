"""A store of its own for each test; and for those of deleting, a desk with a secret that must leave no trace."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk
from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.store.check import check_store
from recto.store.migrations import REVISIONS
from recto.store.store import Store

SECRET = "The word is xylophone-zanzibar."

# Processes are forked from one that has imported what all of them need.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "hypothesis", "recto.store.store"])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "recto.db") as opened:
        yield opened


@pytest.fixture
def url(postgresql: Callable[[], str]) -> str:
    return postgresql()


@pytest.fixture
def opened(desk: Open, script: Script) -> Desk:
    return desk(script({"text": "It stands well."}))


def say(words: str, parent: str | None = None, role: str = "user") -> Message:
    return Message(new_id(), role, (Text(words),), parent=parent)  # type: ignore[arg-type]


def damage_pages(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 20)
        file.write(os.urandom(4096 * 20))


def run_processes(count: int, work: Callable[..., None], *arguments: object) -> list[int | None]:
    """The exit codes of processes that do the same at once."""
    started = [PROCESSES.Process(target=work, args=arguments) for _ in range(count)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started]


def make_older(connection: Connection) -> None:
    """Makes a store of today one of the first release."""
    connection.exec_driver_sql("DROP TABLE charges")
    for sums in ("source_totals", "source_days", "document_totals", "document_pairs", "spending_totals"):
        connection.exec_driver_sql(f"CREATE TABLE {sums} (conversation INTEGER)")
    connection.exec_driver_sql("CREATE TABLE summed_conversations (conversation INTEGER)")
    connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{REVISIONS[0]}'")


def told(talk: Talk, *texts: str) -> Talk:
    for text in texts:
        talk.ask(text)
    return talk


def tell_a_secret(desk: Desk) -> None:
    """In conversation 2; conversation 1 stays."""
    told(desk.conversation(), "kept", "kept too")
    told(desk.conversation(), SECRET, f"Again: {SECRET}")
    desk.search("xylophone", complete=True)


def is_forgotten(desk: Desk) -> None:
    """Conversation 2 is gone, to the last byte; conversation 1 is whole. Closes the desk."""
    assert list(desk.search("xylophone", complete=True)) == []
    assert len(desk.search("kept", complete=True)) == 2
    assert check_store(desk.store).problems == ()
    assert differences(desk) == []
    desk.close()
    for file in desk.home.glob("*.db*"):
        assert b"xylophone" not in file.read_bytes(), file


def differences(desk: Desk) -> list[str]:
    return [difference for _, difference in desk.verify() if difference]


def execute(store: Store, statement: str) -> None:
    """Changes the database behind the store's back."""
    with store.database.write() as connection:
        connection.exec_driver_sql(statement)
