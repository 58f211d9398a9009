"""Finds the sentences of notes that answer a question, decides whether the notes cover it at all, and picks what to
quote. Pure.

Words weigh more the fewer passages contain them, and match by prefix, so no language needs to be known. Evidence of a
name, date or number is a capital, a digit, or a word of a closed class.
"""

import math
from collections.abc import Mapping, Sequence, Set
from functools import cache, lru_cache

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import LazyPattern
from recto.search.dates import day_of_term, is_day_term, named_days
from recto.search.passages import QUESTION_MARKS
from recto.search.terms import is_spaced, topic_words, word_forms, words
from recto.sentences.words import tables, word_class, words_in
from recto.vault.document import Document
from recto.vault.note_chunks import NO_TIME, order_in_time
from recto.vault.note_statements import NoteStatement
from recto.vault.question import AnswerKind, VaultQuestion, language_of

# -- words that are forms of one, by prefix and ending

_MIN_COMMON = 4
_ENDING_LIST = """
    s es e ed d r er ers or ors ing ings n en em est ly t te ten tes ment ments ung ungen ation ations al ic ie ies y
    ance ances ence ences
    ned ning ted ting ped ping led ling red ring ged ging med ming
    a o as os i ar ir ado ada ados adas ido ida idos idas an aron io ion iones ciones cion mente
    ee ees ez ent ait aient ant ions eur euse"""
_ENDINGS = frozenset(("", *_ENDING_LIST.split()))
_SHORT_ENDINGS = frozenset(("", "s", "es", "ses", "d", "ed", "ing", "e", "n", "en"))


@lru_cache(maxsize=16_384)
def is_same_word(one: str, other: str) -> bool:
    """True if two words are forms of one, judged by their prefix: `planned` and `plan`, but not `plan` and `plank`."""
    if one == other:
        return True
    if one.isdigit() or other.isdigit():
        return False
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    # an ending may begin before the words differ: `insures` and `insurer`
    for stem in range(common, max(2, common - 2), -1):
        endings = _ENDINGS if stem >= _MIN_COMMON else _SHORT_ENDINGS
        if one[stem:] in endings and other[stem:] in endings:
            return True
    return False


# Shorter parts of a compound are too often something else.
_MIN_PART, _MIN_REST = 4, 4
# A long compound may end with its kind even after a short word (`tonziegel`), but not after a prefix.
_MIN_HEAD, _MIN_BEFORE_HEAD = 5, 3
_PREFIXES = frozenset(("auf", "aus", "bei", "ein", "ent", "her", "hin", "los", "mit", "ver", "vor", "weg", "zer"))


@lru_cache(maxsize=16_384)
def is_part_of(one: str, other: str) -> bool:
    """True if one word is part of the other, as in German compounds: `konto` and `kontostand`."""
    short, long = sorted((one, other), key=len)
    rest = len(long) - len(short)
    if len(short) >= _MIN_HEAD and rest >= _MIN_BEFORE_HEAD and long.endswith(short) and long[:rest] not in _PREFIXES:
        return True
    return len(short) >= _MIN_PART and rest >= _MIN_REST and (long.startswith(short) or long.endswith(short))


def found_terms(question: VaultQuestion, text: str) -> frozenset[str]:
    present, found = frozenset(words(text)), set[str]()
    forms = {term: word_forms(term) for term in question.terms}
    starts = {form[:3] for listed in forms.values() for form in listed}
    alike = [word for word in present if word[:3] in starts]
    told = named_days(text) if question.days else ()
    for term in question.terms:
        if is_day_term(term):
            is_found = any(map(day_of_term(term).holds, told))
        elif len(term) == 1 and not is_spaced(term):  # text in such a script is matched by pairs
            is_found = any(word.startswith(term) for word in present)
        else:
            is_found = term in present or any(is_same_word(form, word) for word in alike for form in forms[term])
        if is_found or (term in question.compounds and any(is_part_of(term, word) for word in present)):
            found.add(term)
    return frozenset(found)


