"""Decisions: sentences that bind later turns, and short answers of the user, as facts.

A decision is identified by its content words, so that another wording is recognised.
"""

import re
from collections.abc import Iterable

from recto.chat.cues import SMALL_WORDS
from recto.chat.priority import BINDING, CHATTER, sentence_priority
from recto.summary.corrections import corrects
from recto.summary.facts import Fact, normalize_fact_text
from recto.summary.machine_output import PROSE, LineKinds, classify_lines
from recto.summary.sentences import (
    IS_UNSPACED,
    decision_start,
    is_question,
    rate_sentence,
    sentence_positions,
    terms,
    word_set,
)
from recto.summary.statements import leaves_open

_MAX_READ = 20_000
_MIN_SENTENCE, _MIN_UNSPACED, _MAX_SENTENCE = 6, 3, 400
# A decision that starts later than this in a sentence is reported without what precedes it.
_LATE_START = 30
_MIN_CLAUSE, _FEW_WORDS, _MIN_DECIDED = 16, 4, 2
_MAX_CORRECTION = 90
_MAX_ANSWER, _MAX_ANSWER_WORDS = 40, 3
_CLAUSE_END = re.compile(r"(?:,? (?:because|since|so that|which|weil|damit|parce que|porque)\b|, so |[;(–—]|: )")
_DECIDES = re.compile(
    r"\b(?:decid|agree|chose|choos|pick|settl|opt(?:ed|s)? |went with|let's|must|never|always|should|don't|do not"
    r"|only|rather|prefer|use |have to|need|budget|deadline|due|allergic|make sure|muss|soll|nie|immer|nehmen"
    r"|entschieden|geeinigt|doit|faut|toujours|jamais|debe|siempre|nunca)|it is$|\d",
    re.IGNORECASE,
)
# A sentence that starts so takes back what was said before.
_TAKES_BACK = re.compile(
    r"(?:(?:oh|ah|ach|hm+|sorry|perdona|pardon|ok|okay|no|nein|non|oops)[,.!]* )*"
    r"(?:actually[, ]+(?!i['’]m|i am|that|pretty|quite|really)|no wait|wait[,:]|correction|scratch that|i meant? "
    r"|korrektur|planänderung|quatsch|ich meint?e |cambio de plan|en realidad|quise decir|corrección|finalement"
    r"|en fait|je voulais)",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"\b(?:no|not|never|don['’]t|avoid|nothing|only|nur|solo|sólo|nie|niemals|nicht|keine?n?|nichts|ohne|verboten|untersagt|nunca|jamás"
    r"|nada|sin"
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
        if is_read and has_length and lines.at(start) == PROSE and _is_decision(sentence):
            found += _decision(sentence, start)
    return found


def _is_decision(sentence: str) -> bool:
    priority = rate_sentence(sentence)
    takes_back = priority != CHATTER and _TAKES_BACK.match(sentence) is not None and not is_question(sentence)
    return priority == BINDING or takes_back


def _decision(sentence: str, start: int) -> list[Fact]:
    """The sentence, from where it decides if that comes late. An explicit decision needs only one content word."""
    decides_at = decision_start(sentence)
    skipped = decides_at if decides_at is not None and decides_at > _LATE_START else 0
    if skipped and len(content_terms(sentence[skipped:])) < _MIN_DECIDED:  # "Alles raus: Wanne, Fliesen, Klo bleibt"
        skipped = 0
    content = content_terms(sentence[skipped:])
    if len(content) < 2:  # "use Go instead of C"
        content |= {word for word in terms(sentence[skipped:]) if len(word) > 1 and word not in _SMALL_TERMS}
    is_vague = decides_at is None and len(sentence.split()) < _FEW_WORDS and not _FORBIDS.search(sentence)
    if len(content) < (2 if is_vague and not IS_UNSPACED.search(sentence) else 1):
        return []
    if leaves_open(sentence) and len(sentence.split()) < _FEW_WORDS:  # "queda pendiente": what?
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
    if len(sentence) <= _MAX_CORRECTION and corrects(sentence) and not corrects(clause):
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
