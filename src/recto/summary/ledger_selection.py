"""Which entries go into the ledger: what binds before figures, figures before names, people before machines, and no
message takes all of the room. Items of a former ledger compete with new ones.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from recto.summary.facts import find_facts, is_passing
from recto.summary.ledger import FIGURES, UNLISTED, LedgerEntry, topic_terms
from recto.summary.machine_output import PROSE
from recto.summary.quotation import SEPARATOR as ITEM_SEPARATOR
from recto.summary.quotation import count_topic_words
from recto.summary.small_talk import is_platitude, is_remark
from recto.summary.statements import says_little
from recto.summary.truncation import CountTokens

_WEIGHTY, _USUAL_COST, _MAX_REPEATED, _MIN_OVERLAP = 2.0, 24, 2, 8
_MIN_SHORT_TOPIC = 3
_OF_TOOLS = ("error", "url")
# These are understood by themselves, and are no pieces of something.
_WHOLE = ("command", "path", "url", "error")
_MAX_BARE = 2
_CODE_PIECE = re.compile(
    r"\b(?:SELECT|FROM|WHERE|(?:LEFT |INNER |OUTER )?JOIN|GROUP BY|ORDER BY|HAVING|INSERT INTO|VALUES) [\w*(]"
    r"|^\W*[\w.$]+ ?(?:[<>]=?|[=!]==?|:=|=>|->|::) ?[\w.$'\"]+\W*$|^\W*(?:def|class|return|import|const|let"
    r"|var) \w+[(;:=]"
)


def ledger_lines(entries: Sequence[LedgerEntry], limit: int, count: CountTokens) -> tuple[str, ...]:
    """The best entries that are weighty, as lines in order of time, which take at most `limit` tokens together. Room
    that is left over is no reason to list more."""
    draft = _Draft(limit, count)
    told = (entry for entry in entries if entry.question or not says_little(entry.text))
    told = (entry for entry in told if not (is_platitude(entry.text) or _is_passing_talk(entry) or _is_fragment(entry)))
    entries = _weighty(list(told))
    shortened = [replace(entry, text=entry.short) if _is_enough(entry) else entry for entry in entries]
    ranked = _rank_entries(shortened, count)
    put_off = [entry for entry in ranked if not draft.add(entry, int(limit * entry.share))]
    for entry in put_off:
        draft.add(entry, limit)
    for entry in _rank_entries(entries, count):
        draft.lengthen(entry)
    return draft.lines()


def _is_passing_talk(entry: LedgerEntry) -> bool:
    return entry.fact.kind != "decision" and is_remark(entry.text)


def _is_fragment(entry: LedgerEntry) -> bool:
    """Whether it is a piece of a program, or a figure that nobody can place: "row 58", "SELECT b.name"."""
    if entry.fact.kind == "decision" or entry.question or entry.is_correction or entry.fact.kind in _WHOLE:
        return False
    is_bare = entry.fact.kind in FIGURES and len(entry.text.split()) <= _MAX_BARE and count_topic_words(entry.text) < 2
    if is_bare and not entry.text[0].isdigit():  # "300 words" is an answer
        return True
    return _CODE_PIECE.search(entry.text) is not None


def _is_enough(entry: LedgerEntry) -> bool:
    """Whether the short form of an item is understood: a figure with a word or two is not."""
    return bool(entry.short) and (entry.fact.kind not in FIGURES or count_topic_words(entry.short) >= _MIN_SHORT_TOPIC)


def _rank_entries(entries: Sequence[LedgerEntry], count: CountTokens) -> list[LedgerEntry]:
    """By rank, then the best for their cost first. The same said of others counts for less each time."""
    newest = max((entry.number for entry in entries), default=1)
    repeated = _repetitions(entries)

    def order(entry: LedgerEntry) -> tuple[float, float, int, str]:
        rank = entry.rank - repeated.get((entry.number, entry.text), 0)
        return -rank, -entry.score(newest) / (count(entry.text) + _USUAL_COST), -entry.number, entry.text

    return sorted(entries, key=order)


def _weighty(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """What lasts, and what ranks high for its speaker although others say the like. What tools were used for and how it
    came out stands in a work log."""
    later = _repetitions(entries)

    def is_weighty(entry: LedgerEntry) -> bool:
        if entry.role == "tool":
            return entry.fact.kind in _OF_TOOLS
        if entry.lasts:
            return entry.lowered < UNLISTED
        is_high = entry.weight - later.get((entry.number, entry.text), 0) >= _WEIGHTY
        return is_high and (entry.is_open or not is_passing(entry.text))

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

    def add(self, entry: LedgerEntry, most: int) -> bool:
        """Whether the entry is in the ledger now. A message that has an item already may take `most` tokens."""
        if entry.key in self.stated:
            return True
        wanted = [(entry.number, entry.text)]
        if entry.question:
            wanted.append(entry.question[:2])
            self.roles.setdefault(entry.question.number, entry.question.role)
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
        self.stated |= {fact.key for fact in find_facts(item, author=PROSE) if fact.kind not in FIGURES}

    def _head(self, number: int) -> str:
        role = self.roles.get(number, "assistant")
        return f"#{number}: " if role == "user" else f"#{number} {role}: "

    def lines(self) -> tuple[str, ...]:
        lines = ((number, ITEM_SEPARATOR.join(_joined(items))) for number, items in sorted(self.chosen.items()))
        return tuple(self._head(number) + items for number, items in lines)


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
