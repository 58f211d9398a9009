"""Quotation: the smallest part of a text that tells a fact and can be understood alone, word for word, on one line."""

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from recto.summary.facts import Fact
from recto.summary.prohibitions import qualifies
from recto.summary.reference import leans_back, leans_on_another, names_event, refers_back
from recto.summary.sentences import sentence_positions, word_set
from recto.summary.truncation import cut_text
from recto.text import text_cache

SEPARATOR = " · "
"""Stands between the items of a ledger, and therefore in none of them."""
_MAX_QUOTED, _MAX_BINDING, _MAX_SEARCHED = 90, 160, 180
# A decision of this length is quoted as a whole if there is room.
_MAX_WHOLE = 100
# A clause of this length is quoted as a whole.
_SHORT_CLAUSE = 72
# A sentence that is no longer than this is quoted whole.
_SHORT_SENTENCE = 140
# In a message of this length, a sentence with fewer words of meaning comes with the one before it.
_SHORT_MESSAGE, _THIN = 160, 3
_ALONE = ("path", "url", "command")
_MIN_CLAUSE = 12
_ENOUGH_TOPIC, _NEAR = 2, 24
# A longer word that ends in a digit is a code, and a fact of its own.
_MAX_NUMBERED_WORD = 4
DANGLING_WORDS = word_set(
    "a an the of for per in on at to and or by with from than into onto over under about is are was were be been as "
    "if that which who what when where how you we they it i my your our their this these those not so but because "
    "while between der die das den dem ein eine und oder für mit von auf zu im am bei le la les un une des du de et "
    "ou pour dans sur avec el los las una y o para con en por que"
)
"""Words that cannot end a phrase."""
_NO_TOPIC = DANGLING_WORDS | word_set(
    "have has had will would should could must can may might its his her him them she he all any then there here only "
    "just also around most more other further least now today really very quite almost nearly total every each some "
    "both roughly approximately exactly us me did does do everything anything something things stuff it's that's "
    "there's here's he's she's bis est ist sind hat haben wird il elle nous good great nice thanks thank hello well "
    "already still yet ago agree wir ich sie uns mir mich dir dich ihr ihm ihn habe hatte hatten war waren bin "
    "nos hemos han había somos estoy está están ils elles vous avons avez ont était sont pas plus "
    "encore sais sait noch nicht weiß todavía aún back again zurück wieder monday tuesday wednesday thursday friday "
    "saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag lunes martes miércoles jueves viernes "
    "sábado domingo lundi mardi mercredi jeudi vendredi samedi dimanche"
)
_BOLD = "**"
_TOPIC_WORD = re.compile(r"[^\W\d_][\w'’-]{2,}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2}")
_UNSPACED_WORD = re.compile(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2,4}")
# One character set at the very start keeps the scan fast; which character it was is looked at afterwards.
_CLAUSE_BREAK = re.compile(
    r"[,;:、，；：\s](?:(?<=[,;:])\s+|(?<=\s)\s*(?:[–—-]\s+|(?=\())|(?<=\)\s)\s*|(?<=[、，；：])"
    r"|(?<=\s)\s*(?=(?:but|because|which|while|and|so|aber|weil|denn|und|mais|et|car|pero|porque|y)\s))"
)
_LEAD = re.compile(
    r"(?:[\s,;:–—)*>•-]+|\#+\s+"
    # "14. bis 18. Mai" is no item of a list
    r"|\d{1,2}[.)]\s+(?!(?:bis|und)\b|(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-zä]*\b)"
    r"|(?:and|but|because|while|so|then|also|well|ok|okay|hi|hello|hey|oh|yes|yeah|no(?=[,.!:])|by the way|hm+"
    r"|please|und|aber|weil|ja|bitte|et|mais|donc|car|oui|pero|y|porque|entonces|sí)\b[,.!:]?\s+"
    # approval of what was said before
    r"|(?:perfect|great|good|nice|right|fine|cool|exactly|agreed|sure|super|(?:good )?morning|back|thanks|gut|genau"
    r"|prima|perfekt|stimmt|klar|danke|perfecto|genial|vale|claro|bien|gracias|parfait|d['’]accord|entendu|merci"
    r"|perfetto|bene|esatto|certo|grazie|goed|precies|klopt|dobrze|jasne|perfeito)[,.!]+\s+)+",
    re.IGNORECASE,
)
# A sentence of few words before the one that tells something: "It is. Booked it."
_SHORT_START = re.compile(r"[^\W\d_]+ [^.!?\d\n]{1,30}[.!?]+\s+")
# What holds only then is told with when.
_CONDITION = re.compile(
    r"(?:if|when(?:ever)?|once|unless|for|wenn|falls|sobald|sofern|für|si|cuando|para|quand|dès|pour)\s", re.IGNORECASE
)
_NEGATIONS = word_set("not no never without nicht kein keine keinen nie ne pas sans jamais sin nunca don't won't can't")
_COUNTED_NOUN = re.compile(r"[ \xa0]([a-z][a-z-]{2,})\b(?: ([a-z]{3,}s)\b)?")
_NOT_A_NOUN = re.compile(r"(?:according|\w+ly|\w+ing)$")
_RATE = re.compile(r"\s?(?:(?:per|each|every|pro|par|por|an?)\s|/\s?)[a-zà-ÿ]{1,16}\b|/[月日年人時]", re.IGNORECASE)
_OF_WHAT = re.compile(
    r" (?:of (?:the |all |our )?[a-z]{3,}|(?:slower|faster|more|less|fewer|higher|lower|cheaper|larger|smaller))\b"
)
_PRONOUN = re.compile(
    r"(?:which|that|who|it|this|these|those|they|he|she|its|das|dies\w*|es|er|sie|qui|ce|c['’]est|cela|ça|il|elle"
    r"|eso|esto"
    r"|lo|este|esta)\b",
    re.IGNORECASE,
)
# What it is about stands before it: "Termin verschoben! jetzt 22.4."
_GOES_ON = re.compile(r"(?:its?|it['’]s|now|new|jetzt|nun|neuer?|ahora|nuev[oa]|maintenant|nouve\w+)\b", re.IGNORECASE)
_WORD = re.compile(r"\S+")
_END = " \t\n,;:.!。–—*_"
_CLOSING = ("`", '"', "”", "»", ")")
_PUNCTUATION = "\"'`*_()[],.:;!?"