def with_compounds(question: VaultQuestion, pool: Sequence[str]) -> VaultQuestion:
    """The question with the words that no text contains as such marked as compounds: German joins `konto` to
    `kontostand`."""
    if question.language != "de":
        return question
    held = frozenset[str]().union(*(found_terms(question, text) for text in pool))
    return replace(question, compounds=frozenset(question.terms) - held)


FOREIGN_WEIGHT = 1.0
# For a verb that the notes lack: the answer may use another word.
MISSING_VERB_WEIGHT = 0.8
POOL = 24
"""The number of passages a question is compared with."""


def is_foreign(question: VaultQuestion, pool: Sequence[str]) -> bool:
    return bool(question.language) and language_of(" ".join(pool)) not in ("", question.language)


def term_weights(question: VaultQuestion, pool: Sequence[str]) -> dict[str, float]:
    """The weight of each term: higher the fewer texts contain it, and highest for a term in none of them, since the
    notes do not mention it. If the notes are in another language, only names and numbers can match at all."""
    held = [found_terms(question, text) for text in pool] if question.terms else []
    counts = {term: sum(term in some for some in held) for term in question.terms}
    size = max(POOL, len(pool))  # a search with few results must not make its words common
    weights = {term: 0.5 + math.log((size + 1) / (count + 1)) for term, count in counts.items()}
    if not all(counts.values()) and is_foreign(question, pool):
        weights |= {term: FOREIGN_WEIGHT for term, count in counts.items() if not count}
    limits = {term: MISSING_VERB_WEIGHT for term in question.verbs if not counts.get(term)}
    return {term: min(weight, limits.get(term, weight)) for term, weight in weights.items()}


# -- near enough

# Without an embedder: the weighted share of a question's words that a passage must contain. Measured on our own
# questions in four languages: all 38 that notes answer are above 0.42; of 45 that no note covers, two are above 0.37
# ("What is the weather tomorrow?" over a sailor's notes).
NEAR_SHARE = 0.41
# With an embedder: the weight of similarity beside that share, fitted on XQuAD in three languages with half of its
# paragraphs held out. The required sum was chosen on two vaults by others; it is higher if the verb is missing.
SIMILARITY_COUNTS, NEAR_SUM, SURE_SUM = 0.45, 0.45, 0.6
# The similarity required of passages that share hardly a word with a question: of 300 unrelated questions at most one
# in twenty reaches the first (same language as the notes) or the second (another language).
NEAR_ALONE, NEAR_ALONE_FOREIGN = 0.3, 0.4


def near_share(question: VaultQuestion, held: Set[str], weights: Mapping[str, float]) -> float:
    """The weighted share of a question that is covered: 0 if that is only its verb or its measure."""
    topics = question.topics & weights.keys()
    if topics and not topics & held:
        return 0.0
    counted = {
        term: min(weight, MISSING_VERB_WEIGHT) if term in question.verbs else weight
        for term, weight in weights.items()
        if term not in question.verbs or weight >= MISSING_VERB_WEIGHT  # in nearly every passage
    }
    return sum(counted[term] for term in held if term in counted) / (sum(counted.values()) or 1.0)


def is_near(share: float, similarity: float | None, *, lacks_verb: bool = False) -> bool:
    """True if a passage is about the question. `share`: the weighted share of the question it contains; `similarity`:
    the score of an embedder that knows the language, if there is one; `lacks_verb`: the question's verb and the kind of
    answer it asks for are both missing."""
    if similarity is None:
        return share >= NEAR_SHARE and not lacks_verb
    return share + SIMILARITY_COUNTS * similarity >= (SURE_SUM if lacks_verb else NEAR_SUM)


# -- the sentence that answers

