"""The position of a message in its tree: its parent, its branch, its place on the path to a head.

Places are found by branch and depth, so the length of a path does not matter.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import replace
from sqlalchemy import Connection, Select, select

from recto.chat.blocks import Compaction
from recto.chat.conversation import BranchDepth, Conversation, Trail
from recto.chat.message import Message, now
from recto.errors import Invalid
from recto.store.document_uses import note_uses
from recto.store.prefix import SentMessage
from recto.store.rows import AnyRow, compaction_of, conversation_of, message_columns, message_row
from recto.store.schema import messages
from recto.store.statements import (
    BEGIN_BRANCH,
    BLOCKS_BY_NUMBER,
    COMPACTION_AT,
    CONVERSATIONS_BY_IDS,
    COVER_ITSELF,
    DEPTHS_BY_IDS,
    HAS_CHILD,
    INSERT_MESSAGE,
    MOVE_HEAD,
    SAID_AT,
    SAID_BY_IDS,
    SAID_PATH,
    SET_ASIDE,
    STRETCH,
    TRAIL,
    TRAILS,
)
from recto.window.account import RequestAccount, SentRange
from recto.window.compaction_block import SetAside, all_set_aside


def find_trail(connection: Connection, head: str) -> Trail:
    trail = Trail(tuple((row.branch, row.depth) for row in TRAIL(connection, head=head)))
    if not trail.branches:
        message_row(connection, head)
    return trail


class ConversationPath(Struct, frozen=True):
    """A conversation with the path to its head."""

    conversation: Conversation
    trail: Trail
    compaction: Compaction | None
    covered: int
    """The depth of the last message that the Compaction covers; 0 without one."""


def conversation_paths(connection: Connection, ids: Collection[str]) -> dict[str, ConversationPath]:
    """The paths of conversations by their ids; unknown ones are left out. Four statements, however many there are."""
    rows = list(CONVERSATIONS_BY_IDS(connection, ids=list(ids)))
    branches: dict[str, list[BranchDepth]] = {}
    for head, branch, depth in TRAILS(connection, heads=[row.head_id for row in rows if row.head_id]):
        branches.setdefault(head, []).append((branch, depth))
    numbers = [row.compaction for row in rows if row.compaction]
    blocks = {n: compaction_of(text) for n, text in BLOCKS_BY_NUMBER(connection, numbers=numbers)} if numbers else {}
    ends = [block.last for block in blocks.values() if block and block.last]
    depths: dict[str, int] = dict(iter(DEPTHS_BY_IDS(connection, ids=ends))) if ends else {}
    found = {}
    for row in rows:
        block = blocks.get(row.compaction)
        trail = Trail(tuple(branches.get(row.head_id, ())))
        covered = depths.get(block.last, 0) if block and block.last else 0
        found[row.id] = ConversationPath(conversation_of(row), trail, block, covered)
    return found


def is_on_path(connection: Connection, head: str, target: AnyRow) -> bool:
    """Whether `target` is the head or one of its ancestors."""
    return find_trail(connection, head).holds(target.branch, target.depth)


class MessagePath(Struct, frozen=True):
    """The path to a head; finds rows by their depth or by their number."""

    connection: Connection
    head: AnyRow
    trail: Trail

    def rows(self, first: int, last: int) -> list[AnyRow]:
        """The rows between two depths, in order."""
        return [
            row
            for branch, start, end in self.trail.between(first, last)
            for row in STRETCH(self.connection, home=self.head.conversation, branch=branch, first=start, last=end)
        ]

    def numbered(self, number: int) -> AnyRow | None:
        """The message with this number on the path."""
        depth = self._depth(number)
        found = self.rows(depth, depth) if depth else []
        return found[0] if found and found[0].said == number else None

    def numbered_rows(self, first: int, last: int) -> list[AnyRow]:
        """The rows between two numbers, in order."""
        start, end = self._depth(first), self._depth(min(last, self.head.said))
        return self.rows(start, end) if start and end else []

    def _depth(self, number: int) -> int | None:
        """The smallest depth with this number. It exceeds the number by the Compactions before the message."""
        if not 1 <= number <= self.head.said:
            return None
        low, high = number, number + self.head.depth - self.head.said
        while low < high:
            middle = (low + high) // 2
            found = self._number_at(middle)
            if found is None:
                return None
            # numbers never grow faster than depth, so the target is at least the difference away
            low, high = (middle + number - found, high) if found < number else (low, middle - found + number)
        return low

    def _number_at(self, depth: int) -> int | None:
        branch = self.trail.at(depth)
        number: int | None = SAID_AT(self.connection, home=self.head.conversation, branch=branch, depth=depth).scalar()
        return number


def path_to(connection: Connection, head: str) -> MessagePath:
    return MessagePath(connection, message_row(connection, head), find_trail(connection, head))


TITLE_LENGTH = 60


class ParentPlace(Struct, frozen=True):
    """The values of a parent that its child is stored with."""

    n: int | None = None
    depth: int = 0
    said: int = 0
    compaction: int | None = None
    branch: int = 0


def parent_of(connection: Connection, home: AnyRow, id: str | None) -> ParentPlace:
    if id is None:
        return ParentPlace()
    if id == home.head_id:
        return ParentPlace(home.head, home.depth, home.said, home.compaction, home.branch)
    row = message_row(connection, id)
    return ParentPlace(row.n, row.depth, row.said, row.compaction, row.branch)


def place_under(message: Message, parent: ParentPlace, parent_id: str | None) -> Message:
    said = parent.said + (0 if message.compaction else 1)
    return replace(message, parent=parent_id, depth=parent.depth + 1, said=said, created=message.created or now())


def insert_message(
    connection: Connection, home: int, parent: ParentPlace, message: Message, *, begins: bool | None = None
) -> int | None:
    """Returns the number of the new row; None where a message with this id is already stored. `begins` says whether it
    begins a branch, where that is known."""
    if begins is None:
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
        **message_columns(message),
    }
    number = INSERT_MESSAGE.number(connection, **values)
    if number is None:
        return None
    if begins:
        BEGIN_BRANCH(connection, number=number)
    if message.compaction:
        COVER_ITSELF(connection, number=number)
    note_uses(connection, number, message.blocks)
    return number


def insert_all(connection: Connection, home: AnyRow, said: Iterable[Message]) -> tuple[int, Message] | None:
    """Inserts messages one below the other and moves the head from the first one's parent to the last one; returns the
    number and the message of that. No more than one message is in memory."""
    parent, above, title = parent_of(connection, home, home.head_id), home.head_id, home.title
    last: tuple[int, Message] | None = None
    for message in said:
        placed = place_under(message, parent, above)
        number = insert_message(connection, home.n, parent, placed, begins=None if last is None else False)
        if number is None:
            raise Invalid(f"message {message.id} is already stored", id=message.id)
        branch = message_row(connection, placed.id).branch if last is None else parent.branch
        covers = number if placed.compaction else parent.compaction
        parent = ParentPlace(number, placed.depth, placed.said, covers, branch)
        above, last = placed.id, (number, placed)
        title = title or (title_of(placed.text) if placed.role == "user" else "")
    if last:
        MOVE_HEAD(connection, home=home.n, new_head=last[0], new_updated=now(), new_title=title)
    return last


def move_head(connection: Connection, home: AnyRow, parent: ParentPlace, number: int, message: Message) -> bool:
    """Compare and swap: the head moves only from the new message's parent."""
    if home.head != parent.n:
        return False
    title = home.title or (title_of(message.text) if message.role == "user" else "")
    MOVE_HEAD(connection, home=home.n, new_head=number, new_updated=now(), new_title=title)
    return True


