"""Settled: what later messages have put an end to. A question that was answered after a while, an error after which it
works, a prohibition that was lifted and an offer after which another one was agreed on are past. Knows the sentences to
choose from, in order of time, not which are chosen.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from recto.chat.cues import words_of
from recto.chat.priority import BINDING
from recto.summary.corrections import values_in
from recto.summary.decisions import content_terms
from recto.summary.past_plans import is_only_plan, is_over
from recto.summary.prohibitions import has_prohibition, negates, permits
from recto.summary.sentence_score import UNWORTHY_FACTOR
from recto.summary.sentences import IS_UNSPACED, is_question, rate_sentence, word_set
from recto.summary.source_lines import TOOL, USER, ScoredSentence, SentenceKey, SourceLine
from recto.summary.statements import leaves_open, makes_offer
from recto.summary.success import tells_failure, works_now
from recto.summary.term_weights import CALENDAR
from recto.text import LazyPattern, text_cache

# What does not hold any more would mislead: it is told less than what is merely not worth it.
_OUTDATED_FACTOR = 0.005
# What was to be on a day that is over, and tells more than that.
_OVER_FACTOR = 0.5
# An error is past if it works within so many messages.
_MAX_UNTIL_WORKS = 14
# Of what a question asks, so much must be in one later statement; a single word may be anything.
_MIN_ANSWERED, _MIN_ANSWER = 0.6, 2
# Where the statement has the kind of thing that was asked for, this much is enough.
_MIN_KIND_SHARE = 0.5
_STEM, _MIN_TOPIC = 5, 4
_WORDS_ASKING = word_set(
    "when what time date which whose whom much many long have does will shall still anybody wann wieviel wieviele "
    "welche "
    "welcher cuándo cuánto cuánta cuántos cuántas quién quiénes cuál combien quand quel quelle wanneer hoeveel welke "
    "quando quanto quanta quanti quante quem qual kiedy będzie yet know knows sure decided idea ancora sappiamo "
    "jeszcze "
    "wiemy wiadomo todavía sabemos savons encore weten noch wissen ainda find want"
)
_ASKS_WHEN = LazyPattern(
    r"\b(?:when|what (?:day|time|date)|until when|wann|cuándo|quand|wanneer|quando|kiedy)\b|いつ|何時|何日"
)
_ASKS_HOW_MANY = LazyPattern(
    r"\b(?:how (?:much|many|long|big|far|old)|wie ?viele?|wie (?:lange|groß|hoch|teuer)|cuánt[oa]s?|combien|hoeveel"
    r"|quant[oaie]|ile|ilu)\b|いくら|何人|何個|どのくらい"
)
_ASKS_WHO = LazyPattern(r"\b(?:who|whom|wer|wem|wen|quién(?:es)?|qui|chi|kto|kim|quem)\b|誰|どなた")
_WHEN = frozenset(("date", "time", "weekday"))
_NAMES = re.compile(r"[A-ZÄÖÜÉŁŚŻ][^\W\d_]+(?: [A-ZÄÖÜÉŁŚŻ]|.*さん)|(?<=[\w,] )[A-ZÄÖÜÉŁŚŻ][^\W\d_]{2}|さん")
_SELF = word_set("i i'm we my me ich wir yo nosotros je nous ik wij io noi ja my eu nós me faccio robię faço hago fais")
_RUN = re.compile(r"[\u3400-\u9fff]{2,}|[\u30a0-\u30ff]{2,}")

_CLAUSE_END = re.compile(r"[,;:(–—]| because | weil | porque | parce que | omdat | perché | bo ")

_AGREES = LazyPattern(
    r"\b(?:agreed|deal|accepted|we settled|shook hands|(?:is|that['’]s|it['’]s) (?:ok|okay|fine|a deal)|geeinigt"
    r"|einigen uns|abgemacht"
    r"|einverstanden|angenommen|zugesagt|acordado|acordamos|aceptó|aceptado|trato hecho|quedamos en|d['’]accord"
    r"|accepté|conclu"
    r"|akkoord|afgesproken|geaccepteerd|d['’]accordo|accettato|affare fatto|zgodził\w*|dogadali\w*|umowa stoi|zgoda"
    r"|combinado"
    r"|aceitou|aceito|fechado)\b|合意|決まりました"
)
_OFFERS = LazyPattern(
    r"\b(?:offer\w*|propos\w*|counter\w*|ask(?:s|ed|ing)?|say(?:s|ing)?|said|told|want(?:s|ed)?|came back|go up to"
    r"|make it|open with"
    r"|answer with|joke|biet\w*|angebot\w*|verlang\w*|will|möchte|sagt\w*|ofrec\w*|pid\w+|dice|quiere|propon\w*"
    r"|offr\w*|demande|veut"
    r"|dit|bied\w*|bod|vraagt|wil|zegt|chied\w*|vuole|ofer\w*|chce|proponuj\w*|mówi|pede|quer|diz)\b|提示|希望"
)
_BIDS = LazyPattern(r"\b(?:make it|offer\w*|propos\w*|counter\w*|biete\w*|ofrezco|bied|offro|oferuj\w*)\b")
# "Octavia: they want 8,950" is about something else.
_TITLED = re.compile(r".{1,24}: ")
_MONEY = re.compile(
    r"(?<![\d.,:/-])\d{1,3}(?:[.,  ]\d{3})+(?!\d)|(?<![\d.,:/-])\d{2,7}(?![\d:/-]|[.,]\d|st\b|nd\b|rd\b|th\b)"
)
_NOT_DIGITS = re.compile(r"\D")
# An offer is of the size of what was agreed on, and was made within so many messages before.
_LEAST_OFFER, _MOST_OFFER, _MAX_UNTIL_AGREED = 0.4, 2.5, 40


def lower_past(pool: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> list[ScoredSentence]:
    """Errors that were mended, questions that were answered, prohibitions that were lifted and offers that others took
    the place of are hardly worth telling; what else binds stays."""
    worked = [one.line for one in pool if works_now(one.text)]
    days = [line.day for line in lines if line.day]
    first, today = min(days, default=None), max(days, default=None)
    own = [one for one in pool if lines[one.line].label != TOOL and one.speaker is None and not lines[one.line].is_task]
    past, outdated = _answered(own, lines), _lifted(own, lines) | _outbid(own)

    def is_past(one: ScoredSentence) -> bool:
        if one.key in past:
            return True
        if lines[one.line].is_task or rate_sentence(one.text) == BINDING:
            return False
        if not worked or one.speaker is not None or not tells_failure(one.text):
            return False
        return any(one.line < line <= one.line + _MAX_UNTIL_WORKS for line in worked)

    def factor(one: ScoredSentence) -> float:
        if one.key in outdated:
            return _OUTDATED_FACTOR
        if is_past(one):
            return UNWORTHY_FACTOR
        line = lines[one.line]
        if (
            line.is_task
            or line.label == TOOL
            or not is_over(one.text, line.day or first, today, is_former=line.day is None)
        ):
            return 1.0
        return _OUTDATED_FACTOR if is_only_plan(one.text) else _OVER_FACTOR

    factors = {one.key: factor(one) for one in pool}
    return [replace(one, score=one.score * factors[one.key]) if factors[one.key] < 1 else one for one in pool]


# -- questions


def _answered(own: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> set[SentenceKey]:
    """Questions, and what was not known, of which somebody states later what they ask, other than the reply right
    after."""
    asked = [one for one in own if is_open_question(one.text)]
    if not asked:
        return set()
    stated = [one for one in own if not (is_question(one.text) or leaves_open(one.text) or makes_offer(one.text))]
    index: dict[str, list[ScoredSentence]] = {}
    for one in stated:
        for term in topic_stems(one.text):
            index.setdefault(term, []).append(one)

    def is_told(one: ScoredSentence) -> bool:
        # what the user does not know is settled when the user tells it
        near = {later.key: later for term in topic_stems(one.text) for later in index.get(term, ())}.values()
        is_own = is_question(one.text)
        heard = [later for later in near if later.line > one.line + 1 and (is_own or lines[later.line].label == USER)]
        return any(tells_asked(one.text, later.text) for later in heard)

    return {one.key for one in asked if is_told(one)}


def is_open_question(text: str) -> bool:
    """Whether it asks something, or says that something is not known."""
    return is_question(text) or leaves_open(text)


@text_cache(8192)  # the summary and the ledger ask, of one sentence after the other
def topic_stems(text: str) -> frozenset[str]:
    """What a sentence is about: beginnings of its words, without those that ask and without days."""
    if not text.isascii() and IS_UNSPACED.search(text):
        return frozenset(_RUN.findall(text))
    found = content_terms(text) - _WORDS_ASKING - CALENDAR
    return frozenset(term[:_STEM] for term in found if len(term) >= _MIN_TOPIC and term.isalpha())


def tells_asked(question: str, statement: str) -> bool:
    """Whether a later statement tells what a question asks: most of its content, or a part of it and a day, a number or
    a name where one was asked for."""
    asked = topic_stems(question)
    shared = len(asked & topic_stems(statement))
    if not shared:  # as for most
        return False
    if is_answered(content_terms(question), content_terms(statement)):
        return True
    if shared < _MIN_KIND_SHARE * len(asked):
        return False
    if not question.isascii() and IS_UNSPACED.search(question):
        return rate_sentence(statement) == BINDING or _has_kind(question, statement)
    return _has_kind(question, statement) or (shared >= _MIN_ANSWER and shared >= _MIN_ANSWERED * len(asked))


def _has_kind(question: str, statement: str) -> bool:
    lower = question.lower()
    if _ASKS_WHEN.search(lower):
        return any(kind in _WHEN for kind, _ in values_in(statement))
    if _ASKS_HOW_MANY.search(lower):
        return any(char.isdigit() for char in statement)
    if _ASKS_WHO.search(lower):
        return _NAMES.search(statement) is not None or not _SELF.isdisjoint(words_of(statement))
    return False


def is_answered(asked: set[str], stated: set[str]) -> bool:
    """Whether a later statement with this content tells what a question asks."""
    shared = len(asked & stated)
    return shared >= _MIN_ANSWER and shared >= _MIN_ANSWERED * len(asked)


# -- prohibitions


def _lifted(own: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> set[SentenceKey]:
    said = [one for one in own if lines[one.line].label == USER]
    places = lifted_prohibitions([(one.line, one.text) for one in said])
    return {one.key for one in said if (one.line, one.text) in places}


def lifted_prohibitions(said: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    """What the user forbade and then allowed, of sentences with the numbers of their messages."""
    said = list(said)
    forbidden = [(at, text) for at, text in said if rate_sentence(text) == BINDING and has_prohibition(text)]
    if not forbidden:
        return set()
    index: dict[str, list[tuple[int, str]]] = {}
    for at, text in said:
        if at > forbidden[0][0] and not is_question(text) and permits(text):
            for term in topic_stems(text):
                index.setdefault(term, []).append((at, text))
    found: set[tuple[int, str]] = set()
    for at, text in forbidden if index else ():
        matter = _forbidden_matter(text)
        near = {one for term in matter for number, one in index.get(term, ()) if number > at}
        if any(_lifts(one, matter) for one in near):
            found.add((at, text))
    return found


def _forbidden_matter(text: str) -> frozenset[str]:
    """What the clause is about that forbids."""
    clause = next((part for part in _CLAUSE_END.split(text) if negates(part)), text)
    return topic_stems(clause) or topic_stems(text)


def _lifts(later: str, matter: frozenset[str]) -> bool:
    """Whether a sentence allows a part of what was forbidden."""
    return len(matter & topic_stems(later)) >= _MIN_KIND_SHARE * len(matter)


# -- offers


def _outbid(own: Sequence[ScoredSentence]) -> set[SentenceKey]:
    places = outbid_offers([(one.line, one.text) for one in own])
    return {one.key for one in own if (one.line, one.text) in places}


def outbid_offers(said: Sequence[tuple[int, str]]) -> set[tuple[int, str]]:
    """Offers before one was agreed on, with other figures of about the same size; of sentences with the numbers of
    their messages, in order."""
    found: set[tuple[int, str]] = set()
    for at, (line, text) in enumerate(said):
        if is_question(text) or not (agreed := _amounts(text)) or not _AGREES.search(text.lower()):
            continue
        for number, earlier in reversed(said[:at]):
            if number < line - _MAX_UNTIL_AGREED:
                break
            offered = _amounts(earlier)
            is_other = _TITLED.match(earlier) is not None or not offered.isdisjoint(agreed)
            is_kept = rate_sentence(earlier) == BINDING and not _BIDS.search(earlier.lower())
            if not offered or is_other or is_kept:
                continue
            near = all(any(_LEAST_OFFER * it <= each <= _MOST_OFFER * it for it in agreed) for each in offered)
            if near and _OFFERS.search(earlier.lower()):
                found.add((number, earlier))
    return found


@text_cache(4096)
def _amounts(text: str) -> frozenset[int]:
    return frozenset(int(_NOT_DIGITS.sub("", found)) for found in _MONEY.findall(text))