OWN, ABOVE, BESIDE = 1.0, 0.7, 0.25
"""The weight of a word in the statement itself, in its headings or column names, and in neighbouring statements."""
FITS_KIND, POINTER, MARKED = 0.2, 0.3, 0.4
# A list as a whole ranks above its items.
LISTED = 0.04
ALMOST_BEST = 0.6
_YES, _NO = frozenset(["y", "x", "✓", "✔", "✅", "☑"]), frozenset(["n", "-", "–", "—", "✗", "✘", "❌", "☐"])
_FIGURES = {
    "number": LazyPattern(r"\d"),
    "date": LazyPattern(r"\b(?:1[5-9]|20)\d\ds?\b|\b\d\d?[./]\d\d?\b|\b\d\d?:\d\d\b"),
}
# A capital inside a sentence. German capitalises every noun, so there it says little.
_NAME = LazyPattern(r"(?<=[\w,;:·(] )[A-ZÀ-Þ][\w'’-]+")


# Statements whose similarity is further below the best are about something else.
LEAST_IN_MEANING, KIND_IN_MEANING, HELD_IN_MEANING = 0.9, 0.25, 0.25


class RatedStatement(Struct, frozen=True):
    statement: NoteStatement
    score: float
    """About 0 to 1.3: the share of the question it contains, and whether it is of the requested kind."""
    part: int = 0
    """The question it answers, if there are several."""


def asks_itself(text: str) -> bool:
    """True for a question that somebody wrote down: it answers nothing."""
    return text.rstrip(" \"'”’)*_").endswith(QUESTION_MARKS)


def rated_statements(
    question: VaultQuestion, statements: Sequence[NoteStatement], title: str, weights: Mapping[str, float]
) -> list[RatedStatement]:
    """The statements by how well they answer the question, best first, without those that ask something themselves."""
    telling = [each for each in statements if not asks_itself(each.text)]
    held = [found_terms(question, each.text) for each in telling]
    rated = list[RatedStatement]()
    for at, each in enumerate(telling):
        columns = found_terms(question, each.columns) if each.columns else frozenset[str]()
        above = columns | found_terms(question, f"{title} {each.heading}")
        # the words of a link are those of another note, and a list counts by what is above it
        own = frozenset[str]() if each.is_link or each.kind == "list" else held[at] - columns
        beside = frozenset[str]().union(*(held[near] for near in (at - 1, at + 1) if 0 <= near < len(telling)))
        if own or above:
            score = _share(own, above, beside, weights) + _fit(question, each, title)
            if each.kind == "row" and own and question.verbs & columns:  # "Which fuse": answered by a column
                score += FITS_KIND
            rated.append(RatedStatement(each, round(score, 4)))
    return sorted(rated, key=lambda each: -each.score)


def rated_by_meaning(
    question: VaultQuestion, statements: Sequence[NoteStatement], title: str, near: Sequence[float]
) -> list[RatedStatement]:
    """The statements by similarity, best first. Near ties are decided by the kind of answer, then by the words both
    languages share, names and numbers above all."""

    def score(each: NoteStatement) -> float:
        held = found_terms(question, f"{title} {each.heading} {each.text}")
        return KIND_IN_MEANING * _fit(question, each, title) + HELD_IN_MEANING * len(held) / max(1, len(question.terms))

    rated = [RatedStatement(each, round(at + score(each), 4)) for each, at in zip(statements, near, strict=True)]
    rated.sort(key=lambda each: -each.score)
    return [each for each in rated if each.score >= LEAST_IN_MEANING * rated[0].score]


def _share(own: frozenset[str], above: frozenset[str], beside: frozenset[str], weights: Mapping[str, float]) -> float:
    counted = (
        weight * (OWN if term in own else ABOVE if term in above else BESIDE if term in beside else 0.0)
        for term, weight in weights.items()
    )
    return sum(counted) / (sum(weights.values()) or 1.0)


