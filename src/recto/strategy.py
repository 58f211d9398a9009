"""Strategies as values: what happens when the window is full, and how much of the archive recall may bring back.

The settings, the planner and recall read these fields; nothing compares a strategy by its name. A new strategy is one
more value in STRATEGIES.
"""

from msgspec import Struct


class PriorityBand(Struct, frozen=True):
    """Covered messages of these priorities are still sent, within a share of the message budget."""

    name: str
    min_priority: int
    max_priority: int
    share: float
    """What the band may take; what it leaves unused flows to the next one. 0: only that."""


class RecallPolicy(Struct, frozen=True):
    """How many archived messages may come back with a message. Every recalled token is paid for in each turn."""

    max_tokens: int = 0
    """The most, however large the window is; 0 turns recall off."""
    reminder_tokens: int = 0
    """The most for a message that asks for nothing."""
    takes_free_room: bool = False
    """All free room may be used, not only `context.recall_ratio` of it."""
    is_unconditional: bool = False
    """Also for a message that speaks only of what the window holds."""


class Strategy(Struct, frozen=True):
    name: str
    summarizes: bool
    """A compaction writes a summary of what it covers."""
    extends_tail: bool = True
    """Besides the latest messages, as many older ones stay as fit below low water."""
    bands: tuple[PriorityBand, ...] = ()
    """Which covered messages are still sent, the most important band first."""
    spare_share: float = 0.0
    """Of the message budget, kept free of bands."""
    memory_share: float = 0.0
    """Of the message budget, reported for memory and recall, which come with each message."""
    latest_share: float = 1.0
    """Of the message budget, what the latest messages may take: never what critical ones need."""
    recall: RecallPolicy = RecallPolicy()


DISCARD = Strategy("discard", summarizes=False)
SUMMARIZE = Strategy("summarize", summarizes=True, recall=RecallPolicy(max_tokens=2560, reminder_tokens=256))
HYBRID = Strategy(
    "hybrid",
    summarizes=True,
    extends_tail=False,
    bands=(
        PriorityBand("critical", 8, 10, 0.30),
        PriorityBand("important", 6, 7, 0.25),
        PriorityBand("normal", 3, 5, 0.20),
        PriorityBand("low", 1, 2, 0.0),
    ),
    spare_share=0.05,
    memory_share=0.20,
    latest_share=0.25 + 0.20 + 0.05,
    recall=RecallPolicy(max_tokens=8192, reminder_tokens=8192, takes_free_room=True, is_unconditional=True),
)

STRATEGIES = {each.name: each for each in (DISCARD, SUMMARIZE, HYBRID)}
