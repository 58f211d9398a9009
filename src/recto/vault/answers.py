"""Which sentence of some notes answers a question, and whether the notes speak of it at all. Pure, by words.

Words count by how few of the found passages hold them, and match by their beginnings, so that no language needs to be
known. Evidence of a name, date, number, price or reason is known in English, German, Spanish and French.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from recto.search.terms import topic_words, word_forms, words
from recto.vault.note_statements import NoteStatement
from recto.vault.question import MEASURES, AnswerKind, VaultQuestion, language_of

# -- words

_MIN_COMMON = 4
_ENDING_LIST = """
    s es e ed d er ers ing ings n en em est ly t te ten tes ment ments ung ungen ation ations al ic ie ies y
    ned ning ted ting ped ping led ling red ring ged ging med ming
    a o as os i ar ir ado ada ados adas ido ida idos idas an aron io ion iones ciones cion mente
    ee ees ez ent ait aient ant ions eur euse"""
_ENDINGS = frozenset(("", *_ENDING_LIST.split()))
_SHORT_ENDINGS = frozenset(("", "s", "es", "ed", "ing", "e", "n", "en"))
_AGAIN = ("re", "wieder", "um")
# What is asked with one word and told with another, as the index writes them.
_ALIKE = """
choose decide agree pick vote decision, entscheid beschloss beschlossen wahl gewahlt, decidir decision elegir elegido,
decider choisir choisi decision, cost price pay charge paid, kosten preis bezahlt zahlen, costar precio pagar pagado,
couter prix payer, born birthday birth, geboren geburtstag, nacio cumpleanos nacimiento, ne anniversaire naissance,
phone telephone mobile, telefon handy, long length, hoch hohe, lang lange, live address, wohnt adresse, vive direccion,
eat allergic food, essen allergisch, comer alergico, manger allergique, begin start, end finish, cheap price, own owner
"""
_GROUPS = {word: tuple(group.split()) for group in _ALIKE.split(",") for word in group.split()}


@lru_cache(maxsize=16_384)
def is_same_word(one: str, other: str) -> bool:
    """Whether two words are forms of one, told by how they begin: `planned` and `plan`, but not `plan` and `plank`."""
    if one == other:
        return True
    if one.isdigit() or other.isdigit():
        return False
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if common < 3:
        return False
    endings = _ENDINGS if common >= _MIN_COMMON else _SHORT_ENDINGS
    return one[common:] in endings and other[common:] in endings


@lru_cache(maxsize=4096)
def _forms(term: str) -> tuple[str, ...]:
    """The forms of a word, words that answers have in its place, and what it says without "again": `renamed` is about a
    name."""
    forms = word_forms(term)
    again = (term[len(start) :] for start in _AGAIN if term.startswith(start) and len(term) - len(start) >= _MIN_COMMON)
    return (*forms, *again, *(other for form in forms for other in _GROUPS.get(form, ())))


def found_terms(terms: Iterable[str], text: str) -> frozenset[str]:
    """The terms of a question that a text holds in some form."""
    return _found(tuple(terms), frozenset(words(text)))


def _found(terms: tuple[str, ...], present: frozenset[str]) -> frozenset[str]:
    return frozenset(
        term
        for term in terms
        if term in present or any(is_same_word(form, word) for form in _forms(term) for word in present)
    )


MEASURE_WEIGHT, FOREIGN_WEIGHT = 0.8, 1.0
POOL = 24
"""How many passages a question is held against."""


def is_foreign(question: VaultQuestion, pool: Sequence[str]) -> bool:
    """Whether a question is in another language than the notes."""
    asked, told = language_of(question.text), language_of(" ".join(pool))
    return bool(asked and told) and asked != told


def term_weights(question: VaultQuestion, pool: Sequence[str]) -> dict[str, float]:
    """The weight of each term: the fewer of the found texts hold it the more. A term that none holds weighs most: the
    notes do not speak of it. But where they are in another language, only names and numbers can be found at all."""
    held = [found_terms(question.terms, text) for text in pool]
    counts = {term: sum(term in some for some in held) for term in question.terms}
    size = max(POOL, len(pool))  # a search that finds little must not make its words common
    weights = {term: 0.5 + math.log((size + 1) / (count + 1)) for term, count in counts.items()}
    if is_foreign(question, pool):
        weights |= {term: FOREIGN_WEIGHT for term, count in counts.items() if not count}
    return {term: min(weight, MEASURE_WEIGHT) if term in MEASURES else weight for term, weight in weights.items()}


# -- near enough

# Shares of the weight of a question's words that a passage must hold: by itself, or where an embedder finds it near
# too. Held against questions of our own in four languages: of 38 that notes answer all are above 0.42, and of 45 that
# no note speaks of two are above 0.37 ("What is the weather tomorrow?" over a sailor's notes).
NEAR_SHARE, LEAST_SHARE = 0.4, 0.2
# The similarity that makes up for missing words: what no note speaks of stays below 0.42.
NEAR_SIMILARITY = 0.45


def is_near(share: float, similarity: float | None) -> bool:
    """Whether a passage speaks of what is asked. `share`: how much of the question it holds, by weight; `similarity`:
    what an embedder that knows the language says, if there is one."""
    return share >= NEAR_SHARE or (share >= LEAST_SHARE and (similarity or 0.0) >= NEAR_SIMILARITY)


# -- the sentence that answers

OWN, ABOVE, BESIDE = 1.0, 0.7, 0.25
"""How much a word counts in the statement itself, in its headings or column names, and in the statements beside it."""
FITS_KIND, OTHER_YEAR, POINTER, DENSE, ALL_OF_THEM, MARKED = 0.2, 0.35, 0.3, 0.15, 0.2, 0.4
_YES = frozenset(["yes", "y", "x", "ja", "si", "oui", "true", "✓", "✔", "✅", "☑"])
_NO = frozenset(["no", "n", "nein", "non", "false", "-", "–", "—", "✗", "✘", "❌", "☐", "none", "keine"])
_DENIES = re.compile(r"\b(?:not?|without|free|kein\w*|nicht|ohne|sin|sans|pas)\b")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
# "See Budget.", "The tables are in Budget": leads to an answer, and is none.
_POINTER = re.compile(
    r"(?:see|siehe|vgl|vease|ver|voir|cf)\b|[\w ]{0,60}\b(?:is|are) (?:\w+ )?in (?:the )?[^.]{0,60}\.?$"
)
_PRONOUN = re.compile(r"(?:he|she|it|they|this|that|er|sie|es|ella|él|ellos|ellas|il|elle|ils|elles)\b", re.IGNORECASE)


_NUMBER_WORDS = """
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen twenty thirty forty
    fifty hundred thousand once twice zwei drei vier funf sechs sieben acht neun zehn elf zwolf zwanzig dreissig
    hundert tausend einmal zweimal dos tres cuatro cinco seis siete ocho nueve diez doce veinte treinta cien mil
    deux trois quatre cinq sept huit neuf dix onze douze vingt trente cent mille"""
_MONTHS = """
    january february march april may june july august september october november december jan feb aug sept oct nov dec
    januar februar marz mai juni juli oktober dezember enero febrero marzo abril mayo junio julio agosto septiembre
    octubre noviembre diciembre janvier fevrier mars avril juin juillet aout septembre octobre novembre decembre"""
_DAYS = """
    monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag
    lunes martes miercoles jueves viernes sabado domingo lundi mardi mercredi jeudi vendredi samedi dimanche"""
_REASONS = """
    because since reason reasons therefore would too weil denn damit wegen grund porque pues debido razon razones
    parce car puisque afin cause"""


def _any_of(listed: str) -> str:
    return rf"\b(?:{'|'.join(listed.split())})\b"


_EVIDENCE: dict[AnswerKind, re.Pattern[str]] = {
    "number": re.compile(rf"\d|{_any_of(_NUMBER_WORDS)}"),
    "date": re.compile(
        rf"\b(?:1[5-9]|20)\d\d\b|\b\d\d?[./]\d\d?\b|\b\d\d?:\d\d\b|\d.? ?{_any_of(_MONTHS)}|{_any_of(_DAYS)}"
    ),
    "money": re.compile(r"[£€$¥]|\d[.,]\d\d|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|pesos?|francs?|cents?)\b"),
    "reason": re.compile(rf"{_any_of(_REASONS)}|\b(?:due to|so that)\b"),
}
# A capital inside of a sentence. German has one on every noun, so that it says little there.
_NAME = re.compile(r"(?<=[\w,;:·(] )[A-ZÀ-Þ][\w'’-]+")


class RatedStatement(Struct, frozen=True):
    statement: NoteStatement
    score: float
    """About 0 to 1.3: the share of the question that it holds, and whether it is of the kind that is asked for."""
    part: int = 0
    """Which of several questions it answers."""


def asks_itself(text: str) -> bool:
    """A question that somebody wrote down answers none."""
    return text.rstrip(" \"'”’)*_").endswith(("?", "？", "؟"))


def rated_statements(
    question: VaultQuestion, statements: Sequence[NoteStatement], title: str, weights: Mapping[str, float]
) -> list[RatedStatement]:
    """The statements by how well each answers the question, the best first; those that ask are left out."""
    telling = [each for each in statements if not asks_itself(each.text)]
    held = [found_terms(question.terms, each.text) for each in telling]
    rated = list[RatedStatement]()
    for at, each in enumerate(telling):
        columns = found_terms(question.terms, each.columns) if each.columns else frozenset[str]()
        above = columns | found_terms(question.terms, f"{title} {each.heading}")
        own = held[at] - columns
        if own and at and _PRONOUN.match(each.text):  # it speaks of what the one before it names
            above |= held[at - 1]
        beside = frozenset[str]().union(*(held[near] for near in (at - 1, at + 1) if 0 <= near < len(telling)))
        if own or above:
            score = _share(own, above, beside, weights) + _density(own, each, weights) + _fit(question, each, title)
            rated.append(RatedStatement(each, round(score, 4)))
    return sorted(rated, key=lambda each: -each.score)


def _share(own: frozenset[str], above: frozenset[str], beside: frozenset[str], weights: Mapping[str, float]) -> float:
    counted = (
        weight * (OWN if term in own else ABOVE if term in above else BESIDE if term in beside else 0.0)
        for term, weight in weights.items()
    )
    return sum(counted) / (sum(weights.values()) or 1.0)


def _density(own: frozenset[str], statement: NoteStatement, weights: Mapping[str, float]) -> float:
    """A statement that says little else is about what is asked."""
    return DENSE * len(own) / max(1, len(topic_words(statement.text)), len(weights) if statement.kind == "table" else 0)


def _fit(question: VaultQuestion, statement: NoteStatement, title: str) -> float:
    plain = _folded(statement.text)
    fit = -POINTER if _POINTER.match(plain) else 0.0
    if statement.kind == "row" and not _DENIES.search(_folded(question.text)):
        fit += _marked(question, statement.text)
    if question.wants_all and statement.kind == "table":
        fit += ALL_OF_THEM
    asked, told = set(_YEAR.findall(question.text)), set(_YEAR.findall(f"{title} {statement.heading} {statement.text}"))
    if asked and told and not asked & told:
        fit -= OTHER_YEAR
    if question.kinds:
        is_fit = any(_is_of_kind(kind, statement, plain, title) for kind in question.kinds)
        fit += FITS_KIND * (is_fit - (question.is_only_kind and not is_fit))
    return fit


def _folded(text: str) -> str:
    """Without capitals and accents, but with the marks of amounts and dates."""
    parts = unicodedata.normalize("NFKD", text.lower())
    return "".join(sign for sign in parts if unicodedata.category(sign) != "Mn")


def _marked(question: VaultQuestion, row: str) -> float:
    """Of a table with marks: what the row says in the columns that are asked for, "sesame: yes" or "sesame: no"."""
    marks = list[str]()
    for cell in row.split(" · "):
        column, _, value = cell.partition(": ")
        if value and found_terms(question.terms, column):
            marks.append(" ".join(_folded(value).split()) or value.strip())
    return MARKED * (any(mark in _YES for mark in marks) - any(mark in _NO for mark in marks))


def _is_of_kind(kind: AnswerKind, statement: NoteStatement, plain: str, title: str) -> bool:
    if kind == "name":
        return _NAME.search(f"{statement.text} {title}") is not None
    return _EVIDENCE[kind].search(plain) is not None
