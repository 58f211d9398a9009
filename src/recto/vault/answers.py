"""Which sentence of some notes answers a question, and whether the notes speak of it at all. Pure, by words.

Words count by how few of the found passages hold them, and match by their beginnings, so that no language needs to be
known. Evidence of a name, date or number is a capital, a figure, or a word of a closed class.
"""

import math
from collections.abc import Mapping, Sequence, Set
from functools import cache, lru_cache

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import LazyPattern
from recto.search.passages import QUESTION_MARKS
from recto.search.terms import is_spaced, topic_words, word_forms, words
from recto.sentences.words import tables, word_class, words_in
from recto.vault.note_dates import DATE_PROPERTIES, day_of_term, is_day_term, named_days, without_days
from recto.vault.note_statements import NoteStatement
from recto.vault.question import AnswerKind, VaultQuestion, language_of
from recto.vault.related_words import is_part_of, is_same_word


def found_terms(question: VaultQuestion, text: str) -> frozenset[str]:
    """The terms of a question that a text holds in some form."""
    present, found = frozenset(words(text)), set[str]()
    forms = {term: word_forms(term) for term in question.terms}
    starts = {form[:3] for listed in forms.values() for form in listed}
    alike = [word for word in present if word[:3] in starts]
    told = named_days(text) if question.days else ()
    for term in question.terms:
        if is_day_term(term):
            is_found = any(map(day_of_term(term).holds, told))
        else:
            is_found = term in present or any(is_same_word(form, word) for word in alike for form in forms[term])
            if len(term) == 1 and not is_spaced(term):  # texts of such a script are known by pairs
                is_found = any(word.startswith(term) for word in present)
        if is_found or (term in question.compounds and any(is_part_of(term, word) for word in present)):
            found.add(term)
    return frozenset(found)


def with_compounds(question: VaultQuestion, pool: Sequence[str]) -> VaultQuestion:
    """The question with those words that no text holds as they are: German joins words, `konto` to `kontostand`."""
    if question.language != "de":
        return question
    held = frozenset[str]().union(*(found_terms(question, text) for text in pool))
    return replace(question, compounds=frozenset(question.terms) - held)


FOREIGN_WEIGHT = 1.0
# Of a verb that the notes do not have, because the answer may have another word for it.
MISSING_VERB_WEIGHT = 0.8
POOL = 24
"""How many passages a question is held against."""


def is_foreign(question: VaultQuestion, pool: Sequence[str]) -> bool:
    """Whether a question is in another language than the notes."""
    return bool(question.language) and language_of(" ".join(pool)) not in ("", question.language)


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
    return {term: min(weight, limits.get(term, weight)) for term, weight in weights.items()}


# -- near enough

# The share of the weight of a question's words that a passage must hold, where there is no embedder. Held against
# questions of our own in four languages: of 38 that notes answer all are above 0.42, and of 45 that no note speaks of
# two are above 0.37 ("What is the weather tomorrow?" over a sailor's notes).
NEAR_SHARE = 0.41
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
        term: min(weight, MISSING_VERB_WEIGHT) if term in question.verbs else weight
        for term, weight in weights.items()
        if term not in question.verbs or weight >= MISSING_VERB_WEIGHT  # what nearly every passage holds tells nothing
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
FITS_KIND, OTHER_YEAR, POINTER, DENSE, MARKED = 0.2, 0.35, 0.3, 0.15, 0.4
# A list told as a whole comes before its items; what denies comes after what does not, where that is not asked.
LISTED, DENIED = 0.04, 0.01
ALMOST_BEST = 0.6
_YES, _NO = frozenset(["y", "x", "✓", "✔", "✅", "☑"]), frozenset(["n", "-", "–", "—", "✗", "✘", "❌", "☐"])
_YEAR = LazyPattern(r"\b(?:1[5-9]|20)\d\d\b")
_FIGURES = {
    "number": LazyPattern(r"\d"),
    "date": LazyPattern(r"\b(?:1[5-9]|20)\d\ds?\b|\b\d\d?[./]\d\d?\b|\b\d\d?:\d\d\b"),
}
# A capital inside of a sentence. German has one on every noun, so that it says little there.
_NAME = LazyPattern(r"(?<=[\w,;:·(] )[A-ZÀ-Þ][\w'’-]+")


# Statements that are this much less near are about something else.
LEAST_IN_MEANING, KIND_IN_MEANING, HELD_IN_MEANING = 0.9, 0.25, 0.25


class RatedStatement(Struct, frozen=True):
    statement: NoteStatement
    score: float
    """About 0 to 1.3: the share of the question that it holds, and whether it is of the kind that is asked for."""
    part: int = 0
    """Which of several questions it answers."""


