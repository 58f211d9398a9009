"""Bindings: sentences and answers that bind what comes, as facts: told by their content words, not by their signs.

Pure; cues in four languages say what binds.
"""

import re

from recto.chat.cues import SMALL_WORDS
from recto.chat.priority import BINDING, CHATTER, weigh
from recto.summary.facts import Fact, plain
from recto.summary.figures import word_set
from recto.summary.layout import PROSE, layout
from recto.summary.sentences import placed, terms
from recto.summary.settled import settles_at
from recto.summary.worth import weight_of

_READ_FOR_DECISIONS = 20_000
_SHORTEST, _LONGEST, _LATE, _CLAUSE = 6, 400, 30, 16
_CLAUSE_END = re.compile(r"(?:,? (?:because|since|so that|which|weil|damit|parce que|porque)\b|, so |[;(–—]|: )")
_DECIDES = re.compile(
    r"\b(?:decid|agree|chose|choos|pick|settl|opt(?:ed|s)? |went with|let's|must|never|always|should|don't|do not"
    r"|only|rather|prefer|use |have to|need|budget|deadline|due|allergic|make sure|muss|soll|nie|immer|nehmen"
    r"|entschieden|geeinigt|doit|faut|toujours|jamais|debe|siempre|nunca)|it is$|\d",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:by the way|hm+|fine|alright|please|pls|ok|okay|so|and|but|also|then|well|hi|yes|no|actually|bitte|und"
    r"|aber)\b[,.!:]?\s+)+",
    re.IGNORECASE,
)


def decisions(text: str) -> list[Fact]:
    """Sentences that bind: decisions, rules, corrections, what the user is and wants; their content words tell them
    apart. Only what people wrote is read."""
    if len(text) > _READ_FOR_DECISIONS:
        text = f"{text[: _READ_FOR_DECISIONS // 2]}\n{text[-_READ_FOR_DECISIONS // 2 :]}"
    lines = layout(text)
    found = []
    for start, sentence in placed(text):
        if _SHORTEST <= len(sentence) <= _LONGEST and lines.at(start) == PROSE and weight_of(sentence) == BINDING:
            found += _decided(sentence, start)
    return found


def _decided(sentence: str, start: int) -> list[Fact]:
    """The sentence, from where it settles something if that comes late. What was settled in one word is told by it."""
    at = settles_at(sentence)
    late = at if at is not None and at > _LATE else 0
    content = content_words(sentence[late:])
    if len(content) < (2 if at is None else 1):
        return []
    return [Fact("decision", sentence[late:], " ".join(sorted(content)), start + late, start + len(sentence))]


def answers(text: str, role: str) -> list[Fact]:
    """A word or two by the user are an answer, and mostly one that matters."""
    said = text.strip()
    is_short = role == "user" and len(said) <= 40 and len(said.split()) <= 3
    if not is_short or said.endswith(("?", "？")) or weigh(said) == CHATTER:
        return []
    said = said.rstrip(".!。")
    if not any((len(word) > 3 and word not in SMALL_WORDS) or not word.isascii() for word in plain(said).split()):
        return []
    start = text.index(said)
    return [Fact("quote", said, plain(said), start, start + len(said))]


def shortest(sentence: str) -> str:
    """A decision in its telling words: the clause that decides, without its lead, where enough is left."""
    said = " ".join(sentence.split()).rstrip(".!。")
    clauses = _clauses(said)
    clause = next((each for each in clauses if _DECIDES.search(each)), clauses[0])
    clause = clause[lead.end() :] if (lead := _LEAD.match(clause)) else clause
    return clause.rstrip(" ,")


def _clauses(said: str) -> list[str]:
    """Pieces that are long enough to tell something."""
    found, start = [], 0
    for match in _CLAUSE_END.finditer(said):
        if match.start() - start >= _CLAUSE:
            found.append(said[start : match.start()])
            start = match.end() if match[0].strip() in (",", ", so", ";", "(", ":", "–", "—") else match.start()
    return [*found, said[start:].strip()] if len(said) - start >= _CLAUSE or not found else found


_SMALL = word_set(
    "the and for with that this from have has had will would should could must not are was were been its our your "
    "their they them you she his her him but all any can let us use using get got one two into over than then there "
    "here what when who how why does did don't let's we'll i'll we're it's i'm always never only decided agreed "
    "against instead rather chose chosen choose went gone opted settled sich haben gegen statt entschi "
    "please make sure user assistant tool now also just der die das und ist nicht ein eine einen wir ich sie mit "
    "für von auf den dem des les des une est pas que qui pour dans nous vous el los las una que por con para"
)


def content_words(sentence: str) -> set[str]:
    return {word for word in terms(sentence) if (len(word) > 2 and word not in _SMALL) or not word.isascii()}
