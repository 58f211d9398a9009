"""Bindings: sentences and answers that bind what comes, as facts: told by their content words, not by their signs.

Pure; cues in four languages say what binds.
"""

import re

from recto.chat.cues import SMALL_WORDS
from recto.chat.priority import BINDING, CHATTER, weigh
from recto.summary.facts import Fact, plain
from recto.summary.figures import word_set
from recto.summary.layout import PROSE, layout
from recto.summary.sentences import sentences, terms

_READ_FOR_DECISIONS = 20_000
_CLAUSE_END = re.compile(r"(?:,? (?:because|since|so that|which|weil|damit|parce que|porque)\b|, so |[;(–—]|: )")
_LEAD = re.compile(
    r"(?:(?:by the way|please|pls|ok|okay|so|and|but|also|then|well|hi|yes|no|actually|bitte|und|aber)\b[,.!:]?\s+)+",
    re.IGNORECASE,
)


def decisions(text: str) -> list[Fact]:
    """Sentences that bind: decisions, rules, corrections, what the user is and wants; their content words tell them
    apart. Only what people wrote is read."""
    if len(text) > _READ_FOR_DECISIONS:
        text = f"{text[: _READ_FOR_DECISIONS // 2]}\n{text[-_READ_FOR_DECISIONS // 2 :]}"
    lines = layout(text)
    found, place = [], 0
    for sentence in sentences(text):
        start = text.find(sentence, place)
        place = start + len(sentence) if start >= 0 else place
        if start < 0 or not 12 <= len(sentence) <= 400 or lines.at(start) != PROSE or weigh(sentence) != BINDING:
            continue
        content = content_words(sentence)
        if len(content) > 1:
            found.append(Fact("decision", sentence, " ".join(sorted(content)), start, place))
    return found


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
    """A decision in its telling words: without its lead and what follows its first clause, where enough is left."""
    said = " ".join(sentence.split()).rstrip(".!。")
    said = said[lead.end() :] if (lead := _LEAD.match(said)) else said
    end = next((match.start() for match in _CLAUSE_END.finditer(said) if match.start() >= 24), len(said))
    return said[:end].rstrip(" ,")


_SMALL = word_set(
    "the and for with that this from have has had will would should could must not are was were been its our your "
    "their they them you she his her him but all any can let us use using get got one two into over than then there "
    "here what when who how why does did don't let's we'll i'll we're it's i'm always never only decided agreed "
    "please make sure user assistant tool now also just der die das und ist nicht ein eine einen wir ich sie mit "
    "für von auf den dem des les des une est pas que qui pour dans nous vous el los las una que por con para"
)


def content_words(sentence: str) -> set[str]:
    return {word for word in terms(sentence) if (len(word) > 2 and word not in _SMALL) or not word.isascii()}
