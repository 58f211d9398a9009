"""Budget: the numbers that a plan must keep to."""

from dataclasses import dataclass

SMALLEST_RESERVE = 512
RESERVE_SHARE = 0.05
# What each part may take of the room, reported always; an unused share flows to the messages.
SYSTEM_SHARE, TOOLS_SHARE = 0.10, 0.30


@dataclass(frozen=True, slots=True)
class Budget:
    limit: int
    reserve: int
    low_water: int
    """What a cut goes down to."""
    fixed: int = 0
    """What must be in: instructions, tools, priming, the current message with what was picked for it."""
    drift: int = 0
    """How much more than our estimate the provider last reported; counts against the room."""

    @property
    def room(self) -> int:
        return self.limit - self.reserve

    @property
    def for_history(self) -> int:
        return self.room - self.fixed - self.drift


def limit_of(window: int | None, max_prompt_tokens: int, assumed: int) -> int:
    known = window or assumed
    return min(known, max_prompt_tokens) if max_prompt_tokens else known


def reserve_of(limit: int, reserved: int, max_tokens: int | None) -> int:
    """max(512, 5 % of the limit) unless set, and at least the reply that is asked for."""
    return max(reserved or max(SMALLEST_RESERVE, int(limit * RESERVE_SHARE)), max_tokens or 0)


def share(section: str, budget: Budget, system: int, tools: int) -> int:
    """The budget that a section is reported against: its own share, or what instructions and tools leave."""
    if section in ("system", "rules"):
        return int(budget.room * SYSTEM_SHARE)
    if section == "tools":
        return int(budget.room * TOOLS_SHARE)
    return max(0, budget.room - system - tools)
