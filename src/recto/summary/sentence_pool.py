"""Sentence pool: the sentences that an extractive summary chooses from, the best of each period of the conversation.

Knows how much each sentence matters; does not know which of them are chosen.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from recto.summary.sentence_score import (
    LEADING_SENTENCES,
    MIN_WORTH_SCORE,
    Promise,
    cannot_be_worth,
    frequent_sentences,
    promise_of,
    score_sentence,
)
from recto.summary.sentence_series import lower_series
from recto.summary.settled import lower_past
from recto.summary.source_lines import LineReader, LineSentence, ScoredSentence, SourceLine
from recto.summary.term_weights import TermWeights, term_weights

_MAX_SAMPLED_LINES = 2000
_MAX_PERIODS = 12
# Sentences are compared with each other only within the pool, which has at least and at most this many.
_MIN_POOL, _MAX_POOL = 150, 1500
# Of what is hardly worth telling, so many sentences of a period are enough: it is told only where there is little else.
_ENOUGH = 6


class SentencePool(Struct, frozen=True):
    """The best sentences of each period, in order of time; and the weights of terms. Made once for several limits."""

    reader: LineReader
    sentences: Sequence[ScoredSentence]
    weights: TermWeights

    @property
    def lines(self) -> Sequence[SourceLine]:
        return self.reader.lines


def build_pool(lines: Sequence[SourceLine], characters: float) -> SentencePool:
    """Enough to choose from for a summary of so many characters."""
    reader, size = LineReader(lines), min(max(_MIN_POOL, int(characters / 20)), _MAX_POOL)
    sample = {at: reader.sentences(at) for at in range(0, len(lines), len(lines) // _MAX_SAMPLED_LINES + 1)}
    weights = term_weights([sentence.terms for found in sample.values() for sentence in found])
    frequent = frequent_sentences(sentence.text for found in sample.values() for sentence in found)
    bounds = [-(-at * len(lines) // _MAX_PERIODS) for at in range(_MAX_PERIODS + 1)]
    pool: list[ScoredSentence] = []
    per_period = max(size // _MAX_PERIODS, size // max(1, len(lines)))
    for start, end in pairwise(bounds):
        found = [
            (at, sentence) for at in range(start, end) for sentence in sample.pop(at, None) or reader.sentences(at)
        ]
        pool += _best(found, per_period, lines, weights, frequent)
    ordered = sorted(pool, key=lambda sentence: sentence.key)
    return SentencePool(reader, lower_past(lower_series(ordered, lines), lines), weights)


def _best(
    sentences: Sequence[tuple[int, LineSentence]],
    most: int,
    lines: Sequence[SourceLine],
    weights: TermWeights,
    frequent: frozenset[str],
) -> Iterator[ScoredSentence]:
    """The best of a period. Once there are enough, those that promise less are not scored."""
    hopeful = [(at, sentence) for at, sentence in sentences if not cannot_be_worth(sentence, lines[at])]
    promised = _promised(hopeful, lines, weights)
    if sum(each.highest >= MIN_WORTH_SCORE for each in promised) < _ENOUGH:
        promised = _promised(sentences, lines, weights)
    ranks: list[float] = []
    scored: list[tuple[float, int, int, float, LineSentence]] = []
    for each in sorted(promised, key=lambda each: each.highest, reverse=True):
        if len(ranks) == most and each.highest <= ranks[0]:
            break
        if each.highest < MIN_WORTH_SCORE and len(ranks) >= _ENOUGH:
            break
        score = score_sentence(each.sentence, lines[each.line], weights, frequent, each.promise)
        (heapq.heappush if len(ranks) < most else heapq.heappushpop)(ranks, score + each.bonus)
        scored.append((-score - each.bonus, each.line, each.sentence.position, score, each.sentence))
    for _, at, _, score, found in heapq.nsmallest(most, scored):  # of equals, the earlier
        yield ScoredSentence(at, found.position, found.text, found.terms, score, found.speaker)


class _Promised(NamedTuple):
    highest: float
    """What it may score, bonus included."""
    bonus: int
    promise: Promise
    line: int
    sentence: LineSentence


def _promised(
    sentences: Sequence[tuple[int, LineSentence]], lines: Sequence[SourceLine], weights: TermWeights
) -> list[_Promised]:
    found: list[_Promised] = []
    for at, sentence in sentences:
        promise, bonus = promise_of(sentence, lines[at], weights), _task_bonus(lines[at], sentence)
        found.append(_Promised(promise.highest + bonus, bonus, promise, at, sentence))
    return found


def _task_bonus(line: SourceLine, sentence: LineSentence) -> int:
    """Makes sure that the start of the task is in the pool."""
    return 10 if line.is_task and sentence.position < LEADING_SENTENCES and sentence.speaker is None else 0
