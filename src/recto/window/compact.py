"""Carries out a plan's cut as one Compaction block. Knows numbers and ids; the store puts it in its place."""

from recto.chat.blocks import Compaction
from recto.chat.message import Message, now
from recto.ids import new_id
from recto.window.plan import Plan


def discarded(
    plan: Plan, *, before: Compaction | None, parent: str, archived: int, size_before: int, size_after: int
) -> Message:
    """The message that holds the Compaction: no summary, covers what the plan left out."""
    assert plan.cut is not None
    return compaction_message(
        Compaction(
            compaction_number=_next(before),
            timestamp=now(),
            last=plan.cut.last,
            summary="",
            messages_archived=archived,
            context_size_before=size_before,
            context_size_after=size_after,
            made_by="discard",
            because=plan.because,
            lifted=plan.cut.lifted,
        ),
        parent,
    )


def cleared(*, before: Compaction | None, parent: str, archived: int, size_before: int, size_after: int) -> Message:
    """Starts the view anew: covers everything up to and with `parent`."""
    return compaction_message(
        Compaction(
            compaction_number=_next(before),
            timestamp=now(),
            last=parent,
            summary="",
            messages_archived=archived,
            context_size_before=size_before,
            context_size_after=size_after,
            made_by="clear",
            because="the user cleared the context",
        ),
        parent,
    )


def compaction_message(block: Compaction, parent: str) -> Message:
    return Message(new_id(), "system", (block,), parent=parent, context_type="summary", priority=9)


def _next(before: Compaction | None) -> int:
    return before.compaction_number + 1 if before else 1