def _fit(question: VaultQuestion, statement: NoteStatement, title: str) -> float:
    fit = LISTED if statement.kind == "list" and not question.kinds else 0.0
    if _is_in("see", statement.text):  # it points to an answer but is none
        fit -= POINTER
    if statement.kind == "row" and not _is_in("negations", question.text):
        fit += _marked(question, statement.text)
    if question.kinds:
        fitting = max(_kind_fit(kind, statement, title) for kind in question.kinds)
        fit += FITS_KIND * (fitting - (not fitting))
    return fit


def has_kind(question: VaultQuestion, rated: Sequence[RatedStatement]) -> bool:
    """True if the best statements contain a name, date or number, where the question asks for one."""
    best = [each.statement for each in rated if each.score >= ALMOST_BEST * rated[0].score]
    return not question.kinds or any(_kind_fit(kind, each, "") for each in best for kind in question.kinds)


@lru_cache(maxsize=256)
def _is_in(name: str, text: str) -> bool:
    return word_class(name).is_in(words_in(text), text)


def _marked(question: VaultQuestion, row: str) -> float:
    """For a table of marks: the row's value in the requested columns, "sesame: yes" or "sesame: no"."""
    marks = list[str]()
    for cell in row.split(" · "):
        column, _, value = cell.partition(": ")
        if value and found_terms(question, column):
            marks.append(value.strip().lower())
    is_yes = any(mark in _YES or _is_in("courtesies", mark) for mark in marks)
    return MARKED * (is_yes - any(mark in _NO or _is_in("negations", mark) for mark in marks))


def _has_name(statement: NoteStatement) -> bool:
    """True for a capital inside the statement, or at the start of a row, that is not a day, a month or a column
    name."""
    named, columns = _NAME.findall(statement.text), set(statement.columns.split())
    if statement.kind == "row" and statement.text[:1].isupper():
        named.append(statement.text.split()[0])
    calendar = word_class("months", "weekdays")
    return any(not calendar.is_in(words_in(name), name) for name in named if name not in columns)


def _kind_fit(kind: AnswerKind, statement: NoteStatement, title: str) -> float:
    if kind == "name":  # the note may be about a person or anything else
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
    """From two up: one is also an article."""
    return frozenset(word for row in tables()["numbers"].values() for word in row[2:])


# -- parts of notes that answer


class AnswerPassage(Struct, frozen=True):
    document: Document
    heading: str
    line: int
    start: int
    end: int
    score: float
    """About 0 to 1.3: the score of its best sentence."""
    because: str
    statements: tuple[RatedStatement, ...] = ()
    """Its sentences, items and rows, best first."""

    @property
    def text(self) -> str:
        return self.document.text[self.start : self.end].strip()

    def overlaps(self, other: "AnswerPassage") -> bool:
        same = self.document.path == other.document.path
        return same and self.start < other.end and other.start < self.end


class FoundPassages(Struct, frozen=True):
    passages: tuple[AnswerPassage, ...] = ()
    """Best first."""
    far: tuple[AnswerPassage, ...] = ()
    """The best of those that are not near enough."""
    warning: str = ""
    question: VaultQuestion | None = None
    unread: str = ""
    """If nothing was found: the notes that could not be searched."""
    overview: str = ""
    """A list of the vault's notes, for a message about all of it."""


class Lookup(Struct, frozen=True):
    """What to look up: a message and, if it depends on earlier ones, the last question and the notes in use."""

    text: str
    earlier: str = ""
    in_use: tuple[str, ...] = ()
    """Paths."""


