"""Tree: conversations and their messages. It only grows; a head points at where each conversation stands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, func, insert, literal, select, text, update

from recto import wire
from recto.chat.conversation import Conversation
from recto.chat.growth import Step
from recto.chat.message import Message, Tokens, now
from recto.errors import Invalid, NotFound
from recto.ids import new_id
from recto.store.database import Database
from recto.store.rows import AnyRow, conversation_of, details_of, message_of
from recto.store.schema import conversations, deltas, messages, requests

TITLE_LENGTH = 60

_parents = messages.alias("parents")
_heads = messages.alias("heads")
_MESSAGE = (
    select(
        *(messages.c[name] for name in ("n", "id", "depth", "said", "compaction", "role", "status", "created")),
        messages.c.blocks,
        messages.c.details,
        _parents.c.id.label("parent_id"),
        requests.c.id.label("request_id"),
    )
    .outerjoin(_parents, _parents.c.n == messages.c.parent)
    .outerjoin(requests, requests.c.n == messages.c.request)
)
_CONVERSATION = select(
    conversations, _heads.c.id.label("head_id"), _heads.c.said.label("said"), _heads.c.depth.label("depth")
).outerjoin(_heads, _heads.c.n == conversations.c.head)


def _walk() -> Select[Any]:
    """Up the parents from one message, newest first. The depth must fall, so a cycle in damaged data ends."""
    start = (
        select(messages.c.n, messages.c.parent, messages.c.depth, literal(1).label("step"))
        .where(messages.c.n == bindparam("start"))
        .cte("path", recursive=True)
    )
    up = messages.alias("up")
    path = start.union_all(
        select(up.c.n, up.c.parent, up.c.depth, start.c.step + 1)
        .join(start, up.c.n == start.c.parent)
        .where(up.c.depth < start.c.depth, start.c.step < bindparam("most"), up.c.n != bindparam("until"))
    )
    return _MESSAGE.join(path, path.c.n == messages.c.n).order_by(path.c.step)


_PATH = _walk()


@dataclass(frozen=True, slots=True)
class Placed:
    """A message in its place. `moved` is False when another writer had moved the head: this one is a branch."""

    message: Message
    moved: bool


class Tree:
    def __init__(self, database: Database) -> None:
        self._database = database

    # -- conversations

    def create(self, *, title: str = "", agent: str = "default", details: dict[str, Any] | None = None) -> Conversation:
        stamp = now()
        made = Conversation(new_id(), title, None, stamp, stamp, agent, details or {})
        with self._database.write() as connection:
            connection.execute(
                insert(conversations).values(
                    id=made.id,
                    title=title,
                    agent=agent,
                    created=stamp,
                    updated=stamp,
                    details=wire.dumps(made.details),
                )
            )
        return made

    def conversation(self, id: str) -> Conversation:
        with self._database.read() as connection:
            return conversation_of(_conversation_row(connection, id))

    def latest(self) -> Conversation | None:
        found = self.conversations(limit=1)
        return found[0] if found else None

    def conversations(
        self, *, limit: int = 100, since: str | None = None, before: str | None = None
    ) -> list[Conversation]:
        query = _CONVERSATION.order_by(conversations.c.updated.desc(), conversations.c.n.desc()).limit(limit)
        if since:
            query = query.where(conversations.c.updated >= since)
        if before:
            query = query.where(conversations.c.updated < before)
        with self._database.read() as connection:
            return [conversation_of(row) for row in connection.execute(query)]

    def change(self, id: str, *, title: str | None = None, details: dict[str, Any] | None = None) -> Conversation:
        """A new title; choices added to the conversation's details (None takes one away)."""
        with self._database.write() as connection:
            row = _conversation_row(connection, id)
            merged = wire.loads(row.details) | (details or {})
            kept = {name: value for name, value in merged.items() if value is not None}
            connection.execute(
                update(conversations)
                .where(conversations.c.n == row.n)
                .values(title=row.title if title is None else title, details=wire.dumps(kept))
            )
            return conversation_of(_conversation_row(connection, id))

    # -- messages

    def append(self, conversation: str, message: Message) -> Placed:
        """Stores the message under its parent and moves the head there, if the head still is that parent."""
        with self._database.write() as connection:
            home = _conversation_row(connection, conversation)
            if existing := connection.execute(_MESSAGE.where(messages.c.id == message.id)).first():
                return self._again(home, existing, message)
            parent = _message_row(connection, message.parent) if message.parent else None
            placed = _placed(message, parent)
            number = _insert_message(connection, home.n, parent, placed)
            _index(connection, number, placed)
            return Placed(placed, _move_from(connection, home, parent, number, placed))

    def _again(self, home: AnyRow, existing: AnyRow, message: Message) -> Placed:
        known = message_of(existing)
        if (known.role, known.blocks, known.parent) != (message.role, message.blocks, message.parent):
            raise Invalid(f"message {message.id} is already stored with other content", id=message.id)
        return Placed(known, home.head_id == message.id)

    def grow(self, message: str, steps: list[Step]) -> None:
        """Stores what has come in of an unfinished message since the last time."""
        with self._database.write() as connection:
            number = _message_row(connection, message).n
            connection.execute(insert(deltas).values(message=number, growth=wire.dumps(steps)))

    def finish(self, message: Message) -> None:
        """Folds an unfinished message: its blocks whole, its words searchable, the deltas gone."""
        with self._database.write() as connection:
            row = _message_row(connection, message.id)
            if row.status != "unfinished":
                raise Invalid(f"message {message.id} is already finished", id=message.id)
            connection.execute(
                update(messages)
                .where(messages.c.n == row.n)
                .values(status=message.status, blocks=wire.blocks_to_json(message.blocks), details=details_of(message))
            )
            connection.execute(delete(deltas).where(deltas.c.message == row.n))
            _index(connection, row.n, message)
            home = conversations.c.n == select(messages.c.conversation).where(messages.c.n == row.n).scalar_subquery()
            connection.execute(update(conversations).where(home).values(updated=now()))

    def count(self, message: str, tokens: Tokens) -> None:
        """Notes what a message costs, once that is known."""
        with self._database.write() as connection:
            row = _message_row(connection, message)
            details = details_of(replace(message_of(row), tokens=tokens))
            connection.execute(update(messages).where(messages.c.n == row.n).values(details=details))

    def message(self, id: str) -> Message:
        with self._database.read() as connection:
            return _read(connection, [_message_row(connection, id)])[0]

    def owner(self, message: str) -> str:
        """The conversation that a message belongs to."""
        with self._database.read() as connection:
            row = _message_row(connection, message)
            home = select(conversations.c.id).join(messages, messages.c.conversation == conversations.c.n)
            return str(connection.execute(home.where(messages.c.n == row.n)).scalar_one())

    def compaction(self, at: str) -> Message | None:
        """The newest message with a Compaction on the path up to and with `at`."""
        with self._database.read() as connection:
            number = _message_row(connection, at).compaction
            if number is None:
                return None
            return _read(connection, connection.execute(_MESSAGE.where(messages.c.n == number)).all())[0]

    def page(self, start: str, *, most: int, until: str | None = None) -> list[Message]:
        """Up to `most` messages from `start` up the path, newest first, ending before `until`."""
        with self._database.read() as connection:
            first = _message_row(connection, start)
            last = _message_row(connection, until).n if until else -1
            found = connection.execute(_PATH, {"start": first.n, "most": most, "until": last}).all()
            return _read(connection, found)

    def messages(self, ids: Sequence[str]) -> list[Message]:
        """These messages, in order of their depth."""
        with self._database.read() as connection:
            found = connection.execute(_MESSAGE.where(messages.c.id.in_(ids)).order_by(messages.c.depth)).all()
            return _read(connection, found)

    def leaves(self, conversation: str) -> list[Message]:
        """The last message of every branch, newest first."""
        children = messages.alias("children")
        with self._database.read() as connection:
            home = _conversation_row(connection, conversation)
            childless = ~select(children.c.n).where(children.c.parent == messages.c.n).exists()
            query = _MESSAGE.where(messages.c.conversation == home.n, childless).order_by(messages.c.n.desc())
            return _read(connection, connection.execute(query).all())

    def move(self, conversation: str, target: str | None) -> str | None:
        """Moves the head to `target` (None: before the first message) and gives back where it now is.

        Between what the newest Compaction covers and the Compaction itself, that Compaction is appended again on the
        new branch: else the covered part would come back into the window.
        """
        with self._database.write() as connection:
            home = _conversation_row(connection, conversation)
            row = _message_row(connection, target) if target else None
            if row is not None and self.owner(row.id) != conversation:
                raise NotFound(f"message {target} is not part of conversation {conversation}", id=target)
            _set_head(connection, home.n, row.n if row else None)
            if row is None or not (again := self._compaction_to_repeat(connection, home, row)):
                return target
            copy = replace(again, id=new_id(), parent=row.id, created="")
            return self.append(conversation, copy).message.id

    def _compaction_to_repeat(self, connection: Connection, home: AnyRow, target: AnyRow) -> Message | None:
        if home.head_id is None or target.id == home.head_id:
            return None
        newest = self.compaction(home.head_id)
        if newest is None or newest.compaction is None or newest.compaction.last is None:
            return None
        covered = _message_row(connection, newest.compaction.last)
        between = covered.depth <= target.depth < newest.depth
        return newest if between and _is_on_path(connection, home.head, target) else None

    def search(self, words: str, *, limit: int = 20, conversation: str | None = None) -> list[tuple[str, Message]]:
        """Messages that hold the words, best first, with their conversation. Operators in the words mean nothing."""
        terms = " ".join('"' + word.replace('"', '""') + '"' for word in words.split())
        if not terms:
            return []
        found = text("SELECT rowid AS n, rank FROM words WHERE words MATCH :terms").bindparams(terms=terms)
        hits = found.columns(messages.c.n, rank=func.bm25().type).subquery("hits")
        query = (
            _MESSAGE.add_columns(conversations.c.id.label("conversation_id"))
            .join(hits, hits.c.n == messages.c.n)
            .join(conversations, conversations.c.n == messages.c.conversation)
            .order_by(hits.c.rank)
            .limit(limit)
        )
        if conversation:
            query = query.where(conversations.c.id == conversation)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
            return [(row.conversation_id, message) for row, message in zip(rows, _read(connection, rows), strict=True)]


