"""Levels: what a summary and its ledger have no room for any more, and what of it bears on the task again.

Each Compaction keeps what it dropped, quoted by the number of its message. Later ones bring back what shares rare words
with the latest messages, and list the topics of the rest by ranges of messages, older ones coarser. No I/O.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from msgspec import Struct

from recto.chat.cues import SMALL_WORDS
from recto.chat.priority import BINDING, CHATTER, NORMAL, TELLING
from recto.search.ranking import idf
from recto.search.terms import STOP_WORDS, normalize_text
from recto.summary.decisions import content_terms
from recto.summary.ledger import LedgerEntry, mark_corrections, parse_item, parse_ledger
from recto.summary.machine_output import is_machine_made, is_noise, is_row
from recto.summary.marks import MARK, strip_marks
from recto.summary.quotation import SEPARATOR
from recto.summary.sentences import IS_UNSPACED, rate_sentence, sentences
from recto.summary.truncation import CountTokens, cut_text
from recto.summary.verification import FormerSummary, VerifiedSummary
from recto.summary.worth import is_worth_telling

RETURNED = "From earlier, on the present topic:"
"""The line of a summary above what was set aside before."""

_LINE = re.compile(r"(?:#(\d+)(?: (assistant|tool))?|(User|Assistant|Tool)): (.+)")
_SPOKEN = re.compile(r"(User|Assistant|Tool)(?: \(#(\d{1,12})\))?: (?=\S)")
_DATE = re.compile(r" \[\d{4}[\d–-]*\]")
_SPACES = re.compile(r"\s+")
# Characters that one Compaction sets aside at most, so that those of hundreds are soon searched.
_MAX_SET_ASIDE, _MAX_ITEM, _MIN_SENTENCE = 2000, 400, 12
# Entries of a higher rank than this bind.
_BINDS = 2


class SetAsideItem(NamedTuple):
    """Something that a summary or a ledger told, or had no room for."""

    number: int
    """Of its message; 0 where it is not known."""
    role: str
    text: str

    @property
    def head(self) -> str:
        if not self.number:
            return f"{self.role.capitalize()}: "
        return f"#{self.number}: " if self.role == "user" else f"#{self.number} {self.role}: "

    @property
    def spoken(self) -> str:
        """As a line of a summary."""
        return f"{self.role.capitalize()}{f' (#{self.number})' if self.number else ''}: {self.text}"


def parse_set_aside(lines: Iterable[str]) -> list[SetAsideItem]:
    found = []
    for line in lines:
        if match := _LINE.fullmatch(line):
            role = match[2] or (match[3] or "user").lower()
            found += [SetAsideItem(int(match[1] or 0), role, item) for item in match[4].split(SEPARATOR)]
    return found


def _lines(items: Iterable[SetAsideItem]) -> tuple[str, ...]:
    """A line for each message, in order of time; each for itself where the number is not known."""
    found: dict[str, list[str]] = {}
    for item in sorted(items, key=lambda item: item.number):
        found.setdefault(item.head if item.number else item.head + item.text, [item.head]).append(item.text)
    return tuple(head + SEPARATOR.join(texts) for head, *texts in found.values())


# -- what is dropped


def find_dropped(
    former: FormerSummary, new: VerifiedSummary, ledger: Sequence[str], known: Sequence[str] = (), *, by_sentence: bool
) -> tuple[str, ...]:
    """What the former summary and ledger told and the new ones do not: facts, and with `by_sentence` whole sentences
    of the originals; and what binds in the messages that are covered now. What was corrected or is `known` to be set
    aside already is left out."""
    told, aside = _flat("\n".join((strip_marks(new.text), *ledger))), _flat("\n".join(known))
    listed = {entry.key for entry in parse_ledger(ledger)} | {entry.key for entry in new.kept}
    lost = {entry.key for entry in new.lost} - listed
    entries = former.entries
    current = lost | listed
    corrected = [entry.text for entry in entries if entry.key not in current]
    found: dict[SetAsideItem, float] = {}
    if by_sentence:
        for item in _sentences_of(former.summary, entries):
            if not any(text in item.text for text in corrected):
                found[item] = rate_sentence(item.text)
    quoted = "\n".join(_flat(item.text) for item in found)
    # what was told before goes ahead of what never was
    ranked = [(entry, BINDING if entry.rank > _BINDS else entry.rank) for entry in entries]
    ranked += [(entry, TELLING) for entry in new.lost if entry.rank > _BINDS]
    for entry, rank in ranked:
        if entry.key in lost and _flat(entry.text) not in quoted:
            found.setdefault(SetAsideItem(entry.number, entry.role, entry.text), rank)
            if entry.question:
                found.setdefault(SetAsideItem(entry.question.number, entry.question.role, entry.question.text), rank)
    dropped = {
        item: rank for item, rank in found.items() if (flat := _flat(item.text)) not in told and flat not in aside
    }
    return _lines(_best(dropped))


def _best(items: dict[SetAsideItem, float]) -> list[SetAsideItem]:
    """As many as one block may hold, those that bind and what people said first."""
    ranked = sorted(items, key=lambda item: (-items[item], item.role != "user", -item.number, item.text))
    sizes = accumulate(len(item.head) + len(item.text) + len(SEPARATOR) for item in ranked)
    return [item for item, size in zip(ranked, sizes, strict=True) if size <= _MAX_SET_ASIDE]


def _sentences_of(summary: str, entries: Sequence[LedgerEntry]) -> list[SetAsideItem]:
    """The sentences of a summary that say who said them, each with its number where an entry tells it."""
    numbers = {(entry.role, entry.text): entry.number for entry in entries}
    found = []
    for line in split_returned(summary)[0].splitlines():
        if label := _SPOKEN.match(line):
            role = label[1].lower()
            for sentence in filter(_is_worth_it, sentences(line[label.end() :])):
                if not is_worth_telling(sentence, is_assistant=role == "assistant"):
                    continue
                plain = _DATE.sub("", sentence)
                stating = (n for (who, text), n in numbers.items() if who == role and text in plain)
                number = int(label[2] or 0) or max(stating, default=0)
                if number or rate_sentence(sentence) > NORMAL:
                    found.append(SetAsideItem(number, role, cut_text(sentence.removesuffix("."), _MAX_ITEM)))
    return found


def _is_worth_it(sentence: str) -> bool:
    if len(sentence) < _MIN_SENTENCE or MARK.strip() in sentence or is_row(sentence):
        return False
    return not (is_noise(sentence) or is_machine_made(sentence) or rate_sentence(sentence) == CHATTER)


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text).rstrip(" .!。…")


# -- what returns


# Words match by so many first letters; one that stands in every twelfth line, and in more than a few, is common.
_STEM, _COMMON, _FEW = 6, 12, 6
_WORD = re.compile(r"[^\W_]+")
_MAX_STEMS, _MAX_FOUND = 24, 40
# A word of the message counts fully, one that the latest before it have by half; and how much is enough together.
_IN_MESSAGE, _NEARBY, _ENOUGH = 1.0, 0.5, 1.5
# A word in more lines than a few counts less towards that.
_RARE, _LESS_RARE = 3, 0.6
# What people said weighs more than other lines, and what binds more than all; how many of a kind make a series.
_ROLE_WEIGHTS, _BINDING_WEIGHT = {"user": 1.0, "assistant": 0.6, "tool": 0.4}, 1.5
_SERIES, _ALIKE = 3, 0.5
_ANSWER_DISTANCE = 2


class Topic(Struct, frozen=True):
    """What is talked about now: the stems of words, each with its weight."""

    stems: dict[str, float]

    def about(self, lines: Sequence[str]) -> dict[int, float]:
        """The scores of lines that share rare words with it, by their index, the best first. A single word is enough
        if the message and those before it have it."""
        text = "\n".join(lines).lower()
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        scores: dict[int, float] = {}
        shared: dict[int, float] = {}
        for stem, weight in self.stems.items():
            places = _places(stem, text, starts, max(_FEW, len(lines) // _COMMON))
            for at in places:
                scores[at] = scores.get(at, 0.0) + weight * idf(len(places), len(lines))
                shared[at] = shared.get(at, 0.0) + weight * (1 if len(places) <= _RARE else _LESS_RARE)
        found = [at for at, weight in shared.items() if weight >= _ENOUGH]
        return {at: scores[at] for at in sorted(found, key=lambda at: (-scores[at], -at))[:_MAX_FOUND]}

    def is_news(self, text: str) -> bool:
        """Whether a text says more than the messages themselves; the same with another figure answers a question that
        has none."""
        others = [stem for stem in _stems(text) if stem not in self.stems]
        has_figure = any(stem.isdigit() for stem in self.stems)
        return any(not (stem.isdigit() and has_figure) for stem in others)


def find_topic(message: str, latest: Iterable[str] = ()) -> Topic:
    """The topic of a message and of the latest before it."""
    stems = dict.fromkeys(_stems(message), _IN_MESSAGE)
    for stem, times in Counter(stem for text in latest for stem in _stems(text)).items():
        stems[stem] = stems.get(stem, 0.0) + (_NEARBY if stem in stems or times > 1 else _NEARBY / 2)
    heaviest = sorted(stems, key=lambda stem: (-stems[stem], -len(stem), stem))[:_MAX_STEMS]
    return Topic({stem: stems[stem] for stem in heaviest})


def _stems(text: str) -> list[str]:
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if IS_UNSPACED.match(word):
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        elif _carries_topic(word):
            found.append(word[:_STEM])
    return list(dict.fromkeys(found))


def _carries_topic(word: str) -> bool:
    if (len(word) < 3 and not word.isdigit()) or word in SMALL_WORDS:
        return False
    return normalize_text(word) not in STOP_WORDS and bool(content_terms(word))


def _places(stem: str, text: str, starts: Sequence[int], most: int) -> list[int]:
    """The lines in which a word begins with the stem; none if they are more than `most`."""
    found: list[int] = []
    is_whole = not IS_UNSPACED.match(stem)
    at = text.find(stem)
    while at >= 0 and len(found) <= most:
        if is_whole and at and text[at - 1].isalnum():
            at = text.find(stem, at + 1)
            continue
        found.append(bisect_right(starts, at) - 1)
        at = text.find(stem, starts[found[-1] + 1]) if found[-1] + 1 < len(starts) else -1
    return found if len(found) <= most else []


def find_returning(
    lines: Sequence[str], topic: Topic, known: Iterable[LedgerEntry], limit: int, count: CountTokens
) -> list[SetAsideItem]:
    """What was set aside and bears on the topic, in order of time, within `limit` tokens. A value that `known` entries
    or later lines correct does not return."""
    scores = topic.about(lines)
    parsed = {at: parse_set_aside([lines[at]]) for at in scores}
    order = sorted(scores, key=lambda at: (-scores[at] * _weight(parsed[at]), -at))
    series = _series(lines, order)
    found = {at: parsed[at] for at in order if at not in series}
    current = {(entry.number, entry.text) for entry in mark_corrections([*known, *_entries(found.values())])}
    chosen: dict[SetAsideItem, None] = {}
    left = limit - count(RETURNED) - 1
    for at, items in found.items():
        wanted = [item for item in items if (item.number, item.text) in current and topic.is_news(item.text)]
        wanted = [item for item in (*_question_of(lines, at, items), *wanted) if wanted and item not in chosen]
        cost = sum(count(item.spoken) + 1 for item in wanted)
        if cost <= left:
            chosen |= dict.fromkeys(wanted)
            left -= cost
    return sorted(chosen, key=lambda item: item.number)


def _weight(items: Sequence[SetAsideItem]) -> float:
    is_binding = any(rate_sentence(item.text) == BINDING for item in items)
    return max(_ROLE_WEIGHTS.get(item.role, 0.4) for item in items) * (_BINDING_WEIGHT if is_binding else 1)


def _series(lines: Sequence[str], places: Iterable[int]) -> set[int]:
    """Of these lines, those that say the same of several others, with other names and figures."""
    words = {at: content_terms(" ".join(word for word in lines[at].split() if word.islower())) for at in places}
    alike = {
        at: sum(len(own & other) >= _ALIKE * len(own | other) for other in words.values()) for at, own in words.items()
    }
    return {at for at, times in alike.items() if times >= _SERIES and len(words[at]) > 1}


def _entries(groups: Iterable[Sequence[SetAsideItem]]) -> list[LedgerEntry]:
    return [entry for items in groups for item in items for entry in parse_item(item.text, item.number, item.role)]


def _question_of(lines: Sequence[str], at: int, items: Sequence[SetAsideItem]) -> list[SetAsideItem]:
    """The question before a short answer."""
    before = parse_set_aside([lines[at - 1]])[-1:] if at else []
    is_asked = before and before[0].role == "assistant" and before[0].text.endswith(("?", "？"))
    is_near = before and 0 < items[0].number - before[0].number <= _ANSWER_DISTANCE
    return before if is_asked and is_near and items[0].role == "user" else []


def with_returned(summary: str, items: Sequence[SetAsideItem]) -> str:
    return "\n".join([summary, "", RETURNED, *(item.spoken for item in items)]) if items else summary


def split_returned(summary: str) -> tuple[str, list[str]]:
    """A summary without what had returned to it, and those lines."""
    body, found, rest = f"\n{summary}".partition(f"\n{RETURNED}\n")
    return (body.strip("\n"), rest.splitlines()) if found else (summary, [])


# -- contents


_CONTENTS = re.compile(r"#(\d+)(?:–#(\d+))?: (.+)")
_MAX_RANGES, _MAX_WORDS, _MAX_OTHERS = 8, 6, 1000
_MIN_WORD, _MIN_NOUNS, _LEAST_TELLING = 4, 0.15, 0.3
_ENDING = re.compile(r"(?:ing|ed|ly|mente|lich|ment)$")


class TopicRange(NamedTuple):
    """Messages by their numbers, and words that tell what was said there and set aside."""

    first: int
    last: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        span = f"#{self.first}" if self.first == self.last else f"#{self.first}–#{self.last}"
        return f"{span}: {', '.join(self.words)}"

    def merge(self, other: "TopicRange") -> "TopicRange":
        """The words of each in turn."""
        turns = [word for at in range(_MAX_WORDS) for words in (self.words, other.words) for word in words[at : at + 1]]
        unique = {word.lower(): word for word in reversed(turns)}
        words = tuple(word for word in dict.fromkeys(turns) if unique[word.lower()] == word)
        return TopicRange(min(self.first, other.first), max(self.last, other.last), words[:_MAX_WORDS])


def parse_contents(lines: Iterable[str]) -> list[TopicRange]:
    matches = [match for line in lines if (match := _CONTENTS.fullmatch(line))]
    return [TopicRange(int(each[1]), int(each[2] or each[1]), tuple(each[3].split(", "))) for each in matches]


def add_to_contents(
    former: Sequence[str], set_aside: Sequence[str], others: Sequence[str], fits: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """The contents with what is set aside now, as many ranges as fit. A word that many `others` have tells little."""
    ranges = parse_contents(former)
    by_place: dict[int, list[SetAsideItem]] = {}
    for item in parse_set_aside(set_aside):
        is_new = not ranges or item.number > ranges[-1].last
        place = len(ranges) if is_new else max(0, bisect_right([each.first for each in ranges], item.number) - 1)
        if item.number:
            by_place.setdefault(place, []).append(item)
    lines = (*others[-_MAX_OTHERS:], *set_aside)
    usual = Counter(word for line in lines for word in set(_WORD.findall(line.lower())))
    for place, items in sorted(by_place.items()):
        words = _telling_words([item.text for item in items], usual, len(lines))
        numbers = [item.number for item in items]
        if words:
            added = TopicRange(min(numbers), max(numbers), words)
            ranges[place : place + 1] = [ranges[place].merge(added) if place < len(ranges) else added]
    while ranges and (len(ranges) > _MAX_RANGES or not fits([str(each) for each in ranges])):
        ranges = _coarser(ranges)
    return tuple(map(str, ranges))


def _coarser(ranges: Sequence[TopicRange]) -> list[TopicRange]:
    """With two neighbours merged, those that are together shortest for their age; a last one loses words."""
    if len(ranges) < 2:
        only = ranges[0]
        return [only._replace(words=only.words[:-1])] if len(only.words) > 1 else []
    newest = ranges[-1].last + 1
    spans = [(later.last - earlier.first + 1) / (newest - earlier.first) for earlier, later in pairwise(ranges)]
    at = spans.index(min(spans))
    return [*ranges[:at], ranges[at].merge(ranges[at + 1]), *ranges[at + 2 :]]


def _telling_words(texts: Sequence[str], usual: Counter[str], lines: int) -> tuple[str, ...]:
    """Words that these texts have and few other lines: names and nouns as far as spelling shows them, and what binds
    before the rest."""
    scores: dict[str, float] = {}
    forms: dict[str, str] = {}
    for text in texts:
        words = [word for word in _WORD.findall(text) if len(word) >= _MIN_WORD or IS_UNSPACED.match(word)]
        inside = [word for word in words if not text.startswith(word)]
        has_nouns = sum(map(str.istitle, inside)) >= max(2, _MIN_NOUNS * len(inside))
        binding = _BINDING_WEIGHT if rate_sentence(text) == BINDING else 1.0
        for word in dict.fromkeys(words):
            low = word.lower()
            if not word.isalpha() or not _carries_topic(low) or usual[low] > max(_FEW, lines // _COMMON):
                continue
            weight = 1.5 if word in inside and not word.islower() else 0.2 if has_nouns else 1.0
            weight *= 0.5 if _ENDING.search(low) else min(1.5, 0.7 + len(word) / 10)
            scores[low] = max(scores.get(low, 0.0), binding * weight * idf(usual[low], lines))
            forms[low] = low if word == low else forms.get(low, word)
    best = sorted(scores, key=lambda low: (-scores[low], low))[:_MAX_WORDS]
    return tuple(forms[low] for low in best if scores[low] >= _LEAST_TELLING * scores[best[0]])
