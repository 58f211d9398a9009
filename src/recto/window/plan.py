"""Plan: what of a view stays, what is left out, and because of what. It decides; nothing happens here."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Range:
    """Messages that follow each other on the path, named by their ends."""

    first: str | None
    last: str | None
    count: int
    tokens: int

    def to_json(self) -> dict[str, Any]:
        return {"first": self.first, "last": self.last, "count": self.count, "tokens": self.tokens}


NOTHING = Range(None, None, 0, 0)


@dataclass(frozen=True, slots=True)
class Cut:
    """The Compaction that the plan asks for: covers root..`last`, lifts these."""

    last: str
    lifted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    strategy: str
    kept: Range
    left_out: Range
    because: str
    cut: Cut | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "kept": self.kept.to_json(),
            "left_out": self.left_out.to_json(),
            "because": self.because,
        }
