"""Looking something up reads what it needs, not whole tables: a store may hold a million messages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.ids import new_id
from recto.store.store import Store


@contextmanager
def plans(store: Store) -> Iterator[list[str]]:
    """The steps by which SQLite answers what is asked meanwhile."""
    asked: list[tuple[str, Any]] = []
    steps: list[str] = []
    with store.database.read() as connection:
        engine = connection.engine

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        asked.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield steps
    finally:
        event.remove(engine, "before_cursor_execute", note)
    with store.database.read() as connection:
        for statement, parameters in asked:
            if statement.startswith("SELECT"):
                steps += [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]


LOOK_UPS: dict[str, Callable[[Store, str, str], object]] = {
    "numbers of messages and requests": lambda store, home, message: store.tree.numbers([message, new_id()]),
    "documents of one conversation": lambda store, home, message: store.document_uses.uses("/notes", home),
    "costs by day": lambda store, home, message: store.spending.by("day"),
    "costs by model": lambda store, home, message: store.spending.by("model"),
    "costs by purpose": lambda store, home, message: store.spending.by("purpose"),
    "costs in total": lambda store, home, message: store.spending.total(),
}


@pytest.mark.parametrize("what", list(LOOK_UPS))
def test_no_table_is_read_whole(store: Store, what: str) -> None:
    home = store.tree.create().id
    message = store.tree.append(home, Message(new_id(), "user", (Text("hello"),))).message
    with plans(store) as steps:
        LOOK_UPS[what](store, home, message.id)
    assert steps
    for table in ("messages", "requests", "uses"):
        assert not [step for step in steps if step == f"SCAN {table}"], steps
