"""Which sentence of some notes answers a question, and whether the notes speak of it at all. Pure, by words.

Words count by how few of the found passages hold them, and match by their beginnings, so that no language needs to be
known. Evidence of a name, date, number, price or reason is known in English, German, Spanish and French.
"""

import math
import unicodedata
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from recto.search.terms import is_spaced, topic_words, words
from recto.text import LazyPattern
from recto.vault.note_dates import DATE_PROPERTIES, day_of_term, is_day_term, named_days, without_days
from recto.vault.note_statements import NoteStatement
from recto.vault.question import MEASURES, AnswerKind, VaultQuestion, written_in
from recto.vault.related_words import is_part_of, is_same_word, related_forms, related_starts, units_of


def found_terms(question: VaultQuestion, text: str) -> frozenset[str]:
    """The terms of a question that a text holds in some form."""
    present, found = frozenset(words(text)), set[str]()
    starts = frozenset[str]().union(*map(related_starts, question.terms))
    alike = [word for word in present if word[:3] in starts or (word[:2] == "ge" and word[2:5] in starts)]
    told = named_days(text) if question.days else ()
    for term in question.terms:
        if is_day_term(term):
            is_found = any(map(day_of_term(term).holds, told))
        else:
            is_found = term in present or any(
                is_same_word(form, word) for word in alike for form in related_forms(term)
            )
            if len(term) == 1 and not is_spaced(term):  # texts of such a script are known by pairs
                is_found = any(word.startswith(term) for word in present)
        if is_found or (term in question.compounds and any(is_part_of(term, word) for word in present)):
            found.add(term)
    if found - question.verbs - MEASURES and question.names <= found:
        told_units = ((term, units_of(term)) for term in question.terms if term not in found)
        found.update([term for term, units in told_units if units and units.search(_folded(text))])
    return frozenset(found)


def with_compounds(question: VaultQuestion, pool: Sequence[str]) -> VaultQuestion:
    """The question with those words that no text holds as they are: German joins words, `konto` to `kontostand`."""
    if question.language != "de":
        return question
    held = frozenset[str]().union(*(found_terms(question, text) for text in pool))
    return replace(question, compounds=frozenset(question.terms) - held)


MEASURE_WEIGHT, FOREIGN_WEIGHT = 0.8, 1.0
# Of a verb that the notes do not have, because the answer may have another word for it, and of a category.
MISSING_VERB_WEIGHT, MISSING_CATEGORY_WEIGHT = 0.8, 1.5
POOL = 24
"""How many passages a question is held against."""


def is_foreign(question: VaultQuestion, pool: Sequence[str]) -> bool:
    """Whether a question is in another language than the notes."""
    asked = question.language or written_in(question.text)
    return bool(asked) and written_in(" ".join(pool)) not in ("", asked)


def term_weights(question: VaultQuestion, pool: Sequence[str]) -> dict[str, float]:
    """The weight of each term: the fewer of the found texts hold it the more. A term that none holds weighs most: the
    notes do not speak of it. But where they are in another language, only names and numbers can be found at all."""
    held = [found_terms(question, text) for text in pool] if question.terms else []
    counts = {term: sum(term in some for some in held) for term in question.terms}
    size = max(POOL, len(pool))  # a search that finds little must not make its words common
    weights = {term: 0.5 + math.log((size + 1) / (count + 1)) for term, count in counts.items()}
    if not all(counts.values()) and is_foreign(question, pool):
        weights |= {term: FOREIGN_WEIGHT for term, count in counts.items() if not count}
    limits = {term: MISSING_VERB_WEIGHT for term in question.verbs if not counts.get(term)}
    if question.category not in question.topics and not counts.get(question.category):
        limits[question.category] = MISSING_CATEGORY_WEIGHT
    limits |= {term: MEASURE_WEIGHT for term in question.terms if term in MEASURES}
    return {term: min(weight, limits.get(term, weight)) for term, weight in weights.items()}


# -- near enough

# The share of the weight of a question's words that a passage must hold, where there is no embedder. Held against
# questions of our own in four languages: of 38 that notes answer all are above 0.42, and of 45 that no note speaks of
# two are above 0.37 ("What is the weather tomorrow?" over a sailor's notes).
NEAR_SHARE = 0.4
# With an embedder: how much similarity counts beside that share, as fitted on XQuAD in three languages, half of its
# paragraphs left out. How much both must be was chosen over two vaults of others; more where the verb is missing.
SIMILARITY_COUNTS, NEAR_SUM, SURE_SUM = 0.45, 0.45, 0.6
# The similarity of passages that share hardly a word with a question: of 300 questions about other things at most one
# in twenty reaches the first in the language of the notes, and the second in another one.
NEAR_ALONE, NEAR_ALONE_FOREIGN = 0.3, 0.4


def near_share(question: VaultQuestion, held: Set[str], weights: Mapping[str, float]) -> float:
    """How much of a question is held, by weight: nothing where only its verb is, or what it measures."""
    topics = question.topics & weights.keys()
    if topics and not topics & held:
        return 0.0
    counted = {
        term: min(weight, MISSING_VERB_WEIGHT) if term in question.verbs else weight for term, weight in weights.items()
    }
    return sum(counted[term] for term in held if term in counted) / (sum(counted.values()) or 1.0)


