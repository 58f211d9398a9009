"""Window: the sections as the model reads them, with their tokens and the picks behind them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recto.chat.blocks import Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.sources.pick import Pick
from recto.sources.tools import CANCELLED
from recto.window.budget import Budget, share
from recto.window.plan import Plan
from recto.window.request import Entry

SECTIONS = (
    "system",
    "rules",
    "references",
    "tools",
    "summary",
    "history",
    "memory",
    "recalled",
    "sources",
    "documents",
    "message",
)


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    tokens: int
    budget: int
    picks: tuple[Pick, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tokens": self.tokens,
            "budget": self.budget,
            "picks": [pick.to_json() for pick in self.picks],
        }


@dataclass(frozen=True, slots=True)
class Window:
    """What would be, or was, sent: limit = total + reserve + free."""

    conversation: str
    model: str
    strategy: str
    limit: int
    reserve: int
    exact: bool
    sections: tuple[Section, ...]
    plan: Plan
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(section.tokens for section in self.sections)

    @property
    def free(self) -> int:
        return self.limit - self.reserve - self.total

    def to_json(self) -> dict[str, Any]:
        return {
            "conversation": self.conversation,
            "model": self.model,
            "limit": self.limit,
            "reserve": self.reserve,
            "total": self.total,
            "free": self.free,
            "exact": self.exact,
            "strategy": self.strategy,
            "sections": [section.to_json() for section in self.sections],
            "plan": self.plan.to_json(),
            "notes": list(self.notes),
        }


@dataclass(slots=True)
class Tally:
    """Picks with their tokens, gathered section by section."""

    picks: dict[str, list[Pick]] = field(default_factory=dict)

    def add(self, section: str, pick: Pick, tokens: int) -> None:
        self.picks.setdefault(section, []).append(replace(pick, tokens=tokens))

    def sections(self, budget: Budget) -> tuple[Section, ...]:
        spent = {name: sum(pick.tokens for pick in picks) for name, picks in self.picks.items()}
        instructions = spent.get("system", 0) + spent.get("rules", 0) + spent.get("references", 0)
        return tuple(
            Section(
                name, spent[name], share(name, budget, instructions, spent.get("tools", 0)), tuple(self.picks[name])
            )
            for name in SECTIONS
            if name in spent
        )


def entries_of(unit: Sequence[Message]) -> list[Entry]:
    """A message, or one with tool calls and its results, as the model is to read them.

    Every call gets exactly one result, in the order of the calls: a missing one is closed as cancelled, a result that
    answers no call is left out. Calls of a reply that did not finish may be half written: they are left out.
    """
    first, *rest = unit
    if first.role == "tool":
        return []
    if not first.calls:
        return [Entry(first.role, first.blocks, first.id)]
    if first.status != "done":
        return [Entry(first.role, tuple(block for block in first.blocks if not _is_turn(block)), first.id)]
    found = {result.call_id: result for message in rest for result in message.results}
    results = tuple(
        found.get(call.id) or ToolResult(call.id, call.name, CANCELLED, is_error=True) for call in first.calls
    )
    return [Entry(first.role, first.blocks, first.id), Entry("tool", results, rest[0].id if rest else None)]


def _is_turn(block: object) -> bool:
    # thinking that led to a call is only accepted back together with that call
    return isinstance(block, ToolCall | Thinking)


def current_entry(message: Message, volatile: Sequence[str]) -> Entry:
    """The user's message with what was picked for it in front, as one user message."""
    ahead = tuple(Text(text + "\n\n") for text in volatile)
    return Entry("user", ahead + message.blocks, message.id)
