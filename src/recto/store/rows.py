"""Converts rows to messages and conversations, and messages to columns.

An unfinished message is read with the text that has streamed in so far.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, select

from recto import wire
from recto.chat.blocks import Block, Compaction, Made, Thinking
from recto.chat.conversation import Conversation
from recto.chat.message import Message, Tokens, Usage, blocks_from
from recto.errors import NotFound
from recto.store.schema import deltas
from recto.store.statements import BARE_PATH, CONVERSATION_BY_ID, ID_OF, MESSAGE_BY_ID

AnyRow = Any
"""A row whose items have the names of their columns."""

# Stored as one JSON text without defaults, because most messages have nothing unusual.
DETAILS = (
    "has_time",  # the first: `statements.BARE` finds it there
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
    """The message of a row of `statements.BARE`: what a window needs, without most of the details."""
    _, id, depth, said, role, status, created, blocks, _, priority, has_time = row
    known = _blocks(blocks, growth)
    return Message(id, role, known, parent, depth, said, created, bool(has_time), status, priority=priority)


class AppendedMessage(Struct, frozen=True):
    """A stored message. `moved` is False when another writer moved the head first, so that this one is on a branch."""

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
    """The message of a row of `statements.NUMBERED`."""
    *bare, branch, conversation, home, parent = row
    return NumberedMessage(row.n, conversation, home, branch, bare_message(bare, parent, growth))


def _blocks(text: str, growth: list[str] | None) -> tuple[Block, ...]:
    blocks = wire.blocks_from_json(text)
    return blocks + blocks_from([step for batch in growth for step in wire.loads(batch)]) if growth else blocks


@lru_cache(maxsize=16)  # every turn reads the same one
def compaction_of(blocks: str) -> Compaction | None:
    """The Compaction among stored blocks."""
    return next((block for block in _blocks(blocks, None) if isinstance(block, Compaction)), None)


def message_of(row: AnyRow, growth: list[str] | None = None) -> Message:
    """The message of a row of `statements.MESSAGE`; `growth` are the stored deltas of an unfinished one."""
    blocks = _blocks(row.blocks, growth)
    details = {} if row.details == "{}" else read_details(row.details)
    if made := details.pop("made", None):
        blocks = tuple(replace(block, made=made) for block in blocks)
    return Message(
        id=row.id,
        role=row.role,
        blocks=blocks,
        parent=row.parent_id,
        depth=row.depth,
        said=row.said,
        created=row.created,
        status=row.status,
        priority=row.priority,
        request=row.request_id,
        **details,
    )


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
        id=row.id,
        title=row.title,
        head=row.head_id,
        created=row.created,
        updated=row.updated,
        agent=row.agent,
        details=wire.loads(row.details),
        messages=row.said or 0,
        number=row.n,
        archived=row.archived,
        deleted=row.deleted,
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
    rows = BARE_PATH(connection, start=start, most=limit, until=until or "").all()
    if not rows:
        return []
    oldest = rows[-1].parent
    parents: list[str | None] = [row.id for row in rows[1:]]
    parents.append(ID_OF(connection, n=oldest).scalar() if oldest else None)
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
