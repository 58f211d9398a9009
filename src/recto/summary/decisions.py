"""Decisions: sentences that bind later turns, and short answers of the user, as facts.

A decision is identified by its content words, so that another wording is recognised.

Corrections: sentences that later ones take back, or repeat with another number. Does not know which are selected.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recto.chat.cues import SMALL_WORDS
from recto.chat.priority import BINDING, CHATTER, sentence_priority
from recto.summary.facts import Fact, normalize_fact_text
from recto.summary.machine_output import PROSE, LineKinds, classify_lines
from recto.summary.sentence_score import TermWeights, numeric_terms
from recto.summary.sentences import IS_UNSPACED, decision_start, rate_sentence, sentence_positions, terms, word_set
from recto.summary.source_lines import ScoredSentence, SentenceKey

_MAX_READ = 20_000
_MIN_SENTENCE, _MIN_UNSPACED, _MAX_SENTENCE = 6, 3, 400
# A decision that starts later than this in a sentence is reported without what precedes it.
_LATE_START = 30
_MIN_CLAUSE, _FEW_WORDS = 16, 4
_MAX_CORRECTION = 90
_MAX_ANSWER, _MAX_ANSWER_WORDS = 40, 3
_CLAUSE_END = re.compile(r"(?:,? (?:because|since|so that|which|weil|damit|parce que|porque)\b|, so |[;(–—]|: )")
_DECIDES = re.compile(
    r"\b(?:decid|agree|chose|choos|pick|settl|opt(?:ed|s)? |went with|let's|must|never|always|should|don't|do not"
    r"|only|rather|prefer|use |have to|need|budget|deadline|due|allergic|make sure|muss|soll|nie|immer|nehmen"
    r"|entschieden|geeinigt|doit|faut|toujours|jamais|debe|siempre|nunca)|it is$|\d",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"\b(?:no|not|never|don['’]t|avoid|nothing|nie|niemals|nicht|keine?n?|nichts|ohne|verboten|untersagt|nunca|jamás|nada|sin"
    r"|prohibid[oa]s?|pas|jamais|sans|interdite?s?|forbidden|prohibited|banned)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:(?:by the way|hm+|fine|alright|please|pls|ok|okay|so|and|but|also|then|well|hi|yes|bitte|und"
    r"|aber)\b[,.!:]?\s+)+",
    re.IGNORECASE,
)
_COMMON_WORDS = word_set(
    "the and for with that this from have has had will would should could must not are was were been its our your "
    "their they them you she his her him but all any can let us use using get got one two into over than then there "
    "here what when who how why does did don't let's we'll i'll we're it's i'm always never only decided agreed "
    "against instead rather chose chosen choose went gone opted settled sich haben gegen statt entschi "
    "please make sure user assistant tool now also just der die das und ist nicht ein eine einen wir ich sie mit "
    "für von auf den dem des les des une est pas que qui pour dans nous vous el los las una que por con para"
)


_SMALL_TERMS = _COMMON_WORDS | SMALL_WORDS | word_set("if or as at by do he me up us we am be an it")


def find_decisions(
    text: str, lines: LineKinds | None = None, positions: Iterable[tuple[int, str]] | None = None
) -> list[Fact]:
    """Sentences that bind: decisions, rules, corrections, who the user is and what they want. Reads prose only. `lines`
    and the `positions` of sentences are those of the text where they are known already."""
    lines = lines or classify_lines(text)
    found = []
    for start, sentence in sentence_positions(text) if positions is None else positions:
        is_read = start < _MAX_READ // 2 or start > len(text) - _MAX_READ // 2
        shortest = _MIN_SENTENCE if sentence.isascii() or not IS_UNSPACED.search(sentence) else _MIN_UNSPACED
        has_length = shortest <= len(sentence) <= _MAX_SENTENCE
        if is_read and has_length and lines.at(start) == PROSE and rate_sentence(sentence) == BINDING:
            found += _decision(sentence, start)
    return found


def _decision(sentence: str, start: int) -> list[Fact]:
    """The sentence, from where it decides if that comes late. An explicit decision needs only one content word."""
    decides_at = decision_start(sentence)
    skipped = decides_at if decides_at is not None and decides_at > _LATE_START else 0
    content = content_terms(sentence[skipped:])
    if len(content) < 2:  # "use Go instead of C"
        content |= {word for word in terms(sentence[skipped:]) if len(word) > 1 and word not in _SMALL_TERMS}
    is_vague = decides_at is None and len(sentence.split()) < _FEW_WORDS and not _FORBIDS.search(sentence)
    if len(content) < (2 if is_vague and not IS_UNSPACED.search(sentence) else 1):
        return []
    return [Fact("decision", sentence[skipped:], " ".join(sorted(content)), start + skipped, start + len(sentence))]


def find_answers(text: str, role: str) -> list[Fact]:
    """One to three words by the user are an answer, and usually one that matters."""
    answer = text.strip()
    is_short = role == "user" and len(answer) <= _MAX_ANSWER and len(answer.split()) <= _MAX_ANSWER_WORDS
    if not is_short or answer.endswith(("?", "？")) or sentence_priority(answer) == CHATTER:
        return []
    answer = answer.rstrip(".!。")
    words = normalize_fact_text(answer).split()
    if not any((len(word) > 3 and word not in SMALL_WORDS) or not word.isascii() for word in words):
        return []
    start = text.index(answer)
    return [Fact("quote", answer, normalize_fact_text(answer), start, start + len(answer))]


def shorten_decision(sentence: str) -> str:
    """The clause that decides, without filler words at its start."""
    clauses = _split_clauses(" ".join(sentence.split()).rstrip(".!。"))
    clause = next((clause for clause in clauses if _DECIDES.search(clause)), clauses[0])
    if corrects(sentence) and not corrects(clause) and len(sentence) <= _MAX_CORRECTION:
        clause = " ".join(sentence.split()).rstrip(".!。")
    clause = clause[filler.end() :] if (filler := _FILLER.match(clause)) else clause
    return clause.rstrip(" ,")


def _split_clauses(sentence: str) -> list[str]:
    """Clauses that are long enough to be understood."""
    found, start = [], 0
    for match in _CLAUSE_END.finditer(sentence):
        if match.start() - start >= _MIN_CLAUSE:
            found.append(sentence[start : match.start()])
            start = match.end() if match[0].strip() in (",", ", so", ";", "(", ":", "–", "—") else match.start()
    return [*found, sentence[start:].strip()] if len(sentence) - start >= _MIN_CLAUSE or not found else found


def content_terms(sentence: str) -> set[str]:
    """Its terms without common words."""
    return {word for word in terms(sentence) if (len(word) > 2 and word not in _COMMON_WORDS) or not word.isascii()}


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
    return corrects(sentence.text)


def without_correction(text: str) -> str:
    return _CORRECTION.sub(" ", text)


def corrects(text: str) -> bool:
    """Whether it has words of a correction."""
    return _CORRECTION.search(text[:_MAX_INSPECTED]) is not None


def _has_other_numbers(earlier: Claim, later: Claim) -> bool:
    return bool(earlier.numbers and later.numbers) and not earlier.numbers <= later.numbers
