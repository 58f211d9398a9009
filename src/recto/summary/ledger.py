"""Ledger: facts that a summary lost, in terse lines by the number of their message: `#57 src/app.py:42; 12,000 €`.

Pure. Facts are ranked by what they are, who said them, how often and how lately; former lines compete with new ones.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recto.summary.bindings import decisions
from recto.summary.facts import Fact, facts
from recto.summary.layout import PROSE
from recto.summary.shorten import Measure

BETWEEN = "; "
Keys = set[tuple[str, str]]
_LINE = re.compile(r"#(\d+) (.+)")
# What a kind is worth beside the others; a decision binds what comes, a quotation mostly tells how.
_KINDS = {
    "decision": 1.6, "date": 1.2, "number": 1.0, "path": 1.0, "command": 1.0, "url": 1.0, "version": 1.0, "name": 0.9,
    "identifier": 0.9, "error": 0.9, "quote": 0.7, "time": 0.8,
}  # fmt: skip
_ROLES = {"user": 1.4, "assistant": 1.0, "tool": 0.7}
# A line that is there has won its place before: it yields only to clearly better ones.
_HELD = 1.2
_TURNED = 4.0


@dataclass(frozen=True, slots=True)
class Lead:
    """A fact that may go into the ledger."""

    fact: Fact
    item: str
    """What a line says of it."""
    said: int
    """The number of the message that said it last."""
    times: int = 1
    by: str = "assistant"
    is_held: bool = False
    """It stands in the ledger that there is."""
    is_turned: bool = False
    """The summary tells the opposite: nothing is missed more."""

    def again(self, other: "Lead") -> "Lead":
        """The same fact said twice: told as it was said last, by whoever weighs more."""
        newer = self if self.said >= other.said else other
        by = max(self.by, other.by, key=lambda role: _ROLES.get(role, 1.0))
        return Lead(newer.fact, newer.item, newer.said, self.times + other.times, by, self.is_held or other.is_held)

    def worth(self, newest: int) -> float:
        lately = 0.8 + 0.4 * min(1.0, self.said / max(1, newest))
        often = 1 + 0.25 * math.log2(self.times)
        own = _KINDS.get(self.fact.kind, 1.0) * _ROLES.get(self.by, 1.0)
        return own * lately * often * (_HELD if self.is_held else 1) * (_TURNED if self.is_turned else 1)


def read(lines: Iterable[str]) -> list[Lead]:
    """The leads of a ledger's lines."""
    found = []
    for line in lines:
        if match := _LINE.fullmatch(line):
            found += [held(each, int(match[1])) for each in match[2].split(BETWEEN)]
    return found


def held(item: str, said: int) -> Lead:
    return Lead(_fact(item), item, said, is_held=True)


def _fact(written: str) -> Fact:
    """What an item is about: the sentence that it was, or its longest fact."""
    if said := decisions(written):
        return said[0]
    inside = [fact for fact in facts(written, by=PROSE) if fact.counts]
    longest = max(inside, key=lambda fact: len(fact.text), default=None)
    if longest and 2 * len(longest.text) + 16 > len(written):
        return longest
    return Fact("quote", written, written.lower(), 0, len(written))


def lines(leads: Sequence[Lead], room: int, count: Measure) -> tuple[str, ...]:
    """The best of them as lines in order of time, which together count at most `room`."""
    newest = max((lead.said for lead in leads), default=1)
    costs = {id(lead): count(lead.item) + 2 for lead in leads}
    ranked = sorted(leads, key=lambda lead: (-lead.worth(newest) / (costs[id(lead)] + 4), -lead.said, lead.item))
    chosen: dict[int, dict[str, Keys]] = {}
    told: Keys = set()
    for lead in ranked:
        if lead.fact.key in told:
            continue
        cost = costs[id(lead)] + (0 if lead.said in chosen else count(f"#{lead.said} ") + 1)
        if cost > room:
            continue
        keys = {lead.fact.key, *(fact.key for fact in facts(lead.item, by=PROSE))}
        line = chosen.setdefault(lead.said, {})
        # a sentence says what was taken of it before
        for item in [item for item, inside in line.items() if inside <= keys]:
            room += count(item) + 2
            del line[item]
        line[lead.item] = keys
        told |= keys
        room -= cost
    return tuple(f"#{said} {BETWEEN.join(items)}" for said, items in sorted(chosen.items()))
