"""Strategies as values: what happens when the window is full, and how much recall may bring back.

The settings, the planner and recall read these fields; nothing compares a strategy's name. A new strategy is one more
value in STRATEGIES, or a plugin's.
"""

from msgspec import Struct
from msgspec.structs import replace

from recto.plugins import find_plugin, is_plugin


class PriorityBand(Struct, frozen=True):
    """Covered messages of these priorities that are still sent, within a share of the message budget."""

    name: str
    min_priority: int
    max_priority: int
    share: float
    """The band's share; what it leaves unused goes to the next band. 0: only the unused rest."""


class RecallPolicy(Struct, frozen=True):
    """Limits of recall. Every recalled token is paid for in each turn."""

    max_tokens: int = 0
    """The most in any window; 0 turns recall off."""
    reminder_tokens: int = 0
    """The most for a message that asks nothing."""
    takes_free_room: bool = False
    """Use all free room, not only `context.recall_ratio` of it."""
    is_unconditional: bool = False
    """Recall even for a message about what the window holds."""


class Strategy(Struct, frozen=True):
    name: str
    summarizes: bool
    """A compaction writes a summary of what it covers."""
    extends_tail: bool = True
    """In addition to the latest messages, keep as many older ones as fit below low water."""
    bands: tuple[PriorityBand, ...] = ()
    """The bands of covered messages that are still sent, most important first."""
    spare_share: float = 0.0
    """Share of the message budget kept free of bands."""
    memory_share: float = 0.0
    """Share of the message budget reported for memory and recall, which come with each message."""
    latest_share: float = 1.0
    """Share of the message budget for the latest messages, never at the expense of critical ones."""
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
    """The strategies by name. Plugins' are loaded when they are used."""

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
    """The names of our strategies; a setting may also name a plugin's."""

    def __contains__(self, name: object) -> bool:
        return name in STRATEGIES


STRATEGY_NAMES = StrategyNames(STRATEGIES)
