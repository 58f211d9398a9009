"""Looking something up reads what it needs, not whole tables: a store may hold a million messages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.store.dialect import driver_connection
from recto.store.store import Store


@contextmanager
def plans(store: Store) -> Iterator[list[str]]:
    """The steps by which SQLite answers what is asked meanwhile."""
    asked: list[str] = []
    steps: list[str] = []
    with store.database.read() as connection:
        driver = driver_connection(connection)
    driver.set_trace_callback(asked.append)
    try:
        yield steps
    finally:
        driver.set_trace_callback(None)
    for statement in asked:
        if statement.startswith(("SELECT", "WITH")):
            steps += [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}")]


LOOK_UPS: dict[str, Callable[[Store, str, str], object]] = {
    "numbers of messages and requests": lambda store, home, message: store.tree.numbers([message, new_id()]),
    "documents of one conversation": lambda store, home, message: store.document_uses.uses("/notes", home),
    "uses of one document": lambda store, home, message: store.document_uses.recent("/notes", "a.md", 60),
    "documents of the latest uses": lambda store, home, message: store.document_uses.used_between(5, 10),
    "costs of today": lambda store, home, message: store.spending.total(since="2026"),
    "costs of a conversation": lambda store, home, message: store.spending.by("model", home),
    "whether a request never left": lambda store, home, message: store.records.unsent([message]),
    "paths of conversations": lambda store, home, message: store.tree.paths([home, new_id()]),
    "numbers of conversations": lambda store, home, message: store.tree.conversation_numbers([home, new_id()]),
    "costs in total": lambda store, home, message: store.spending.total(),
}


@pytest.mark.parametrize("what", list(LOOK_UPS))
def test_no_table_is_read_whole(store: Store, what: str) -> None:
    home = store.tree.create().id
    message = store.tree.append(home, Message(new_id(), "user", (Text("hello"),))).message
    with plans(store) as steps:
        LOOK_UPS[what](store, home, message.id)
    assert steps
    for table in ("messages", "requests", "uses", *(["conversations"] if "conversations" in what else [])):
        assert not [step for step in steps if step == f"SCAN {table}"], steps
