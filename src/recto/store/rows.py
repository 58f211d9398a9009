"""Reads messages and conversations from rows, and makes the columns of messages.

An unfinished message is read with the text streamed so far. Statements of every turn are made once, here and in the
other modules: building and compiling one takes longer than running it.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Select, bindparam, exists, literal, or_, select, update

from recto import wire
from recto.chat.blocks import Block, Compaction, Made, Thinking
from recto.chat.conversation import Conversation
from recto.chat.message import Message, Tokens, Usage, blocks_from
from recto.errors import NotFound
from recto.store.dialect import in_list
from recto.store.prepared_statement import Statement
from recto.store.schema import conversations, deltas, messages, requests

AnyRow = Any
"""A row whose items have the names of their columns."""


# Quotation marks inside JSON strings are escaped, so no error message can match.
WAS_SENT = requests.c.outcome.not_like('%"not_sent":true%')
_said, _heads, _parents = messages.alias("said"), messages.alias("heads"), messages.alias("parents")
# An imported conversation has replies and no requests.
CONVERSATION_WAS_SENT = or_(
    exists().where(_said.c.conversation == conversations.c.n, _said.c.role == "assistant"),
    exists().where(requests.c.conversation == conversations.c.n, WAS_SENT),
)
CONVERSATION = select(
    conversations,
    _heads.c.id.label("head_id"),
    _heads.c.said.label("said"),
    _heads.c.depth.label("depth"),
    _heads.c.compaction.label("compaction"),
    _heads.c.branch,
).outerjoin(_heads, _heads.c.n == conversations.c.head)
CONVERSATION_BY_ID = Statement(CONVERSATION.where(conversations.c.id == bindparam("id")))
# A message of the user lists its conversation again, hidden or in the trash.
BRING_BACK = Statement(
    update(conversations).where(conversations.c.n == bindparam("home")).values(archived=None, deleted=None)
)
MESSAGE = (
    select(
        *(messages.c[name] for name in ("n", "id", "conversation", "depth", "said", "compaction", "role", "status")),
        *(messages.c[name] for name in ("branch", "created", "blocks", "details", "priority")),
        _parents.c.id.label("parent_id"),
        requests.c.id.label("request_id"),
    )
    .outerjoin(_parents, _parents.c.n == messages.c.parent)
    .outerjoin(requests, requests.c.n == messages.c.request)
)
MESSAGE_BY_ID = Statement(MESSAGE.where(messages.c.id == bindparam("id")))
PLACE_OF = Statement(select(messages.c.n, messages.c.depth).where(messages.c.id == bindparam("id")))
# The columns that a window needs. The parent's id is that of the next row on the path.
BARE = select(
    *(messages.c[name] for name in ("n", "id", "depth", "said", "role", "status", "created", "blocks", "parent")),
    messages.c.priority,
    messages.c.details.not_like('{"has_time":false%').label("has_time"),
)
# The same for messages found by number or place, with parent, conversation and branch. All joins are outer ones, so
# that the query plan starts with messages and reads them in the requested order.
NUMBERED = (
    BARE.add_columns(
        messages.c.branch,
        messages.c.conversation,
        conversations.c.id.label("home"),
        _parents.c.id.label("parent_id"),
    )
    .outerjoin(conversations, conversations.c.n == messages.c.conversation)
    .outerjoin(_parents, _parents.c.n == messages.c.parent)
)
BY_NUMBER = Statement(NUMBERED.where(in_list(messages.c.n, "numbers")).order_by(messages.c.n))


def path_of(columns: Select[Any]) -> Statement:
    """The messages from `start` up to the root, newest first. The depth must decrease, so damaged data cannot loop."""
    start = (
        select(messages.c.n, messages.c.parent, messages.c.depth, literal(1).label("step"))
        .where(messages.c.id == bindparam("start"))
        .cte("path", recursive=True)
    )
    up = messages.alias("up")
    path = start.union_all(
        select(up.c.n, up.c.parent, up.c.depth, start.c.step + 1)
        .join(start, up.c.n == start.c.parent)
        .where(up.c.depth < start.c.depth, start.c.step < bindparam("most"), up.c.id != bindparam("until"))
    )
    return Statement(columns.join(path, path.c.n == messages.c.n).order_by(path.c.step))


_BARE_PATH = path_of(BARE)
_ID_OF = Statement(select(messages.c.id).where(messages.c.n == bindparam("n")))

# Stored as one JSON text without defaults, because most messages have nothing unusual.
DETAILS = (
    "has_time",  # first, where `BARE` finds it
    "error",
    "context_type",
    "agent",
    "model",
    "provider",
    "usage",
    "tokens",
    "memory_references",
    "learning_points",
    "task_runs",
)
_DEFAULTS = wire.defaults_of(Message)


def message_columns(message: Message) -> dict[str, str]:
    """The columns `blocks` and `details`. A `made` that all blocks share is stored once, in the details."""
    made = _made_all(message.blocks)
    blocks = tuple(replace(block, made=None) for block in message.blocks) if made else message.blocks
    return {"blocks": wire.blocks_to_json(blocks), "details": _details(message, made)}


def _made_all(blocks: tuple[Block, ...]) -> Made | None:
    # a bare page reads no details, but a window needs `made` of thinking and summaries
    if any(isinstance(block, Thinking | Compaction) for block in blocks):
        return None
    makers = {block.made for block in blocks}
    return makers.pop() if len(makers) == 1 else None


def _details(message: Message, made: Made | None) -> str:
    out: dict[str, Any] = {}
    for name in DETAILS:
        value = getattr(message, name)
        if value == _DEFAULTS[name]:
            continue
        if isinstance(value, Usage | Tokens):
            value = wire.without_defaults(value)
            if "blocks" in value:
                value["blocks"] = list(value["blocks"])
        out[name] = list(value) if isinstance(value, tuple) else value
    if made:
        same = (made.provider, made.model) == (message.provider, message.model)
        out["made"] = [made.duration_s] if same else [made.duration_s, made.provider, made.model]
    return wire.dumps(out) if out else "{}"


def bare_message(row: Sequence[Any], parent: str | None, growth: list[str] | None) -> Message:
    """The message of a `BARE` row: enough for a window, without most details."""
    _, id, depth, said, role, status, created, blocks, _, priority, has_time = row
    known = _blocks(blocks, growth)
    return Message(id, role, known, parent, depth, said, created, bool(has_time), status, priority=priority)


class AppendedMessage(Struct, frozen=True):
    """A stored message. `moved` is False if another writer moved the head first, so that this one is on a branch."""

    message: Message
    moved: bool


class NumberedMessage(Struct, frozen=True):
    """A bare message with its number in the store, its conversation by number and by id, and its branch."""

    n: int
    conversation: int
    home: str
    branch: int
    message: Message


def numbered_message(row: AnyRow, growth: list[str] | None) -> NumberedMessage:
    *bare, branch, conversation, home, parent = row
    return NumberedMessage(row.n, conversation, home, branch, bare_message(bare, parent, growth))


def _blocks(text: str, growth: list[str] | None) -> tuple[Block, ...]:
    blocks = wire.blocks_from_json(text)
    return blocks + blocks_from([step for batch in growth for step in wire.loads(batch)]) if growth else blocks


@lru_cache(maxsize=16)  # every turn reads the same one
def compaction_of(blocks: str) -> Compaction | None:
    return next((block for block in _blocks(blocks, None) if isinstance(block, Compaction)), None)


def message_of(row: AnyRow, growth: list[str] | None = None) -> Message:
    """The message of a `MESSAGE` row; `growth` are the stored deltas of an unfinished one."""
    blocks = _blocks(row.blocks, growth)
    details = {} if row.details == "{}" else read_details(row.details)
    if made := details.pop("made", None):
        blocks = tuple(replace(block, made=made) for block in blocks)
    place = (row.parent_id, row.depth, row.said, row.created)
    about = details | {"status": row.status, "priority": row.priority, "request": row.request_id}
    return Message(row.id, row.role, blocks, *place, **about)


def read_details(text: str) -> dict[str, Any]:
    details: dict[str, Any] = wire.loads(text)
    for name, kind in (("usage", Usage), ("tokens", Tokens)):
        if name in details:
            known = details[name]
            details[name] = kind(**known | {"blocks": tuple(known["blocks"])} if "blocks" in known else known)
    for name in ("memory_references", "learning_points", "task_runs"):
        if name in details:
            details[name] = tuple(details[name])
    if "made" in details:
        duration_s, *maker = details["made"]
        provider, model = maker or (details["provider"], details["model"])
        details["made"] = Made(provider, model, duration_s)
    return details


def conversation_of(row: AnyRow) -> Conversation:
    return Conversation(
        **{name: getattr(row, name) for name in ("id", "title", "created", "updated", "agent", "deleted")},
        hidden=row.archived,
        head=row.head_id,
        details=wire.loads(row.details),
        messages=row.said or 0,
        number=row.n,
    )


def conversation_row(connection: Connection, id: str) -> AnyRow:
    row = CONVERSATION_BY_ID(connection, id=id).first()
    if row is None:
        raise NotFound(f"there is no conversation {id}; `recto conversations list` shows all of them", id=id)
    return row


def message_row(connection: Connection, id: str) -> AnyRow:
    row = MESSAGE_BY_ID(connection, id=id).first()
    if row is None:
        raise NotFound(f"there is no message {id}", id=id)
    return row


def read_messages(connection: Connection, rows: Sequence[AnyRow]) -> list[Message]:
    growth = _growth(connection, rows)
    return [message_of(row, growth.get(row.n)) for row in rows]


def read_numbered(connection: Connection, rows: Sequence[AnyRow]) -> list[NumberedMessage]:
    growth = _growth(connection, rows)
    return [numbered_message(row, growth.get(row.n)) for row in rows]


def bare_page(connection: Connection, start: str, limit: int, until: str | None) -> list[Message]:
    rows = _BARE_PATH(connection, start=start, most=limit, until=until or "").all()
    if not rows:
        return []
    oldest = rows[-1].parent
    parents: list[str | None] = [row.id for row in rows[1:]]
    parents.append(_ID_OF(connection, n=oldest).scalar() if oldest else None)
    growth = _growth(connection, rows)
    return [bare_message(row, parent, growth.get(row.n)) for row, parent in zip(rows, parents, strict=True)]


def _growth(connection: Connection, rows: Sequence[AnyRow]) -> dict[int, list[str]]:
    unfinished = [row.n for row in rows if row.status == "unfinished"]
    growth: dict[int, list[str]] = {}
    if unfinished:
        query = select(deltas.c.message, deltas.c.growth).where(deltas.c.message.in_(unfinished)).order_by(deltas.c.n)
        for number, steps in connection.execute(query):
            growth.setdefault(number, []).append(steps)
    return growth
