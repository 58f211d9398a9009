"""Tree: conversations and their messages. Messages are only added; each conversation has a head, its newest message."""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice, takewhile

from msgspec.structs import replace
from sqlalchemy import Connection, select, union_all

from recto import wire
from recto.chat.blocks import Compaction
from recto.chat.conversation import Trail
from recto.chat.message import Delta, Message, now
from recto.errors import Invalid, NotFound
from recto.store.conversations import Conversations
from recto.store.document_uses import note_uses
from recto.store.open_replies import note_closed, note_open
from recto.store.paths import (
    ConversationPath,
    compactions_up_from,
    conversation_paths,
    find_trail,
    followers,
    insert_all,
    insert_message,
    is_on_path,
    lines_set_aside,
    move_head,
    parent_of,
    path_to,
    place_under,
    said_before,
)
from recto.store.rows import (
    AnyRow,
    AppendedMessage,
    NumberedMessage,
    bare_page,
    compaction_of,
    conversation_row,
    message_columns,
    message_of,
    message_row,
    read_messages,
    read_numbered,
)
from recto.store.schema import conversations, messages, requests
from recto.store.statements import (
    AFTER,
    BRING_BACK,
    BY_NUMBER,
    CHILDREN,
    COMPACTION_AT,
    COMPACTION_BLOCKS_AT,
    DELETE_DELTAS,
    FINISH,
    INSERT_DELTA,
    MESSAGE,
    MESSAGES_BY_IDS,
    MOVE_HEAD,
    NEWEST_NUMBER,
    PATH,
    PLACE_OF,
    REQUEST_OF,
    SET_BLOCKS,
    SET_DETAILS,
    SET_PRIORITY,
    SET_STATUS,
)
from recto.window.compaction_block import cleared_at

PRIORITIES = range(1, 11)


