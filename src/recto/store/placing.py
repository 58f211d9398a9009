"""Placing: how a message finds its place: under its parent, on a branch, at the head."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from sqlalchemy import Connection, select

from recto.chat.blocks import Compaction
from recto.chat.message import Message, now
from recto.ids import new_id
from recto.store.queries import (
    BEGIN_BRANCH,
    COMPACTION_AT,
    COVER_ITSELF,
    HAS_CHILD,
    INSERT_MESSAGE,
    MOVE_HEAD,
)
from recto.store.reading import message_row
from recto.store.references import note_uses
from recto.store.rows import AnyRow, message_of, written
from recto.store.schema import messages
from recto.store.trails import is_on_path

TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Parent:
    """What a child needs to know of the message that it follows."""

    n: int | None = None
    depth: int = 0
    said: int = 0
    compaction: int | None = None
    branch: int = 0


def parent_of(connection: Connection, home: AnyRow, id: str | None) -> Parent:
    if id is None:
        return Parent()
    if id == home.head_id:
        return Parent(home.head, home.depth, home.said, home.compaction, home.branch)
    row = message_row(connection, id)
    return Parent(row.n, row.depth, row.said, row.compaction, row.branch)


def placed_under(message: Message, parent: Parent) -> Message:
    said = parent.said + (0 if message.compaction else 1)
    return replace(message, depth=parent.depth + 1, said=said, created=message.created or now())


def insert_message(connection: Connection, home: int, parent: Parent, message: Message) -> int:
    begins = parent.n is None or HAS_CHILD(connection, parent=parent.n).first() is not None
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
        "priority": message.priority,
        "request_id": message.request,
        "branch": 0 if begins else parent.branch,
        **written(message),
    }
    number = int(INSERT_MESSAGE(connection, **values).lastrowid)
    if begins:
        BEGIN_BRANCH(connection, number=number)
    if message.compaction:
        COVER_ITSELF(connection, number=number)
    note_uses(connection, number, message.blocks)
    return number


def move_from(connection: Connection, home: AnyRow, parent: Parent, number: int, message: Message) -> bool:
    """Compare and swap: the head moves only from the new message's parent."""
    if home.head != parent.n:
        return False
    title = home.title or (_title(message.text) if message.role == "user" else "")
    MOVE_HEAD(connection, home=home.n, new_head=number, new_updated=now(), new_title=title)
    return True


def compactions_up_from(connection: Connection, at: str | None) -> Iterator[AnyRow]:
    """The Compactions on the path up to and with `at`, newest first. Each message knows its newest: we hop."""
    depth = None
    while at is not None and (row := COMPACTION_AT(connection, id=at).first()) is not None:
        if depth is not None and row.depth >= depth:
            return  # damaged data must not lead in a circle
        yield row
        at, depth = row.parent_id, row.depth


def repeated_at(connection: Connection, home: AnyRow, target: AnyRow) -> Message | None:
    """The newest Compaction between `target` and the head that covers nothing beyond `target`, to be said again there.

    None where there is none, or where saying it would change nothing.
    """
    if home.head in (None, target.n) or not is_on_path(connection, home.head_id, target):
        return None
    beyond = takewhile(lambda row: row.depth > target.depth, compactions_up_from(connection, home.head_id))
    for message in map(message_of, beyond):
        block = message.compaction
        if block is not None and _reach(connection, block) <= target.depth:
            block = _up_to(connection, block, target.depth)
            changes = block.last or block.pinned or block.excerpts or target.compaction is not None
            return replace(message, id=new_id(), parent=target.id, created="", blocks=(block,)) if changes else None
    return None


def _reach(connection: Connection, block: Compaction) -> int:
    """How deep the last message lies that it covers."""
    return int(message_row(connection, block.last).depth) if block.last else 0


def _up_to(connection: Connection, block: Compaction, depth: int) -> Compaction:
    """The block without what it says of deeper messages. An excerpt's key is a message, or `message/call`."""
    owners = {key: key.partition("/")[0] for key in block.excerpts}
    named = {*block.pinned, *owners.values()}
    query = select(messages.c.id).where(messages.c.id.in_(named), messages.c.depth <= depth)
    near = set(connection.execute(query).scalars()) if named else set()
    return replace(
        block,
        pinned=tuple(id for id in block.pinned if id in near),
        excerpts={key: text for key, text in block.excerpts.items() if owners[key] in near},
    )


def _title(said: str) -> str:
    line = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