class Sentences:
    """Where the sentences of a text start and end."""

    def __init__(self, text: str) -> None:
        self.positions = list(sentence_positions(text))
        self._starts = [start for start, _ in self.positions]

    def around(self, offset: int) -> tuple[int, int] | None:
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        start, sentence = self.positions[at]
        return (start, start + len(sentence)) if offset < start + len(sentence) else None

    def number(self, offset: int) -> int | None:
        """The number of the sentence at this place."""
        at = bisect_right(self._starts, offset) - 1
        return at if at >= 0 and offset < self._starts[at] + len(self.positions[at][1]) else None

    def restricted_end(self, start: int, end: int) -> int:
        """Where a sentence ends, with the one after it if that takes something out of it: "not on tents though"."""
        at = bisect_right(self._starts, start)
        if at == len(self.positions) or not qualifies(self.positions[at][1]):
            return end
        following, sentence = self.positions[at]
        is_own = end <= following <= end + 2 and sentence[-1] != "?" and count_topic_words(sentence) > 0
        return following + len(sentence) if is_own and following + len(sentence) - start <= _MAX_BINDING else end

    def before(self, offset: int) -> tuple[int, int] | None:
        """The sentence before the one that starts here."""
        at = bisect_right(self._starts, offset) - 2
        return (self._starts[at], self._starts[at] + len(self.positions[at][1])) if at >= 0 else None


@lru_cache(8)
def sentences_of(text: str) -> Sentences:
    """Split once for all that reads the same text."""
    return Sentences(text)


# -- facts that people state


class Quoted(NamedTuple):
    """The words that tell a fact, and the fewest that do."""

    text: str
    short: str