def part_around(document: Document, start: int, end: int, most: int) -> tuple[int, int]:
    """The section around a place, or at most `most` characters of it."""
    starts = [heading.start for heading in document.parsed.headings]
    above = 0 if start < document.parsed.body_start else document.parsed.body_start
    first = max((each for each in starts if each <= start), default=above)
    last = min((each for each in starts if each > start), default=len(document.text))
    if last - first > most:
        first = max(first, document.text.rfind("\n", 0, max(first, start - most // 2)) + 1)
        last = min(last, max(end, first + most))
    return first, last


# -- the statements to quote: each fact once, and only as much of a list or table as was asked for

# Statements that score below this share of the best one are about something else.
LEAST_OF_BEST = 0.55
# Statements this close in score are sorted by date, newest first.
ABOUT_AS_WELL = 0.06
# The most rows of one table for a question about several, and the score they need relative to the best one.
MOST_ROWS, LEAST_ROW = 6, 0.85

Answer = tuple[AnswerPassage, NoteStatement]
_Ranked = tuple[RatedStatement, AnswerPassage]


def answering(passages: Sequence[AnswerPassage], most: int) -> list[Answer]:
    """The statements that answer, best first, one per paragraph or table; the best for each part of a question come
    first."""
    said = [(each, passage) for passage in passages for each in passage.statements if _says_something(each.statement)]
    ranked = _by_time(sorted(said, key=lambda pair: -_total(pair)))
    if len(rows := _rows(ranked)) > 1:
        return rows
    best_rows: dict[tuple[str, int | None], float] = {}
    for each, passage in ranked:
        if each.statement.kind == "row":
            table = passage.document.path, each.statement.table
            best_rows[table] = max(each.score, best_rows.get(table, 0.0))
    # all rows share the column names, so a row must score higher
    least = LEAST_OF_BEST * max((each.score for each, _ in ranked), default=0.0)
    firsts = {each.part: (each, passage) for each, passage in reversed(ranked)}
    others = (
        (each, passage)
        for each, passage in ranked
        if each.score >= max(least, LEAST_ROW * best_rows.get((passage.document.path, each.statement.table), 0.0))
    )
    chosen = list[Answer]()
    for each, passage in (*(firsts[part] for part in sorted(firsts)), *others):
        if not any(_is_known(passage, each.statement, *known) for known in chosen):
            chosen.append((passage, each.statement))
    return chosen[:most]


def _by_time(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Sorts near ties newest first."""
    ordered, times = list[_Ranked](), list[tuple[int, int, int]]()
    for pair in ranked:
        statement = pair[0].statement
        at, time = len(ordered), order_in_time(pair[1].document, statement.heading, statement.text)
        while at and _total(ordered[at - 1]) - _total(pair) < ABOUT_AS_WELL and NO_TIME < times[at - 1] < time:
            at -= 1
        ordered.insert(at, pair)
        times.insert(at, time)
    return ordered


def _total(pair: _Ranked) -> float:
    return pair[0].score + pair[1].score


def _rows(ranked: Sequence[_Ranked]) -> list[Answer]:
    """If several rows of a table answer best and equally well: those rows in table order, and the number of further
    ones."""
    if not ranked or ranked[0][0].statement.kind != "row":
        return []
    best, passage = ranked[0]
    path, table = passage.document.path, best.statement.table
    rows = {
        each.statement.start: (other, each.statement)
        for each, other in ranked
        if other.document.path == path and each.statement.table == table and each.score == best.score
    }
    chosen = [rows[start] for start in sorted(rows)]
    if (left := len(chosen) - MOST_ROWS) > 0:
        last, row = chosen[MOST_ROWS - 1]
        chosen[MOST_ROWS - 1] = last, replace(row, more=f"… and {left} more {'row' if left == 1 else 'rows'}")
    return chosen[:MOST_ROWS]


def _is_known(passage: AnswerPassage, statement: NoteStatement, other: AnswerPassage, known: NoteStatement) -> bool:
    """True if two statements say the same, share a paragraph, or are a table and one of its rows."""
    if passage.document.path == other.document.path and statement.start < known.end and known.start < statement.end:
        return True
    return topic_words(statement.text) == topic_words(known.text)


def _says_something(statement: NoteStatement) -> bool:
    is_remark = statement.text.startswith("(") and statement.text.endswith(")")
    return bool(topic_words(statement.text)) and not is_remark
