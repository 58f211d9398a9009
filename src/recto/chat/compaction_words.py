"""Texts about compactions for the command line, the page and exports: how much was archived, who wrote the summary,
and which facts it kept."""

from collections.abc import Mapping

from recto.base.text import counted
from recto.chat.blocks import Compaction

UNVERIFIED = "[unverified]"
WRITERS = {
    "extractive": "sentences of the originals",
    "truncated": "beginnings only",
    "user": "summary by you",
    "discard": "no summary",
    "clear": "you started over",
}


def archived_in_words(archived: int, before: int, after: int) -> str:
    """45 messages archived, 150,000 → 41,000 tokens"""
    gone = f"{counted(archived, 'message')} archived" if archived else "nothing archived"
    return gone + (f", {before:,} → {after:,} tokens" if before or after else "")


def block_in_words(block: Compaction) -> str:
    archived = archived_in_words(block.messages_archived, block.context_size_before, block.context_size_after)
    writer = writer_in_words(block) if block.made_by != "clear" else ""
    return compaction_line(block.compaction_number, archived, writer)


def compaction_line(number: int, archived: str, writer: str) -> str:
    return f"compaction {number}: {archived}" + (f" · {writer}" if writer else "")


def writer_in_words(block: Compaction) -> str:
    """Empty if there is nothing to summarise."""
    if block.last is None:
        return ""
    by = f"summary by {block.made.model}" if block.made else "summary by a model"
    return WRITERS.get(block.made_by, by)


def kept_in_words(checks: Mapping[str, int]) -> str:
    """31 of 34 statements kept. Empty if nothing was checked."""
    return f"{checks.get('kept', 0):,} of {counted(checks['facts'], 'statement')} kept" if checks.get("facts") else ""


def counts_in_words(checks: Mapping[str, int]) -> str:
    """31 of 34 statements kept, 2 in the ledger, 1 left to the archive; nothing invented"""
    if not (kept := kept_in_words(checks)):
        return ""
    places = {"in the ledger": checks.get("ledger", 0), "left to the archive": checks.get("archive", 0)}
    others = [f"{number:,} {place}" for place, number in places.items() if number]
    invented = checks.get("invented", 0)
    marked = f"{invented:,} that nobody said, marked {UNVERIFIED}" if invented else "nothing invented"
    return f"{', '.join([kept, *others])}; {marked}"
