"""Ledger: facts that a summary lost, in terse lines by the number of their message: `#57 src/app.py:42; 12,000 €`.

Pure. Facts are ranked by what they are, who said them, how often and how lately; former lines compete with new ones.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recto.summary.bindings import decisions, shortest
from recto.summary.facts import Fact, facts
from recto.summary.figures import word_set
from recto.summary.layout import PROSE
from recto.summary.shorten import Measure, cut

BETWEEN = "; "
Keys = set[tuple[str, str]]
_LINE = re.compile(r"#(\d+) (.+)")
_LONGEST_ITEM = 90
# What a kind is worth beside the others; a decision binds what comes, a quotation mostly tells how.
_KINDS = {
    "decision": 1.6, "date": 1.2, "number": 1.0, "path": 1.0, "command": 1.0, "url": 1.0, "version": 1.0, "name": 0.9,
    "identifier": 0.9, "error": 0.9, "quote": 0.7, "time": 0.8,
}  # fmt: skip
_ROLES = {"user": 1.4, "assistant": 1.0, "tool": 0.7}
# A line that is there has won its place before: it yields only to clearly better ones.
_HELD = 1.2
_LABEL = re.compile(r"[^\W\d_][\w'’-]{2,24}")
_CLAUSE = re.compile(r"[.!?;:]\s|\n")
_NOUN = re.compile(r"[ \xa0]([a-z][a-z-]{2,})\b")
_EMPTY = word_set(
    "the and for with that this from have has had will would should could must are was were been its our your their "
    "they which them you she his her him but all any can than then there here what when who how about only just "
    "also around at most more other further least until till der die das und ist für mit von auf bis les des une "
    "est pour que los las"
)


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

    def again(self, other: "Lead") -> "Lead":
        """The same fact said twice: told as it was said last, by whoever weighs more."""
        newer = self if self.said >= other.said else other
        by = max(self.by, other.by, key=lambda role: _ROLES.get(role, 1.0))
        return Lead(newer.fact, newer.item, newer.said, self.times + other.times, by, self.is_held or other.is_held)

    def worth(self, newest: int) -> float:
        lately = 0.8 + 0.4 * min(1.0, self.said / max(1, newest))
        often = 1 + 0.25 * math.log2(self.times)
        return (
            _KINDS.get(self.fact.kind, 1.0) * _ROLES.get(self.by, 1.0) * lately * often * (_HELD if self.is_held else 1)
        )


def noun_behind(text: str, fact: Fact) -> str:
    """What a bare figure counts: the word that follows it."""
    is_bare = fact.kind == "number" and fact.text[-1:].isdigit()
    noun = _NOUN.match(text, fact.end) if is_bare else None
    return noun[1] if noun and noun[1] not in _EMPTY else ""


def item(fact: Fact, text: str) -> str:
    """A fact in as few words as still tell something: a figure or a date comes with the word that it is about."""
    written = shortest(fact.text) if fact.kind == "decision" else fact.text
    if noun := noun_behind(text, fact):
        return _terse(f"{written} {noun}")
    if fact.kind in ("number", "date", "time") and (label := _label(text, fact.start)):
        return _terse(f"{label} {written}")
    return _terse(written)


def _terse(words: str) -> str:
    """On one line, and without the sign that parts items."""
    return cut(" ".join(words.split()).replace(";", ","), _LONGEST_ITEM).strip(" ,")


def _label(text: str, start: int) -> str:
    before = _CLAUSE.split(text[max(0, start - 40) : start])[-1]
    words = [word.strip("\"'`*_()[],") for word in before.split()[-4:]]
    return next((word for word in reversed(words) if _LABEL.fullmatch(word) and word.lower() not in _EMPTY), "")


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
