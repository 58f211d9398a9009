"""Which entries go into the ledger: what binds before figures, figures before names, people before machines, and no
message takes all of the room. Items of a former ledger compete with new ones.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from msgspec.structs import replace

from recto.summary.decisions import content_terms
from recto.summary.facts import find_facts, is_passing
from recto.summary.ledger import ANSWER_SIGN, FIGURES, UNLISTED, AskedQuestion, LedgerEntry, topic_terms
from recto.summary.ledger_worth import OF_TOOLS, is_worth_a_line, without_needless_question
from recto.summary.machine_output import PROSE
from recto.summary.people import is_introduction
from recto.summary.quotation import SEPARATOR as ITEM_SEPARATOR
from recto.summary.quotation import count_topic_words
from recto.summary.truncation import CountTokens

_WEIGHTY, _USUAL_COST, _MAX_REPEATED, _MIN_OVERLAP = 2.0, 24, 2, 8
_MIN_SHORT_TOPIC = 3
# An item repeats another that has so much of its content; less is enough within a message.
_MIN_CONTENT, _MOST_OF, _MUCH_OF = 2, 0.8, 0.6
# A tool's error is past after so many messages: what is still open stands in the work log.
_MAX_OPEN = 14
_FIGURE = re.compile(r"\d+")
# The words of others are lowered by so many ranks.
_QUOTED, _FIRST = 2, (False, 0)


def ledger_lines(entries: Sequence[LedgerEntry], limit: int, count: CountTokens) -> tuple[str, ...]:
    """The best entries that are weighty, as lines in order of time, which take at most `limit` tokens together. Room
    that is left over is no reason to list more."""
    draft = _Draft(limit, count)
    likely = [entry for entry in map(without_needless_question, entries) if _may_be_weighty(entry)]
    entries = _weighty([entry for entry in likely if is_worth_a_line(entry)])
    shortened = [replace(entry, text=entry.short) if _is_enough(entry) else entry for entry in entries]
    ranked = _rank_entries(shortened, count)
    put_off = [entry for entry in ranked if not draft.add(entry, int(limit * entry.share))]
    for entry in put_off:
        draft.add(entry, limit)
    for entry in _rank_entries(entries, count):
        draft.lengthen(entry)
    return draft.lines()


def _is_enough(entry: LedgerEntry) -> bool:
    """Whether the short form of an item is understood: a figure with a word or two is not."""
    if not entry.short or entry.short.endswith(("_", "-", "=")):  # "/srv/backup_" before "$(date)"
        return False
    return entry.fact.kind not in FIGURES or count_topic_words(entry.short) >= _MIN_SHORT_TOPIC


def _rank_entries(entries: Sequence[LedgerEntry], count: CountTokens) -> list[LedgerEntry]:
    """By rank, then the best for their cost first. The same said of others counts for less each time."""
    newest = max((entry.number for entry in entries), default=1)
    repeated = _repetitions(entries)

    def order(entry: LedgerEntry) -> tuple[float, float, int, str]:
        rank = entry.rank - repeated.get((entry.number, entry.text), 0)
        return -rank, -entry.score(newest) / (count(entry.text) + _USUAL_COST), -entry.number, entry.text

    return sorted(entries, key=order)


def _may_be_weighty(entry: LedgerEntry) -> bool:
    """What can be told at little cost; most entries end here."""
    return entry.fact.kind in OF_TOOLS if entry.role == "tool" else entry.lasts or entry.weight >= _WEIGHTY


def _weighty(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """What lasts, and what ranks high for its speaker although others say the like. What tools were used for and how it
    came out stands in a work log."""
    later = _repetitions(entries)
    newest = max((entry.number for entry in entries), default=0)

    def is_weighty(entry: LedgerEntry) -> bool:
        if entry.role == "tool":
            is_past = entry.fact.kind == "error" and entry.number + _MAX_OPEN < newest
            return entry.fact.kind in OF_TOOLS and not is_past
        if entry.lasts:
            return entry.lowered < UNLISTED
        is_high = entry.weight - later.get((entry.number, entry.text), 0) >= _WEIGHTY
        is_kept = entry.is_open or entry.is_correction or is_introduction(entry.fact.text)
        return is_high and (is_kept or not is_passing(entry.text))

    return [entry for entry in entries if is_weighty(entry)]


def _words_alike(text: str) -> frozenset[str]:
    """What is left of a sentence without names and figures."""
    return topic_terms(" ".join(word for word in text.split() if word.islower()))


def _repetitions(entries: Sequence[LedgerEntry]) -> dict[tuple[int, str], int]:
    """How often later items say the same with other figures and names, up to a few times."""
    found: dict[tuple[int, str], int] = {}
    times: dict[frozenset[str], int] = {}
    places = {(entry.number, entry.text) for entry in entries if entry.fact.kind != "decision" and not entry.question}
    for number, text in sorted(places, reverse=True):
        topic = _words_alike(text)
        if len(topic) > 1:
            found[number, text] = min(_MAX_REPEATED, times.get(topic, 0))
            times[topic] = times.get(topic, 0) + 1
    return found


@dataclass(slots=True)
class _Draft:
    """The items that are chosen so far, by message, and the tokens that are left."""

    room: int
    count: CountTokens
    chosen: dict[int, dict[str, int]] = field(default_factory=dict)  # items with their tokens
    roles: dict[int, str] = field(default_factory=dict)
    """Who says each message; the assistant, where it is not told."""
    stated: set[tuple[str, str]] = field(default_factory=set)
    contents: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """Items by the terms in them."""
    starts: dict[tuple[int, str], tuple[bool, int]] = field(default_factory=dict)
    """Whether an item quotes somebody, and where in its message it stands."""
    answers: dict[int, tuple[AskedQuestion, str]] = field(default_factory=dict)
    """What a message answers, and the item that does."""

    def add(self, entry: LedgerEntry, most: int) -> bool:
        """Whether the entry is in the ledger now. A message that has an item already may take `most` tokens."""
        if entry.key in self.stated:
            return True
        self.roles.setdefault(entry.number, entry.role)
        start = (entry.lowered >= _QUOTED, 0 if entry.is_listed else entry.fact.start)
        self.starts.setdefault((entry.number, entry.text), start)
        taken = sum(self.chosen.get(entry.number, {}).values())
        is_missing = not self._has(entry.number, entry.text)
        question = entry.question if entry.number not in self.answers else None
        if question:
            question = question._replace(text=question.text.lstrip("-*• "))
            question = None if self._has(*question[:2]) else question
        cost = self._cost(entry.number, entry.text) if is_missing else 0
        cost += self._question_cost(question) if question else 0
        if cost > self.room or (taken and taken + cost > most):
            return False
        if is_missing and self._repeats(entry):
            return True
        if is_missing:
            self._put(entry.number, entry.text)
        if question:
            self.answers[entry.number] = (question, entry.text)
            self.room -= self._question_cost(question)
        self.stated.add(entry.key)
        return True

    def lengthen(self, entry: LedgerEntry) -> None:
        """Quotes an entry at length where it is in the ledger and there is room."""
        items = self.chosen.get(entry.number, {})
        if entry.short not in items or self._has(entry.number, entry.text):
            return
        if self.count(entry.text) + 3 - items[entry.short] <= self.room:
            self.starts[entry.number, entry.text] = self.starts.get((entry.number, entry.short), _FIRST)
            self._put(entry.number, entry.text)

    def _has(self, number: int, item: str) -> bool:
        asked = (question.text for question, _ in self.answers.values() if question.number == number)
        return any(item in other for other in (*self.chosen.get(number, ()), *asked))

    def _repeats(self, entry: LedgerEntry) -> bool:
        """Whether another item has nearly all of its words, and its figures."""
        content = content_terms(entry.text)
        if len(content) < _MIN_CONTENT or entry.question:
            return False
        shared = Counter(chain.from_iterable(self.contents.get(term, ()) for term in content))
        figures = set(_FIGURE.findall(entry.text))
        return any(
            found >= (_MUCH_OF if number == entry.number else _MOST_OF) * len(content)
            and figures <= set(_FIGURE.findall(item))
            and item in self.chosen[number]
            for (number, item), found in shared.items()
        )

    def _question_cost(self, question: AskedQuestion) -> int:
        return self.count(f"{_head(question.number, question.role)}{question.text}{ANSWER_SIGN}") + 1

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
        for term in content_terms(item):
            self.contents.setdefault(term, []).append((number, item))
        self.stated |= {fact.key for fact in find_facts(item, author=PROSE) if fact.kind not in FIGURES}

    def _head(self, number: int) -> str:
        return _head(number, self.roles.get(number, "assistant"))

    def lines(self) -> tuple[str, ...]:
        return tuple(self._line(number, self._in_order(number)) for number in sorted(self.chosen))

    def _in_order(self, number: int) -> list[str]:
        """The author's own words first, as he says them; of the former ledger, as they were listed."""
        return sorted(self.chosen[number], key=lambda item: self.starts.get((number, item), _FIRST))

    def _line(self, number: int, items: list[str]) -> str:
        if number not in self.answers:
            return self._head(number) + ITEM_SEPARATOR.join(_joined(items))
        question, answer = self.answers[number]
        items = _joined(sorted(items, key=lambda item: answer not in item))
        asked = f"{_head(question.number, question.role)}{question.text}{ANSWER_SIGN}"
        return asked + _head(number, "user") + ITEM_SEPARATOR.join(items)


def _head(number: int, role: str) -> str:
    return f"#{number}: " if role == "user" else f"#{number} {role}: "


def _joined(items: Iterable[str]) -> list[str]:
    """Items of one message, those that overlap as one: each may bring the sentence beside it."""
    found: list[str] = []
    for item in items:
        other = next((each for each in found if _overlap(each, item) or _overlap(item, each)), None)
        if other is None:
            found.append(item)
        elif size := _overlap(other, item):
            found[found.index(other)] = other + item[size:]
        else:
            found[found.index(other)] = item + other[_overlap(item, other) :]
    return found


def _overlap(first: str, second: str) -> int:
    """How many characters at the end of the first begin the second, if these are more than a word."""
    sizes = range(min(len(first), len(second)), _MIN_OVERLAP, -1)
    return next((size for size in sizes if first.endswith(second[:size])), 0)
