"""A summary made of sentences of what was said, without a model; and cuts of single texts.

Pure: no store, no provider; tokens are what `count` says. Sentences are ranked by what they bear on the whole, taken
while they add something new, and given back in the order of time. No word of the result is written here.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from recto.chat.priority import BINDING, CHATTER, TELLING, weigh
from recto.window.sentences import first_lines, is_noise, last_lines, sentences, terms
from recto.window.shorten import Measure, cut, cut_to, most

_LABELLED = re.compile(r"(User|Assistant|Tool): (?=\S)")
_DIGIT = re.compile(r"\d")
_NAME = re.compile("[A-Z](?<=[a-z,] [A-Z])")
_EVENT = re.compile(r"\b(?:error|fail|exception|warning|pass|success|found|total|result)", re.IGNORECASE)
_CODE_SIGN = re.compile(r"[{}\[\]()<>=;|\\]")

# What a sentence is worth: tuned by eye on chats and agent runs, the order of the numbers matters more than they do.
_FAVOURS = {"user": 1.0, "assistant": 0.9, "tool": 0.5}
_CUES = {BINDING: 0.8, TELLING: 0.4}
_TASK = 1.6
_NOISE = 0.0001
_REPEATS = 0.85

# How much is looked at. The pairwise step sees the pool only.
_CHARACTERS, _SENTENCES = 4_000_000, 20_000
_SAMPLE = 2000
_STRETCHES = 12
_POOL = (150, 1500)

# Characters below which thirds of the room would leave nothing to read.
_WORTH_DIVIDING = 75


@dataclass(frozen=True, slots=True)
class Said:
    """One message to be summed up."""

    role: str
    text: str
    priority: int = 5


@dataclass(frozen=True, slots=True)
class Line:
    """Where sentences come from: a message, or a line of a former summary. `favour` is what it lends to them."""

    label: str
    text: str
    favour: float
    is_wanted: bool = False
    """Something of it is to be in the summary, whatever else is."""


@dataclass(frozen=True, slots=True)
class Sentence:
    line: int
    place: int
    text: str
    terms: set[str]
    worth: float


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
    task = next((at for at, each in enumerate(said) if each.role == "user"), -1) if is_beginning else -1
    found = []
    for at, each in enumerate(said):
        favour = _FAVOURS.get(each.role, 0.5) * (0.55 + 0.09 * each.priority) * (1 + 0.1 * at / len(said))
        found.append(Line(_label(each), each.text, favour * (_TASK if at == task else 1), at == task))
    return found


def _remembered(former: str) -> list[Line]:
    """Lines of a former summary. Its beginning is the task and what was settled first: it outlives the rest."""
    found = []
    for at, line in enumerate(filter(str.strip, former.splitlines())):
        label = _LABELLED.match(line)
        favour = _FAVOURS[label[1].lower()] if label else 1.0
        text = line[label.end() :] if label else line.strip()
        found.append(Line(label[0] if label else "", text, favour * (1 + 2 * math.exp(-at / 3)), at == 0))
    return found


def _shortened(former: str, lines: Sequence[Line], cap: int, count: Measure, pace: float) -> str:
    """The former summary, in half of the room or in what the rest leaves free."""
    rest = sum(len(line.label) + len(line.text) + 1 for line in lines) / pace
    room = max(cap // 2, cap - math.ceil(1.1 * rest)) if lines else cap
    if len(former) <= 4 * room * pace and count(former) <= room:
        return former
    return _summed(_remembered(former), room, count, pace)


def _pace(texts: Sequence[str], count: Measure) -> float:
    """Characters per token, learned on a sample: counting every sentence would take longer than ranking it."""
    sample = "\n".join(text[:100] for text in texts[:: len(texts) // 40 + 1])
    return min(max(len(sample) / max(1, count(sample)), 0.1), 100.0)


def _pool(lines: Sequence[Line], size: int) -> list[Sentence]:
    """The worthiest sentences of every stretch of the time, in order."""
    is_long = sum(len(line.text) for line in lines) > _CHARACTERS
    limit = max(500, _CHARACTERS // len(lines)) if is_long else _CHARACTERS
    sample = {at: _read(lines[at], limit) for at in range(0, len(lines), len(lines) // _SAMPLE + 1)}
    weights = _weights([about for read in sample.values() for _, _, about in read])
    bounds = [-(-at * len(lines) // _STRETCHES) for at in range(_STRETCHES + 1)]
    pool: list[Sentence] = []
    for start, end in pairwise(bounds):
        found = [
            Sentence(at, place, text, about, lines[at].favour * _worth(text, about, lines[at].label, weights))
            for at in range(start, end)
            for place, text, about in sample.pop(at, None) or _read(lines[at], limit)
        ]
        most = max(size // _STRETCHES, size // len(lines))
        pool += heapq.nlargest(most, found, lambda each: each.worth + 10 * lines[each.line].is_wanted)
    return sorted(pool, key=lambda each: (each.line, each.place))


def _read(line: Line, limit: int) -> list[tuple[int, str, set[str]]]:
    """Its sentences with their places and terms; of a text that goes on and on only some, from all over it."""
    text = line.text
    parts = (text,) if len(text) <= limit else (first_lines(text, limit // 2), last_lines(text, limit // 2))
    # a gap between the parts is a gap between the places: what is joined again must have been together
    found = [sentence for part in parts for sentence in (*sentences(part), "")]
    step = len(found) // _SENTENCES + 1
    return [(place, found[place], terms(found[place])) for place in range(0, len(found), step) if found[place]]


def _weights(found: Sequence[set[str]]) -> Mapping[str, float]:
    """What a term counts, between 0 and 1: most where it comes back, but not everywhere. No list of stop words."""
    seen = Counter(chain.from_iterable(found))
    weights = {term: math.sqrt(math.log1p(times)) * math.log((len(found) + 1) / times) for term, times in seen.items()}
    top = max(weights.values(), default=1.0)
    return {term: weight / top for term, weight in weights.items()}


def _worth(sentence: str, about: set[str], label: str, weights: Mapping[str, float]) -> float:
    if is_noise(sentence):
        return _NOISE
    start = sentence[:400]
    # the 3 keeps a lone word from being the most central of all; fsum does not depend on the order of a set
    worth = 0.2 + math.fsum([weights.get(term, 0.3) for term in about]) / (len(about) + 3)
    facts = len(_NAME.findall(start)) + sum([not term.isalpha() for term in about])
    worth += 0.1 * min(3, facts)
    if label == "Tool: ":
        worth += 0.3 if _EVENT.search(start) else 0.0
    else:
        weight = weigh(start)
        worth = 0.15 * worth if weight == CHATTER else worth + _CUES.get(weight, 0.0)
    if len(_CODE_SIGN.findall(start)) * 12 > len(start):
        worth *= 0.5
    return worth / math.sqrt(max(1.0, len(sentence) / 240))


@dataclass(slots=True)
class Chosen:
    """What was taken so far, and what that leaves of another sentence's worth. It only ever leaves less."""

    pool: Sequence[Sentence]
    lines: int
    stretches: int
    per_stretch: float
    said: list[set[str]]
    taken: list[int] = field(default_factory=list)
    in_stretch: Counter[int] = field(default_factory=Counter)
    in_line: Counter[int] = field(default_factory=Counter)
    compared: dict[int, tuple[int, float]] = field(default_factory=dict)

    def take(self, at: int) -> None:
        each = self.pool[at]
        self.taken.append(at)
        self.said.append(each.terms)
        self.in_stretch[each.line * self.stretches // self.lines] += 1
        self.in_line[each.line] += 1

    def worth(self, at: int) -> float:
        each = self.pool[at]
        crowd = self.in_stretch[each.line * self.stretches // self.lines] / self.per_stretch
        return each.worth * self._novelty(at) / (1 + crowd) / (1 + 0.25 * self.in_line[each.line])

    def _novelty(self, at: int) -> float:
        """Nothing for a sentence that says again what a single one has said. Another number is something new."""
        about = self.pool[at].terms
        compared, shared = self.compared.get(at, (0, 0.0))
        for other in self.said[compared:]:
            share = len(about & other) / (len(about) or 1)
            if share >= _REPEATS and not any(map(_DIGIT.search, about - other)):
                share = 1.0
            shared = max(shared, share)
        self.compared[at] = len(self.said), shared
        return 1 - shared * shared


def _summed(lines: Sequence[Line], cap: int, count: Measure, pace: float, ahead: str = "") -> str:
    """As many of the best sentences as fit behind `ahead`, in order of time."""
    room = cap - (count(ahead) if ahead else 0)
    if room <= 0 or not lines:
        return ""
    order = _ordered(lines, room, count, pace, [terms(each) for each in sentences(ahead)])

    def fits(picks: Sequence[Sentence]) -> bool:
        return count("\n".join(part for part in (ahead, _rendered(picks, lines)) if part)) <= cap

    number = most(lambda number: fits(order[:number]), len(order), _fitting(order, lines, room * pace))
    picks = order[:number]
    for each in order[number + 1 : number + 4]:
        if fits([*picks, each]):
            picks.append(each)
    return _rendered(picks, lines)


def _ordered(
    lines: Sequence[Line], room: int, count: Measure, pace: float, known: Sequence[set[str]]
) -> list[Sentence]:
    """More sentences than there is room for, the first to be taken first, none of them too long."""
    size = room * pace
    pool = _pool(lines, min(max(_POOL[0], int(size / 20)), _POOL[1]))
    # a sentence takes about 80 characters, and a stretch should have room for two
    stretches = min(max(int(size / 160), 3), _STRETCHES)
    chosen = Chosen(pool, len(lines), stretches, max(size / 80 / stretches, 0.3), [*known])
    seeds = _seed(chosen, lines)
    _fill(chosen, size)
    share = room // max(3, seeds) if size >= _WORTH_DIVIDING else room
    paces = [pace * (0.25 if number < seeds else 0.7) for number in range(len(chosen.taken))]
    cut = (_short_enough(pool[at], lines, share, count, slow) for at, slow in zip(chosen.taken, paces, strict=True))
    return [each for each in cut if each.text]


def _seed(chosen: Chosen, lines: Sequence[Line]) -> int:
    """Takes first what must be there; a sentence that is needed in its third may repeat another."""
    for candidates in _must(chosen.pool, lines):
        if not any(at in candidates for at in chosen.taken):
            chosen.take(max(candidates, key=lambda at: (chosen.worth(at), chosen.pool[at].worth)))
    return len(chosen.taken)


def _fill(chosen: Chosen, size: float) -> None:
    """Takes the best that is left, again and again, until there is more than enough.

    Worth only shrinks, so the best of the heap is the best of all once it has been weighed again.
    """
    heap = [
        (-each.worth, at) for at, each in enumerate(chosen.pool) if each.worth > 10 * _NOISE and at not in chosen.taken
    ]
    heapq.heapify(heap)
    spent = 0.0
    while heap and spent < 1.5 * size:
        at = heapq.heappop(heap)[1]
        worth = chosen.worth(at)
        if worth <= 0:
            continue
        if heap and worth < -heap[0][0]:
            heapq.heappush(heap, (-worth, at))
        else:
            chosen.take(at)
            spent += min(len(chosen.pool[at].text), size / 3) + 1


def _must(pool: Sequence[Sentence], lines: Sequence[Line]) -> list[list[int]]:
    """Each of these gives one: a wanted line, and every third of the lines; of the sentences, when lines are few."""
    wanted = [at for at, each in enumerate(pool) if lines[each.line].is_wanted]
    thirds: list[list[int]] = [[], [], []]
    for at, each in enumerate(pool):
        thirds[each.line * 3 // len(lines) if len(lines) >= 3 else at * 3 // len(pool)].append(at)
    return [each for each in (wanted, *thirds) if each]


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
