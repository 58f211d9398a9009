"""Sentence selection: a greedy choice from a pool of scored sentences. Weighs score, novelty, coverage of time and
context; does not know how much room there is in the end.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from recto.chat.priority import TELLING
from recto.summary.corrections import values_in
from recto.summary.decisions import content_terms
from recto.summary.quotation import count_topic_words
from recto.summary.sentence_context import SentenceContext
from recto.summary.sentence_score import LEADING_SENTENCES, MIN_USEFUL_SCORE, MIN_WORTH_SCORE, is_binding
from recto.summary.sentences import rate_sentence
from recto.summary.source_lines import ASSISTANT, TOOL, USER, ScoredSentence, SentenceKey, SourceLine
from recto.summary.term_weights import TermWeights, numeric_terms
from recto.summary.worth import needs_context

# How much each selected sentence lowers others: those of the same period, and those of the same line.
_PERIOD_PENALTY, _LINE_PENALTY = 0.5, 0.25
# What binds is told wherever it was said: others in its period hardly lower it.
_BINDING_PENALTY = 0.1
_CONTEXT_EXPONENT = 0.5
# A context that is shorter than this hardly lowers a sentence.
_SHORT_CONTEXT = 60
# How much of the room the start of the task may take.
_TASK_SHARE = 0.12
# A sentence that shares this much with another, and all of its numbers, repeats it.
_REPETITION = 0.85
# With the same numbers, this much in common makes two sentences at least this similar.
_MIN_ECHO, _ECHO_SIMILARITY = 0.3, 0.7
# A sentence that was corrected later keeps this much of its score.
_OUTDATED_FACTOR = 0.6
# ... and less where the correction names the old value too: "52, not 45".
_RETOLD_FACTOR = 0.3
# ... and nothing where the correction says all else that it says, but for so many words.
_MAX_UNSAID = 2
# A third of the time without a sentence of this score is not worth telling.
_MIN_REQUIRED = 0.4
# Selects more than fits, because the caller leaves some out.
_OVERFILL = 1.5
# Words of meaning in a user's sentence that is told although it leans on another one, with a figure and without.
_MIN_TELLING_TOPICS, _MIN_NORMAL_TOPICS = 4, 6
# How much of the room is filled even with what is hardly worth telling, and how many characters at most.
_MIN_FILLED, _MAX_FILLED = 0.2, 200


@dataclass(slots=True)
class SentenceSelection:
    """The sentences selected so far, and the score that this leaves to each other one. Scores only ever decrease."""

    pool: list[ScoredSentence]
    weights: TermWeights
    lines: int
    periods: int
    per_period: float
    selected_terms: list[frozenset[str]]
    """The terms of each selected sentence, and of those in the former summary."""
    context: SentenceContext | None = None
    selected: list[int] = field(default_factory=list)
    """Indices in the pool, in the order of selection."""
    needs: dict[SentenceKey, list[SentenceKey]] = field(default_factory=dict)
    _in_period: Counter[int] = field(default_factory=Counter)
    _in_line: Counter[int] = field(default_factory=Counter)
    _similarities: dict[int, tuple[int, float, set[str], int]] = field(default_factory=dict)
    """For each sentence: how many others it was compared with, the highest similarity, its numbers and its weight."""
    _characters: int = 0
    told: int = 0
    """The characters of the former summary."""
    _pool_indices: dict[SentenceKey, int] = field(init=False)
    _contexts: dict[int, list[ScoredSentence]] = field(default_factory=dict)
    _is_selected: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._pool_indices = {sentence.key: at for at, sentence in enumerate(self.pool)}

    def has(self, at: int) -> bool:
        return at in self._is_selected

    def select(self, at: int) -> None:
        """Selects one sentence without its context."""
        self._is_selected.add(at)
        sentence = self.pool[at]
        self.selected.append(at)
        self.selected_terms.append(sentence.terms)
        self._characters += len(sentence.text) + 1
        self._in_period[self._period(sentence)] += 1
        self._in_line[sentence.line] += 1

    def select_with_context(self, at: int) -> None:
        """Selects the sentences that it needs before it, so that any first few of the selection can be understood."""
        if self.has(at):
            return
        self._is_selected.add(at)  # sentences may need each other
        self.select_context(at)
        self.select(at)

    def select_context(self, at: int) -> None:
        context = self._context_of(at)
        self.needs[self.pool[at].key] = [needed.key for needed in context]
        for needed in context:
            self.select_with_context(self._pool_index(needed))

    def correct_summary(self) -> None:
        """Selects the corrections of the former summary, which come before all else."""
        for correction in self.context.summary_corrections if self.context else ():
            self.select_with_context(self._pool_index(correction))

    def complete(self, size: float) -> None:
        """Adds the context of selected sentences, and what follows the task."""
        for at in self.selected[:]:
            self.select_context(at)
            sentence = self.pool[at]
            if self.context and self.context.reader.lines[sentence.line].is_task:
                for following in self.context.following(sentence, int(size * _TASK_SHARE)):
                    self.select_with_context(self._pool_index(following))

    def score(self, at: int) -> float:
        sentence = self.pool[at]
        penalty = _BINDING_PENALTY if is_binding(sentence) else _PERIOD_PENALTY
        crowding = 1 + penalty * (self._in_period[self._period(sentence)] / self.per_period)
        score = sentence.score * self._novelty(at) / crowding / (1 + _LINE_PENALTY * self._in_line[sentence.line])
        if self.context and sentence.key in self.context.corrections:
            # what an assistant got wrong is told by its correction
            is_own = self.context.reader.lines[sentence.line].label != ASSISTANT
            score *= _correction_factor(sentence, self.context.corrections[sentence.key]) if is_own else 0.0
        return score * self._context_factor(at) if at in self._contexts else score

    def fill(self, size: float) -> None:
        """Selects what is worth telling, the best first, until there is more than enough for `size` characters; and
        the rest only where that is very little."""
        self._fill_from(MIN_WORTH_SCORE, _OVERFILL * size)
        least = min(_MIN_FILLED * (size + self.told), _MAX_FILLED)
        self._fill_from(MIN_USEFUL_SCORE, least - self.told - self._characters)

    def _fill_from(self, least: float, characters: float) -> None:
        """Scores only decrease, so the best of the heap is the best of all once its score is up to date."""
        heap = [
            (-sentence.score, at)
            for at, sentence in enumerate(self.pool)
            if sentence.score > least and not self.has(at)
        ]
        heapq.heapify(heap)
        enough = self._characters + characters
        while heap and self._characters < enough:
            at = heapq.heappop(heap)[1]
            if self.has(at):
                continue
            score = self.score(at)
            if score <= 0:
                continue
            if not heap or score >= -heap[0][0]:  # the context is looked up only for the best
                self._context_of(at)
                score = self.score(at)
            if heap and score < -heap[0][0]:
                heapq.heappush(heap, (-score, at))
            elif self.is_understood(at):
                self.select_with_context(at)

    def is_understood(self, at: int) -> bool:
        """Whether a sentence that leans on another one can bring it."""
        sentence = self.pool[at]
        if self.context is None or self.context.reader.lines[sentence.line].label == TOOL:
            return True
        correction = self.context.corrections.get(sentence.key)
        if any(needed is not correction and not needs_context(needed.text) for needed in self._context_of(at)):
            return True
        return is_binding(sentence) or not needs_context(sentence.text) or self._says_enough(sentence)

    def _says_enough(self, sentence: ScoredSentence) -> bool:
        """Whether a reader understands most of what the user says, although a pronoun in it stands for something that
        was named long before: "But she starts daycare on 1 September"."""
        if not self.context or self.context.reader.lines[sentence.line].label != USER or sentence.speaker is not None:
            return False
        least = _MIN_TELLING_TOPICS if rate_sentence(sentence.text) >= TELLING else _MIN_NORMAL_TOPICS
        return count_topic_words(sentence.text) >= least

    def _period(self, sentence: ScoredSentence) -> int:
        return sentence.line * self.periods // self.lines

    def _context_of(self, at: int) -> list[ScoredSentence]:
        if at not in self._contexts:
            self._contexts[at] = self.context.of(self.pool[at]) if self.context else []
        return self._contexts[at]

    def _context_factor(self, at: int) -> float:
        """Lowers the score of a sentence by the room that its context takes."""
        added = [needed for needed in self._context_of(at) if not self.has(self._pool_indices.get(needed.key, -1))]
        size = len(self.pool[at].text) + _SHORT_CONTEXT
        return (size / (size + sum(len(needed.text) for needed in added))) ** _CONTEXT_EXPONENT if added else 1.0

    def _pool_index(self, sentence: ScoredSentence) -> int:
        if sentence.key not in self._pool_indices:
            self._pool_indices[sentence.key] = len(self.pool)
            self.pool.append(sentence)
        return self._pool_indices[sentence.key]

    def _novelty(self, at: int) -> float:
        """From 1 to 0; 0 for a sentence that repeats a single selected one. Another number is always new."""
        terms = self.pool[at].terms
        known = self._similarities.get(at)
        if known and known[0] == len(self.selected_terms):
            return 1 - known[1] * known[1]
        compared, highest, numbers, total = known or (0, 0.0, numeric_terms(terms), self.weights.total(terms) or 1)
        least, common = len(terms) / 3, terms.intersection
        for other in self.selected_terms[compared:]:
            shared = common(other)
            if len(shared) < least:  # too little to matter, as for most
                continue
            similarity = self.weights.total(shared) / total
            if numbers <= other and (similarity >= _REPETITION or (numbers and similarity >= _MIN_ECHO)):
                similarity = 1.0 if similarity >= _REPETITION else max(similarity, _ECHO_SIMILARITY)
            highest = max(highest, similarity)
        self._similarities[at] = len(self.selected_terms), highest, numbers, total
        return 1 - highest * highest


def _correction_factor(sentence: ScoredSentence, later: ScoredSentence) -> float:
    """What is left of the score of a sentence that a later one corrects."""
    topic, said = content_terms(sentence.text), content_terms(later.text)
    values = values_in(sentence.text) - values_in(later.text)
    numbers = {term for term in topic if not term.isalpha()}
    is_replaced = len(values) <= 1 and topic & said - numbers and len(topic - said - numbers) <= _MAX_UNSAID
    if is_replaced:
        return 0.0
    return _RETOLD_FACTOR if numeric_terms(sentence.terms & later.terms) else _OUTDATED_FACTOR


class SentenceRanking(Struct, frozen=True):
    """Sentences in the order of selection, and which of them need which others."""

    sentences: list[ScoredSentence]
    needs: Mapping[SentenceKey, Sequence[SentenceKey]]
    required: frozenset[SentenceKey]

    def understandable(self, picks: Sequence[ScoredSentence]) -> list[ScoredSentence]:
        """Without those that miss their context, as a question its answer, unless they are required; and without what
        is told only as a context of those."""
        kept = [pick for pick in picks if pick.key in self.required or self.has_context(pick, picks)]
        contexts = {key for keys in self.needs.values() for key in keys} - self.required
        unused = contexts - {key for pick in kept for key in self.needs.get(pick.key, ())}
        return [pick for pick in kept if pick.score > MIN_WORTH_SCORE or pick.key not in unused]

    def has_context(self, sentence: ScoredSentence, picks: Sequence[ScoredSentence]) -> bool:
        return {pick.key for pick in picks}.issuperset(self.needs.get(sentence.key, ()))


def select_required(selection: SentenceSelection, lines: Sequence[SourceLine]) -> int:
    """Selects one sentence of each line that the user wants kept, of the task and of each third of the time that is
    worth telling; returns how many."""
    for group in _required_groups(selection.pool, lines):
        if any(map(selection.has, group)):
            continue
        ranked = sorted(group, key=lambda at: (-selection.score(at), -selection.pool[at].score))
        best = next((at for at in ranked if selection.is_understood(at)), None)
        if best is None and selection.selected_terms:
            continue
        best = ranked[0] if best is None else best
        least = MIN_USEFUL_SCORE if lines[selection.pool[best].line].is_task else _MIN_REQUIRED
        if selection.score(best) > least or not selection.selected_terms:
            selection.select(best)
    return len(selection.selected)


def _required_groups(pool: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> list[list[int]]:
    """The summary needs one of each group: what the user wants, the task, and each third of the lines, or of the
    sentences of few lines."""
    wanted: dict[int, list[int]] = {}
    for at, sentence in enumerate(pool):
        if lines[sentence.line].is_wanted:
            wanted.setdefault(sentence.line, []).append(at)
    task = [at for at, sentence in enumerate(pool) if lines[sentence.line].is_task]
    own = [at for at in task if pool[at].speaker is None]
    leading = [at for at in own if pool[at].position < LEADING_SENTENCES and pool[at].score > MIN_USEFUL_SCORE]
    thirds: list[list[int]] = [[], [], []]
    for at, sentence in enumerate(pool):
        thirds[sentence.line * 3 // len(lines) if len(lines) >= 3 else at * 3 // len(pool)].append(at)
    return [group for group in (*wanted.values(), leading or own or task, *thirds) if group]