def compactions_up_from(connection: Connection, at: str | None) -> Iterator[AnyRow]:
    """The Compactions on the path up to and with `at`, newest first. Each message stores its newest one, so the walk
    goes from Compaction to Compaction."""
    depth = None
    while at is not None and (row := COMPACTION_AT(connection, id=at).first()) is not None:
        if depth is not None and row.depth >= depth:
            return  # damaged data must not loop forever
        yield row
        at, depth = row.parent_id, row.depth


_decoder = Decoder(SetAside)


def lines_set_aside(connection: Connection, at: str, cleared: str | None) -> tuple[str, ...]:
    """What the Compactions on the path up to and with `at` set aside, oldest first, without those before a clear."""
    after = message_row(connection, cleared).depth if cleared else 0
    return all_set_aside(_read_end(bytes(row.blocks)) for row in SET_ASIDE(connection, at=at, after=after))


def _read_end(blocks: bytes) -> SetAside:
    """The last fields of a stored Compaction: decoding all of it would take three times as long."""
    # one that takes others back sets nothing aside; inside a text, the quotes of these names would be escaped
    for name in (b'"set_aside":', b'"takes_back":'):
        if (at := blocks.rfind(name)) >= 0:
            return _decoder.decode(b"{" + blocks[at:-1])
    return SetAside()