def asks_itself(text: str) -> bool:
    """A question that somebody wrote down answers none."""
    return text.rstrip(" \"'”’)*_").endswith(QUESTION_MARKS)


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
        beside = frozenset[str]().union(*(held[near] for near in (at - 1, at + 1) if 0 <= near < len(telling)))
        if (own or above) and not _echoes(question, each):
            score = _share(own, above, beside, weights) + _density(own, each, weights) + _fit(question, each, title)
            if each.kind == "row" and own and question.verbs & columns:  # "Which fuse": a column tells it
                score += FITS_KIND
            rated.append(RatedStatement(each, round(score, 4)))
    return sorted(rated, key=lambda each: -each.score)


def rated_by_meaning(
    question: VaultQuestion, statements: Sequence[NoteStatement], title: str, near: Sequence[float]
) -> list[RatedStatement]:
    """The statements by how near they are in meaning, the best first; of those that are about as near, such as are of
    the kind that is asked for, and hold the words that both languages have, names and figures above all."""

    def score(each: NoteStatement) -> float:
        held = found_terms(question, f"{title} {each.heading} {each.text}")
        return KIND_IN_MEANING * _fit(question, each, title) + HELD_IN_MEANING * len(held) / max(1, len(question.terms))

    rated = [RatedStatement(each, round(at + score(each), 4)) for each, at in zip(statements, near, strict=True)]
    rated.sort(key=lambda each: -each.score)
    return [each for each in rated if each.score >= LEAST_IN_MEANING * rated[0].score]


def _echoes(question: VaultQuestion, statement: NoteStatement) -> bool:
    """Whether a statement says nothing that the question does not say itself."""
    if question.days and topic_words(without_days(statement.text)) <= DATE_PROPERTIES:
        return True
    if _is_in("negations", statement.text):
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
    fit = LISTED if statement.kind == "list" and not question.kinds else 0.0
    if _is_in("see", statement.text):  # it leads to an answer, and is none
        fit -= POINTER
    is_denied = _is_in("negations", question.text)
    if not is_denied and _is_in("negations", statement.text):
        fit -= DENIED
    if statement.kind == "row" and not is_denied:
        fit += _marked(question, statement.text)
    asked, told = set(_YEAR.findall(question.text)), set(_YEAR.findall(f"{title} {statement.heading} {statement.text}"))
    if asked and told and not asked & told:
        fit -= OTHER_YEAR
    if question.kinds:
        fitting = max(_kind_fit(kind, statement, title) for kind in question.kinds)
        fit += FITS_KIND * (fitting - (not fitting))
    return fit


def has_kind(question: VaultQuestion, rated: Sequence[RatedStatement]) -> bool:
    """Whether the best statements have a name, date or number where that is asked for."""
    best = [each.statement for each in rated if each.score >= ALMOST_BEST * rated[0].score]
    return not question.kinds or any(_kind_fit(kind, each, "") for each in best for kind in question.kinds)


@lru_cache(maxsize=256)
def _is_in(name: str, text: str) -> bool:
    return word_class(name).is_in(words_in(text), text)


def _marked(question: VaultQuestion, row: str) -> float:
    """Of a table with marks: what the row says in the columns that are asked for, "sesame: yes" or "sesame: no"."""
    marks = list[str]()
    for cell in row.split(" · "):
        column, _, value = cell.partition(": ")
        if value and found_terms(question, column):
            marks.append(value.strip().lower())
    is_yes = any(mark in _YES or _is_in("courtesies", mark) for mark in marks)
    return MARKED * (is_yes - any(mark in _NO or _is_in("negations", mark) for mark in marks))


def _has_name(statement: NoteStatement) -> bool:
    """A capital inside of it, or at the beginning of a row, that is no day, month or name of a column."""
    named, columns = _NAME.findall(statement.text), set(statement.columns.split())
    if statement.kind == "row" and statement.text[:1].isupper():
        named.append(statement.text.split()[0])
    calendar = word_class("months", "weekdays")
    return any(not calendar.is_in(words_in(name), name) for name in named if name not in columns)


def _kind_fit(kind: AnswerKind, statement: NoteStatement, title: str) -> float:
    if kind == "name":  # the note may be about a person, or about anything
        return 1.0 if _has_name(statement) else 0.5 * (_NAME.search(f"x {title}") is not None)
    if kind == "reason":
        return float(_is_in("causes", statement.text))
    if _FIGURES[kind].search(statement.text):
        return 1.0
    said = words_in(statement.text)
    return float(
        word_class("months", "weekdays").is_in(said, "") if kind == "date" else not _numbers().isdisjoint(said)
    )


@cache
def _numbers() -> frozenset[str]:
    """From two on: one is an article too."""
    return frozenset(word for row in tables()["numbers"].values() for word in row[2:])
