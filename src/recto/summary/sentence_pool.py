"""Sentence pool: the sentences that an extractive summary chooses from, the best of each period of the conversation.

Knows how much each sentence matters; does not know which of them are chosen.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from recto.summary.sentence_score import (
    LEADING_SENTENCES,
    MIN_WORTH_SCORE,
    TermWeights,
    frequent_sentences,
    promise_of,
    score_sentence,
    term_weights,
)
from recto.summary.sentence_series import lower_series
from recto.summary.settled import lower_past
from recto.summary.source_lines import LineReader, LineSentence, ScoredSentence, SourceLine

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
    promises = [promise_of(sentence, lines[at], weights) for at, sentence in sentences]
    bonuses = [_task_bonus(lines[at], sentence) for at, sentence in sentences]
    highest = [promise.highest + bonus for promise, bonus in zip(promises, bonuses, strict=True)]
    ranks: list[float] = []
    scored: list[tuple[float, int, int, float, LineSentence]] = []
    for number in sorted(range(len(sentences)), key=highest.__getitem__, reverse=True):
        if len(ranks) == most and highest[number] <= ranks[0]:
            break
        if highest[number] < MIN_WORTH_SCORE and len(ranks) >= _ENOUGH:
            break
        (at, sentence), bonus = sentences[number], bonuses[number]
        score = score_sentence(sentence, lines[at], weights, frequent, promises[number])
        (heapq.heappush if len(ranks) < most else heapq.heappushpop)(ranks, score + bonus)
        scored.append((-score - bonus, at, sentence.position, score, sentence))
    for _, at, _, score, found in heapq.nsmallest(most, scored):  # of equals, the earlier
        yield ScoredSentence(at, found.position, found.text, found.terms, score, found.speaker)


def _task_bonus(line: SourceLine, sentence: LineSentence) -> int:
    """Makes sure that the start of the task is in the pool."""
    return 10 if line.is_task and sentence.position < LEADING_SENTENCES and sentence.speaker is None else 0
