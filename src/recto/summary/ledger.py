"""Ledger: what a summary lost, quoted in lines by message number: `#57: the budget is 12,000 € · never on weekends`.

An item is a part of its message, word for word on one line; only its end may be cut. Items compete for room: what binds
comes before figures, figures before names, people before machines, and no message takes all of it. Items of a former
ledger compete with new ones. A value that was corrected is left out.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from recto.summary.decisions import content_terms, corrects, find_decisions, without_correction
from recto.summary.facts import Fact, find_facts
from recto.summary.machine_output import PROSE, is_row
from recto.summary.pasted_dialogue import is_labelled
from recto.summary.quotation import SEPARATOR as ITEM_SEPARATOR
from recto.summary.truncation import CountTokens

_LINE = re.compile(r"#(\d+)(?: (assistant|tool))?: (.+)")
_PLACE = re.compile(r"(assistant|tool): (.+)")
# As ledgers were written before; an item had no semicolon.
_OLD_LINE, _OLD_SEPARATOR = re.compile(r"#(\d+) (.+)"), "; "
# A decision binds later turns; a row was pasted with many like it.
_KIND_RANKS = {"decision": 3, "name": 1, "quote": 1, "row": -1}
_USUAL_RANK = 2
_ROLE_RANKS = {"user": 1, "assistant": 0, "tool": -1}
# An item of the former ledger has won its place before, and yields only to clearly better ones.
_LISTED_WEIGHT = 1.2
# The share of the room that one message may take before all others have had theirs; what binds may take more.
_MESSAGE_SHARE, _BINDING_SHARE = 0.25, 0.4
_MAX_DISTANCE = 2
# A name that is said so often is a topic of the conversation; a full name is given to be remembered.
_OFTEN = 4
_FIGURES = ("number", "date", "time")
_USUAL_COST, _MAX_REPEATED, _MAX_ANSWER = 24, 2, 80


class AskedQuestion(NamedTuple):
    """A question that a short answer needs to be understood, and the number of the message that asks it."""

    number: int
    text: str


class LedgerEntry(NamedTuple):
    """A fact that may go into the ledger."""

    fact: Fact
    text: str
    """The item that quotes it. Several facts may share one."""
    number: int
    """The number of the message that it quotes."""
    mentions: int = 1
    role: str = "assistant"
    is_listed: bool = False
    """Whether it is in the former ledger."""
    question: AskedQuestion | None = None
    is_correction: bool = False
    short: str = ""
    """The part of the item that is enough where room is scarce."""
    lowered: int = 0
    """By how many ranks: it only comes up in a question or in a long text, or was pasted."""

    @property
    def key(self) -> tuple[str, str]:
        """The same for all mentions. A number is another fact where it tells something else."""
        kind, normal = self.fact.key
        return (kind, f"{normal} {' '.join(sorted(_topic(self.text)))}") if kind in _FIGURES else (kind, normal)

    def merge(self, other: "LedgerEntry") -> "LedgerEntry":
        """The same fact said twice: in the words of the role that weighs more, and of those in the later ones."""
        told = max(self, other, key=lambda entry: (_ROLE_RANKS.get(entry.role, 0), entry.number))
        return told._replace(
            mentions=self.mentions + other.mentions,
            is_listed=self.is_listed or other.is_listed,
        )

    @property
    def place(self) -> str:
        """The item, and who says it if that is not the user."""
        return self.text if self.role == "user" else f"{self.role}: {self.text}"

    @property
    def rank(self) -> int:
        """Entries of a higher rank go first, whatever they cost."""
        kind = _KIND_RANKS.get(self.fact.kind, _USUAL_RANK)
        if self.fact.kind == "identifier" and not any(char.isdigit() for char in self.fact.text):
            kind -= 1
        if self.fact.kind == "name" and (" " in self.fact.text or self.mentions >= _OFTEN):
            kind += 1
        return kind + _ROLE_RANKS.get(self.role, 0) + self.is_correction + bool(self.question) - self.lowered

    @property
    def share(self) -> float:
        """The share of the room that its message may take while others wait."""
        return _BINDING_SHARE if self.fact.kind == "decision" else _MESSAGE_SHARE

    def score(self, newest: int) -> float:
        recency = 0.8 + 0.4 * min(1.0, self.number / max(1, newest))
        frequency = 1 + 0.25 * math.log2(self.mentions)
        return recency * frequency * (_LISTED_WEIGHT if self.is_listed else 1)


# -- lines


def ledger_items(lines: Iterable[str]) -> list[tuple[int, str]]:
    """The items of a ledger's lines, each with the number of its message."""
    return [(number, item) for number, _, item in ledger_quotations(lines)]


