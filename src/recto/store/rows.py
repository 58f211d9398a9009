"""Rows <-> values: what of a message goes into columns of its own, and what into its details."""

from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Row

from recto import wire
from recto.chat.blocks import Block, Made
from recto.chat.conversation import Conversation
from recto.chat.growth import grow
from recto.chat.message import Message, Tokens, Usage

AnyRow = Row[*tuple[Any, ...]]

# Kept as one JSON text, defaults left out: most messages say nothing unusual.
DETAILS = (
    "error",
    "context_type",
    "priority",
    "agent",
    "model",
    "provider",
    "usage",
    "tokens",
    "references",
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
        out["made"] = [made.provider, made.model, made.duration_s]
    return wire.dumps(out) if out else "{}"


def _telling(value: Usage | Tokens) -> dict[str, Any]:
    """The fields that differ from what they are by default."""
    return {spec.name: getattr(value, spec.name) for spec in fields(value) if getattr(value, spec.name) != spec.default}


def message_of(row: AnyRow, growth: list[str] | None = None, *, bare: bool = False) -> Message:
    """The message of a row of `queries.MESSAGE`; `growth` is what has streamed in of an unfinished one.

    A bare one comes without its details: what a window needs of it, in half the time.
    """
    blocks = wire.blocks_from_json(row.blocks)
    if growth:
        blocks += grow([step for batch in growth for step in wire.loads(batch)])
    details = {} if bare or row.details == "{}" else _read_details(row.details)
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
        request=row.request_id,
        **details,
    )


def _read_details(text: str) -> dict[str, Any]:
    details: dict[str, Any] = wire.loads(text)
    for name, kind in (("usage", Usage), ("tokens", Tokens)):
        if name in details:
            details[name] = kind(**details[name])
    for name in ("references", "memory_references", "learning_points", "task_runs"):
        if name in details:
            details[name] = tuple(details[name])
    if "made" in details:
        details["made"] = Made(*details["made"])
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
