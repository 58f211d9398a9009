"""Corrections: sentences that later ones take back, or repeat with another number. Does not know which are selected."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from recto.summary.sentence_score import TermWeights, numeric_terms
from recto.summary.sentences import word_set
from recto.summary.source_lines import ScoredSentence, SentenceKey

_CORRECTION = re.compile(
    r"\b(?:actually|instead|rather than|correct(?:ion|ed|s|ing)?|scratch that|wrong|mistake|changed|moved|postponed"
    r"|no longer|on second thou?ght\w*|I meant|not \w+,? but"
    r"|stattdessen|doch lieber|lieber|statt|korrektur|falsch|verschoben|geändert|nicht mehr|sondern|ich meinte"
    r"|plutôt|en fait|erreur|au lieu|finalement|reporté\w*|corrección|en realidad|en vez|mejor|cambi\w+|equivoc\w+)\b"
    r"|^no[,.] |^nein[,.] |^non[,.] |改成|改为|改到|更正|不对|而是|其实"
    r"|ではなく|じゃなくて|変更|変わり|訂正|아니라|변경",
    re.IGNORECASE,
)
# In ASCII, every correction has one of these terms. The pattern above takes longer than everything else here.
_CORRECTION_TERMS = word_set(
    "actuall instead rather correct scratch wrong mistake changed moved postpon longer second meant not stattde lieber "
    "statt korrekt falsch verscho mehr sondern meinte fait erreur lieu finalem vez mejor realida equivoc cambio cambia "
    "cambiar cambiad cambiam no nein non"
)
# How much of its topic, by weight, a sentence must share with another one that corrects it.
_MIN_SHARED_TOPIC, _MIN_SHARED_WORDS = 0.35, 0.7
_NEAR_LINES, _NEAR_BONUS = 6, 0.1
_MAX_SMALL_WORD = 3
# A sentence that differs in its numbers from this many others is part of a series, not a correction.
_MIN_SERIES = 3
_MAX_POSTINGS = 40
_MAX_INSPECTED = 240


class Claim(NamedTuple):
    """A sentence, its topic without numbers and small words, and the numbers in it."""

    sentence: ScoredSentence
    key: SentenceKey
    topic: set[str]
    numbers: set[str]
    weight: int


def find_corrections(pool: Sequence[ScoredSentence], weights: TermWeights) -> dict[SentenceKey, ScoredSentence]:
    """For each corrected sentence the latest one that corrects it."""
    found: dict[SentenceKey, ScoredSentence] = {}
    index: dict[str, list[Claim]] = {}
    times: Counter[SentenceKey] = Counter()
    for sentence in pool:
        claim = _claim(sentence, weights)
        corrected = list(_corrected_by(claim, index, weights))
        found |= dict.fromkeys(corrected, sentence)
        times.update([*corrected, *[sentence.key] * len(corrected)])
        for term in claim.topic:
            index.setdefault(term, []).append(claim)
    return {key: later for key, later in found.items() if max(times[key], times[later.key]) < _MIN_SERIES}


def _claim(sentence: ScoredSentence, weights: TermWeights) -> Claim:
    numbers = numeric_terms(sentence.terms)
    topic = {term for term in sentence.terms - numbers if len(term) > _MAX_SMALL_WORD or not term.isascii()}
    return Claim(sentence, sentence.key, topic, numbers, weights.total(topic) or 1)


def _corrected_by(later: Claim, index: Mapping[str, Sequence[Claim]], weights: TermWeights) -> Iterator[SentenceKey]:
    """Sentences on the same topic with other numbers, and the closest one if the later has words of a correction."""
    is_explicit = _is_explicit(later.sentence)
    if not is_explicit and not later.numbers:
        return
    related = {one.key: one for term in sorted(later.topic) for one in index.get(term, ())[-_MAX_POSTINGS:]}
    closeness: list[tuple[float, SentenceKey]] = []
    for key, earlier in related.items():
        shared = weights.total(earlier.topic & later.topic) / earlier.weight
        if shared >= _MIN_SHARED_WORDS and _has_other_numbers(earlier, later):
            yield key
        elif is_explicit:
            closeness.append((shared + _NEAR_BONUS * (later.key[0] - key[0] <= _NEAR_LINES), key))
    if closeness and max(closeness)[0] >= _MIN_SHARED_TOPIC:
        yield max(closeness)[1]


def _is_explicit(sentence: ScoredSentence) -> bool:
    if sentence.text.isascii() and _CORRECTION_TERMS.isdisjoint(sentence.terms):
        return False
    return _CORRECTION.search(sentence.text[:_MAX_INSPECTED]) is not None


def _has_other_numbers(earlier: Claim, later: Claim) -> bool:
    return bool(earlier.numbers and later.numbers) and not earlier.numbers <= later.numbers
