"""Compactions in words, the same on the command line, on the page and in exports: how much was archived, who wrote the
summary, and what became of the facts."""

from collections.abc import Mapping

from recto.chat.blocks import Compaction
from recto.text import counted

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


def writer_in_words(block: Compaction) -> str:
    """Empty where there is nothing to summarise."""
    if block.last is None:
        return ""
    by = f"summary by {block.made.model}" if block.made else "summary by a model"
    return WRITERS.get(block.made_by, by)


def kept_in_words(checks: Mapping[str, int]) -> str:
    """31 of 34 facts kept, not counting most of what 10 tool results say. Empty where no fact was found."""
    if not checks.get("facts"):
        return ""
    kept = f"{checks.get('kept', 0):,} of {counted(checks['facts'], 'fact')} kept"
    return f"{kept}, {left_out}" if (left_out := uncounted_in_words(checks.get("results", 0))) else kept


def uncounted_in_words(results: int) -> str:
    """What counts of facts leave out: of a tool's result, only its errors, paths and measurements are recognised."""
    if not results:
        return ""
    says = "says" if results == 1 else "say"
    return f"not counting most of what {counted(results, 'tool result')} {says}"


def counts_in_words(checks: Mapping[str, int]) -> str:
    """31 of 34 facts kept, 2 in the ledger, 1 only in the archive; nothing invented"""
    if not (kept := kept_in_words(checks)):
        return ""
    places = {"in the ledger": checks.get("ledger", 0), "only in the archive": checks.get("archive", 0)}
    others = [f"{number:,} {place}" for place, number in places.items() if number]
    invented = checks.get("invented", 0)
    marked = f"{invented:,} that nobody said, marked {UNVERIFIED}" if invented else "nothing invented"
    return f"{', '.join([kept, *others])}; {marked}"
