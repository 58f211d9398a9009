"""Strategies as values: what happens when the window is full, and how much of the archive recall may bring back.

The settings, the planner and recall read these fields; nothing compares a strategy by its name. A new strategy is one
more value in STRATEGIES, or a plugin's.
"""

from msgspec import Struct
from msgspec.structs import replace

from recto.plugins import find_plugin, is_plugin


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


class Strategies(dict[str, Strategy]):
    """Ours by name. Those of plugins are known by name too, and loaded when they are asked for."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and is_plugin("strategy", name))

    def __missing__(self, name: str) -> Strategy:
        plugin = find_plugin("strategy", name)
        found = plugin.load()
        if not isinstance(found, Strategy):
            raise plugin.broken(f"is {type(found).__name__} and not a Strategy")
        self[name] = replace(found, name=name)
        return self[name]


STRATEGIES = Strategies({each.name: each for each in (DISCARD, SUMMARIZE, HYBRID)})


class StrategyNames(tuple[str, ...]):
    """The names of ours; a setting may also be the name of a plugin's."""

    def __contains__(self, name: object) -> bool:
        return name in STRATEGIES


STRATEGY_NAMES = StrategyNames(STRATEGIES)
