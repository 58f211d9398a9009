"""Choice: which sentences of a pool are taken, one after the other, and what each leaves of another's worth.

Knows worth, novelty, stretches of time and ties; not how much room there is.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from recto.summary.lines import Line, Sentence
from recto.summary.ties import Key, Ties
from recto.summary.worth import LEADING, LEAST, Weights, numbers

_REPEATS = 0.85
# How much less another one is worth where a stretch of the time has its share already, or a line its sentence.
_CROWD, _SAME_LINE = 0.5, 0.25
_COMPANY = 0.5
# How much of the room the beginning of the task may take.
_TASK_SHARE = 0.12
# Whose numbers stand in another one that has as much in common with it repeats them, and counts as so like it.
_ECHOES, _ECHO = 0.3, 0.7
# What is left of the worth of a sentence that was corrected later.
_OUTDATED = 0.6


@dataclass(slots=True)
class Choice:
    """What was taken so far, and what that leaves of another sentence's worth. It only ever leaves less."""

    pool: list[Sentence]
    weights: Weights
    lines: int
    stretches: int
    per_stretch: float
    said: list[set[str]]
    ties: Ties | None = None
    taken: list[int] = field(default_factory=list)
    needs: dict[Key, list[Key]] = field(default_factory=dict)
    _in_stretch: Counter[int] = field(default_factory=Counter)
    _in_line: Counter[int] = field(default_factory=Counter)
    _compared: dict[int, tuple[int, float, set[str]]] = field(default_factory=dict)
    _spent: int = 0
    _places: dict[Key, int] = field(init=False)
    _companies: dict[int, list[Sentence]] = field(default_factory=dict)
    _held: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._places = {each.key: at for at, each in enumerate(self.pool)}

    def holds(self, at: int) -> bool:
        return at in self._held

    def take(self, at: int) -> None:
        """This one, by itself."""
        self._held.add(at)
        each = self.pool[at]
        self.taken.append(at)
        self.said.append(each.terms)
        self._spent += len(each.text) + 1
        self._in_stretch[each.line * self.stretches // self.lines] += 1
        self._in_line[each.line] += 1

    def take_whole(self, at: int) -> None:
        """This one behind what it needs, so that the first few of those taken can be read by themselves."""
        if self.holds(at):
            return
        self._held.add(at)  # ties may go round in circles
        self.complete(at)
        self.take(at)

    def complete(self, at: int) -> None:
        each = self.pool[at]
        self.needs[each.key] = [one.key for one in self._company(at)]
        for one in self._company(at):
            self.take_whole(self._place(one))

    def complete_all(self, size: float) -> None:
        """What was taken by itself gets what it needs, and a task what was said with it. What was said before and no
        longer holds gets its correction."""
        for one in self.ties.renewals if self.ties else ():
            self.take_whole(self._place(one))
        for at in self.taken[:]:
            self.complete(at)
            each = self.pool[at]
            if self.ties and self.ties.reader.lines[each.line].is_wanted:
                for one in self.ties.run(each, int(size * _TASK_SHARE)):
                    self.take_whole(self._place(one))

    def worth(self, at: int) -> float:
        each = self.pool[at]
        crowd = self._in_stretch[each.line * self.stretches // self.lines] / self.per_stretch
        value = each.worth * self._novelty(at) / (1 + _CROWD * crowd) / (1 + _SAME_LINE * self._in_line[each.line])
        if self.ties and each.key in self.ties.corrections:
            value *= _OUTDATED
        return value * self._alone(at) if at in self._companies else value

    def _company(self, at: int) -> list[Sentence]:
        if at not in self._companies:
            self._companies[at] = self.ties.of(self.pool[at]) if self.ties else []
        return self._companies[at]

    def _alone(self, at: int) -> float:
        """Who brings company takes its room too."""
        new = [one for one in self._company(at) if not self.holds(self._places.get(one.key, -1))]
        size = len(self.pool[at].text)
        return (size / (size + sum(len(one.text) for one in new))) ** _COMPANY if new else 1.0

    def fill(self, size: float) -> None:
        """Takes the best that is left, again and again, until there is more than enough for so many characters.

        Worth only shrinks, so the best of the heap is the best of all once it has been weighed again.
        """
        heap = [(-each.worth, at) for at, each in enumerate(self.pool) if each.worth > LEAST and not self.holds(at)]
        heapq.heapify(heap)
        enough = self._spent + 1.5 * size
        while heap and self._spent < enough:
            at = heapq.heappop(heap)[1]
            if self.holds(at):
                continue
            value = self.worth(at)
            if value <= 0:
                continue
            if not heap or value >= -heap[0][0]:  # ties are looked up for those only whose turn it is
                self._company(at)
                value = self.worth(at)
            if heap and value < -heap[0][0]:
                heapq.heappush(heap, (-value, at))
            else:
                self.take_whole(at)

    def _place(self, each: Sentence) -> int:
        if each.key not in self._places:
            self._places[each.key] = len(self.pool)
            self.pool.append(each)
        return self._places[each.key]

    def _novelty(self, at: int) -> float:
        """Nothing for a sentence that says again what a single one has said. Another number is something new."""
        about = self.pool[at].terms
        compared, shared, told = self._compared.get(at) or (0, 0.0, numbers(about))
        whole = self.weights.of(about) or 1
        for other in self.said[compared:]:
            both = about & other
            if 3 * len(both) < len(about):  # too little to matter, and most are
                continue
            share = self.weights.of(both) / whole
            if told <= other and (share >= _REPEATS or (told and share >= _ECHOES)):
                share = 1.0 if share >= _REPEATS else max(share, _ECHO)
            shared = max(shared, share)
        self._compared[at] = len(self.said), shared, told
        return 1 - shared * shared


def seed(choice: Choice, lines: Sequence[Line]) -> int:
    """Takes first what must be there; a sentence that is needed in its third may repeat another."""
    for candidates in _must(choice.pool, lines):
        if not any(map(choice.holds, candidates)):
            choice.take(max(candidates, key=lambda at: (choice.worth(at), choice.pool[at].worth)))
    return len(choice.taken)


def _must(pool: Sequence[Sentence], lines: Sequence[Line]) -> list[list[int]]:
    """Each of these gives one: a wanted line, and every third of the lines; of the sentences, when lines are few."""
    wanted = [at for at, each in enumerate(pool) if lines[each.line].is_wanted]
    leading = [at for at in wanted if pool[at].place < LEADING and pool[at].worth > LEAST]
    thirds: list[list[int]] = [[], [], []]
    for at, each in enumerate(pool):
        thirds[each.line * 3 // len(lines) if len(lines) >= 3 else at * 3 // len(pool)].append(at)
    return [each for each in (leading or wanted, *thirds) if each]
