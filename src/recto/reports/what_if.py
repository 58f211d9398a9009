"""WhatIf: the window of a past turn as it was, and as it would be with another strategy, window, model or setting.

StrategyComparison: the same for all turns of a conversation, once per strategy. Values only; nothing here plans."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from msgspec import Struct, field, to_builtins

from recto import wire
from recto.chat.blocks import Compaction, MessageRange
from recto.chat.conversation import ranges_of
from recto.reports.conversation_stats import RequestUse
from recto.store.comparison import Difference, SentMessage
from recto.window.account import RequestAccount

AS_IT_WAS = "as it was"


class PlanOptions(TypedDict, total=False):
    """Changes to a past plan; the rest stays as it was."""

    window: int | None
    """A window size in tokens, in place of the model's own."""
    model: str | None
    settings: dict[str, Any] | None
    """Context settings by key."""


class TurnPlanOptions(PlanOptions, total=False):
    strategy: str | None
    from_start: bool
    """Apply the changes from the first message on; otherwise, earlier compactions stay as they were."""


class PlanChanges(Struct, frozen=True):
    """Changes to a plan; the rest stays as it was."""

    strategy: str | None = None
    window: int | None = None
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    from_start: bool = False

    def to_json(self) -> dict[str, Any]:
        own = {"strategy": self.strategy, "window": self.window, "model": self.model}
        told = {name: value for name, value in own.items() if value is not None} | dict(self.settings)
        return told | ({"from_start": True} if self.from_start else {})


def changes_of(options: PlanOptions | TurnPlanOptions) -> PlanChanges:
    return PlanChanges(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]


class WindowMessages(Struct, frozen=True):
    """The messages before a reply, by number."""

    verbatim: tuple[MessageRange, ...] = ()
    condensed: tuple[MessageRange, ...] = ()
    """Sent as an excerpt, or with lines in place of tool results."""
    summarised: tuple[MessageRange, ...] = ()
    left_out: tuple[MessageRange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = to_builtins(self)
        return told


def window_messages(
    sent: Sequence[SentMessage], excerpts: Iterable[str], block: Compaction | None, last: int, cleared: int = 0
) -> WindowMessages:
    """For messages 1 to `last`. `block` is the Compaction in force; nothing up to `cleared` is in its summary."""
    shortened = {key.partition("/")[0] for key in excerpts}
    condensed = {each.number for each in sent if each.id in shortened}
    whole = {each.number for each in sent} - condensed
    rest = set(range(1, last + 1)) - whole - condensed
    covered = block.messages_archived + len(block.lifted) if block and block.last and block.summary else 0
    told = {number for number in rest if cleared < number <= covered}
    return WindowMessages(ranges_of(whole), ranges_of(condensed), ranges_of(told), ranges_of(rest - told))


class WindowPlan(Struct, frozen=True):
    """One side of a what-if."""

    account: RequestAccount
    messages: WindowMessages

    def to_json(self) -> dict[str, Any]:
        return self.account.to_json() | {"messages": self.messages.to_json()}


class WhatIf(Struct, frozen=True):
    conversation: str
    message: str
    number: int
    reply: str | None
    changes: PlanChanges
    was: WindowPlan | None
    """None if no request is recorded."""
    would: WindowPlan | None
    """None if nothing would fit: `error` says why."""
    difference: Difference | None = None
    compaction: Compaction | None = None
    """The Compaction that would be made for this turn."""
    is_estimate: bool = False
    """True if chosen sentences replace a summary that a model would write."""
    because: str = ""
    notes: tuple[str, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        names = ("conversation", "message", "number", "reply", "changes", "was", "would", "compaction", "because")
        told = wire.fields_to_json(self, *names, "is_estimate", "difference", "notes")
        return told | {"error": self.error or None}


class StrategyResult(Struct, frozen=True):
    """One simulation of a conversation."""

    name: str
    """The strategy, or `as it was`."""
    requests: tuple[RequestUse, ...]
    compactions: int = 0
    summary_tokens: int = 0
    """Read and written for summaries, in addition to the requests."""
    summary_usd: float | None = 0.0
    statements: int = 0
    """How many of the earlier statements the last window contains."""
    statements_share: float = 0.0
    """The mean share of the statements so far that a window contains: verbatim, in its summary or ledger."""
    too_large: tuple[int, ...] = ()
    is_estimate: bool = True

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.requests)

    @property
    def cached_share(self) -> float:
        """The share of prompt tokens that the next request repeats at its start, so that a cache could serve them."""
        read = sum(each.usage.input for each in self.requests)
        return sum(each.usage.cache_read for each in self.requests) / read if read else 0.0

    @property
    def cost_usd(self) -> float | None:
        """Including summaries; None if a price is unknown."""
        costs = [self.summary_usd, *(each.usage.cost_usd for each in self.requests)]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def to_json(self) -> dict[str, Any]:
        told = wire.fields_to_json(self, "name", "tokens", "cost_usd", "cached_share", "compactions", "summary_tokens")
        told |= wire.fields_to_json(self, "statements", "statements_share", "too_large", "is_estimate", "requests")
        digits = {"cost_usd": 9, "cached_share": 4, "statements_share": 4}
        return told | {name: round(told[name], most) for name, most in digits.items() if told[name] is not None}


class StrategyComparison(Struct, frozen=True):
    conversation: str
    model: str
    limit: int
    changes: PlanChanges
    statements: int
    """All recognised statements of the conversation."""
    runs: tuple[StrategyResult, ...]
    recorded: StrategyResult | None = None
    """As it was; None if no request is recorded."""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        told = wire.fields_to_json(self, "conversation", "model", "limit", "changes", "statements", "recorded")
        return told | {"strategies": wire.value_to_json(self.runs), "notes": list(self.notes)}
