"""Many messages of words in a PostgreSQL database, loaded in one stream: the engine would take days for ten million."""

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

from bench import corpus
from recto.chat.blocks import Text
from recto.chat.message import Message, Role, now
from recto.store.database import Database
from recto.store.rows import message_columns
from recto.store.schema import conversations, messages
from recto.store.table_rows import check_references, insert_rows, number_on, release_references

PER_CONVERSATION, BATCH, TEXTS = 100, 10_000, 5_000
ROLES: tuple[Role, Role] = ("user", "assistant")
ID_SIGNS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def made_id(number: int, kind: str) -> str:
    """26 characters that sort by the number."""
    digits = []
    while number:
        number, last = divmod(number, len(ID_SIGNS))
        digits.append(ID_SIGNS[last])
    return "01" + kind + "".join(reversed(digits)).rjust(23, "0")


def load_messages(database: Database, count: int) -> None:
    """Conversations of a hundred messages each. Texts are made of some thousands, each with a number of its own."""
    texts = [corpus.Speaker(seed).message() for seed in range(TEXTS)]
    stamp, random = now(), Random(1)
    homes = (count + PER_CONVERSATION - 1) // PER_CONVERSATION

    def home_rows() -> Iterator[tuple[Any, ...]]:
        for home in range(1, homes + 1):
            head = min(count, home * PER_CONVERSATION)
            yield home, made_id(home, "C"), f"Talk {home}", "default", stamp, stamp, head, "{}", None, None

    def message_rows() -> Iterator[tuple[Any, ...]]:
        for number in range(1, count + 1):
            place = (number - 1) % PER_CONVERSATION
            home, role = (number - 1) // PER_CONVERSATION + 1, ROLES[place % 2]
            said = Message("", role, (Text(f"{random.choice(texts)} Note {number}."),))
            columns, branch = message_columns(said), number - place
            parent = number - 1 if place else None
            first = (number, made_id(number, "M"), home, parent, place + 1, place + 1, None, role, "done", stamp, None)
            yield *first, columns["blocks"], columns["details"], 5, branch

    with database.engine.connect() as connection:
        connection.detach()
        connection.execution_options(write=True)
        release_references(connection)
        for table, rows in ((conversations, home_rows()), (messages, message_rows())):
            while some := list(islice(rows, BATCH)):
                with connection.begin():
                    insert_rows(connection, table, some)
        tables = [conversations, messages]
        with connection.begin():
            assert not check_references(connection, list(conversations.metadata.tables.values()))
            number_on(connection, tables)
