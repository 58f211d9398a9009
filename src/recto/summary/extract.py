"""A summary made of sentences of what was said, without a model; and how it is made to fit.

Pure: no store, no provider; tokens are what `count` says. Sentences are ranked by what they bear on the whole, taken
while they add something new, and given back in the order of time. No word of the result is written here.
"""

import heapq
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from recto.chat.priority import CHATTER
from recto.summary.choice import Choice, seed
from recto.summary.lines import BEFORE, Line, Reader, Sentence
from recto.summary.sentences import is_noise, sentences, terms
from recto.summary.shorten import Measure, cut, cut_to, most
from recto.summary.ties import Key, Ties, corrections
from recto.summary.worth import LEADING, Weights, often_said, term_weights, weight_of, worth

_LABELLED = re.compile(r"(User|Assistant|Tool): (?=\S)")
_FAVOURS = {"user": 1.0, "assistant": 0.9, "tool": 0.5}
_TASK = 1.6
# The first lines of a former summary lend half as much again, those after them less and less.
_FRONT, _DECAY = 0.5, 3.0
# Its share of the room. Over ten rounds in 500 tokens a half kept 46 % of the facts, two thirds kept 61 %.
_FORMER = 2 / 3
# So many messages are looked at for one that asks for something.
_GREETINGS = 12

# The pairwise step sees the pool only.
_SAMPLE = 2000
_STRETCHES = 12
_POOL = (150, 1500)

# What sentences take at least and at most, in characters, when it is guessed how many there is room for.
_SENTENCE = (15, 80)
# Characters below which thirds of the room would leave nothing to read; sentences below which none can bring company.
_WORTH_DIVIDING, _WORTH_TYING = 75, 5


@dataclass(frozen=True, slots=True)
class Said:
    """One message to be summed up."""

    role: str
    text: str
    priority: int = 5


def extract(said: Sequence[Said], cap: int, count: Measure, former: str = "") -> str:
    """What matters most of a former summary and of what was said since, in order of time, within `cap`."""
    former = former.strip()
    lines = _messages(said, is_beginning=not former)
    if cap <= 0 or not (lines or former):
        return ""
    pace = _pace([former, *(line.text for line in lines)], count)
    head = _shortened(former, lines, cap, count, pace)
    body = _summed(lines, cap, count, pace, ahead=head)
    return "\n".join(part for part in (head, body) if part)


