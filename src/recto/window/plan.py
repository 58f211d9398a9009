"""Plan: which messages of a view stay, are summarised or left out, and why. A value without effects.

Budget: the token limits of a window, and the sizes that a plan must respect.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field, to_builtins


class Range(Struct, frozen=True):
    """Consecutive messages of the path, given by the first and the last."""

    first: str | None
    last: str | None
    count: int
    tokens: int


NOTHING = Range(None, None, 0, 0)


class Lift(Struct, frozen=True):
    """A covered message that is still sent verbatim, with the results of its tool calls."""

    messages: tuple[str, ...]
    tokens: int
    because: str


class Band(Struct, frozen=True):
    """The budget of the messages in one range of priorities, and the tokens they take."""

    name: str
    budget: int
    tokens: int


class Cut(Struct, frozen=True):
    """The Compaction that the plan asks for: it covers root..`last`, lifts messages, and sends excerpts."""

    last: str | None
    lifted: tuple[str, ...] = ()
    summary: int | None = 0
    """Token limit of the summary to write, as sent; 0 for no summary, None to keep the current one."""
    excerpts: Mapping[str, int] = field(default_factory=dict)
    """Token limit for each message (or `message/call`) that is too large to be sent whole."""
    lines: tuple[str, ...] = ()
    """Old tool results, as `message/call`, that shrink to a line."""
    passing: bool = False
    """For this request only: nothing is stored, no model is asked."""


class Plan(Struct, frozen=True):
    strategy: str
    kept: Range
    because: str
    summed_up: Range = NOTHING
    left_out: Range = NOTHING
    lifted: tuple[Lift, ...] = ()
    bands: tuple[Band, ...] = ()
    cut: Cut | None = None
    frees: int = 0
    """The tokens that the cut saves, at least."""

    def to_json(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "kept": to_builtins(self.kept),
            "summed_up": to_builtins(self.summed_up),
            "left_out": to_builtins(self.left_out),
            "lifted": to_builtins(list(self.lifted)),
            "bands": to_builtins(list(self.bands)),
            "excerpts": dict(self.cut.excerpts) if self.cut else {},
            **({"lines": list(self.cut.lines)} if self.cut and self.cut.lines else {}),
            "compacts": self.cut is not None,
            "passing": self.cut is not None and self.cut.passing,
            "frees": self.frees,
            "because": self.because,
        }


SMALLEST_RESERVE = 512
RESERVE_SHARE = 0.05


class Shares(Struct, frozen=True):
    """The share of the room for each part. Always reported; only the sum is enforced."""

    system: float = 0.10
    tools: float = 0.30
    messages: float = 0.60


class Budget(Struct, frozen=True):
    limit: int
    reserve: int
    low_water: int
    """The size that a compaction reduces the window to."""
    trigger: int | None = None
    """The size at which a compaction is due; None if only an overflow makes it due."""
    summary: int = 0
    recent: int = 0
    """The number of latest messages that stay verbatim, including the current one."""
    least_recent: int = 0
    """The minimum for `recent`."""
    shares: Shares = Shares()
    instructions: int = 0
    """Tokens of the system prompt, rules and references."""
    written: int = 0
    """Tokens of the rules and references alone."""
    tools: int = 0
    picked: int = 0
    """Tokens of the sources picked for the current message."""
    current: int = 0

    @property
    def room(self) -> int:
        return self.limit - self.reserve

    @property
    def around(self) -> int:
        """Everything besides the conversation: instructions, tools and picked sources."""
        return self.instructions + self.tools + self.picked

    @property
    def fixed(self) -> int:
        return self.around + self.current

    @property
    def floor(self) -> int:
        """The size that a cut reduces the window to: low water, applied to the message budget too. A strategy without a
        trigger (it keeps nothing of what it cuts) removes no more than it must."""
        if self.trigger is None or self.room <= 0:
            return self.room
        of_messages = int(self.messages * self.low_water / self.room)
        return min(self.low_water, self.instructions + self.tools + of_messages)

    @property
    def due(self) -> int:
        """The size at which the next compaction is due."""
        return self.room if self.trigger is None else min(self.trigger, self.room)

    @property
    def messages(self) -> int:
        """The elastic budget of all messages: their own share, and what instructions and tools leave unused."""
        spare = max(0.0, self.room * self.shares.system - self.instructions)
        spare += max(0.0, self.room * self.shares.tools - self.tools)
        return max(0, min(round(self.room * self.shares.messages + spare), self.room - self.instructions - self.tools))

    def of(self, section: str) -> int:
        """The budget that a section is reported against: its own share, or that of the messages."""
        component = component_of(section)
        if component == "messages":
            return self.messages
        return int(self.room * (self.shares.system if component == "system" else self.shares.tools))

    @property
    def by_component(self) -> dict[str, int]:
        return {component: self.of(component) for component in ("system", "tools", "messages")}


def component_of(section: str) -> str:
    """The budget that a section counts against: system, tools or messages."""
    if section in ("system", "rules", "references"):
        return "system"
    return "tools" if section == "tools" else "messages"


def limit_of(window: int | None, max_prompt_tokens: int, assumed: int) -> int:
    known = window or assumed
    return min(known, max_prompt_tokens) if max_prompt_tokens else known


def reserve_of(limit: int, reserved: int, max_tokens: int | None) -> int:
    """max(512, 5 % of the limit) unless set, and at least the requested length of the reply."""
    return max(reserved or max(SMALLEST_RESERVE, int(limit * RESERVE_SHARE)), max_tokens or 0)