def _conversation_row(connection: Connection, id: str) -> AnyRow:
    row = connection.execute(_CONVERSATION.where(conversations.c.id == id)).first()
    if row is None:
        raise NotFound(f"there is no conversation {id}; `recto conversations list` shows those there are", id=id)
    return row


def _message_row(connection: Connection, id: str) -> AnyRow:
    row = connection.execute(_MESSAGE.where(messages.c.id == id)).first()
    if row is None:
        raise NotFound(f"there is no message {id}", id=id)
    return row


def _read(connection: Connection, rows: Sequence[AnyRow]) -> list[Message]:
    """The rows as messages; unfinished ones with what has streamed in so far."""
    growing = [row.n for row in rows if row.status == "unfinished"]
    growth: dict[int, list[str]] = {}
    if growing:
        query = select(deltas.c.message, deltas.c.growth).where(deltas.c.message.in_(growing)).order_by(deltas.c.n)
        for number, steps in connection.execute(query):
            growth.setdefault(number, []).append(steps)
    return [message_of(row, growth.get(row.n)) for row in rows]


def _placed(message: Message, parent: AnyRow | None) -> Message:
    depth, said = (parent.depth, parent.said) if parent is not None else (0, 0)
    said += 0 if message.compaction else 1
    return replace(message, depth=depth + 1, said=said, created=message.created or now())


