"""Statistics over one conversation: what was said on its path, what was sent in all its branches, and the cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct, to_builtins

from recto import wire
from recto.chat.blocks import Compaction
from recto.chat.message import Message, Usage
from recto.reports.transcript import ArchivedPart
from recto.store.records import SentRequest
from recto.store.store import Store
from recto.window.account import NO_ACCOUNT
from recto.window.plan import Budget
from recto.window.window import Window

USAGE = ("input", "output", "cache_read", "cache_write")
MAKE_ROOM = ("compact", "clear")
"""Actions that make a window smaller; the others are pins, edits and undone compactions."""


class SaidStats(Struct, frozen=True):
    """Counts of what was said on the path, and of what is archived."""

    messages: int
    roles: Mapping[str, int]
    tokens: int
    compactions: int
    made_by: Mapping[str, int]
    """Compactions that made room, by who wrote their summaries."""
    actions: Mapping[str, int]
    freed: int
    archived: int
    active: int
    pinned: int
    priorities: Mapping[str, int]


class WindowStats(Struct, frozen=True):
    size: int
    limit: int
    trigger: int | None
    """None if it is never compacted."""
    low_water: int
    compacts: bool
    """True if the next message compacts it."""

    @property
    def percent(self) -> float:
        return round(100 * self.size / self.limit, 1)

    @classmethod
    def of(cls, window: Window, budget: Budget) -> Self:
        trigger = budget.due if budget.trigger else None
        return cls(window.total, window.limit, trigger, budget.low_water, window.plan.cut is not None)

    def to_json(self) -> dict[str, Any]:
        return wire.fields_to_json(self, "size", "limit", "percent", "trigger", "low_water", "compacts")


class ModelCost(Struct, frozen=True):
    model: str
    usage: Mapping[str, int]
    cost_usd: float | None
    """The cost of requests with a known price; None if there are none."""
    unpriced: int = 0
    """Requests without a known price."""

    def to_json(self) -> dict[str, Any]:
        return {"model": self.model, **self.usage, "cost_usd": self.cost_usd, "unpriced": self.unpriced}


class RequestTotals(Struct, frozen=True):
    requests: int
    models: tuple[ModelCost, ...]

    @property
    def usage(self) -> dict[str, int]:
        return {name: sum(each.usage[name] for each in self.models) for name in USAGE}

    @property
    def cost_usd(self) -> float | None:
        """The cost of requests with a known price."""
        return _sum([each.cost_usd for each in self.models])[0]

    @property
    def unpriced(self) -> int:
        return sum(each.unpriced for each in self.models)

    def to_json(self) -> dict[str, Any]:
        return wire.fields_to_json(self, "requests", "usage", "cost_usd", "unpriced")


class ConversationStats(Struct, frozen=True):
    conversation: str | None
    said: SaidStats
    strategy: str | None
    """The one in force; None if it depends on a model that cannot be reached."""
    window: WindowStats | None
    window_error: str
    """Why there is no window; empty if there is one."""
    totals: RequestTotals
    summaries: RequestTotals
    """Totals of the summary requests."""

    def to_json(self) -> dict[str, Any]:
        window = (
            {"window": self.window.to_json()} if self.window else {"window": None, "window_error": self.window_error}
        )
        return {
            "conversation": self.conversation,
            **to_builtins(self.said),
            "strategy": self.strategy,
            **(window if self.window else window | {"window_error": self.window_error}),
            **self.totals.to_json(),
            "models": [each.to_json() for each in self.totals.models],
            "summaries": self.summaries.to_json(),
        }


class SaidCounter:
    def __init__(self, archived: ArchivedPart) -> None:
        self._archived_part, self._blocks = archived, list[Compaction]()
        self._roles, self._priorities = Counter[str](), Counter[int]()
        self._tokens = self._active = 0

    def count(self, message: Message) -> None:
        if message.compaction:
            self._blocks.append(message.compaction)
            return
        self._roles[message.role] += 1
        self._priorities[message.priority] += 1
        self._tokens += message.tokens.own or 0
        self._active += self._archived_part.active(message)

    def total(self) -> SaidStats:
        made = [block for block in self._blocks if block.action in MAKE_ROOM]
        return SaidStats(
            messages=self._roles.total(),
            roles=dict(sorted(self._roles.items())),
            tokens=self._tokens,
            compactions=len(self._blocks),
            made_by=dict(Counter(block.made_by for block in made)),
            actions=dict(Counter(block.action for block in self._blocks)),
            freed=sum(block.context_size_before - block.context_size_after for block in made),
            archived=self._roles.total() - self._active,
            active=self._active,
            pinned=len(self._archived_part.pinned),
            priorities={str(priority): count for priority, count in sorted(self._priorities.items())},
        )


def request_totals(sent: Sequence[SentRequest]) -> RequestTotals:
    usage: dict[str, Counter[str]] = {}
    costs: dict[str, list[float | None]] = {}
    for request in sent:
        model = request.model or "unknown"
        usage.setdefault(model, Counter()).update({name: request.usage.get(name, 0) for name in USAGE})
        costs.setdefault(model, []).append(request.cost_usd)
    models = [ModelCost(model, spent, *_sum(costs[model])) for model, spent in usage.items()]
    return RequestTotals(len(sent), tuple(models))


def _sum(costs: Sequence[float | None]) -> tuple[float | None, int]:
    """The known costs, and how many are unknown."""
    known = [cost for cost in costs if cost is not None]
    return round(sum(known), 9) if known else None, len(costs) - len(known)


# -- request by request


class RequestUse(Struct, frozen=True):
    number: int
    """The number of the reply."""
    reply: str
    model: str
    created: str
    tokens: int
    """As counted before it was sent."""
    limit: int
    usage: Usage
    """As the provider reported it; an estimate for a request that was not sent."""
    compaction: int | None = None
    """The number of the compaction made for it."""
    answers: int = 0
    """The number of the message that it answers, shared by the requests of a turn."""


def recorded_use(store: Store, path: Sequence[Message]) -> Iterator[RequestUse]:
    """Covers replies with a record, oldest first."""
    compaction, answers = None, 0
    accounts = store.records.window_sizes([message.request for message in path if message.request])
    for message in path:
        if block := message.compaction:
            compaction = block.compaction_number if block.action == "compact" else compaction
        elif message.role == "user":
            answers = message.said
        elif message.role == "assistant" and message.request:
            account = accounts.get(message.request, NO_ACCOUNT)
            model, usage = message.model or account.model or "", message.usage or Usage(reported=False)
            size = (account.total or 0, account.limit or 0)
            yield RequestUse(message.said, message.id, model, message.created, *size, usage, compaction, answers)
            compaction = None
