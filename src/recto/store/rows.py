"""Rows <-> values: what of a message goes into columns of its own, and what into its details."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import Row

from recto import wire
from recto.chat.blocks import Block, Compaction, Made, Thinking
from recto.chat.conversation import Conversation
from recto.chat.growth import grow
from recto.chat.message import Message, Tokens, Usage

AnyRow = Row[*tuple[Any, ...]]

# Kept as one JSON text, defaults left out: most messages say nothing unusual.
DETAILS = (
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
_DEFAULTS: dict[str, Any] = {spec.name: spec.default for spec in fields(Message)}


def written(message: Message) -> dict[str, str]:
    """The message's blocks and details as they are stored. Who made all of its blocks is said once, in the details."""
    made = _made_all(message.blocks)
    blocks = tuple(replace(block, made=None) for block in message.blocks) if made else message.blocks
    return {"blocks": wire.blocks_to_json(blocks), "details": _details(message, made)}


def _made_all(blocks: tuple[Block, ...]) -> Made | None:
    # a bare page reads no details, and a window needs to know who thought, and who summed up
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
            value = _telling(value)
        out[name] = list(value) if isinstance(value, tuple) else value
    if made:
        same = (made.provider, made.model) == (message.provider, message.model)
        out["made"] = [made.duration_s] if same else [made.duration_s, made.provider, made.model]
    return wire.dumps(out) if out else "{}"


def _telling(value: Usage | Tokens) -> dict[str, Any]:
    """The fields that differ from what they are by default."""
    return {spec.name: getattr(value, spec.name) for spec in fields(value) if getattr(value, spec.name) != spec.default}


def bare_message(row: Sequence[Any], parent: str | None, growth: list[str] | None) -> Message:
    """What a window needs of a row of `queries.BARE`; nothing of how it came to be."""
    _, id, depth, said, role, status, created, blocks, _, priority = row
    return Message(id, role, _blocks(blocks, growth), parent, depth, said, created, status, priority=priority)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A bare message with its number in the store, its conversation by number and by id, and its branch."""

    n: int
    conversation: int
    home: str
    branch: int
    message: Message


def numbered_of(row: AnyRow, growth: list[str] | None) -> Numbered:
    """A row of `queries.NUMBERED`."""
    *bare, branch, conversation, home, parent = row
    return Numbered(row.n, conversation, home, branch, bare_message(bare, parent, growth))


def _blocks(text: str, growth: list[str] | None) -> tuple[Block, ...]:
    blocks = wire.blocks_from_json(text)
    return blocks + grow([step for batch in growth for step in wire.loads(batch)]) if growth else blocks


def message_of(row: AnyRow, growth: list[str] | None = None) -> Message:
    """The message of a row of `queries.MESSAGE`; `growth` is what has streamed in of an unfinished one."""
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
    # an older version that was running while the store was migrated still writes it here
    details.pop("priority", None)
    details.pop("references", None)
    for name, kind in (("usage", Usage), ("tokens", Tokens)):
        if name in details:
            details[name] = kind(**details[name])
    for name in ("memory_references", "learning_points", "task_runs"):
        if name in details:
            details[name] = tuple(details[name])
    if "made" in details:
        duration_s, *who = details["made"]
        provider, model = who or (details["provider"], details["model"])
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
    )
