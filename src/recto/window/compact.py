"""Compactions as blocks: what a cut, a clear, a pin, an edit or an undo makes. Knows numbers and ids, no store."""

from dataclasses import dataclass, field, replace
from typing import Any

from recto.chat.blocks import Compaction, Made
from recto.chat.message import Message, now
from recto.ids import new_id

PASSING = "pass"
"""The action of a Compaction that stands for one request alone and is never stored."""


@dataclass(frozen=True, slots=True)
class Written:
    """A summary, who wrote it, and what went wrong on the way."""

    text: str = ""
    made_by: str = "discard"
    made: Made | None = None
    notes: tuple[str, ...] = ()
    checks: dict[str, int] = field(default_factory=dict)
    ledger: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)


def written_before(block: Compaction | None) -> Written:
    """The summary in force, to be carried over."""
    if block is None or not block.summary:
        return Written()
    return Written(block.summary, block.made_by, block.made, block.notes, block.checks, block.ledger, block.places)


def cleared_at(block: Compaction | None) -> str | None:
    """The last message behind which nothing is recalled. An older clear did not say so: it is all that it covers."""
    if block is None:
        return None
    return block.cleared or (block.last if "clear" in (block.action, block.made_by) else None)


def reaches(block: Compaction | None) -> bool:
    """Whether there is anything behind it that may be recalled."""
    return block is not None and block.messages_archived > 0 and block.last not in (None, cleared_at(block))


def next_block(before: Compaction | None, written: Written, **known: Any) -> Compaction:
    """The Compaction that follows `before`: its pins and its clear stay, whatever else is not told starts anew."""
    values: dict[str, Any] = {
        "compaction_number": before.compaction_number + 1 if before else 1,
        "timestamp": now(),
        "last": None,
        "summary": written.text,
        "messages_archived": 0,
        "context_size_before": 0,
        "context_size_after": 0,
        "made_by": written.made_by,
        "because": "",
        "pinned": before.pinned if before else (),
        "made": written.made,
        "notes": written.notes,
        "checks": written.checks,
        "ledger": written.ledger,
        "places": written.places,
        "cleared": cleared_at(before),
    }
    return Compaction(**(values | known))


def revised(before: Compaction | None, action: str, because: str, **changes: Any) -> Compaction:
    """The same Compaction with something changed by the user, as a new one."""
    if before is None:
        return next_block(None, Written(), action=action, because=because, **changes)
    values: dict[str, Any] = {
        "compaction_number": before.compaction_number + 1,
        "timestamp": now(),
        "action": action,
        "because": because,
        "cleared": cleared_at(before),
    }
    return replace(before, **(values | changes))


def compaction_message(block: Compaction, parent: str) -> Message:
    return Message(new_id(), "system", (block,), parent=parent, context_type="summary", priority=9)
