"""Compactions in words: the marker line, who wrote the summary, its facts."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from recto import wire
from recto.chat.blocks import Compaction
from recto.cli import show
from recto.events import ContextCompacted, SummaryRequested

if TYPE_CHECKING:
    from recto.blocking import Talk

WRITERS = {
    "extractive": "sentences of the originals",
    "truncated": "beginnings only",
    "user": "summary by you",
    "discard": "no summary",
}
NOTHING_CHECKED: Mapping[str, int] = {}
NOTHING_COMPACTED = "stopped; nothing was compacted"
NO_SUMMARY = "There is no summary: what is archived was left out."


def event_in_words(event: ContextCompacted, writer: str = "") -> str:
    """The marker line of a compaction that was just made; `writer` is the model that was asked last, if any."""
    by = f"summary by {writer}" if writer else "summary as before"
    return _line(
        event.compaction_number,
        event.messages_archived,
        event.context_size_before,
        event.context_size_after,
        WRITERS.get(event.made_by, by),
    )


def block_in_words(block: Compaction) -> str:
    return _line(
        block.compaction_number,
        block.messages_archived,
        block.context_size_before,
        block.context_size_after,
        _writer(block),
    )


def facts_in_words(checks: Mapping[str, int]) -> str:
    """What happened to the facts: "41 of 48 facts kept, 6 more in the ledger, 1 unverified"; empty without any."""
    parts = [f"{checks['kept']} of {show.counted(checks['facts'], 'fact')} kept"] if checks.get("facts") else []
    parts += [f"{checks['ledger']} more in the ledger"] if checks.get("ledger") else []
    parts += [f"{checks['invented']} unverified"] if checks.get("invented") else []
    return ", ".join(parts)


def _line(number: int, archived: int, before: int, after: int, writer: str) -> str:
    gone = f"{show.counted(archived, 'message')} archived" if archived else "nothing archived"
    sizes = f", {before:,} → {after:,} tokens" if before or after else ""
    return f"compaction {number}: {gone}{sizes}" + (f" · {writer}" if writer else "")


def _writer(block: Compaction) -> str:
    """Empty where there is nothing to summarise."""
    if block.last is None or block.made_by == "clear":
        return ""
    by = f"summary by {block.made.model}" if block.made else "summary by a model"
    return WRITERS.get(block.made_by, by)


def remarks(notes: tuple[str, ...], excerpts: int, checks: Mapping[str, int] = NOTHING_CHECKED) -> list[str]:
    """More about it, a line each: what the summary kept, what went wrong, what is sent shortened."""
    are = "is sent as an excerpt" if excerpts == 1 else "are sent as excerpts"
    kept = facts_in_words(checks)
    return [
        *([kept] if kept else ()),
        *notes,
        *([f"{show.counted(excerpts, 'long text')} {are}"] if excerpts else ()),
    ]


def request_in_words(event: SummaryRequested) -> str:
    part = f", part {event.part} of {event.of}" if event.of > 1 else ""
    return f"summing up {event.size:,} tokens with {event.model}{part}"


def undone_in_words(before: Compaction | None, block: Compaction) -> str:
    """What is in the window again after a compaction was taken back."""
    back = restored(before, block)
    size, after = block.context_size_before, block.context_size_after
    sizes = f" ({size:,} → {after:,} tokens)" if size or after else ""
    said = f"{show.counted(back, 'message')} {'is' if back == 1 else 'are'} back in the window{sizes}"
    return f"{said}, behind the summary of what came before" if block.summary else said


def restored(before: Compaction | None, block: Compaction) -> int:
    return (before.messages_archived if before else 0) - block.messages_archived


def in_one_line(block: Compaction) -> str:
    """For lists: the marker line with its time, and the action where that was no compaction."""
    action = "" if block.action == "compact" else f" · {block.action}"
    return f"{show.when(block.timestamp)}  {block_in_words(block)}{action}"


def compaction_facts(block: Compaction) -> Iterator[tuple[str, str]]:
    """All that is known about a compaction, by name. Messages are ids here: `Talk.numbered` gives their numbers."""
    yield "compaction", f"{block.compaction_number}, {show.when(block.timestamp)}" + _action(block)
    yield "covers", f"{show.counted(block.messages_archived + len(block.lifted), 'message')}, up to {block.last}"
    if block.lifted:
        yield "still sent", f"{show.counted(len(block.lifted), 'message')}: {', '.join(block.lifted)}"
    if block.context_size_before or block.context_size_after:
        yield "window", f"{block.context_size_before:,} → {block.context_size_after:,} tokens"
    yield "made by", _made(block)
    yield "because", block.because
    if said := facts_in_words(block.checks):
        yield "facts", f"{said}, {block.checks.get('archive', 0)} only in the archive"
    for line in block.ledger:
        yield "ledger", line
    for note in block.notes:
        yield "note", note
    if block.pinned:
        yield "pins", ", ".join(block.pinned)
    if block.excerpts:
        yield "excerpts", ", ".join(f"{key} ({len(text):,} characters)" for key, text in block.excerpts.items())


def _action(block: Compaction) -> str:
    return "" if block.action == "compact" else f" ({block.action})"


def _made(block: Compaction) -> str:
    if block.made_by != "model":
        return {"user": "you", "clear": "you: cleared"}.get(block.made_by, WRITERS.get(block.made_by, block.made_by))
    if block.made is None:
        return "model"
    took = f" in {block.made.duration_s:.1f} s" if block.made.duration_s is not None else ""
    return f"model {block.made.model}{took}"


def compaction_to_json(talk: "Talk", block: Compaction) -> dict[str, Any]:
    """The answer of every command that makes or shows a Compaction."""
    return {"conversation": talk.id, "head": talk.head, "compaction": wire.block_to_json(block)}