def quote_fact(fact: Fact, text: str, sentences: Sentences) -> Quoted:
    """The clause that tells it, or so much of a long one as tells its topic."""
    start, end = sentences.around(fact.start) or _line_around(text, fact)
    if (limited := sentences.restricted_end(start, end)) > end:
        item = _item(text[start:limited], fact_ends=fact.end - start, most=_MAX_BINDING)
        return Quoted(item, item)
    before = sentences.before(start)
    if before and end - before[0] <= _MAX_BINDING and names_event(text[before[0] : before[1]]):
        item = _item(text[before[0] : end], most=_MAX_BINDING)
        return Quoted(item, item)
    start, end = _near(text, start, max(end, fact.end), fact)
    clause_start, clause_end = _clause_around(text, start, end, fact)
    if _CONDITION.match(text, start) and fact.end - start <= _MAX_QUOTED:
        clause_start = start
    if _leans(text[clause_start:clause_end], fact):
        wide_start, wide_end = _wider(text, (start, end), clause_start, sentences)
        if wide_start < clause_start or wide_end > clause_end:
            item = _item(text[wide_start:wide_end], fact_ends=fact.end - wide_start)
            return Quoted(item, item)
    whole = text[start:end]
    is_thin = count_topic_words(whole.replace(fact.text, " ", 1)) < _THIN or _GOES_ON.match(whole) is not None
    if len(text) <= _SHORT_MESSAGE and is_thin:
        # "He goes to a startup in Gdańsk. Last day is 14 November"
        is_joined = before is not None and "\n" not in text[before[1] : start] and not _points_back(text, *before)
        item = _item(text[before[0] if before and is_joined else start : end], most=_SHORT_MESSAGE)
        return Quoted(item, item)
    short = _quote_shortly(fact, text, clause_start, clause_end)
    if len(whole) <= _SHORT_SENTENCE and not (leans_back(whole) or leans_on_another(whole)):
        item = _item(text[start:end], fact_ends=fact.end - start, most=_SHORT_SENTENCE)
        return Quoted(item, item)
    if clause_end - clause_start > _SHORT_CLAUSE:
        clause_start, clause_end = _narrow(text, clause_start, clause_end, fact, _SHORT_CLAUSE)
    item = _item(text[clause_start:clause_end], fact_ends=fact.end - clause_start)
    return Quoted(item, short if short in item else item)


def _quote_shortly(fact: Fact, text: str, start: int, end: int) -> str:
    """A path or an address alone, and a command where its clause is long; all else needs its clause."""
    is_alone = fact.kind in _ALONE and (fact.kind != "command" or end - start > _SHORT_CLAUSE)
    return quote_words(fact.text) if is_alone else text[start:end]


def _points_back(text: str, start: int, end: int) -> bool:
    """ "That's exactly our story" names nothing that the next sentence could be about."""
    return _PRONOUN.match(text, start) is not None and count_topic_words(text[start:end]) < _ENOUGH_TOPIC


def _line_around(text: str, fact: Fact) -> tuple[int, int]:
    end = text.find("\n", fact.end)
    return text.rfind("\n", 0, fact.start) + 1, end if end >= 0 else len(text)


def _near(text: str, start: int, end: int, fact: Fact) -> tuple[int, int]:
    """So much of a very long sentence as may be quoted, in whole words."""
    first, last = fact.start - _MAX_SEARCHED, fact.end + _MAX_SEARCHED
    start = text.find(" ", first, fact.start) + 1 or fact.start if first > start else start
    return start, max(text.rfind(" ", fact.end, last), fact.end) if last < end else end


def _clause_around(text: str, start: int, end: int, fact: Fact) -> tuple[int, int]:
    for gap in _CLAUSE_BREAK.finditer(text, start, end):
        if gap.end() <= fact.start:
            start = gap.end() if fact.end - gap.end() >= _MIN_CLAUSE and text[gap.end()] != "(" else start
        elif gap.start() >= fact.end and gap.start() - start >= _MIN_CLAUSE:
            return start, gap.start()
    return start, end


def _leans(clause: str, fact: Fact) -> bool:
    """Whether a clause needs what is before it: "which is 300 euros", "says Ada", "it is due on Friday"."""
    needed = _ENOUGH_TOPIC if fact.kind in ("name", "quote") else 1
    return count_topic_words(clause.replace(fact.text, " ", 1)) < needed or _PRONOUN.match(clause) is not None


def _wider(text: str, sentence: tuple[int, int], clause_start: int, sentences: Sentences) -> tuple[int, int]:
    """The sentence, or with the one before it: "The invoice is not paid. It is about 5,250 euros"."""
    start, end = sentence
    before = sentences.before(start)
    if before and _PRONOUN.match(text, start) and end - before[0] <= _MAX_QUOTED:
        return before[0], end
    if end - start <= _MAX_QUOTED:
        return sentence
    breaks = [gap.end() for gap in _CLAUSE_BREAK.finditer(text, start, clause_start) if gap.end() < clause_start]
    begin = breaks[-1] if breaks else start
    return (begin, end) if end - begin <= _MAX_QUOTED else (clause_start, clause_start)


