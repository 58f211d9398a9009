"""Tree: conversations and their messages. Messages are only added; each conversation has a head, its newest message."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Literal

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, func, insert, select, union_all, update

from recto import wire
from recto.base.ids import new_id
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation, ConversationState, Trail
from recto.chat.message import Delta, Message, now
from recto.errors import Invalid, NotFound
from recto.store.database import Database
from recto.store.dialect import TEXT, in_list
from recto.store.document_uses import note_uses
from recto.store.paths import (
    MOVE_HEAD,
    ConversationPath,
    MessagePath,
    compactions_of,
    conversation_paths,
    find_trail,
    insert_message,
    lines_set_aside,
    move_head,
    parent_of,
    path_to,
    place_under,
)
from recto.store.prepared_statement import Statement
from recto.store.replies import note_closed, note_open
from recto.store.rows import (
    BRING_BACK,
    BY_NUMBER,
    CONVERSATION,
    CONVERSATION_WAS_SENT,
    MESSAGE,
    NUMBERED,
    PLACE_OF,
    AnyRow,
    AppendedMessage,
    NumberedMessage,
    bare_page,
    compaction_of,
    conversation_of,
    conversation_row,
    message_columns,
    message_of,
    message_row,
    path_of,
    read_messages,
    read_numbered,
)
from recto.store.schema import client_conversations, conversations, deltas, messages, requests
from recto.window.compaction_block import cleared_at

IdKind = Literal["conversation", "message", "request"]
PRIORITIES = range(1, 11)
_LATEST = (conversations.c.updated.desc(), conversations.c.n.desc())
_ARE: dict[ConversationState, ColumnElement[bool]] = {
    "active": conversations.c.archived.is_(None) & conversations.c.deleted.is_(None),
    "hidden": conversations.c.archived.is_not(None) & conversations.c.deleted.is_(None),
    "deleted": conversations.c.deleted.is_not(None),
}
_TABLES = {"conversation": conversations, "message": messages, "request": requests}
_NUMBERS = Statement(select(conversations.c.id, conversations.c.n).where(in_list(conversations.c.id, "ids")))

_parents, _at, _children = messages.alias("parents"), messages.alias("at"), messages.alias("children")
_CHILDLESS = ~select(_children.c.n).where(_children.c.parent == messages.c.n).exists()
_CHILDREN = Statement(
    select(messages.c.id)
    .join(_parents, _parents.c.n == messages.c.parent)
    .where(_parents.c.id == bindparam("id"), messages.c.role == bindparam("role"))
)
_PATH = path_of(MESSAGE)
_BY_IDS = Statement(MESSAGE.where(in_list(messages.c.id, "ids")).order_by(messages.c.depth))
_AFTER = Statement(NUMBERED.where(messages.c.n > bindparam("number")).order_by(messages.c.n).limit(bindparam("most")))
_NEWEST_NUMBER = Statement(select(func.max(messages.c.n)))


def _compaction_at(columns: Select[Any]) -> Statement:
    return Statement(columns.join(_at, _at.c.compaction == messages.c.n).where(_at.c.id == bindparam("id")))


_COMPACTION_AT, _COMPACTION_BLOCKS_AT = _compaction_at(MESSAGE), _compaction_at(select(messages.c.blocks))
_COMPACTIONS = compactions_of(MESSAGE)


def _set(*columns: str) -> Any:
    values: dict[str, Any] = {column: bindparam(f"new_{column}") for column in columns}
    return update(messages).where(messages.c.id == bindparam("message")).values(values)


_SET_DETAILS, _SET_STATUS = Statement(_set("details")), Statement(_set("status"))
_SET_BLOCKS, _SET_PRIORITY = (Statement(_set(column).returning(messages.c.n)) for column in ("blocks", "priority"))
_FINISH = Statement(
    _set("status", "blocks", "details", "priority").where(messages.c.status == "unfinished").returning(messages.c.n)
)
# A finished message does not grow: another thread may have stored it whole meanwhile.
_growing = select(messages.c.n, bindparam("growth", type_=TEXT)).where(
    messages.c.id == bindparam("id"), messages.c.status == "unfinished"
)
_INSERT_DELTA = Statement(insert(deltas).from_select(["message", "growth"], _growing))
_DELETE_DELTAS = Statement(delete(deltas).where(deltas.c.message == bindparam("number")))


class Tree:
    def __init__(self, database: Database) -> None:
        self._database = database

    # -- conversations

    def create(
        self, *, id: str = "", title: str = "", agent: str = "default", details: dict[str, Any] | None = None
    ) -> Conversation:
        stamp = now()
        made = Conversation(id or new_id(), title, None, stamp, stamp, agent, details or {})
        with self._database.write() as connection:
            values = {"id": made.id, "title": title, "agent": agent, "created": stamp, "updated": stamp}
            query = insert(conversations).values(**values, details=wire.dumps(made.details))
            number = connection.execute(query.returning(conversations.c.n)).scalar_one()
        return replace(made, number=number)

    def conversation(self, id: str) -> Conversation:
        with self._database.read() as connection:
            return conversation_of(conversation_row(connection, id))

    def conversation_numbered(self, number: int) -> Conversation:
        row = self._database.first(CONVERSATION.where(conversations.c.n == number))
        if row is None:
            raise NotFound(f"there is no conversation #{number}; `recto conversations list` lists all of them")
        return conversation_of(row)

    def conversation_numbers(self, ids: Collection[str]) -> dict[str, int]:
        """By id; unknown ones are left out."""
        return {row.id: row.n for row in self._database.rows(_NUMBERS, ids=list(ids))}

    def latest(self, *, unsent: bool = True) -> Conversation | None:
        """The active conversation that changed last; without `unsent`, only one that was sent or is empty."""
        query = CONVERSATION.where(_ARE["active"]).order_by(*_LATEST).limit(1)
        if not unsent:
            query = query.where(conversations.c.head.is_(None) | CONVERSATION_WAS_SENT)
        row = self._database.first(query)
        return conversation_of(row) if row else None

    def was_sent(self, id: str) -> bool:
        """True if anything of a conversation was ever sent, or answered elsewhere."""
        query = select(conversations.c.n).where(conversations.c.id == id, CONVERSATION_WAS_SENT)
        return self._database.scalar(query) is not None

    def conversations(
        self,
        *,
        limit: int | None = 100,
        since: str | None = None,
        before: str | None = None,
        state: ConversationState | None = None,
        owner: str | None = None,
    ) -> list[Conversation]:
        """Latest first; `owner` is a client of the endpoint."""
        own = select(client_conversations.c.conversation).where(client_conversations.c.owner == owner)
        wanted = (
            *([conversations.c.n.in_(own)] if owner is not None else []),
            *([_ARE[state]] if state else []),
            *([conversations.c.updated >= since] if since else []),
            *([conversations.c.updated < before] if before else []),
        )
        query = CONVERSATION.where(*wanted).order_by(*_LATEST).limit(limit)
        return [conversation_of(row) for row in self._database.rows(query)]

    def ids_beginning(self, kind: IdKind, start: str, *, most: int, home: str | None = None) -> list[str]:
        """Ids that start with `start`; for messages and requests, only those of the conversation `home` if given."""
        table = _TABLES[kind]
        # ~ follows every digit of an id
        query = select(table.c.id).where(table.c.id >= start, table.c.id < f"{start}~")
        if home:
            query = query.join(conversations).where(conversations.c.id == home)
        return [row.id for row in self._database.rows(query.order_by(table.c.id).limit(most))]

    def change(self, id: str, *, title: str | None = None, details: dict[str, Any] | None = None) -> Conversation:
        """Changes the title, and merges settings into the conversation's details; None removes one."""
        with self._database.write() as connection:
            row = conversation_row(connection, id)
            merged = wire.loads(row.details) | (details or {})
            remaining = {name: value for name, value in merged.items() if value is not None}
            return self._set(id, title=row.title if title is None else title, details=wire.dumps(remaining))

    def hide(self, id: str, *, is_hidden: bool = True) -> Conversation:
        return self._set(id, archived=now() if is_hidden else None)

    def delete(self, id: str, *, is_deleted: bool = True) -> Conversation:
        """Moves a conversation to the trash, or back."""
        return self._set(id, deleted=now() if is_deleted else None)

    def _set(self, id: str, **values: str | None) -> Conversation:
        with self._database.write() as connection:
            conversation_row(connection, id)
            connection.execute(update(conversations).where(conversations.c.id == id).values(**values))
            return self.conversation(id)

    # -- writing messages

    def append(self, conversation: str, message: Message) -> AppendedMessage:
        """Stores the message under its parent, and moves the head to it if the head is still that parent. A message of
        the user brings the conversation back from the trash, or where it was hidden: it must not be deleted with it."""
        with self._database.write() as connection:
            home = conversation_row(connection, conversation)
            parent = parent_of(connection, home, message.parent)
            placed = place_under(message, parent)
            number = insert_message(connection, home.n, parent, placed)
            if number is None:
                known = message_of(message_row(connection, message.id))
                if (known.role, known.blocks, known.parent) != (message.role, message.blocks, message.parent):
                    raise Invalid(f"message {message.id} is already stored with other content", id=message.id)
                return AppendedMessage(known, home.head_id == message.id)
            self._database.note_newest(number, placed.id)
            if message.status == "unfinished":
                note_open(self._database, connection, number)
            if message.role == "user" and (home.archived or home.deleted):
                BRING_BACK(connection, home=home.n)
            return AppendedMessage(placed, move_head(connection, home, parent, number, placed))

    def append_all(self, conversation: str, said: Iterable[Message]) -> Message | None:
        """Stores many messages in one transaction, each below the one before, the first below the head."""
        with self._database.write():
            last, parent = None, self.conversation(conversation).head
            for message in said:
                last = self.append(conversation, replace(message, parent=parent)).message
                parent = last.id
            return last

    def grow(self, message: str, steps: list[Delta]) -> None:
        with self._database.write() as connection:
            _INSERT_DELTA(connection, id=message, growth=wire.dumps(steps))

    def finish(self, message: Message) -> None:
        """Completes an unfinished message: stores its blocks and deletes its deltas."""
        with self._database.write() as connection:
            columns = {"status": message.status, "priority": message.priority, **message_columns(message)}
            new = {f"new_{name}": value for name, value in columns.items()}
            row = _FINISH(connection, message=message.id, **new).first()
            if row is None:
                raise Invalid(f"message {message.id} is already finished, or was never started", id=message.id)
            _DELETE_DELTAS(connection, number=row.n)
            note_closed(self._database, connection, row.n)
            note_uses(connection, row.n, message.blocks)
            self._database.note_change("messages")

    def settle(self, id: str) -> None:
        """Marks a pending message as done: all its tool calls have results now."""
        with self._database.write() as connection:
            _SET_STATUS(connection, message=id, new_status="done")

    def refer(self, message: Message) -> None:
        """Stores the document references of a message; its text stays unchanged."""
        with self._database.write() as connection:
            row = _SET_BLOCKS(connection, message=message.id, new_blocks=message_columns(message)["blocks"]).first()
            if row is None:
                raise NotFound(f"there is no message {message.id}", id=message.id)
            note_uses(connection, row.n, message.blocks)

    def count(self, message: Message) -> None:
        with self._database.write() as connection:
            _SET_DETAILS(connection, message=message.id, new_details=message_columns(message)["details"])

    def learn(self, id: str, points: Collection[str]) -> None:
        with self._database.write() as connection:
            message = read_messages(connection, [message_row(connection, id)])[0]
            learned = replace(message, learning_points=tuple(dict.fromkeys((*message.learning_points, *points))))
            _SET_DETAILS(connection, message=id, new_details=message_columns(learned)["details"])

    def prioritise(self, id: str, priority: int) -> None:
        """Sets the priority of a message, from 1 to 10."""
        if priority not in PRIORITIES:
            raise Invalid(f"priority {priority} is not allowed; it is a whole number from 1 to 10", priority=priority)
        with self._database.write() as connection:
            if _SET_PRIORITY(connection, message=id, new_priority=priority).first() is None:
                raise NotFound(f"there is no message {id}", id=id)

    # -- reading messages

    def message(self, id: str) -> Message:
        with self._database.read() as connection:
            return read_messages(connection, [message_row(connection, id)])[0]

    def head(self, conversation: str) -> tuple[str | None, bool]:
        """The head of a conversation, and True if that message is still being written."""
        head = self.conversation(conversation).head
        return head, head is not None and self.message(head).status == "unfinished"

    def owner(self, message: str) -> str:
        with self._database.read() as connection:
            row = message_row(connection, message)
            home = select(conversations.c.id).where(conversations.c.n == row.conversation)
            return str(connection.execute(home).scalar_one())

    def compaction(self, at: str) -> Message | None:
        """The newest message with a Compaction on the path to `at`."""
        with self._database.read() as connection:
            row = _COMPACTION_AT(connection, id=at).first()
            if row is None:
                message_row(connection, at)
                return None
            return read_messages(connection, [row])[0]

    def compaction_block(self, at: str) -> Compaction | None:
        """The same without its message."""
        return compaction_of(self._database.scalar(_COMPACTION_BLOCKS_AT, id=at) or "[]")

    def compactions(self, at: str, *, limit: int | None = None, after: int = 0) -> list[Message]:
        """The messages with Compactions on the path to `at`, newest first, deeper than `after`."""
        with self._database.read() as connection:
            message_row(connection, at)
            rows = _COMPACTIONS(connection, at=at, after=after)
            found = [message_of(row) for row in islice(rows, limit)]
            rows.close()
            return found

    def set_aside(self, at: str, newest: Compaction | None = None) -> tuple[str, ...]:
        """The lines set aside by Compactions on the path to `at`, oldest first; `newest` of them may be a clear."""
        with self._database.read() as connection:
            return lines_set_aside(connection, at, cleared_at(newest))

    def newest_compaction_below(self, id: str) -> str | None:
        """The newest message with a Compaction on any branch through this message."""
        with self._database.read() as connection:
            target = message_row(connection, id)
            query = MESSAGE.where(messages.c.conversation == target.conversation, messages.c.compaction == messages.c.n)
            rows = connection.execute(query.where(messages.c.depth > target.depth).order_by(messages.c.n.desc()))
            return next((row.id for row in rows.all() if _is_on(connection, row.id, target)), None)

    def is_on(self, path_end: str, message: str) -> bool:
        with self._database.read() as connection:
            return _is_on(connection, path_end, message_row(connection, message))

    def page(self, start: str, *, most: int, until: str | None = None) -> list[Message]:
        """At most `most` messages from `start` up the path, newest first, ending before `until`."""
        with self._database.read() as connection:
            found = _PATH(connection, start=start, most=most, until=until or "").all()
            if not found:
                message_row(connection, start)
            return read_messages(connection, found)

    def bare_page(self, start: str, *, most: int, until: str | None = None) -> list[Message]:
        """The same with only the columns that a window needs, in a third of the time."""
        with self._database.read() as connection:
            return bare_page(connection, start, most, until)

    def active(self, at: str, *, most: int) -> tuple[Compaction | None, list[Message]]:
        """The newest Compaction on the path to `at`, and a bare page of the messages that it does not cover."""
        with self._database.read() as connection:
            block = compaction_of(_COMPACTION_BLOCKS_AT(connection, id=at).scalar() or "[]")
            return block, bare_page(connection, at, most, block.last if block else None)

    def messages(self, ids: Sequence[str]) -> list[Message]:
        with self._database.read() as connection:
            return read_messages(connection, _BY_IDS(connection, ids=list(ids)).all())

    def children(self, id: str, *, role: str) -> list[str]:
        """The children of a message with this role, on any branch."""
        return [row.id for row in self._database.rows(_CHILDREN, id=id, role=role)]

    def alternatives(self, ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """For each message its alternatives, itself included: messages of its role that follow the same one on other
        branches, oldest first. Compactions in between do not count: nobody said them."""
        rows = select(*(messages.c[name] for name in ("n", "id", "parent", "conversation", "role", "compaction")))
        with self._database.read() as connection:
            asked = connection.execute(rows.where(messages.c.id.in_(ids))).all()
            after = _said_before(connection, {row.parent for row in asked if row.parent is not None})
            kin = _followers(connection, rows, {*after.values()} - {None})
            for home in {row.conversation for row in asked if after.get(row.parent) is None}:
                # the first messages of a conversation follow none
                first = rows.where(messages.c.conversation == home, messages.c.depth == 1)
                kin |= {(row.n, -home): row for row in connection.execute(first) if row.compaction != row.n}
        groups: dict[tuple[int, str], list[str]] = {}
        for (_, follows), row in sorted(kin.items()):
            groups.setdefault((follows, row.role), []).append(row.id)
        places = {row.id: after.get(row.parent) or -row.conversation for row in asked}
        return {row.id: tuple(groups.get((places[row.id], row.role), (row.id,))) for row in asked}

    def newest_end(self, id: str) -> str:
        """The last message of the newest branch that runs through this one."""
        with self._database.read() as connection:
            target = message_row(connection, id)
            query = select(messages.c.id).where(messages.c.conversation == target.conversation, _CHILDLESS)
            ends = connection.execute(query.order_by(messages.c.n.desc())).scalars().all()
            return next((end for end in ends if _is_on(connection, end, target)), id)

    def roots(self, conversation: str) -> list[str]:
        """The first messages of a conversation: several if its beginning was rewritten."""
        with self._database.read() as connection:
            home = conversation_row(connection, conversation)
            first = messages.c.conversation == home.n, messages.c.parent.is_(None)
            return list(connection.execute(select(messages.c.id).where(*first).order_by(messages.c.n)).scalars())

    def leaves(self, conversation: str) -> list[Message]:
        with self._database.read() as connection:
            home = conversation_row(connection, conversation)
            query = MESSAGE.where(messages.c.conversation == home.n, _CHILDLESS).order_by(messages.c.n.desc())
            return read_messages(connection, connection.execute(query).all())

    def move(self, conversation: str, target: str | None) -> None:
        """Moves the head; None is before the first message."""
        with self._database.write() as connection:
            home = conversation_row(connection, conversation)
            row = message_row(connection, target) if target is not None else None
            if row is not None and row.conversation != home.n:
                raise NotFound(f"message {target} is not part of conversation {conversation}", id=target)
            head = row.n if row else None
            MOVE_HEAD(connection, home=home.n, new_head=head, new_updated=now(), new_title=home.title)
            self._database.note_change("messages")

    # -- by number and place

    def trail(self, head: str) -> Trail:
        with self._database.read() as connection:
            return find_trail(connection, head)

    def paths(self, conversations: Collection[str]) -> dict[str, ConversationPath]:
        """By id; unknown ones are left out."""
        with self._database.read() as connection:
            return conversation_paths(connection, conversations)

    def place(self, id: str) -> tuple[int, int]:
        """The number of a message in the store, and its depth on its path."""
        with self._database.read() as connection:
            row = PLACE_OF(connection, id=id).first() or message_row(connection, id)
            return row.n, row.depth

    def newest_number(self) -> int:
        """The highest number of a message; 0 without any."""
        return self._database.scalar(_NEWEST_NUMBER) or 0

    def all_numbers(self) -> list[int]:
        return [row.n for row in self._database.rows(select(messages.c.n))]

    def after(self, number: int, *, most: int) -> list[NumberedMessage]:
        """Messages with higher numbers, from all conversations, in order."""
        with self._database.read() as connection:
            return read_numbered(connection, _AFTER(connection, number=number, most=most).all())

    def by_number(self, numbers: Sequence[int]) -> dict[int, NumberedMessage]:
        """The messages with these numbers; unknown ones are left out."""
        with self._database.read() as connection:
            rows = BY_NUMBER(connection, numbers=list(dict.fromkeys(numbers))).all()
            return {numbered.n: numbered for numbered in read_numbered(connection, rows)}

    def numbered(self, head: str, numbers: Sequence[int]) -> dict[int, Message]:
        """Bare messages of the path to `head` by their number on it; unknown numbers are left out."""
        with self._database.read() as connection:
            path = path_to(connection, head)
            rows = [row for number in dict.fromkeys(numbers) if (row := path.numbered(number)) is not None]
            return {found.message.said: found.message for found in read_numbered(connection, rows)}

    def numbers(self, ids: Collection[str], head: str | None = None) -> dict[str, int]:
        """The numbers of messages, and of requests (those of their replies), on the path to `head` or that of their
        conversation. Compactions, and anything off the path, have no number."""
        # two look-ups by index: one condition over both tables would read every message
        by_request = select(requests.c.n).where(requests.c.id.in_(ids))
        by_both = union_all(
            select(messages.c.n).where(messages.c.id.in_(ids)),
            select(messages.c.n).where(messages.c.request.in_(by_request), messages.c.request.is_not(None)),
        )
        named = messages.c.n.in_(by_both)
        with self._database.read() as connection:
            rows = [row for row in connection.execute(MESSAGE.where(named)) if row.compaction != row.n]
            heads = select(conversations.c.n, messages.c.id).join(messages, messages.c.n == conversations.c.head)
            homes = {row.conversation for row in rows}
            ends = {row.n: row.id for row in connection.execute(heads.where(conversations.c.n.in_(homes)))}
            if head is not None:
                ends[message_row(connection, head).conversation] = head
            trails = {home: find_trail(connection, ends[home]) for home in homes if home in ends}
        said = [row for row in rows if trails.get(row.conversation, Trail()).holds(row.branch, row.depth)]
        found = {row.request_id: row.said for row in said if row.request_id} | {row.id: row.said for row in said}
        return {id: number for id, number in found.items() if id in ids}

    def numbered_stretch(self, head: str, first: int, last: int) -> list[Message]:
        """Bare messages of the path to `head` between two of its numbers, in order, without Compactions."""
        return self._said(head, lambda path: path.numbered_rows(first, last))

    def stretch(self, head: str, first: int, last: int) -> list[Message]:
        """Bare messages of the path to `head` between two depths, in order, without Compactions."""
        return self._said(head, lambda path: path.rows(first, last))

    def _said(self, head: str, rows: Callable[[MessagePath], list[AnyRow]]) -> list[Message]:
        with self._database.read() as connection:
            found = read_numbered(connection, rows(path_to(connection, head)))
            return [numbered.message for numbered in found if numbered.message.compaction is None]


def _is_on(connection: Connection, head: str, target: AnyRow) -> bool:
    return find_trail(connection, head).holds(target.branch, target.depth)


def _said_before(connection: Connection, parents: Collection[int]) -> dict[int | None, int | None]:
    """For each of these messages the nearest one, itself or above, that somebody said."""
    found: dict[int | None, int | None] = {parent: parent for parent in parents}
    query = select(messages.c.n, messages.c.parent).where(messages.c.compaction == messages.c.n)
    while True:
        rows = connection.execute(query.where(messages.c.n.in_({*found.values()} - {None})))
        covers = {row.n: row.parent for row in rows}
        if not covers:
            return found
        found = {start: covers.get(at, at) if at is not None else None for start, at in found.items()}


def _followers(
    connection: Connection, rows: Select[Any], after: Collection[int | None]
) -> dict[tuple[int, int], AnyRow]:
    """The messages that follow these, skipping compactions, by their number and that of the message they follow."""
    level = {at: at for at in after if at is not None}
    found: dict[tuple[int, int], AnyRow] = {}
    while level:
        below = connection.execute(rows.where(messages.c.parent.in_(level))).all()
        found |= {(row.n, level[row.parent]): row for row in below if row.compaction != row.n}
        level = {row.n: level[row.parent] for row in below if row.compaction == row.n}
    return found