def _insert_message(connection: Connection, home: int, parent: AnyRow | None, message: Message) -> int:
    request = None
    if message.request:
        request = connection.execute(select(requests.c.n).where(requests.c.id == message.request)).scalar_one()
    statement = insert(messages).values(
        id=message.id,
        conversation=home,
        parent=parent.n if parent is not None else None,
        depth=message.depth,
        said=message.said,
        compaction=parent.compaction if parent is not None else None,
        role=message.role,
        status=message.status,
        created=message.created,
        request=request,
        blocks=wire.blocks_to_json(message.blocks),
        details=details_of(message),
    )
    number = int(connection.execute(statement).inserted_primary_key[0])  # type: ignore[index]
    if message.compaction:
        connection.execute(update(messages).where(messages.c.n == number).values(compaction=number))
    return number


def _move_from(connection: Connection, home: AnyRow, parent: AnyRow | None, number: int, message: Message) -> bool:
    """Compare and swap: the head moves only from the new message's parent."""
    if home.head != (parent.n if parent is not None else None):
        return False
    title = home.title or (_title(message.text) if message.role == "user" else "")
    connection.execute(
        update(conversations).where(conversations.c.n == home.n).values(head=number, updated=now(), title=title)
    )
    return True


def _set_head(connection: Connection, home: int, head: int | None) -> None:
    connection.execute(update(conversations).where(conversations.c.n == home).values(head=head, updated=now()))


def _is_on_path(connection: Connection, head: int, target: AnyRow) -> bool:
    """Whether `target` is an ancestor of the head: a walk of bare numbers, as deep as the two lie apart."""
    step = text(
        "WITH RECURSIVE path(n, parent, depth) AS (SELECT n, parent, depth FROM messages WHERE n = :head UNION ALL "
        "SELECT up.n, up.parent, up.depth FROM messages up JOIN path ON up.n = path.parent "
        "WHERE up.depth < path.depth AND up.depth >= :depth) SELECT 1 FROM path WHERE n = :target"
    )
    found = connection.execute(step, {"head": head, "depth": target.depth, "target": target.n})
    return found.first() is not None


def _index(connection: Connection, number: int, message: Message) -> None:
    if message.status == "unfinished" or not (words := message.text):
        return
    connection.execute(text("INSERT INTO words(rowid, text) VALUES (:n, :text)"), {"n": number, "text": words})


def _title(said: str) -> str:
    line = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
