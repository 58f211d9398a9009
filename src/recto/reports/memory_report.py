"""MemoryReport: the memory sent with a message: files and facts, with tokens and reasons, and near misses."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from recto.sources.source import Pick
from recto.store.fact import MemoryFact
from recto.window.window import Window

KINDS = ("memory", "fact")


class MemoryReport(Struct, frozen=True):
    picks: tuple[Pick, ...]
    passed: tuple[Pick, ...]
    facts: Mapping[int, MemoryFact]
    message: str
    notes: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(pick.tokens for pick in self.picks)

    @property
    def lines(self) -> Iterator[str]:
        question = " ".join(self.message.split())
        about = f"for “{question[:60]}{'…' if len(question) > 60 else ''}”" if question else "before a message"
        yield f"{self.tokens:,} tokens of memory {about}"
        for pick in self.picks:
            yield from self._told(pick)
        if self.passed:
            yield "not included:"
        for pick in self.passed:
            yield from self._told(pick)

    def _told(self, pick: Pick) -> Iterator[str]:
        score = f"{pick.score:.2f}  " if pick.score is not None else ""
        fact = self.facts.get(int(pick.name)) if pick.kind == "fact" else None
        yield f"{pick.tokens:>6}  {pick.name}  {fact.marked_text}" if fact else f"{pick.tokens:>6}  {pick.name}"
        yield f"{'':>6}  {score}{pick.because.partition('”: ')[2] if fact else pick.because}"

    def to_json(self) -> dict[str, Any]:
        return {
            "message": self.message,
            "tokens": self.tokens,
            "included": [self._to_json(pick) for pick in self.picks],
            "passed": [self._to_json(pick) for pick in self.passed],
            "notes": list(self.notes),
        }

    def _to_json(self, pick: Pick) -> dict[str, Any]:
        fact = self.facts.get(int(pick.name)) if pick.kind == "fact" else None
        return pick.to_json() | ({"text": fact.text, "day": fact.day, "said_by": fact.said_by} if fact else {})


def memory_picks(window: Window) -> tuple[list[Pick], list[Pick]]:
    """The memory in a window, and what was considered and left out."""
    picks = [pick for section in window.sections for pick in section.picks if pick.kind in KINDS]
    return picks, [pick for pick in window.not_picked if pick.kind in KINDS]