def title_of(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


BETWEEN = "…"


def sent_messages(connection: Connection, account: RequestAccount) -> tuple[SentMessage, ...]:
    """The sent messages, each once: lifted ones, the history, the message that was answered, its rounds."""
    sent = account.messages or SentRange()
    answered = (sent.current, *sent.rounds)
    found = [*_history(connection, account), *_named(connection, [id for id in answered if id])]
    return tuple({row.id: SentMessage(row.id, row.said, row.role) for row in found}.values())


def _history(connection: Connection, account: RequestAccount) -> Iterator[AnyRow]:
    for pick in account.picks("history"):
        first, is_range, last = pick.name.partition(BETWEEN)
        if pick.kind == "message":
            yield from _named(connection, [first])
        elif is_range:
            yield from _between(connection, first, last)


def _named(connection: Connection, ids: Sequence[str]) -> list[AnyRow]:
    found = {row.id: row for row in SAID_BY_IDS(connection, ids=ids)} if ids else {}
    return [found[id] for id in ids if id in found]


def _between(connection: Connection, first: str, last: str) -> list[AnyRow]:
    """The messages from first to last without Compactions, which are never sent as messages."""
    ends = _named(connection, [first, last])
    if len(ends) < 2:
        return ends
    length = ends[1].depth - ends[0].depth + 1
    path = SAID_PATH(connection, start=last, most=length, until="").all()
    return [row for row in reversed(path) if not row.cut]


def said_before(connection: Connection, parents: Collection[int]) -> dict[int | None, int | None]:
    """For each of these messages the nearest one from it on upwards that somebody said."""
    found: dict[int | None, int | None] = {parent: parent for parent in parents}
    query = select(messages.c.n, messages.c.parent).where(messages.c.compaction == messages.c.n)
    while True:
        rows = connection.execute(query.where(messages.c.n.in_({*found.values()} - {None})))
        covers = {row.n: row.parent for row in rows}
        if not covers:
            return found
        found = {start: covers.get(at, at) if at is not None else None for start, at in found.items()}


def followers(
    connection: Connection, rows: Select[Any], after: Collection[int | None]
) -> dict[tuple[int, int], AnyRow]:
    """What follows these messages, compactions skipped: by its number, and that of the message it follows."""
    level = {at: at for at in after if at is not None}
    found: dict[tuple[int, int], AnyRow] = {}
    while level:
        below = connection.execute(rows.where(messages.c.parent.in_(level))).all()
        found |= {(row.n, level[row.parent]): row for row in below if row.compaction != row.n}
        level = {row.n: level[row.parent] for row in below if row.compaction == row.n}
    return found
