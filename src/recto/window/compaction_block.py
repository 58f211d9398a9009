"""Builds Compaction blocks for a cut, a clear, a pin, an edit or an undo. Knows numbers and ids, no store."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.blocks import Compaction, Made, MessageRange
from recto.chat.message import Message, now

PASSING = "pass"
"""The action of a Compaction that applies to one request only and is never stored."""


class WrittenSummary(Struct, frozen=True):
    """A summary with its author, its checks, and the problems in writing it."""

    text: str = ""
    made_by: str = "discard"
    made: Made | None = None
    notes: tuple[str, ...] = ()
    checks: dict[str, int] = field(default_factory=dict)
    ledger: tuple[str, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    tokens: int | None = None
    """Of the text alone; None until counted."""
    read: tuple[MessageRange, ...] = ()
    unread: tuple[MessageRange, ...] = ()
    work_log: str = ""
    """The whole log; the text may have only a part of it."""
    set_aside: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()


FIELDS = {"text": "summary", "tokens": "summary_tokens"}
"""The fields of a Compaction that have another name than those of the summary."""


def previous_summary(block: Compaction | None) -> WrittenSummary:
    """The current summary, to be carried over. The lines it set aside stay in its own block."""
    if block is None or not (block.summary or block.work_log):
        return WrittenSummary()
    same = {name: getattr(block, FIELDS.get(name, name)) for name in WrittenSummary.__struct_fields__}
    return WrittenSummary(**same | {"set_aside": ()})


def cleared_at(block: Compaction | None) -> str | None:
    """The last cleared message: nothing up to it is recalled."""
    return block.cleared if block else None


def has_archive(block: Compaction | None) -> bool:
    """True if there are archived messages that may be recalled."""
    return block is not None and block.messages_archived > 0 and block.last not in (None, cleared_at(block))


class SetAside(Struct, frozen=True):
    """The lines that one Compaction set aside, and the number of earlier Compactions it takes back."""

    set_aside: tuple[str, ...] = ()
    takes_back: int = 0


def all_set_aside(found: Iterable[SetAside]) -> tuple[str, ...]:
    """The lines that several Compactions set aside, without repeats, oldest first; `found` is newest first."""
    lines: list[tuple[str, ...]] = []
    skipped = 0
    for each in found:
        if skipped:
            skipped -= 1
            continue
        lines.append(each.set_aside)
        skipped = each.takes_back
    return tuple(dict.fromkeys(line for group in reversed(lines) for line in group))


def next_block(before: Compaction | None, written: WrittenSummary, **fields: Any) -> Compaction:
    """The Compaction that follows `before`. Pins and clear are inherited from `before` unless given in `fields`."""
    values: dict[str, Any] = {
        "compaction_number": before.compaction_number + 1 if before else 1,
        "timestamp": now(),
        "last": None,
        "messages_archived": 0,
        "context_size_before": 0,
        "context_size_after": 0,
        "because": "",
        "pinned": before.pinned if before else (),
        "cleared": cleared_at(before),
    }
    return Compaction(**values | _summary_fields(written) | fields)


def _summary_fields(written: WrittenSummary) -> dict[str, Any]:
    return {FIELDS.get(name, name): getattr(written, name) for name in written.__struct_fields__}


def left_out_in_words(block: Compaction, before: Compaction | None) -> str:
    """Describes the omissions of a Compaction for one request alone."""
    fewer = block.messages_archived - (before.messages_archived if before else 0)
    if fewer < 1:
        return f"the window was cut for this request alone: {block.because}"
    older = "1 older message was" if fewer == 1 else f"{fewer} older messages were"
    return f"{older} left out of this request: {block.because}"


GROWN = 1.1


def is_held(block: Compaction | None, size: int) -> bool:
    """True if the user took a compaction back and the window has not grown by a tenth since: none is due so soon."""
    return block is not None and size < block.restored_size * GROWN


NO_COMPACTION = Compaction(0, "", None, "", 0, 0, 0, "discard", "")
"""Stands for a missing Compaction: covers nothing."""


def revised_block(
    before: Compaction | None,
    action: str,
    because: str,
    *,
    follows: Compaction | None = None,
    pinned: tuple[str, ...] | None = None,
    lifted: tuple[str, ...] | None = None,
    written: WrittenSummary | None = None,
) -> Compaction:
    """`before` with a change by the user, as a new Compaction; omitted arguments keep the old values.

    `follows` is the newest Compaction if that is not `before`. The sizes are left at 0: only a model's token counter
    knows the size of a window.
    """
    old = before or NO_COMPACTION
    newest = follows or old
    lifts = old.lifted if lifted is None else lifted
    block = replace(
        old,
        compaction_number=newest.compaction_number + 1,
        timestamp=now(),
        action=action,
        because=because,
        cleared=cleared_at(before),
        pinned=old.pinned if pinned is None else pinned,
        lifted=lifts,
        messages_archived=old.messages_archived + len(old.lifted) - len(lifts),
        little=newest.little,
        context_size_before=0,
        context_size_after=0,
        set_aside=(),
        takes_back=0,
    )
    if written is None:
        return block
    kept = {"read": old.read, "unread": old.unread, "contents": old.contents}
    return replace(block, **_summary_fields(written) | kept)


def compaction_message(block: Compaction, parent: str) -> Message:
    return Message(new_id(), "system", (block,), parent=parent, context_type="summary", priority=9)
