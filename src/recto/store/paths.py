"""The position of a message in its tree: its parent, its branch, its place on the path to a head.

Places are found by branch and depth, so the length of a path does not matter.
"""

from collections.abc import Collection
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Select, bindparam, select, update

from recto.chat.blocks import Compaction
from recto.chat.conversation import BranchDepth, Conversation, Trail
from recto.chat.message import Message, now
from recto.store.dialect import in_list, raw_bytes
from recto.store.document_uses import note_uses
from recto.store.prepared_statement import InsertStatement, Statement, given
from recto.store.rows import (
    CONVERSATION,
    NUMBERED,
    AnyRow,
    compaction_of,
    conversation_of,
    message_columns,
    message_row,
)
from recto.store.schema import conversations, messages, requests
from recto.window.compaction_block import SetAside, all_set_aside

TITLE_LENGTH = 60

# -- looking up


def _trail(head: ColumnElement[bool]) -> Statement:
    """The branches of paths, each with the head of its path: the parent of a branch's first message is on the next
    one."""
    trail = (
        select(messages.c.id.label("head"), messages.c.branch, messages.c.depth)
        .where(head)
        .cte("trail", recursive=True)
    )
    first, up = messages.alias("first"), messages.alias("up")
    hop = select(trail.c.head, up.c.branch, up.c.depth).select_from(trail).join(first, first.c.n == trail.c.branch)
    trail = trail.union_all(hop.join(up, up.c.n == first.c.parent).where(up.c.depth < trail.c.depth))
    return Statement(select(trail.c.head, trail.c.branch, trail.c.depth).order_by(trail.c.depth.desc()))


def compactions_of(columns: Select[Any]) -> Statement:
    """The Compactions on the path to `at`, newest first, deeper than `after`. Each message stores its newest one, so
    the walk goes from Compaction to Compaction."""
    last = messages.alias("last")
    walk = (
        select(messages.c.n, messages.c.parent, messages.c.depth)
        .join(last, last.c.compaction == messages.c.n)
        .where(last.c.id == bindparam("at"), messages.c.depth > bindparam("after"))
        .cte("walk", recursive=True)
    )
    parent, up = messages.alias("parent"), messages.alias("up")
    hop = select(up.c.n, up.c.parent, up.c.depth).select_from(walk).join(parent, parent.c.n == walk.c.parent)
    hop = hop.join(up, up.c.n == parent.c.compaction).where(up.c.depth < walk.c.depth, up.c.depth > bindparam("after"))
    walk = walk.union_all(hop)
    return Statement(columns.join(walk, walk.c.n == messages.c.n).order_by(walk.c.depth.desc()))


_SET_ASIDE = compactions_of(select(raw_bytes(messages.c.blocks).label("blocks")))
_TRAIL, _TRAILS = _trail(messages.c.id == bindparam("head")), _trail(in_list(messages.c.id, "heads"))
_CONVERSATIONS = Statement(CONVERSATION.where(in_list(conversations.c.id, "ids")))
_BLOCKS = Statement(select(messages.c.n, messages.c.blocks).where(in_list(messages.c.n, "numbers")))
_DEPTHS = Statement(select(messages.c.id, messages.c.depth).where(in_list(messages.c.id, "ids")))
_ON_BRANCH = (messages.c.conversation == bindparam("home"), messages.c.branch == bindparam("branch"))
_BETWEEN = messages.c.depth.between(bindparam("first"), bindparam("last"))
_STRETCH = Statement(NUMBERED.where(*_ON_BRANCH, _BETWEEN).order_by(messages.c.depth))
_SAID_AT = Statement(select(messages.c.said).where(*_ON_BRANCH, messages.c.depth == bindparam("depth")))


def find_trail(connection: Connection, head: str) -> Trail:
    trail = Trail(tuple((row.branch, row.depth) for row in _TRAIL(connection, head=head)))
    if not trail.branches:
        message_row(connection, head)
    return trail


class ConversationPath(Struct, frozen=True):
    conversation: Conversation
    trail: Trail
    compaction: Compaction | None
    covered: int
    """The depth of the last message covered by the Compaction; 0 without one."""


def conversation_paths(connection: Connection, ids: Collection[str]) -> dict[str, ConversationPath]:
    rows = list(_CONVERSATIONS(connection, ids=list(ids)))
    branches: dict[str, list[BranchDepth]] = {}
    for head, branch, depth in _TRAILS(connection, heads=[row.head_id for row in rows if row.head_id]):
        branches.setdefault(head, []).append((branch, depth))
    numbers = [row.compaction for row in rows if row.compaction]
    blocks = {n: compaction_of(text) for n, text in _BLOCKS(connection, numbers=numbers)} if numbers else {}
    ends = [block.last for block in blocks.values() if block and block.last]
    depths: dict[str, int] = dict(iter(_DEPTHS(connection, ids=ends))) if ends else {}
    found = {}
    for row in rows:
        block = blocks.get(row.compaction)
        trail = Trail(tuple(branches.get(row.head_id, ())))
        covered = depths.get(block.last, 0) if block and block.last else 0
        found[row.id] = ConversationPath(conversation_of(row), trail, block, covered)
    return found


