"""Rows <-> values: what of a message goes into columns of its own, and what into its details."""

from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Row

from recto import wire
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


def details_of(message: Message) -> str:
    out: dict[str, Any] = {}
    for name in DETAILS:
        value = getattr(message, name)
        if value == _DEFAULTS[name]:
            continue
        if isinstance(value, Usage | Tokens):
            value = {key: number for key, number in asdict(value).items() if number is not None}
        out[name] = list(value) if isinstance(value, tuple) else value
    return wire.dumps(out) if out else "{}"


def message_of(row: AnyRow, growth: list[str] | None = None) -> Message:
    """The message of a row of `tree.COLUMNS`; `growth` is what has streamed in of an unfinished one."""
    details: dict[str, Any] = {}
    if row.details != "{}":
        details = wire.loads(row.details)
        if "usage" in details:
            details["usage"] = Usage(**details["usage"])
        if "tokens" in details:
            details["tokens"] = Tokens(**details["tokens"])
        for name in ("references", "memory_references", "learning_points", "task_runs"):
            if name in details:
                details[name] = tuple(details[name])
    blocks = wire.blocks_from_json(row.blocks)
    if growth:
        blocks += grow([step for batch in growth for step in wire.loads(batch)])
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
