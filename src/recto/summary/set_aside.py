"""Set aside: items that no longer fit in a summary and its ledger, and those that are relevant again.

Each Compaction keeps what it dropped, quoted by message number. Later ones bring back items that share rare words with
the latest messages, and list the rest by the best sentence of each range of messages, with coarser ranges for older
ones. No I/O.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from msgspec.structs import replace

from recto.search.ranking import idf
from recto.sentences.features import terms_of
from recto.summary.evidence import Evidence
from recto.summary.extractive_summary import former_messages
from recto.summary.figures import FIGURES
from recto.summary.ledger import SEPARATOR, KeyStatement, lines_of, parse_ledger, plain_item
from recto.summary.truncation import CountTokens, cut_text
from recto.summary.values import find_values
from recto.summary.verification import MARK, strip_marks

RETURNED = "From earlier, on the present topic:"
"""The line of a summary above returned items."""

# The most characters that one Compaction sets aside, so that those of hundreds are searched quickly.
_MAX_SET_ASIDE, _MAX_ITEM, _MIN_SENTENCE = 2000, 400, 12


# -- what is dropped


def find_dropped(
    former: str,
    before: Sequence[KeyStatement],
    told: str,
    lost: Sequence[KeyStatement],
    known: Sequence[str] = (),
    *,
    by_sentence: bool,
) -> tuple[str, ...]:
    """Statements of the former summary and ledger (`before`) that the new ones (`told`) lack, with `by_sentence` whole
    lines of the former; and statements lost from the newly covered messages. Those already set aside (`known`) are
    skipped."""
    numbers = {_flat(each.text): each.number for each in before}
    ranks = {_flat(each.text): each.rank for each in before}
    items = [KeyStatement(each.number, each.role, each.item) for each in before]
    if by_sentence:
        for message in former_messages(former):
            for segment in message.segments:
                number = message.number or numbers.get(_flat(segment.text), 0)
                items.append(KeyStatement(number, message.role, plain_item(segment.text)))
    newly = sorted(lost, key=lambda each: -each.rank)
    items += [KeyStatement(each.number, each.role, each.item) for each in newly]
    evidence = Evidence()
    evidence.add(strip_marks(told))
    flat, aside = _flat(told), _flat("\n".join(known))
    found: dict[str, KeyStatement] = {}
    for item in items:
        plain = _flat(item.text)
        is_said = len(plain) < _MIN_SENTENCE or MARK.strip() in item.text or plain in flat or plain in aside
        if not is_said and plain not in found and not evidence.states_claim(item.text):
            found[plain] = replace(item, text=cut_text(item.text.removesuffix("."), _MAX_ITEM))
    first = {plain: at for at, plain in enumerate(found)}
    ranked = sorted(found, key=lambda plain: (-ranks.get(plain, 0.0), first[plain]))
    sizes = accumulate(len(found[plain].head) + len(found[plain].text) + len(SEPARATOR) for plain in ranked)
    return lines_of(found[plain] for plain, size in zip(ranked, sizes, strict=True) if size <= _MAX_SET_ASIDE)


def _flat(text: str) -> str:
    return " ".join(text.split()).rstrip(" .!。…")


# -- what returns

# Terms in every twelfth line, and in more than a few, are common; _ENOUGH is the weight of a topic that must be shared.
_COMMON, _FEW, _ENOUGH = 12, 6, 1.5
_IN_MESSAGE, _NEARBY, _MAX_TERMS, _MAX_FOUND = 1.0, 0.5, 24, 40
# People's messages weigh more.
_ROLE_WEIGHTS = {"user": 1.0, "assistant": 0.6, "tool": 0.4}


Topic = dict[str, float]
"""The current topic: terms with their weights."""


def _about(lines: Sequence[str], topic: Topic) -> list[int]:
    """The indexes of lines that share rare terms with a topic, best first."""
    held = [terms_of(line) & topic.keys() for line in lines]
    times = Counter(term for terms in held for term in terms)
    most = max(_FEW, len(lines) // _COMMON)
    scores: dict[int, float] = {}
    for at, terms in enumerate(held):
        shared = [term for term in terms if times[term] <= most]
        if sum(map(topic.__getitem__, shared)) >= _ENOUGH:
            scores[at] = sum(topic[term] * idf(times[term], len(lines)) for term in shared)
    return sorted(scores, key=lambda at: (-scores[at], -at))[:_MAX_FOUND]


def find_topic(message: str, latest: Iterable[str] = ()) -> Topic:
    terms = dict.fromkeys(sorted(terms_of(message)), _IN_MESSAGE)
    for term, times in sorted(Counter(term for text in latest for term in terms_of(text)).items()):
        terms[term] = terms.get(term, 0.0) + (_NEARBY if term in terms or times > 1 else _NEARBY / 2)
    heaviest = sorted(terms, key=lambda term: (-terms[term], -len(term), term))[:_MAX_TERMS]
    return {term: terms[term] for term in heaviest}


def find_returning(
    lines: Sequence[str], topic: Topic, current: Sequence[KeyStatement], limit: int, count: CountTokens
) -> list[KeyStatement]:
    """Set-aside items that bear on the topic, in order of time, within `limit` tokens. Items that `current` statements
    repeat with other figures do not return."""
    order = _about(lines, topic)
    parsed = {at: parse_ledger([lines[at]]) for at in order}
    chosen: dict[KeyStatement, None] = {}
    left = limit - count(RETURNED) - 1
    for items in sorted(parsed.values(), key=lambda items: -_ROLE_WEIGHTS.get(items[0].role, 0) if items else 0):
        wanted = [item for item in items if item not in chosen and not _is_outdated(item, current)]
        cost = sum(count(item.spoken) + 1 for item in wanted)
        if cost <= left:
            chosen |= dict.fromkeys(wanted)
            left -= cost
    return sorted(chosen, key=lambda item: item.number)


def _is_outdated(item: KeyStatement, current: Sequence[KeyStatement]) -> bool:
    """True if a later statement about the same thing has other figures."""
    words, figures = terms_of(item.text), _figures(item.text)
    for each in current:
        if each.number > item.number and figures and (other := _figures(each.text)):
            shared = words & terms_of(each.text)
            if figures.isdisjoint(other) and 2 * len(shared) >= len(words):
                return True
    return False


def _figures(text: str) -> set[str]:
    return {value.normal for value in find_values(text) if value.kind in FIGURES}


def with_returned(summary: str, items: Sequence[KeyStatement]) -> str:
    return "\n".join([summary, "", RETURNED, *(item.spoken for item in items)]) if items else summary


def split_returned(summary: str) -> tuple[str, list[str]]:
    """A summary without returned items, and those items."""
    body, found, rest = f"\n{summary}".partition(f"\n{RETURNED}\n")
    return (body.strip("\n"), rest.splitlines()) if found else (summary, [])


# -- contents

_MAX_RANGES, _MAX_WORDS, _MAX_LENGTH = 8, 8, 60


class TopicRange(NamedTuple):
    """A range of messages, and the beginning of the best sentence set aside from them."""

    first: int
    last: int
    title: str

    def __str__(self) -> str:
        span = f"#{self.first}" if self.first == self.last else f"#{self.first}–#{self.last}"
        return f"{span}: {self.title}"

    def merge(self, other: "TopicRange") -> "TopicRange":
        """Keep the more informative title."""
        title = max(self.title, other.title, key=lambda title: (len(terms_of(title)), title))
        return TopicRange(min(self.first, other.first), max(self.last, other.last), title)


def parse_contents(lines: Iterable[str]) -> list[TopicRange]:
    found = []
    for line in lines:
        span, _, title = line.partition(": ")
        first, sign, last = span.removeprefix("#").partition("–#")
        if title and span[:1] == "#" and first.isdecimal() and last.isdecimal() == bool(sign):
            found.append(TopicRange(int(first), int(last or first), title))
    return found


def add_to_contents(
    former: Sequence[str], set_aside: Sequence[str], fits: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """Add newly set-aside items to the contents, as many ranges as fit."""
    ranges = parse_contents(former)
    by_place: dict[int, list[KeyStatement]] = {}
    for item in parse_ledger(set_aside):
        is_new = not ranges or item.number > ranges[-1].last
        place = len(ranges) if is_new else max(0, bisect_right([each.first for each in ranges], item.number) - 1)
        if item.number:
            by_place.setdefault(place, []).append(item)
    usual = Counter(term for line in set_aside for term in terms_of(line))
    for place, items in sorted(by_place.items()):
        best = max(items, key=lambda item: (_telling(item, usual, len(set_aside)), -item.number))
        numbers = [item.number for item in items]
        added = TopicRange(min(numbers), max(numbers), _title(best.text))
        ranges[place : place + 1] = [ranges[place].merge(added) if place < len(ranges) else added]
    while ranges and (len(ranges) > _MAX_RANGES or not fits([str(each) for each in ranges])):
        ranges = _coarser(ranges) if len(ranges) > 1 else _shorter(ranges[0])
    return tuple(map(str, ranges))


def _telling(item: KeyStatement, usual: Counter[str], lines: int) -> float:
    terms = terms_of(item.text)
    rare = sum(idf(usual[term], lines) for term in terms) / (len(terms) + 2)
    return rare * _ROLE_WEIGHTS.get(item.role, 0.4)


def _title(text: str) -> str:
    words = text.split()
    short = cut_text(" ".join(words[:_MAX_WORDS]), _MAX_LENGTH)
    return short if short == text or short.endswith("…") else f"{short}…"


def _coarser(ranges: Sequence[TopicRange]) -> list[TopicRange]:
    """Merge the two neighbours that are together shortest for their age."""
    newest = ranges[-1].last + 1
    spans = [(later.last - earlier.first + 1) / (newest - earlier.first) for earlier, later in pairwise(ranges)]
    at = spans.index(min(spans))
    return [*ranges[:at], ranges[at].merge(ranges[at + 1]), *ranges[at + 2 :]]


def _shorter(only: TopicRange) -> list[TopicRange]:
    """Halve the words; none if two are left."""
    words = only.title.rstrip("…").split()
    return [only._replace(title=f"{' '.join(words[: len(words) // 2])}…")] if len(words) > 2 else []
