"""Placing: how a message finds its place: under its parent, at the head, among the words that are searched."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from recto.chat.message import Message, now
from recto.errors import NotFound
from recto.store.queries import (
    CONVERSATION_BY_ID,
    COVER_ITSELF,
    INSERT_MESSAGE,
    INSERT_WORDS,
    IS_ANCESTOR,
    MESSAGE_BY_ID,
    MOVE_HEAD,
)
from recto.store.rows import AnyRow, written

TITLE_LENGTH = 60


def conversation_row(connection: Connection, id: str) -> AnyRow:
    row = CONVERSATION_BY_ID(connection, id=id).first()
    if row is None:
        raise NotFound(f"there is no conversation {id}; `recto conversations list` shows those there are", id=id)
    return row


def message_row(connection: Connection, id: str) -> AnyRow:
    row = MESSAGE_BY_ID(connection, id=id).first()
    if row is None:
        raise NotFound(f"there is no message {id}", id=id)
    return row


@dataclass(frozen=True, slots=True)
class Parent:
    """What a child needs to know of the message that it follows."""

    n: int | None = None
    depth: int = 0
    said: int = 0
    compaction: int | None = None


def parent_of(connection: Connection, home: AnyRow, id: str | None) -> Parent:
    if id is None:
        return Parent()
    if id == home.head_id:
        return Parent(home.head, home.depth, home.said, home.compaction)
    row = message_row(connection, id)
    return Parent(row.n, row.depth, row.said, row.compaction)


def placed_under(message: Message, parent: Parent) -> Message:
    said = parent.said + (0 if message.compaction else 1)
    return replace(message, depth=parent.depth + 1, said=said, created=message.created or now())


def insert_message(connection: Connection, home: int, parent: Parent, message: Message) -> int:
    values = {
        "id": message.id,
        "conversation": home,
        "parent": parent.n,
        "depth": message.depth,
        "said": message.said,
        "compaction": parent.compaction,
        "role": message.role,
        "status": message.status,
        "created": message.created,
        "request_id": message.request,
        **written(message),
    }
    number = int(INSERT_MESSAGE(connection, **values).lastrowid)
    if message.compaction:
        COVER_ITSELF(connection, number=number)
    return number


def move_from(connection: Connection, home: AnyRow, parent: Parent, number: int, message: Message) -> bool:
    """Compare and swap: the head moves only from the new message's parent."""
    if home.head != parent.n:
        return False
    title = home.title or (_title(message.text) if message.role == "user" else "")
    MOVE_HEAD(connection, home=home.n, new_head=number, new_updated=now(), new_title=title)
    return True


def is_on_path(connection: Connection, head: int, target: AnyRow) -> bool:
    """Whether `target` is an ancestor of the head."""
    found = IS_ANCESTOR(connection, head=head, depth=target.depth, target=target.n)
    return found.first() is not None


def index_words(connection: Connection, number: int, message: Message) -> None:
    if message.status != "unfinished" and (words := message.text):
        INSERT_WORDS(connection, n=number, text=words)


def _title(said: str) -> str:
    line = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