def truncate(said: Sequence[Said], cap: int, count: Measure, former: str = "") -> str:
    """The last rung: how the former summary begins, and how the newest messages begin."""
    head = cut_to(former.strip(), cap // 2 if said else cap, count)
    begun = [_label(each) + cut(" ".join(each.text[:800].split()), 200) for each in said[-max(cap, 1) :] if each.text]

    def newest(number: int) -> str:
        return "\n".join([head, *begun[len(begun) - number :]]).strip()

    number = most(lambda number: count(newest(number)) <= cap, len(begun), guess=cap // 32)
    if number or not begun:
        return newest(number)
    begun[-1] = cut_to(begun[-1], cap - (count(head) + 1 if head else 0), count)
    return newest(1) if count(newest(1)) <= cap else head


def _label(each: Said) -> str:
    return f"{each.role.capitalize()}: "


def _messages(said: Sequence[Said], is_beginning: bool) -> list[Line]:
    """Messages lend by who spoke, by priority, a little by being recent; the task by being the task."""
    said = [each for each in said if each.text.strip()]
    task = _task(said) if is_beginning else -1
    found = []
    for at, each in enumerate(said):
        favour = _FAVOURS.get(each.role, 0.5) * (0.55 + 0.09 * each.priority) * (1 + 0.1 * at / len(said))
        found.append(Line(_label(each), each.text, favour * (_TASK if at == task else 1), at == task))
    return found


def _task(said: Sequence[Said]) -> int:
    """The first thing that the user said beyond a greeting; -1 where there is none."""
    for at, each in enumerate(said[:_GREETINGS]):
        if each.role == "user" and any(
            weight_of(text) != CHATTER and not is_noise(text) for text in sentences(each.text[:2000])
        ):
            return at
    return -1


def _remembered(former: str) -> list[Line]:
    """Lines of a former summary. Its beginning is the task and what was settled first: it outlives the rest."""
    found = []
    for at, line in enumerate(filter(str.strip, former.splitlines())):
        label = _LABELLED.match(line)
        favour = _FAVOURS[label[1].lower()] if label else 1.0
        text = line[label.end() :] if label else line.strip()
        found.append(Line(label[0] if label else "", text, favour * (1 + _FRONT * math.exp(-at / _DECAY)), at == 0))
    return found


def _shortened(former: str, lines: Sequence[Line], cap: int, count: Measure, pace: float) -> str:
    """The former summary, in its share of the room or in what the rest leaves free."""
    rest = sum(len(line.label) + len(line.text) + 1 for line in lines) / pace
    room = max(int(cap * _FORMER), cap - math.ceil(1.1 * rest)) if lines else cap
    if len(former) <= 4 * room * pace and count(former) <= room:
        return former
    return _summed(_remembered(former), room, count, pace)


def _pace(texts: Sequence[str], count: Measure) -> float:
    """Characters per token, learned on a sample: counting every sentence would take longer than ranking it."""
    sample = "\n".join(text[:100] for text in texts[:: len(texts) // 40 + 1])
    return min(max(len(sample) / max(1, count(sample)), 0.1), 100.0)


def _pool(reader: Reader, size: int) -> tuple[list[Sentence], Weights]:
    """The worthiest sentences of every stretch of the time, in order; and what terms count."""
    lines = reader.lines
    sample = {at: reader.parts(at) for at in range(0, len(lines), len(lines) // _SAMPLE + 1)}
    weights = term_weights([part.terms for parts in sample.values() for part in parts])
    often = often_said(part.text for parts in sample.values() for part in parts)
    bounds = [-(-at * len(lines) // _STRETCHES) for at in range(_STRETCHES + 1)]
    pool: list[Sentence] = []
    most = max(size // _STRETCHES, size // len(lines))
    for start, end in pairwise(bounds):
        found = [
            (worth(part, lines[at], weights, often), at, part)
            for at in range(start, end)
            for part in sample.pop(at, None) or reader.parts(at)
        ]
        best = heapq.nlargest(
            most, found, lambda each: each[0] + 10 * (lines[each[1]].is_wanted and each[2].place < LEADING)
        )
        pool += [Sentence(at, part.place, part.text, part.terms, value) for value, at, part in best]
    return sorted(pool, key=lambda each: each.key), weights


@dataclass(frozen=True, slots=True)
class Order:
    """Sentences in the order in which they are taken, and which of them need which others."""

    sentences: list[Sentence]
    needs: Mapping[Key, Sequence[Key]]
    musts: frozenset[Key]

    def readable(self, picks: Sequence[Sentence]) -> list[Sentence]:
        """Without those that lack what they need, as a question its answer, unless they must be there."""
        return [each for each in picks if each.key in self.musts or self.may_follow(each, picks)]

    def may_follow(self, each: Sentence, picks: Sequence[Sentence]) -> bool:
        return {one.key for one in picks}.issuperset(self.needs.get(each.key, ()))


def _summed(lines: Sequence[Line], cap: int, count: Measure, pace: float, ahead: str = "") -> str:
    """As many of the best sentences as fit behind `ahead`, in order of time."""
    room = cap - (count(ahead) if ahead else 0)
    if room <= 0 or not lines:
        return ""
    known = [Sentence(BEFORE, place, text, terms(text), 0.0) for place, text in enumerate(sentences(ahead))]
    order = _ordered(lines, room, count, pace, known)
    best = order.sentences

    def fits(picks: Sequence[Sentence]) -> bool:
        return count("\n".join(part for part in (ahead, _rendered(picks, lines)) if part)) <= cap

    number = most(lambda number: fits(best[:number]), len(best), _fitting(best, lines, room * pace))
    picks = order.readable(best[:number])
    least = sum(each.worth for each in picks) / max(1, len(picks)) / 2
    for each in best[number + 1 : number + 7]:
        if each.worth >= least and order.may_follow(each, picks) and fits([*picks, each]):
            picks.append(each)
    return _rendered(picks, lines)


def _ordered(lines: Sequence[Line], room: int, count: Measure, pace: float, known: Sequence[Sentence]) -> Order:
    """More sentences than there is room for, the first to be taken first, none of them too long."""
    size = room * pace
    choice = _choice(lines, size, known)
    seeds = seed(choice, lines)
    musts = frozenset(choice.pool[at].key for at in choice.taken)
    choice.complete_all(size)
    choice.fill(size)
    share = room // max(3, seeds) if size >= _WORTH_DIVIDING else room
    paces = [pace * (0.25 if number < seeds else 0.7) for number in range(len(choice.taken))]
    cut = (
        _short_enough(choice.pool[at], lines, share, count, slow) for at, slow in zip(choice.taken, paces, strict=True)
    )
    return Order([each for each in cut if each.text], choice.needs, musts)


def _choice(lines: Sequence[Line], size: float, known: Sequence[Sentence]) -> Choice:
    reader = Reader(lines)
    pool, weights = _pool(reader, min(max(_POOL[0], int(size / 20)), _POOL[1]))
    number = size / min(max(sum(len(each.text) for each in pool) / len(pool), _SENTENCE[0]), _SENTENCE[1])
    # a stretch should have room for two
    stretches = min(max(int(number / 2), 3), _STRETCHES)
    ties = Ties(reader, corrections([*known, *pool], weights)) if number >= _WORTH_TYING else None
    said = [each.terms for each in known]
    return Choice(pool, weights, len(lines), stretches, max(number / stretches, 0.3), said, ties)


def _short_enough(each: Sentence, lines: Sequence[Line], share: int, count: Measure, pace: float) -> Sentence:
    """A sentence takes its share of the room at most. What is clearly shorter by the pace is not counted."""
    label = lines[each.line].label
    if len(label) + len(each.text) <= share * pace:
        return each
    return replace(each, text=cut_to(each.text, share - (count(label) if label else 0) - 1, count))


def _fitting(order: Sequence[Sentence], lines: Sequence[Line], size: float) -> int:
    """About how many fit."""
    for number, each in enumerate(order):
        size -= len(each.text) + len(lines[each.line].label) + 1
        if size < 0:
            return number
    return len(order)


def _rendered(picks: Iterable[Sentence], lines: Sequence[Line]) -> str:
    """In order of time; sentences that follow each other in one message share a line."""
    shown: list[str] = []
    before: Sentence | None = None
    for each in sorted(picks, key=lambda each: (each.line, each.place)):
        text = each.text.replace("\n", " ")
        if before and before.line == each.line and before.place + 1 == each.place and not before.text.endswith("…"):
            shown[-1] += _between(before.text, each.text, lines[each.line].text) + text
        else:
            shown.append(lines[each.line].label + text)
        before = each
    return "\n".join(shown)


def _between(one: str, other: str, text: str) -> str:
    """What was written without a space stays so, as between the sentences of Chinese."""
    return "" if not one[-1].isascii() and one + other in text else " "
