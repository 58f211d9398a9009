"""Plan: which messages of a view stay, are summarised or left out, and why. A value; nothing is carried out here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive messages of the path, given by the first and the last."""

    first: str | None
    last: str | None
    count: int
    tokens: int

    def to_json(self) -> dict[str, Any]:
        return {"first": self.first, "last": self.last, "count": self.count, "tokens": self.tokens}


NOTHING = Range(None, None, 0, 0)


@dataclass(frozen=True, slots=True)
class Lift:
    """A covered message that is still sent verbatim, with the results of its tool calls."""

    messages: tuple[str, ...]
    tokens: int
    because: str

    def to_json(self) -> dict[str, Any]:
        return {"messages": list(self.messages), "tokens": self.tokens, "because": self.because}


@dataclass(frozen=True, slots=True)
class Band:
    """The budget of the messages in one range of priorities, and the tokens they take."""

    name: str
    budget: int
    tokens: int

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "budget": self.budget, "tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class Cut:
    """The Compaction that the plan asks for: it covers root..`last`, lifts messages, and sends excerpts."""

    last: str | None
    lifted: tuple[str, ...] = ()
    summary: int | None = 0
    """Token limit of the summary to write, as sent; 0 for no summary, None to keep the current one."""
    excerpts: Mapping[str, int] = field(default_factory=dict)
    """Token limit for each message (or `message/call`) that is too large to be sent whole."""
    passing: bool = False
    """For this request only: nothing is stored, no model is asked."""


@dataclass(frozen=True, slots=True)
class Plan:
    strategy: str
    kept: Range
    because: str
    summed_up: Range = NOTHING
    left_out: Range = NOTHING
    lifted: tuple[Lift, ...] = ()
    bands: tuple[Band, ...] = ()
    cut: Cut | None = None
    frees: int = 0
    """By how many tokens the cut shrinks the window, at least."""

    def to_json(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "kept": self.kept.to_json(),
            "summed_up": self.summed_up.to_json(),
            "left_out": self.left_out.to_json(),
            "lifted": [lift.to_json() for lift in self.lifted],
            "bands": [band.to_json() for band in self.bands],
            "excerpts": dict(self.cut.excerpts) if self.cut else {},
            "compacts": self.cut is not None,
            "passing": self.cut is not None and self.cut.passing,
            "frees": self.frees,
            "because": self.because,
        }