class MessagePath(Struct, frozen=True):
    """The path to a head; finds rows by depth or by number, in order."""

    connection: Connection
    head: AnyRow
    trail: Trail

    def rows(self, first: int, last: int) -> list[AnyRow]:
        return [
            row
            for branch, start, end in self.trail.between(first, last)
            for row in _STRETCH(self.connection, home=self.head.conversation, branch=branch, first=start, last=end)
        ]

    def numbered(self, number: int) -> AnyRow | None:
        depth = self._depth(number)
        found = self.rows(depth, depth) if depth else []
        return found[0] if found and found[0].said == number else None

    def numbered_rows(self, first: int, last: int) -> list[AnyRow]:
        start, end = self._depth(first), self._depth(min(last, self.head.said))
        return self.rows(start, end) if start and end else []

    def _depth(self, number: int) -> int | None:
        """The smallest depth with this number: it exceeds the number by the Compactions before the message."""
        if not 1 <= number <= self.head.said:
            return None
        low, high = number, number + self.head.depth - self.head.said
        while low < high:
            middle = (low + high) // 2
            place = {"branch": self.trail.at(middle), "depth": middle}
            found = _SAID_AT(self.connection, home=self.head.conversation, **place).scalar()
            if found is None:
                return None
            # numbers never grow faster than depth, so the target is at least the difference away
            low, high = (middle + number - found, high) if found < number else (low, middle - found + number)
        return low


def path_to(connection: Connection, head: str) -> MessagePath:
    return MessagePath(connection, message_row(connection, head), find_trail(connection, head))


# -- storing

_request = select(requests.c.n).where(requests.c.id == bindparam("request_id")).scalar_subquery()
# Skips a message whose id is already stored.
INSERT_MESSAGE = InsertStatement(
    lambda insert: (
        insert(messages)
        .values(given(messages, request=_request))
        .on_conflict_do_nothing(index_elements=[messages.c.id])
    )
)
_HAS_CHILD = Statement(select(messages.c.n).where(messages.c.parent == bindparam("parent")).limit(1))
_BEGIN_BRANCH, _COVER_ITSELF = (
    Statement(update(messages).where(messages.c.n == bindparam("number")).values({column: messages.c.n}))
    for column in ("branch", "compaction")
)
MOVE_HEAD = Statement(
    update(conversations)
    .where(conversations.c.n == bindparam("home"))
    .values(head=bindparam("new_head"), updated=bindparam("new_updated"), title=bindparam("new_title"))
)


class ParentPlace(Struct, frozen=True):
    """The values of a parent that its child is stored with."""

    n: int | None = None
    depth: int = 0
    said: int = 0
    compaction: int | None = None
    branch: int = 0


def place_of(row: AnyRow) -> ParentPlace:
    return ParentPlace(row.n, row.depth, row.said, row.compaction, row.branch)


def parent_of(connection: Connection, home: AnyRow, id: str | None) -> ParentPlace:
    if id is None:
        return ParentPlace()
    if id == home.head_id:
        return ParentPlace(home.head, home.depth, home.said, home.compaction, home.branch)
    return place_of(message_row(connection, id))


def place_below(parent: ParentPlace, number: int, message: Message, branch: int) -> ParentPlace:
    covers = number if message.compaction else parent.compaction
    return ParentPlace(number, message.depth, message.said, covers, branch)


def has_child(connection: Connection, parent: int) -> bool:
    return _HAS_CHILD(connection, parent=parent).first() is not None


def place_under(message: Message, parent: ParentPlace) -> Message:
    said = parent.said + (0 if message.compaction else 1)
    return replace(message, depth=parent.depth + 1, said=said, created=message.created or now())


def insert_message(
    connection: Connection, home: int, parent: ParentPlace, message: Message, *, begins: bool | None = None
) -> int | None:
    """Returns the number of the new row; None if the id is already stored. `begins`: True if it begins a branch, None
    if unknown."""
    if begins is None:
        begins = parent.n is None or has_child(connection, parent.n)
    number = INSERT_MESSAGE.number(
        connection,
        **{name: getattr(message, name) for name in ("id", "depth", "said", "role", "status", "created", "priority")},
        **message_columns(message),
        conversation=home,
        parent=parent.n,
        compaction=parent.compaction,
        request_id=message.request,
        branch=0 if begins else parent.branch,
    )
    if number is None:
        return None
    if begins:
        _BEGIN_BRANCH(connection, number=number)
    if message.compaction:
        _COVER_ITSELF(connection, number=number)
    note_uses(connection, number, message.blocks)
    return number


def move_head(connection: Connection, home: AnyRow, parent: ParentPlace, number: int, message: Message) -> bool:
    """Compare and swap: the head moves only from the new message's parent."""
    if home.head != parent.n:
        return False
    title = home.title or (title_of(message.text) if message.role == "user" else "")
    MOVE_HEAD(connection, home=home.n, new_head=number, new_updated=now(), new_title=title)
    return True


_decoder = Decoder(tuple[SetAside, ...])


def lines_set_aside(connection: Connection, at: str, cleared: str | None) -> tuple[str, ...]:
    """The lines set aside by Compactions on the path to `at`, oldest first, without those before a clear."""
    after = message_row(connection, cleared).depth if cleared else 0
    rows = _SET_ASIDE(connection, at=at, after=after)
    return all_set_aside(each for row in rows for each in _decoder.decode(row.blocks))


def title_of(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
