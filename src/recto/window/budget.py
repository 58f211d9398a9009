"""Budget: the token limits of a window, and the sizes that a plan must respect."""

from dataclasses import dataclass

SMALLEST_RESERVE = 512
RESERVE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of the room for each part. Always reported; only the sum is enforced."""

    system: float = 0.10
    tools: float = 0.30
    messages: float = 0.60


@dataclass(frozen=True, slots=True)
class Budget:
    limit: int
    reserve: int
    low_water: int
    """The size that a compaction reduces the window to."""
    trigger: int | None = None
    """The size at which a compaction is due; None when it is due only once the window overflows."""
    summary: int = 0
    """The largest summary, counted as it is sent."""
    recent: int = 0
    """How many of the latest messages stay verbatim, the current one included."""
    least_recent: int = 0
    """The minimum that `recent` may shrink to."""
    shares: Shares = Shares()
    instructions: int = 0
    """Tokens of the system prompt, rules and references."""
    written: int = 0
    """Tokens of the rules and references alone."""
    tools: int = 0
    picked: int = 0
    """Tokens of the sources picked for the current message."""
    current: int = 0
    """Tokens of the current message itself."""
    drift: int = 0
    """By how much the provider's last reported usage exceeded our estimate; counts against the room."""

    @property
    def room(self) -> int:
        return self.limit - self.reserve

    @property
    def around(self) -> int:
        """Everything besides the conversation: instructions, tools, picked sources, and the drift of our counts."""
        return self.instructions + self.tools + self.picked + self.drift

    @property
    def fixed(self) -> int:
        return self.around + self.current

    @property
    def floor(self) -> int:
        """The size that a cut reduces the window to: low water, applied to the message budget too. A strategy without
        a trigger (it keeps nothing of what it cuts) removes no more than it must."""
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
        if section in ("system", "rules", "references"):
            return int(self.room * self.shares.system)
        if section == "tools":
            return int(self.room * self.shares.tools)
        return self.messages


def limit_of(window: int | None, max_prompt_tokens: int, assumed: int) -> int:
    known = window or assumed
    return min(known, max_prompt_tokens) if max_prompt_tokens else known


def reserve_of(limit: int, reserved: int, max_tokens: int | None) -> int:
    """max(512, 5 % of the limit) unless set, and at least the requested length of the reply."""
    return max(reserved or max(SMALLEST_RESERVE, int(limit * RESERVE_SHARE)), max_tokens or 0)