class Tree(Conversations):
    def append(self, conversation: str, message: Message) -> AppendedMessage:
        """Stores the message under its parent, and moves the head to it if the head is still that parent. A message of
        the user brings the conversation back from archive and trash: it must not be deleted with it."""
        with self._database.write() as connection:
            home = conversation_row(connection, conversation)
            parent = parent_of(connection, home, message.parent)
            placed = place_under(message, parent, message.parent)
            number = insert_message(connection, home.n, parent, placed)
            if number is None:
                return self._already_stored(home, message_row(connection, message.id), message)
            self._database.note_newest(number, placed.id)
            if message.status == "unfinished":
                note_open(self._database, connection, number)
            if message.role == "user" and (home.archived or home.deleted):
                BRING_BACK(connection, home=home.n)
            return AppendedMessage(placed, move_head(connection, home, parent, number, placed))

    def append_all(self, conversation: str, said: Iterable[Message]) -> Message | None:
        """Stores many messages in one transaction, the first below the head and each other below the one before it."""
        with self._database.write() as connection:
            last = insert_all(connection, conversation_row(connection, conversation), said)
            if last:
                self._database.note_newest(last[0], last[1].id)
            return last[1] if last else None

    def _already_stored(self, home: AnyRow, existing: AnyRow, message: Message) -> AppendedMessage:
        known = message_of(existing)
        if (known.role, known.blocks, known.parent) != (message.role, message.blocks, message.parent):
            raise Invalid(f"message {message.id} is already stored with other content", id=message.id)
        return AppendedMessage(known, home.head_id == message.id)

    def grow(self, message: str, steps: list[Delta]) -> None:
        """Stores new deltas of an unfinished message."""
        with self._database.write() as connection:
            INSERT_DELTA(connection, id=message, growth=wire.dumps(steps))

    def finish(self, message: Message) -> None:
        """Completes an unfinished message: stores its blocks and deletes its deltas."""
        with self._database.write() as connection:
            text = message_columns(message)
            row = FINISH(
                connection,
                message=message.id,
                new_status=message.status,
                new_blocks=text["blocks"],
                new_details=text["details"],
                new_priority=message.priority,
            ).first()
            if row is None:
                raise Invalid(f"message {message.id} is already finished, or was never started", id=message.id)
            DELETE_DELTAS(connection, number=row.n)
            note_closed(self._database, connection, row.n)
            note_uses(connection, row.n, message.blocks)
            self._database.note_change("messages")

    def settle(self, id: str) -> None:
        """Marks a pending message as done: all its tool calls have results now."""
        with self._database.write() as connection:
            SET_STATUS(connection, message=id, new_status="done")

    def refer(self, message: Message) -> None:
        """Stores the document references of a message once they are known; its text stays unchanged."""
        with self._database.write() as connection:
            row = SET_BLOCKS(connection, message=message.id, new_blocks=message_columns(message)["blocks"]).first()
            if row is None:
                raise NotFound(f"there is no message {message.id}", id=message.id)
            note_uses(connection, row.n, message.blocks)

    def count(self, message: Message) -> None:
        """Stores the token counts of a message once they are known."""
        with self._database.write() as connection:
            SET_DETAILS(connection, message=message.id, new_details=message_columns(message)["details"])

    def learn(self, id: str, points: Collection[str]) -> None:
        """Stores which facts were learned from a message."""
        with self._database.write() as connection:
            message = read_messages(connection, [message_row(connection, id)])[0]
            learned = replace(message, learning_points=tuple(dict.fromkeys((*message.learning_points, *points))))
            SET_DETAILS(connection, message=id, new_details=message_columns(learned)["details"])

    def prioritise(self, id: str, priority: int) -> None:
        """Sets the priority of a message, from 1 to 10."""
        if priority not in PRIORITIES:
            raise Invalid(f"priority {priority} is not allowed; it is a whole number from 1 to 10", priority=priority)
        with self._database.write() as connection:
            if SET_PRIORITY(connection, message=id, new_priority=priority).first() is None:
                raise NotFound(f"there is no message {id}", id=id)

    def message(self, id: str) -> Message:
        with self._database.read() as connection:
            return read_messages(connection, [message_row(connection, id)])[0]

    def head(self, conversation: str) -> tuple[str | None, bool]:
        """The head of a conversation, and whether that message is still being written."""
        head = self.conversation(conversation).head
        return head, head is not None and self.message(head).status == "unfinished"

    def owner(self, message: str) -> str:
        """The conversation that a message belongs to."""
        with self._database.read() as connection:
            row = message_row(connection, message)
            home = select(conversations.c.id).join(messages, messages.c.conversation == conversations.c.n)
            return str(connection.execute(home.where(messages.c.n == row.n)).scalar_one())

    def compaction(self, at: str) -> Message | None:
        """The newest message with a Compaction on the path up to and including `at`."""
        with self._database.read() as connection:
            row = COMPACTION_AT(connection, id=at).first()
            if row is None:
                message_row(connection, at)
                return None
            return read_messages(connection, [row])[0]

    def compaction_block(self, at: str) -> Compaction | None:
        """The newest Compaction on the path up to and including `at`, without its message."""
        with self._database.read() as connection:
            return compaction_of(COMPACTION_BLOCKS_AT(connection, id=at).scalar() or "[]")

    def compactions(self, at: str, *, limit: int | None = None, after: int = 0) -> list[Message]:
        """The newest messages with Compactions on the path up to and including `at`, newest first, deeper than
        `after`."""
        with self._database.read() as connection:
            message_row(connection, at)
            found = takewhile(lambda row: row.depth > after, compactions_up_from(connection, at))
            return [message_of(row) for row in islice(found, limit)]

    def set_aside(self, at: str, newest: Compaction | None = None) -> tuple[str, ...]:
        """What the Compactions on the path up to and including `at` set aside, oldest first; `newest` of them tells
        of a clear."""
        with self._database.read() as connection:
            return lines_set_aside(connection, at, cleared_at(newest))

    def newest_compaction_below(self, id: str) -> str | None:
        """The newest message with a Compaction on any branch that runs through this one."""
        with self._database.read() as connection:
            target = message_row(connection, id)
            query = MESSAGE.where(messages.c.conversation == target.conversation, messages.c.compaction == messages.c.n)
            rows = connection.execute(query.where(messages.c.depth > target.depth).order_by(messages.c.n.desc()))
            return next((row.id for row in rows.all() if is_on_path(connection, row.id, target)), None)

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
            return read_messages(connection, found)

    def bare_page(self, start: str, *, most: int, until: str | None = None) -> list[Message]:
        """The same with only the columns that a window needs, in a third of the time."""
        with self._database.read() as connection:
            return bare_page(connection, start, most, until)

    def active(self, at: str, *, most: int) -> tuple[Compaction | None, list[Message]]:
        """The newest Compaction on the path to `at`, and a bare page of the messages that it does not cover."""
        with self._database.read() as connection:
            block = compaction_of(COMPACTION_BLOCKS_AT(connection, id=at).scalar() or "[]")
            return block, bare_page(connection, at, most, block.last if block else None)

    def request_of(self, message: str) -> str | None:
        with self._database.read() as connection:
            request: str | None = REQUEST_OF(connection, id=message).scalar()
        return request

    def messages(self, ids: Sequence[str]) -> list[Message]:
        """The messages with these ids, by depth."""
        with self._database.read() as connection:
            return read_messages(connection, MESSAGES_BY_IDS(connection, ids=list(ids)).all())

    def children(self, id: str, *, role: str) -> list[str]:
        """The children of a message that have this role, on any branch."""
        with self._database.read() as connection:
            return [row.id for row in CHILDREN(connection, id=id, role=role)]

    def alternatives(self, ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """For each message the messages of its role that follow the same one on other branches, itself included, oldest
        first. Compactions between them do not count: nobody said them."""
        rows = select(*(messages.c[name] for name in ("n", "id", "parent", "conversation", "role", "compaction")))
        with self._database.read() as connection:
            asked = connection.execute(rows.where(messages.c.id.in_(ids))).all()
            after = said_before(connection, {row.parent for row in asked if row.parent is not None})
            kin = followers(connection, rows, {*after.values()} - {None})
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
            children = messages.alias("children")
            childless = ~select(children.c.n).where(children.c.parent == messages.c.n).exists()
            query = select(messages.c.id).where(messages.c.conversation == target.conversation, childless)
            ends = connection.execute(query.order_by(messages.c.n.desc())).scalars().all()
            return next((end for end in ends if is_on_path(connection, end, target)), id)

    def roots(self, conversation: str) -> list[str]:
        """The first messages of a conversation: more than one where its beginning was written again."""
        with self._database.read() as connection:
            home = conversation_row(connection, conversation)
            first = messages.c.conversation == home.n, messages.c.parent.is_(None)
            return list(connection.execute(select(messages.c.id).where(*first).order_by(messages.c.n)).scalars())

    def leaves(self, conversation: str) -> list[Message]:
        """The last message of every branch, newest first."""
        children = messages.alias("children")
        with self._database.read() as connection:
            home = conversation_row(connection, conversation)
            childless = ~select(children.c.n).where(children.c.parent == messages.c.n).exists()
            query = MESSAGE.where(messages.c.conversation == home.n, childless).order_by(messages.c.n.desc())
            return read_messages(connection, connection.execute(query).all())

    def move(self, conversation: str, target: str | None) -> None:
        """Moves the head to `target`; None is before the first message."""
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
        """The branches of the path that ends at `head`; they tell whether any message is on it."""
        with self._database.read() as connection:
            return find_trail(connection, head)

    def paths(self, conversations: Collection[str]) -> dict[str, ConversationPath]:
        """The paths to the heads of conversations, by id; unknown ones are left out."""
        with self._database.read() as connection:
            return conversation_paths(connection, conversations)

    def place(self, id: str) -> tuple[int, int]:
        """The number of a message in the store, and its depth on its path."""
        with self._database.read() as connection:
            row = PLACE_OF(connection, id=id).first() or message_row(connection, id)
            return row.n, row.depth

    def newest_number(self) -> int:
        """The number of the last stored message; 0 when there is none."""
        with self._database.read() as connection:
            return NEWEST_NUMBER(connection).scalar() or 0

    def all_numbers(self) -> list[int]:
        """The numbers of all stored messages."""
        with self._database.read() as connection:
            return list(connection.execute(select(messages.c.n)).scalars())

    def after(self, number: int, *, most: int) -> list[NumberedMessage]:
        """The messages stored after this number in all conversations, in that order."""
        with self._database.read() as connection:
            return read_numbered(connection, AFTER(connection, number=number, most=most).all())

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
        """Ids of messages, and of requests, which have the numbers of their replies -> number on the path.

        The path is that of the conversation, or the one to `head`. What is on no such path has no number, nor has a
        compaction, which nobody said.
        """
        # two look-ups by index: one condition over both tables would read every message
        by_request = select(requests.c.n).where(requests.c.id.in_(ids))
        by_both = union_all(
            select(messages.c.n).where(messages.c.id.in_(ids)),
            select(messages.c.n).where(messages.c.request.in_(by_request), messages.c.request.is_not(None)),
        )
        named = messages.c.n.in_(by_both)
        with self._database.read() as connection:
            rows = [row for row in connection.execute(MESSAGE.where(named)) if row.compaction != row.n]
            trails = self._trails(connection, {row.conversation for row in rows}, head)
        said = [row for row in rows if trails[row.conversation].holds(row.branch, row.depth)]
        found = {row.request_id: row.said for row in said if row.request_id} | {row.id: row.said for row in said}
        return {id: number for id, number in found.items() if id in ids}

    def _trails(self, connection: Connection, homes: Collection[int], head: str | None) -> dict[int, Trail]:
        """The paths of these conversations by their numbers."""
        query = select(conversations.c.n, messages.c.id).outerjoin(messages, messages.c.n == conversations.c.head)
        heads = {row.n: row.id for row in connection.execute(query.where(conversations.c.n.in_(homes)))}
        if head is not None:
            heads[message_row(connection, head).conversation] = head
        return {home: find_trail(connection, end) if end else Trail() for home, end in heads.items()}

    def numbered_stretch(self, head: str, first: int, last: int) -> list[Message]:
        """Bare messages of the path to `head` between two of its numbers, in order, without Compactions."""
        with self._database.read() as connection:
            found = read_numbered(connection, path_to(connection, head).numbered_rows(first, last))
            return [numbered.message for numbered in found if numbered.message.compaction is None]

    def stretch(self, head: str, first: int, last: int) -> list[Message]:
        """Bare messages of the path to `head` between two depths, in order, without Compactions."""
        with self._database.read() as connection:
            found = read_numbered(connection, path_to(connection, head).rows(first, last))
            return [numbered.message for numbered in found if numbered.message.compaction is None]
