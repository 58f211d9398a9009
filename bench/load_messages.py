"""Many messages of words in a PostgreSQL database, loaded in a few streams: the engine would take days for them."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from random import Random
from typing import Any

from sqlalchemy import Connection, Table, inspect

from bench import corpus
from recto.chat.blocks import Text
from recto.chat.message import Message, Role, now
from recto.store.database import Database
from recto.store.dialect import driver_connection
from recto.store.rows import message_columns
from recto.store.schema import conversations, messages

PER_CONVERSATION, BATCH, TEXTS = 100, 10_000, 5_000
# As many processes make rows at once, each so many.
STREAMS, PART = 3, 250_000
ROLES: tuple[Role, Role] = ("user", "assistant")
ID_SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ENDING = "Note 0."


def made_id(number: int, kind: str) -> str:
    """26 characters that sort by the number."""
    digits = []
    while number:
        number, last = divmod(number, len(ID_SIGNS))
        digits.append(ID_SIGNS[last])
    return "01" + kind + "".join(reversed(digits)).rjust(23, "0")


def load_messages(database: Database, count: int) -> None:
    """Conversations of a hundred messages each. Texts are made of some thousands, each with a number of its own."""
    with database.engine.connect() as connection:
        connection.detach()
        connection.execution_options(write=True)
        for stored in inspect(connection).get_foreign_keys("messages"):
            connection.exec_driver_sql(f"ALTER TABLE messages DROP CONSTRAINT {stored['name']}")
        connection.commit()
        _copy(connection, conversations, _conversation_rows(count, now()))
        parts = [(first, min(count, first + PART - 1)) for first in range(1, count + 1, PART)]
        url = database.engine.url.render_as_string(hide_password=False)
        with ProcessPoolExecutor(min(STREAMS, len(parts)), get_context("spawn")) as pool:
            for each in [pool.submit(_load_part, url, *part) for part in parts]:
                each.result()
        with connection.begin():
            for key in messages.foreign_keys:
                to = f"REFERENCES {key.column.table.name} ({key.column.name})"
                connection.exec_driver_sql(f"ALTER TABLE messages ADD FOREIGN KEY ({key.parent.name}) {to}")
            for name in ("conversations", "messages"):
                sequence = f"pg_get_serial_sequence('{name}', 'n')"
                connection.exec_driver_sql(f"SELECT setval({sequence}, max(n)) FROM {name}")


def _load_part(url: str, first: int, last: int) -> None:
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            _copy(connection, messages, _message_rows(first, last, now()))
    finally:
        database.close()


def _copy(connection: Connection, table: Table, rows: Iterator[tuple[Any, ...]]) -> None:
    # each COPY is a transaction of the driver's: the store's own would wait for each other
    while some := list(islice(rows, BATCH)):
        names = ", ".join(column.name for column in table.columns)
        with (
            driver_connection(connection).cursor() as cursor,
            cursor.copy(f"COPY {table.name} ({names}) FROM STDIN") as to,
        ):
            for row in some:
                to.write_row(row)


def _conversation_rows(count: int, stamp: str) -> Iterator[tuple[Any, ...]]:
    for home in range(1, (count + PER_CONVERSATION - 1) // PER_CONVERSATION + 1):
        head = min(count, home * PER_CONVERSATION)
        yield home, made_id(home, "C"), f"Talk {home}", "default", stamp, stamp, head, "{}", None, None


def _message_rows(first: int, last: int, stamp: str) -> Iterator[tuple[Any, ...]]:
    texts, random = [corpus.Speaker(seed).message() for seed in range(TEXTS)], Random(first)
    columns = [message_columns(Message("", "user", (Text(f"{text} {ENDING}"),))) for text in texts]
    for number in range(first, last + 1):
        place = (number - 1) % PER_CONVERSATION
        home, role, said = (number - 1) // PER_CONVERSATION + 1, ROLES[place % 2], random.choice(columns)
        parent = number - 1 if place else None
        about = (number, made_id(number, "M"), home, parent, place + 1, place + 1, None, role, "done", stamp, None)
        yield *about, said["blocks"].replace(ENDING, f"Note {number}."), said["details"], 5, number - place