def _narrow(text: str, start: int, end: int, fact: Fact, most: int) -> tuple[int, int]:
    """From the topic before the fact to its end; where there is none, to the topic behind it."""
    words = [(found.start(), found[0]) for found in _WORD.finditer(text, start, fact.start)]
    topics = [at for at, word in words if word[0] != "(" and is_topic_word(word.strip(_PUNCTUATION))]
    if len(topics) > 1 or (topics and fact.end - topics[0] <= _SHORT_CLAUSE):
        fitting = [at for at in topics if fact.end - at <= most] or topics[-1:]
        return _outside_quotes(text, start, _with_qualifier(text, start, fitting[0])), _clause_end(text, end, fact)
    behind = [found for found in _WORD.finditer(text, fact.end, end) if is_topic_word(found[0].strip(_PUNCTUATION))]
    begin = words[0][0] if words and fact.start - words[0][0] < _MIN_CLAUSE else fact.start
    return begin, behind[: _ENOUGH_TOPIC + 1][-1].end() if behind else end


def _with_qualifier(text: str, start: int, at: int) -> int:
    """A word before the topic that negates or counts it belongs to it."""
    before = text[start:at].split()[-1:]
    belongs = before and (before[0].lower() in _NEGATIONS or before[0][:1].isdigit())
    return text.rfind(before[0], start, at) if belongs else at


def _outside_quotes(text: str, start: int, at: int) -> int:
    """At the opening mark if this place is in quotes."""
    for mark in ('"', "`"):
        if text.count(mark, start, at) % 2:
            return text.rfind(mark, start, at)
    return at


def _clause_end(text: str, end: int, fact: Fact) -> int:
    """The end of the clause if that is near, else the end of what a number counts or of what is in quotes."""
    if end - fact.end <= _NEAR:
        return end
    at = min(end, fact_end(text, fact))
    return at + (text[at : at + 1] in _CLOSING)


def fact_end(text: str, fact: Fact) -> int:
    """Where a fact ends with what it counts and is per: `14 blue boats`, `$1,200 per month`, `40 % of users`."""
    if fact.kind != "number":
        return fact.end
    noun = _counted_noun(text, fact)
    end = fact.end + len(noun)
    if not noun and fact.text.endswith("%"):
        found = _OF_WHAT.match(text, end)
        end = found.end() if found and not _is_dangling(found[0]) else end
    rate = _RATE.match(text, end)
    return rate.end() if rate and not _is_dangling(rate[0]) else end


def _counted_noun(text: str, fact: Fact) -> str:
    """The noun that a bare number counts, with the space before it."""
    found = _COUNTED_NOUN.match(text, fact.end) if fact.text[-1:].isdigit() and fact.text[0] not in "$€£¥₹" else None
    if found is None or found[1] in _NO_TOPIC or _NOT_A_NOUN.match(found[1]):
        return ""
    has_two = found[2] and not found[1].endswith("s") and found[2] not in _NO_TOPIC
    return found[0] if has_two else found[0][: 1 + len(found[1])]


def _is_dangling(words: str) -> bool:
    return words.split()[-1].lower() in DANGLING_WORDS and len(words.split()) > 1


@text_cache(8192)
def is_topic_word(word: str) -> bool:
    """A word with a meaning: no contraction such as "we'll", and no code that is a fact itself."""
    if _UNSPACED.search(word):
        return True
    is_code = word[-1:].isdigit() and len(word) > _MAX_NUMBERED_WORD
    if _TOPIC_WORD.fullmatch(word) is None or word.lower() in _NO_TOPIC or is_code:
        return False
    return re.search(r"['’](?!s$)", word) is None


def count_topic_words(text: str, *, lower: bool = False) -> int:
    """How many words with a meaning there are, or how many of them in lower case."""
    if lower:
        return sum(_has_topic(word) for word in text.split() if not word.strip(_PUNCTUATION)[:1].isupper())
    return _count_topics(text)


@text_cache(8192)
def _count_topics(text: str) -> int:
    return max(sum(map(_has_topic, text.split())), 0 if text.isascii() else len(_UNSPACED_WORD.findall(text)))