def is_near(share: float, similarity: float | None, *, lacks_verb: bool = False) -> bool:
    """Whether a passage speaks of what is asked. `share`: how much of the question it holds, by weight; `similarity`:
    what an embedder that knows the language says, if there is one; `lacks_verb`: of the question the verb is missing,
    and the kind of answer that it asks for."""
    if similarity is None:
        return share >= NEAR_SHARE and not lacks_verb
    return share + SIMILARITY_COUNTS * similarity >= (SURE_SUM if lacks_verb else NEAR_SUM)


def speaks_of_year(question: VaultQuestion, text: str) -> bool:
    """Whether a note may speak of the year that is asked about: it names that year, or none at all."""
    asked, told = set(_YEAR.findall(question.text)), set(_YEAR.findall(text))
    return not asked or not told or bool(asked & told)


# -- the sentence that answers

OWN, ABOVE, BESIDE = 1.0, 0.7, 0.25
"""How much a word counts in the statement itself, in its headings or column names, and in the statements beside it."""
FITS_KIND, OTHER_YEAR, POINTER, DENSE, ALL_OF_THEM, MARKED = 0.2, 0.35, 0.3, 0.15, 0.2, 0.4
# A list told as a whole comes before its items; what denies comes after what does not, where that is not asked.
LISTED, DENIED = 0.04, 0.1
ALMOST_BEST = 0.6
_YES = frozenset(["yes", "y", "x", "ja", "si", "oui", "true", "✓", "✔", "✅", "☑"])
_NO = frozenset(["no", "n", "nein", "non", "false", "-", "–", "—", "✗", "✘", "❌", "☐", "none", "keine"])
_DENIES = LazyPattern(r"\b(?:not?|without|free|kein\w*|nicht|ohne|sin|sans|pas)\b")
_NOT = LazyPattern(r"\b(?:not|never|nobody|cannot|kein\w*|nicht|nie|niemand|nunca|nadie|jamais|personne)\b|n't\b|^no\b")
_YEAR = LazyPattern(r"\b(?:1[5-9]|20)\d\d\b")
# "See Budget.", "The tables are in Budget": leads to an answer, and is none.
_POINTER = LazyPattern(
    r"(?:see|siehe|vgl|vease|ver|voir|cf)\b|[\w ]{0,60}\b(?:is|are) (?:\w+ )?in (?:the )?[^.]{0,60}\.?$"
)
_PRONOUN = LazyPattern(r"(?i:he|she|it|they|this|that|er|sie|es|ella|él|ellos|ellas|il|elle|ils|elles)\b")


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
_TIMES = """
    morning noon evening night daily weekly monthly yearly spring summer autumn winter weekend morgens mittags abends
    nachts taglich wochentlich monatlich jahrlich fruhling sommer herbst fruhjahr wochenende manana tarde noche diario
    primavera verano otono invierno matin midi soir nuit printemps ete automne hiver"""
_REASONS = """
    because since reason reasons therefore would too weil denn damit wegen grund porque pues debido razon razones
    parce car puisque afin cause"""


def _any_of(listed: str) -> str:
    return rf"\b(?:{'|'.join(listed.split())})\b"


_EVIDENCE: dict[AnswerKind, LazyPattern] = {
    "number": LazyPattern(rf"\d|{_any_of(_NUMBER_WORDS)}"),
    "date": LazyPattern(
        r"\b(?:1[5-9]|20)\d\d\b|\b\d\d?[./]\d\d?\b|\b\d\d?:\d\d\b"
        rf"|(?:\d.?|\b(?:in|im|en|until|bis|since|seit)) ?{_any_of(_MONTHS)}"
        rf"|\b(?:{'|'.join(_DAYS.split())})s?\b|{_any_of(_TIMES)}"
    ),
    "money": LazyPattern(r"[£€$¥]|\d[.,]\d\d|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|pesos?|francs?|cents?)\b"),
    "reason": LazyPattern(rf"{_any_of(_REASONS)}|\b(?:due to|so that)\b"),
}
# A capital inside of a sentence. German has one on every noun, so that it says little there.
_NAME = LazyPattern(r"(?<=[\w,;:·(] )[A-ZÀ-Þ][\w'’-]+")


# Statements that are this much less near are about something else.
LEAST_IN_MEANING, KIND_IN_MEANING = 0.9, 0.25


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
    held = [found_terms(question, each.text) for each in telling]
    rated = list[RatedStatement]()
    for at, each in enumerate(telling):
        columns = found_terms(question, each.columns) if each.columns else frozenset[str]()
        above = columns | found_terms(question, f"{title} {each.heading}")
        # the words of a link are those of another note, and a list is told for what stands above it
        own = frozenset[str]() if each.is_link or each.kind == "list" else held[at] - columns
        if own and at and _PRONOUN.match(each.text):  # it speaks of what the one before it names
            above |= held[at - 1]
        beside = frozenset[str]().union(*(held[near] for near in (at - 1, at + 1) if 0 <= near < len(telling)))
        if (own or above) and not _echoes(question, each):
            score = _share(own, above, beside, weights) + _density(own, each, weights) + _fit(question, each, title)
            if each.kind == "row" and own and question.category in columns:  # "Which fuse": a column tells it
                score += FITS_KIND
            rated.append(RatedStatement(each, round(score, 4)))
    return sorted(rated, key=lambda each: -each.score)