def ledger_quotations(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """The number of a message, who says it, and an item of it."""
    for line in lines:
        if match := _LINE.fullmatch(line):
            for item in match[3].split(ITEM_SEPARATOR):
                yield int(match[1]), match[2] or "user", item
        elif match := _OLD_LINE.fullmatch(line):
            for item in match[2].split(_OLD_SEPARATOR):
                yield int(match[1]), "assistant", item


def parse_ledger(lines: Iterable[str]) -> list[LedgerEntry]:
    """The facts in a ledger's lines."""
    found: list[LedgerEntry] = []
    asked: AskedQuestion | None = None
    for number, role, item in ledger_quotations(lines):
        is_answer = asked is not None and asked.number < number <= asked.number + _MAX_DISTANCE
        if asked and not (is_answer and role == "user" and len(item) <= _MAX_ANSWER):
            found += parse_item(asked.text, asked.number)
            asked = None
        if item.endswith(("?", "？")) and role == "assistant":
            asked = AskedQuestion(number, item)
            continue
        found += [entry._replace(question=asked) for entry in parse_item(item, number, role)]
        asked = None
    return [*found, *parse_item(asked.text, asked.number)] if asked else found


def parse_item(item: str, number: int, role: str = "assistant") -> list[LedgerEntry]:
    """The facts in an item."""
    if is_row(item):
        return [LedgerEntry(Fact("row", item, item.lower(), 0, len(item)), item, number, role=role, is_listed=True)]
    facts = [fact for fact in find_facts(item, author=PROSE) if fact.is_significant]
    found = [*find_decisions(item), *facts] or [Fact("quote", item, item.lower(), 0, len(item))]
    lowered = int(item.endswith(("?", "？"))) + 2 * is_labelled(item)
    return [LedgerEntry(fact, item, number, role=role, is_listed=True, lowered=lowered) for fact in found]


def parse_place(place: str, number: int) -> list[LedgerEntry]:
    """The facts in an item that says who said it."""
    match = _PLACE.fullmatch(place)
    return parse_item(match[2], number, match[1]) if match else parse_item(place, number, "user")


def ledger_lines(entries: Sequence[LedgerEntry], limit: int, count: CountTokens) -> tuple[str, ...]:
    """The best entries as lines in order of time, which take at most `limit` tokens together."""
    draft = _Draft(limit, count)
    shortened = [entry._replace(text=entry.short or entry.text) for entry in entries]
    ranked = _rank_entries(shortened, count)
    put_off = [entry for entry in ranked if not draft.add(entry, int(limit * entry.share))]
    for entry in put_off:
        draft.add(entry, limit)
    for entry in _rank_entries(entries, count):
        draft.lengthen(entry)
    return draft.lines()


def _rank_entries(entries: Sequence[LedgerEntry], count: CountTokens) -> list[LedgerEntry]:
    """By rank, then the best for their cost first. The same said of others counts for less each time."""
    newest = max((entry.number for entry in entries), default=1)
    repeated = _repetitions(entries)

    def order(entry: LedgerEntry) -> tuple[int, float, int, str]:
        rank = entry.rank - repeated.get((entry.number, entry.text), 0)
        return -rank, -entry.score(newest) / (count(entry.text) + _USUAL_COST), -entry.number, entry.text

    return sorted(entries, key=order)


def _repetitions(entries: Sequence[LedgerEntry]) -> dict[tuple[int, str], int]:
    """How often later items say the same with other figures and names, up to a few times."""
    found: dict[tuple[int, str], int] = {}
    times: dict[frozenset[str], int] = {}
    places = {(entry.number, entry.text) for entry in entries if entry.fact.kind != "decision" and not entry.question}
    for number, text in sorted(places, reverse=True):
        topic = _topic(" ".join(word for word in text.split() if word.islower()))
        if len(topic) > 1:
            found[number, text] = min(_MAX_REPEATED, times.get(topic, 0))
            times[topic] = times.get(topic, 0) + 1
    return found


@dataclass(slots=True)
class _Draft:
    """The items that are chosen so far, by message, and the tokens that are left."""

    room: int
    count: CountTokens
    chosen: dict[int, dict[str, int]] = field(default_factory=dict)
    """Items with their tokens."""
    roles: dict[int, str] = field(default_factory=dict)
    """Who says each message; the assistant, where it is not told."""
    stated: set[tuple[str, str]] = field(default_factory=set)

    def add(self, entry: LedgerEntry, most: int) -> bool:
        """Whether the entry is in the ledger now. A message that has an item already may take `most` tokens."""
        if entry.key in self.stated:
            return True
        wanted = [(entry.number, entry.text), *([entry.question] if entry.question else ())]
        missing = [(number, item) for number, item in wanted if not self._has(number, item)]
        taken = sum(self.chosen.get(entry.number, {}).values())
        self.roles.setdefault(entry.number, entry.role)
        cost = sum(self._cost(number, item) for number, item in missing)
        if cost > self.room or (taken and taken + cost > most):
            return False
        for number, item in missing:
            self._put(number, item)
        self.stated.add(entry.key)
        return True

    def lengthen(self, entry: LedgerEntry) -> None:
        """Quotes an entry at length where it is in the ledger and there is room."""
        items = self.chosen.get(entry.number, {})
        if entry.short not in items or self._has(entry.number, entry.text):
            return
        if self.count(entry.text) + 3 - items[entry.short] <= self.room:
            self._put(entry.number, entry.text)

    def _has(self, number: int, item: str) -> bool:
        return any(item in other for other in self.chosen.get(number, ()))

    def _cost(self, number: int, item: str) -> int:
        line = 0 if number in self.chosen else self.count(self._head(number)) + 1
        return self.count(item) + 3 + line

    def _put(self, number: int, item: str) -> None:
        """An item replaces those that it contains."""
        self.room -= self._cost(number, item)
        items = self.chosen.setdefault(number, {})
        for other in [other for other in items if other in item]:
            self.room += items.pop(other)
        items[item] = self.count(item) + 3
        self.stated |= {fact.key for fact in find_facts(item, author=PROSE) if fact.kind not in _FIGURES}

    def _head(self, number: int) -> str:
        role = self.roles.get(number, "assistant")
        return f"#{number}: " if role == "user" else f"#{number} {role}: "

    def lines(self) -> tuple[str, ...]:
        return tuple(self._head(number) + ITEM_SEPARATOR.join(items) for number, items in sorted(self.chosen.items()))


# -- corrections

_VALUES = ("number", "date", "time", "name", "path", "url", "version", "identifier")
# What is said again of the same with another value, without a word of correction.
_UPDATED = ("decision", "date")
_MIN_SHARED = 0.6
_MAX_CANDIDATES = 60


def mark_corrections(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """The entries without those that others correct, and with these others marked."""
    ordered = sorted(entries, key=lambda entry: entry.number)
    index: dict[str, list[LedgerEntry]] = {}
    corrected: set[tuple[int, str]] = set()
    correcting: set[tuple[str, str]] = set()
    for entry in ordered:
        topic = _topic(entry.text)
        found = list(_corrected_by(entry, topic, index))
        if found:
            correcting.add(entry.key)
            corrected |= {(other.number, other.text) for other in found}
        for term in topic:
            index.setdefault(term, []).append(entry)
    marked = [entry._replace(is_correction=True) if entry.key in correcting else entry for entry in ordered]
    return [entry for entry in marked if (entry.number, entry.text) not in corrected]


def _corrected_by(
    later: LedgerEntry, topic: frozenset[str], index: dict[str, list[LedgerEntry]]
) -> Iterator[LedgerEntry]:
    """Earlier entries on the same topic with another value: nearly the same topic if the later says that it corrects,
    exactly the same if it does not."""
    is_explicit = corrects(later.text)
    if later.role == "tool" or not (is_explicit or later.fact.kind in _UPDATED) or not topic:
        return
    related = {other.key: other for term in sorted(topic) for other in index.get(term, ())[-_MAX_CANDIDATES:]}
    for other in related.values():
        earlier = _topic(other.text)
        shared = len(topic & earlier) / min(len(topic), len(earlier))
        is_same = shared >= _MIN_SHARED if is_explicit else topic == earlier and other.fact.kind in _UPDATED
        if is_same and other.number < later.number and _has_other_value(other.text, later.text):
            yield other


def _has_other_value(earlier: str, later: str) -> bool:
    """Whether each has a value of the same kind that the other has not."""
    before, after = _values(earlier), _values(later)
    return not {kind for kind, _ in before - after}.isdisjoint(kind for kind, _ in after - before)


@lru_cache(4096)
def _values(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(fact.key for fact in find_facts(text, author=PROSE) if fact.kind in _VALUES)


@lru_cache(4096)
def _topic(text: str) -> frozenset[str]:
    """Its content without figures and words of correction."""
    for fact in find_facts(text, author=PROSE) if any(char.isdigit() for char in text) else ():
        text = text.replace(fact.text, " ") if fact.kind in _FIGURES else text
    return frozenset(filter(str.isalpha, content_terms(without_correction(text))))