@text_cache(8192)
def _has_topic(written: str) -> bool:
    return is_topic_word(written.strip(_PUNCTUATION))


# -- sentences that bind, and lines of machine output


def quote_decision(decision: Fact, text: str, sentences: Sentences, clause: str) -> Quoted:
    """`clause` is the part that decides. A sentence that refers back comes with the one before it."""
    before = sentences.before(decision.start)
    short = _item(clause, most=_MAX_BINDING)
    after = sentences.around(decision.end + 1)
    if (limited := sentences.restricted_end(decision.start, decision.end)) > decision.end:
        whole = _item(text[decision.start : limited], most=_MAX_BINDING)
        return Quoted(whole, whole)
    if before and sentences.restricted_end(*before) == decision.end:
        first = sentences.before(before[0]) if count_topic_words(text[before[0] : before[1]]) < _ENOUGH_TOPIC else None
        if first and decision.end - first[0] <= _MAX_BINDING:  # "In oak. Decided. No plastic"
            before = first
        whole = _item(text[before[0] : decision.end], most=_MAX_BINDING)
        return Quoted(whole, whole)
    is_thin = count_topic_words(short) <= _ENOUGH_TOPIC
    if after and is_thin and after[1] - decision.start <= _MAX_QUOTED and text[after[1] - 1] != "?":
        # "I must correct. It was 204 readers"
        whole = _item(text[decision.start : after[1]], most=_MAX_BINDING)
        return Quoted(whole, whole)
    is_leaning = refers_back(decision.text) or leans_back(decision.text) or leans_on_another(decision.text)
    if before and is_leaning and decision.end - before[0] <= _MAX_BINDING:
        whole = _item(text[before[0] : decision.end], most=_MAX_BINDING)
        # "He needs to know by 1 April" tells nobody who
        return Quoted(whole, whole if refers_back(short) or leans_back(short) else short)
    item = _item(decision.text, most=_MAX_BINDING) if len(decision.text) <= _MAX_WHOLE else short
    return Quoted(item, short if short in item else item)


def quote_line(fact: Fact, text: str) -> str:
    """The line of machine output that tells a number."""
    start, end = _line_around(text, fact)
    return _item(text[start:end], fact_ends=fact.end - start)


def quote_words(words: str) -> str:
    """Something that is understood by itself, such as a path or a command."""
    return _cut(" ".join(words.split(SEPARATOR)[0].split()), _MAX_QUOTED)


def _item(words: str, *, fact_ends: int = 0, most: int = _MAX_QUOTED) -> str:
    """On one line, without what leads over from the text before, and cut behind the fact if it is long."""
    lead = _LEAD.match(words)
    skipped = lead.end() if lead and (not fact_ends or lead.end() < fact_ends) else 0
    start = _SHORT_START.match(words, skipped)
    if start and (not fact_ends or start.end() < fact_ends) and not count_topic_words(start[0]):
        skipped = start.end() if count_topic_words(words[start.end() :]) else skipped
    if fact_ends - skipped > most:
        at = words.find(" ", fact_ends - most)
        skipped = at + 1 if 0 <= at < fact_ends else skipped
    item = " ".join(words[skipped:].split())
    if SEPARATOR in item:
        item = max(item.split(SEPARATOR), key=len)
    item = item.strip().rstrip(_END) if not item.endswith("...") else item
    return _cut(_with_both_marks(item, words, skipped), most)


def _with_both_marks(item: str, words: str, skipped: int) -> str:
    """One mark of bold text may have been cut off: it comes back, or the other one goes."""
    if not item.count(_BOLD) % 2:
        return item
    if words[:skipped].endswith(_BOLD):
        return _BOLD + item
    if f"{item}{_BOLD}" in " ".join(words.split()):
        return item + _BOLD
    return item.removeprefix(_BOLD).removesuffix(_BOLD)


def _cut(item: str, most: int) -> str:
    """Not longer than this, and cut behind a word that does not dangle."""
    if len(item) <= most:
        return item
    words = cut_text(item, most).removesuffix("…").split(" ")
    while len(words) > 1 and words[-1].lower().strip(",") in DANGLING_WORDS:
        words.pop()
    return " ".join(words).rstrip(" ,") + "…"
