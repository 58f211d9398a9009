"""Tree: conversations and their messages. It only grows; a head points at where each conversation stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from recto import wire
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.growth import Step
from recto.chat.message import Message, now
from recto.chat.trail import Trail
from recto.errors import Invalid, NotFound
from recto.ids import new_id
from recto.store.database import Database
from recto.store.placing import (
    compactions_up_from,
    insert_message,
    move_from,
    parent_of,
    placed_under,
    repeated_at,
)
from recto.store.queries import (
    AFTER,
    BY_NUMBER,
    COMPACTION_AT,
    COMPACTION_BLOCKS_AT,
    CONVERSATION,
    DELETE_DELTAS,
    FINISH,
    INSERT_DELTA,
    MESSAGE,
    MOVE_HEAD,
    NEWEST_NUMBER,
    PATH,
    REQUEST_OF,
    SET_BLOCKS,
    SET_DETAILS,
    SET_PRIORITY,
)
from recto.store.reading import bare_page, conversation_row, message_row, read, read_numbered
from recto.store.references import note_uses
from recto.store.rows import AnyRow, Numbered, conversation_of, message_of, written
from recto.store.schema import conversations, messages
from recto.store.trails import is_on_path, track_to, trail_of

PRIORITIES = range(1, 11)


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
            return conversation_of(conversation_row(connection, id))

    def latest(self) -> Conversation | None:
        found = self.conversations(limit=1)
        return found[0] if found else None

    def conversations(
        self, *, limit: int = 100, since: str | None = None, before: str | None = None
    ) -> list[Conversation]:
        query = CONVERSATION.order_by(conversations.c.updated.desc(), conversations.c.n.desc()).limit(limit)
        if since:
            query = query.where(conversations.c.updated >= since)
        if before:
            query = query.where(conversations.c.updated < before)
        with self._database.read() as connection:
            return [conversation_of(row) for row in connection.execute(query)]

    def change(self, id: str, *, title: str | None = None, details: dict[str, Any] | None = None) -> Conversation:
        """A new title; choices added to the conversation's details (None takes one away)."""
        with self._database.write() as connection:
            row = conversation_row(connection, id)
            merged = wire.loads(row.details) | (details or {})
            kept = {name: value for name, value in merged.items() if value is not None}
            connection.execute(
                update(conversations)
                .where(conversations.c.n == row.n)
                .values(title=row.title if title is None else title, details=wire.dumps(kept))
            )
            return conversation_of(conversation_row(connection, id))

    # -- messages

    def append(self, conversation: str, message: Message) -> Placed:
        """Stores the message under its parent and moves the head there, if the head still is that parent."""
        with self._database.write() as connection:
            home = conversation_row(connection, conversation)
            parent = parent_of(connection, home, message.parent)
            placed = placed_under(message, parent)
            try:
                number = insert_message(connection, home.n, parent, placed)
            except IntegrityError:
                return self._again(home, message_row(connection, message.id), message)
            return Placed(placed, move_from(connection, home, parent, number, placed))

    def _again(self, home: AnyRow, existing: AnyRow, message: Message) -> Placed:
        known = message_of(existing)
        if (known.role, known.blocks, known.parent) != (message.role, message.blocks, message.parent):
            raise Invalid(f"message {message.id} is already stored with other content", id=message.id)
        return Placed(known, home.head_id == message.id)

    def grow(self, message: str, steps: list[Step]) -> None:
        """Stores what has come in of an unfinished message since the last time."""
        with self._database.write() as connection:
            INSERT_DELTA(connection, id=message, growth=wire.dumps(steps))

    def finish(self, message: Message) -> None:
        """Folds an unfinished message: its blocks whole, the deltas gone."""
        with self._database.write() as connection:
            text = written(message)
            row = FINISH(
                connection,
                message=message.id,
                new_status=message.status,
                new_blocks=text["blocks"],
                new_details=text["details"],
                new_priority=message.priority,
            ).first()
            if row is None:
                raise Invalid(f"message {message.id} is already finished, or was never begun", id=message.id)
            DELETE_DELTAS(connection, number=row.n)
            note_uses(connection, row.n, message.blocks)

    def refer(self, message: Message) -> None:
        """Notes which documents a message refers to, once that is known; what was said stays as it is."""
        with self._database.write() as connection:
            row = SET_BLOCKS(connection, message=message.id, new_blocks=written(message)["blocks"]).first()
            if row is None:
                raise NotFound(f"there is no message {message.id}", id=message.id)
            note_uses(connection, row.n, message.blocks)

    def count(self, message: Message) -> None:
        """Notes what a message costs, once that is known."""
        with self._database.write() as connection:
            SET_DETAILS(connection, message=message.id, new_details=written(message)["details"])

    def prioritise(self, id: str, priority: int) -> None:
        """Says how much a message matters, from 1 to 10."""
        if priority not in PRIORITIES:
            raise Invalid(f"priority {priority} is not allowed; it is a whole number from 1 to 10", priority=priority)
        with self._database.write() as connection:
            if SET_PRIORITY(connection, message=id, new_priority=priority).first() is None:
                raise NotFound(f"there is no message {id}", id=id)

    def message(self, id: str) -> Message:
        with self._database.read() as connection:
            return read(connection, [message_row(connection, id)])[0]

    def owner(self, message: str) -> str:
        """The conversation that a message belongs to."""
        with self._database.read() as connection:
            row = message_row(connection, message)
            home = select(conversations.c.id).join(messages, messages.c.conversation == conversations.c.n)
            return str(connection.execute(home.where(messages.c.n == row.n)).scalar_one())

    def compaction(self, at: str) -> Message | None:
        """The newest message with a Compaction on the path up to and with `at`."""
        with self._database.read() as connection:
            row = COMPACTION_AT(connection, id=at).first()
            if row is None:
                message_row(connection, at)
                return None
            return read(connection, [row])[0]

    def compactions(self, at: str, *, limit: int) -> list[Message]:
        """The newest messages with Compactions on the path up to and with `at`, newest first."""
        with self._database.read() as connection:
            message_row(connection, at)
            return [message_of(row) for row in islice(compactions_up_from(connection, at), limit)]

    def is_on(self, path_end: str, message: str) -> bool:
        """Whether a message is on the path that ends at `path_end`."""
        with self._database.read() as connection:
            return is_on_path(connection, path_end, message_row(connection, message))

    def page(self, start: str, *, most: int, until: str | None = None) -> list[Message]:
        """Up to `most` messages from `start` up the path, newest first, ending before `until`."""
        with self._database.read() as connection:
            found = PATH(connection, start=start, most=most, until=until or "").all()
            if not found:
                message_row(connection, start)
            return read(connection, found)

    def bare_page(self, start: str, *, most: int, until: str | None = None) -> list[Message]:
        """The same with only what a window needs of them: who, what, where; in a third of the time."""
        with self._database.read() as connection:
            return bare_page(connection, start, most, until)

    def active(self, at: str, *, most: int) -> tuple[Compaction | None, list[Message]]:
        """The newest Compaction on the path to `at`, and a bare page of what it does not cover."""
        with self._database.read() as connection:
            stored = COMPACTION_BLOCKS_AT(connection, id=at).scalar()
            found = wire.blocks_from_json(stored) if stored else ()
            block = next((block for block in found if isinstance(block, Compaction)), None)
            return block, bare_page(connection, at, most, block.last if block else None)

    def request_of(self, message: str) -> str | None:
        with self._database.read() as connection:
            return REQUEST_OF(connection, id=message).scalar()

    def messages(self, ids: Sequence[str]) -> list[Message]:
        """These messages, in order of their depth."""
        with self._database.read() as connection:
            found = connection.execute(MESSAGE.where(messages.c.id.in_(ids)).order_by(messages.c.depth)).all()
            return read(connection, found)

    def children(self, id: str, *, role: str) -> list[str]:
        """The messages of this role that follow a message, on whatever branch."""
        parents = messages.alias("parents")
        query = select(messages.c.id).join(parents, parents.c.n == messages.c.parent)
        with self._database.read() as connection:
            return list(connection.execute(query.where(parents.c.id == id, messages.c.role == role)).scalars())

    def leaves(self, conversation: str) -> list[Message]:
        """The last message of every branch, newest first."""
        children = messages.alias("children")
        with self._database.read() as connection:
            home = conversation_row(connection, conversation)
            childless = ~select(children.c.n).where(children.c.parent == messages.c.n).exists()
            query = MESSAGE.where(messages.c.conversation == home.n, childless).order_by(messages.c.n.desc())
            return read(connection, connection.execute(query).all())

    def move(self, conversation: str, target: str | None, *, again: bool = True) -> str | None:
        """Moves the head to `target` (None: before the first message) and gives back where it now is.

        Between what a Compaction covers, be it nothing, and the Compaction itself, that Compaction is appended again on
        the new branch (unless not `again`): else the covered part would come back into the window, and pins be lost.
        """
        with self._database.write() as connection:
            home = conversation_row(connection, conversation)
            row = message_row(connection, target) if target else None
            if row is not None and self.owner(row.id) != conversation:
                raise NotFound(f"message {target} is not part of conversation {conversation}", id=target)
            head = row.n if row else None
            MOVE_HEAD(connection, home=home.n, new_head=head, new_updated=now(), new_title=home.title)
            repeated = repeated_at(connection, home, row) if row is not None and again else None
            return self.append(conversation, repeated).message.id if repeated else target

    # -- by number and place

    def trail(self, head: str) -> Trail:
        """The branches of the path that ends at `head`: what else is on it can be told without the store."""
        with self._database.read() as connection:
            return trail_of(connection, head)

    def newest_number(self) -> int:
        """The number of the message that was stored last; 0 when there is none."""
        with self._database.read() as connection:
            return NEWEST_NUMBER(connection).scalar() or 0

    def after(self, number: int, *, most: int) -> list[Numbered]:
        """What was stored after the message of this number, in all conversations, in that order."""
        with self._database.read() as connection:
            return read_numbered(connection, AFTER(connection, number=number, most=most).all())

    def by_number(self, numbers: Sequence[int]) -> dict[int, Numbered]:
        """The messages of these numbers; one that is not there is left out."""
        with self._database.read() as connection:
            rows = BY_NUMBER(connection, numbers=wire.dumps(list(dict.fromkeys(numbers)))).all()
            return {each.n: each for each in read_numbered(connection, rows)}

    def numbered(self, head: str, said: Sequence[int]) -> dict[int, Message]:
        """Bare messages of the path to `head` by their number on it; one that was never said is left out."""
        with self._database.read() as connection:
            track = track_to(connection, head)
            rows = [row for number in dict.fromkeys(said) if (row := track.numbered(number)) is not None]
            return {each.message.said: each.message for each in read_numbered(connection, rows)}

    def stretch(self, head: str, first: int, last: int) -> list[Message]:
        """Bare messages that were said on the path to `head` between two depths, in order."""
        with self._database.read() as connection:
            found = read_numbered(connection, track_to(connection, head).rows(first, last))
            return [each.message for each in found if each.message.compaction is None]