def rated_by_meaning(
    question: VaultQuestion, statements: Sequence[NoteStatement], title: str, near: Sequence[float]
) -> list[RatedStatement]:
    """The statements by how near they are in meaning, the best first; of those that are about as near, such as are of
    the kind that is asked for."""
    rated = [
        RatedStatement(each, round(score + KIND_IN_MEANING * _fit(question, each, title), 4))
        for each, score in zip(statements, near, strict=True)
    ]
    rated.sort(key=lambda each: -each.score)
    return [each for each in rated if each.score >= LEAST_IN_MEANING * rated[0].score]


def _echoes(question: VaultQuestion, statement: NoteStatement) -> bool:
    """Whether a statement says nothing that the question does not say itself."""
    if question.days and topic_words(without_days(statement.text)) <= DATE_PROPERTIES:
        return True
    if not (question.kinds or question.wants_several or statement.is_link) or _NOT.search(_folded(statement.text)):
        return False
    said = topic_words(statement.text)
    return all(any(is_same_word(word, term) for term in question.terms) for word in said)


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
    if statement.kind == "list" and (question.wants_several or not question.kinds):
        fit += LISTED
    if _NOT.search(plain) and not _denies(question.text):
        fit -= DENIED
    if statement.kind == "row" and not _denies(question.text):
        fit += _marked(question, statement.text)
    if question.wants_all and statement.kind == "table":
        fit += ALL_OF_THEM
    asked, told = set(_YEAR.findall(question.text)), set(_YEAR.findall(f"{title} {statement.heading} {statement.text}"))
    if asked and told and not asked & told:
        fit -= OTHER_YEAR
    if question.kinds:
        fitting = max(_kind_fit(kind, statement, plain, title) for kind in question.kinds)
        fit += FITS_KIND * (fitting - (question.is_only_kind and not fitting))
    return fit


def has_kind(question: VaultQuestion, rated: Sequence[RatedStatement]) -> bool:
    """Whether the best statements have a name, date, number, price or reason where that is asked for."""
    best = [each.statement for each in rated if each.score >= ALMOST_BEST * rated[0].score]
    # notes tell prices without a currency
    kinds: list[AnswerKind] = ["number" if kind == "money" else kind for kind in question.kinds]
    fits = (_kind_fit(kind, each, _folded(each.text), "") for each in best for kind in kinds)
    return not question.kinds or any(fits)


@lru_cache(maxsize=32)
def _denies(text: str) -> bool:
    return _DENIES.search(_folded(text)) is not None


def _folded(text: str) -> str:
    """Without capitals and accents, but with the marks of amounts and dates."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.lower())
    return "".join(sign for sign in parts if unicodedata.category(sign) != "Mn")


def _marked(question: VaultQuestion, row: str) -> float:
    """Of a table with marks: what the row says in the columns that are asked for, "sesame: yes" or "sesame: no"."""
    marks = list[str]()
    for cell in row.split(" · "):
        column, _, value = cell.partition(": ")
        if value and found_terms(question, column):
            marks.append(" ".join(_folded(value).split()) or value.strip())
    return MARKED * (any(mark in _YES for mark in marks) - any(mark in _NO for mark in marks))


_CALENDAR = frozenset((_DAYS + _MONTHS).split())
# What a column is called that holds the kind of answer that is asked for.
_COLUMNS: dict[AnswerKind, LazyPattern] = {
    "date": LazyPattern(
        r"\b(?:when|date|day|time|until|since|wann|datum|tag|zeit|uhrzeit|seit|cuando|fecha|dia|hora|quand|jour)\b"
    ),
    "name": LazyPattern(r"\b(?:who|name|person|wer|quien|nombre|qui|nom)\b"),
    "money": LazyPattern(r"\b(?:price|cost|fee|preis|kosten|betrag|precio|importe|prix|montant)\b"),
}


def _has_name(statement: NoteStatement) -> bool:
    """A capital inside of it, or at the beginning of a row, that is no day, month or name of a column."""
    named, columns = _NAME.findall(statement.text), set(statement.columns.split())
    if statement.kind == "row" and statement.text[:1].isupper():
        named.append(statement.text.split()[0])
    return any(_folded(name).removesuffix("s") not in _CALENDAR for name in named if name not in columns)


def _kind_fit(kind: AnswerKind, statement: NoteStatement, plain: str, title: str) -> float:
    if kind in _COLUMNS and statement.columns and _COLUMNS[kind].search(_folded(statement.columns)):
        return 1.0
    if kind == "name":  # the note may be about a person, or about anything
        return 1.0 if _has_name(statement) else 0.5 * (_NAME.search(f"x {title}") is not None)
    return 1.0 if _EVIDENCE[kind].search(plain) else 0.0
