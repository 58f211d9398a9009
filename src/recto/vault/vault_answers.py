"""Passages of a vault that answer a message, with the sentences that do: found by the vault's search, held against the
words of the message, ranked by their best sentence. What is not near enough is left out, and why is told."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import RectoError
from recto.search.terms import topic_words
from recto.vault.answers import (
    POOL,
    RatedStatement,
    asks_itself,
    found_terms,
    is_foreign,
    is_near,
    rated_statements,
    term_weights,
)
from recto.vault.document import Document
from recto.vault.note_statements import NoteStatement, note_statements, property_statements
from recto.vault.question import VaultQuestion, parse_question, question_parts
from recto.vault.vault_search import Excerpt, VaultSearch

ReadDocument = Callable[[str], Document]
# What each place behind the first costs a passage.
RANK_COST = 0.01
# The words of an earlier question count so much in a message that leans on it.
EARLIER_WEIGHT = 0.4
# A passage that answers this much less than the best one is about something else.
LEAST_OF_BEST = 0.55
# Of a question in another language a name alone may stand for anything: "Mount" in "Mount Everest".
LEAST_FOREIGN = 2
# Notes in use are looked at this far, and so much around a sentence is a passage.
MAX_NOTE_CHARS, MAX_SECTION_CHARS = 40_000, 900
USED_BEFORE = "in use, and the message leans on it"


class AnswerPassage(Struct, frozen=True):
    document: Document
    heading: str
    line: int
    start: int
    end: int
    score: float
    """About 0 to 1.3: how well its best sentence answers."""
    because: str
    statements: tuple[RatedStatement, ...] = ()
    """Its sentences, items and rows, the best first."""

    @property
    def text(self) -> str:
        return self.document.text[self.start : self.end].strip()

    def overlaps(self, other: "AnswerPassage") -> bool:
        same = self.document.path == other.document.path
        return same and self.start < other.end and other.start < self.end


class FoundPassages(Struct, frozen=True):
    passages: tuple[AnswerPassage, ...] = ()
    """The best first."""
    far: tuple[AnswerPassage, ...] = ()
    """The best of those that are not near enough."""
    warning: str = ""


class Lookup(Struct, frozen=True):
    """What is looked for: a message, and where it leans on earlier ones, the last question and the notes in use."""

    text: str
    earlier: str = ""
    in_use: tuple[str, ...] = ()
    """Paths."""


def find_passages(search: VaultSearch, read: ReadDocument, lookup: Lookup, *, is_named: bool = False) -> FoundPassages:
    """`is_named`: the user named the notes, and no others are looked at."""
    hits, warning = search.find_excerpts(lookup.text, POOL)
    if lookup.earlier:
        more = search.find_excerpts(f"{lookup.text}\n{lookup.earlier}", POOL).hits
        hits = tuple({(each.path, each.start): each for each in (*more, *hits)}.values())
    question = parse_question(lookup.text)
    pool = [f"{hit.title} {hit.heading} {hit.text}" for hit in hits]
    weights = term_weights(question, pool)
    earlier = parse_question(lookup.earlier).terms if lookup.earlier else ()
    weights |= {term: EARLIER_WEIGHT for term in earlier if term not in weights}
    least = min(len(question.terms), LEAST_FOREIGN) if is_foreign(question, pool) else 1
    rater = _Rater(question, weights, least, _Shelf(read))
    used = [each for path in lookup.in_use for each in rater.used(path)]
    read_hits = () if is_named else hits
    found = [each for rank, hit in enumerate(read_hits) for each in rater.found(hit, rank)]
    near = [each for each, is_close in (*used, *found) if is_close]
    far = [each for each, is_close in found if not is_close]
    return FoundPassages(tuple(_best(near)), tuple(sorted(far, key=_order)[:3]), warning)


def _order(passage: AnswerPassage) -> float:
    return -passage.score


def _best(passages: Iterable[AnswerPassage]) -> Iterator[AnswerPassage]:
    """Each text once, as far as it answers about as well as the best one."""
    chosen = list[AnswerPassage]()
    for each in sorted(passages, key=_order):
        is_known = any(each.overlaps(other) for other in chosen)
        if not is_known and (not chosen or each.score >= LEAST_OF_BEST * chosen[0].score):
            chosen.append(each)
            yield each


def answering(passages: Sequence[AnswerPassage], most: int) -> list[tuple[AnswerPassage, NoteStatement]]:
    """The sentences that answer, the best first, one of each paragraph or table; the best for each part of a question
    come before all others."""
    ranked = sorted(
        ((each, passage) for passage in passages for each in passage.statements if _says_something(each.statement)),
        key=lambda pair: -(pair[0].score + pair[1].score),
    )
    firsts = {each.part: (each, passage) for each, passage in reversed(ranked)}
    least = LEAST_OF_BEST * max((each.score for each, _ in ranked), default=0.0)
    others = [(each, passage) for each, passage in ranked if each.score >= least]
    chosen = list[tuple[AnswerPassage, NoteStatement]]()
    for each, passage in (*(firsts[part] for part in sorted(firsts)), *others):
        if not any(_is_beside(passage, each.statement, *known) for known in chosen):
            chosen.append((passage, each.statement))
    return chosen[:most]


def _is_beside(passage: AnswerPassage, statement: NoteStatement, other: AnswerPassage, known: NoteStatement) -> bool:
    """Whether two statements share a paragraph, or are a table and one of its rows."""
    same = passage.document.path == other.document.path
    return same and statement.start < known.end and known.start < statement.end


def _says_something(statement: NoteStatement) -> bool:
    is_remark = statement.text.startswith("(") and statement.text.endswith(")")
    return len(topic_words(statement.text)) > 1 and not is_remark


class _Shelf:
    """Notes, each read once."""

    def __init__(self, read: ReadDocument) -> None:
        self._read = read
        self._documents: dict[str, Document | None] = {}

    def get(self, path: str) -> Document | None:
        if path not in self._documents:
            try:
                self._documents[path] = self._read(path)
            except RectoError:  # it has vanished since it was found
                self._documents[path] = None
        return self._documents[path]


class _Rater:
    def __init__(self, question: VaultQuestion, weights: dict[str, float], least: int, shelf: _Shelf) -> None:
        self._weights, self._least, self._shelf = weights, least, shelf
        self._question = replace(question, terms=tuple(weights))
        self._parts = question_parts(question)

    def found(self, hit: Excerpt, rank: int) -> Iterator[tuple[AnswerPassage, bool]]:
        document = self._shelf.get(hit.path)
        if document is None:
            return
        statements, start = note_statements(document, hit.start, hit.end), hit.start
        if not document.text[document.parsed.body_start : start].strip() and (above := property_statements(document)):
            statements, start = [*above, *statements], 0
        rated = self._rated(statements, hit.title)
        if rated:
            score = round(max(0.0, rated[0].score - RANK_COST * rank), 4)
            start = start if rated[0].statement.start < hit.start else hit.start
            place = (document, hit.heading, hit.line, start, hit.end)
            passage = AnswerPassage(*place, score, hit.because, tuple(rated))
            yield passage, is_near(self._share(statements, hit.title), hit.similarity)

    def used(self, path: str) -> Iterator[tuple[AnswerPassage, bool]]:
        """The part of a note in use that answers best; it is near, because the message leans on it."""
        document = self._shelf.get(path)
        if document is None:
            return
        body = note_statements(document, document.parsed.body_start, min(len(document.text), MAX_NOTE_CHARS))
        statements = [*property_statements(document), *body]
        rated = self._rated(statements, document.title)
        if rated:
            best = rated[0].statement
            start, end = _around(document, best)
            held = tuple(each for each in rated if start <= each.statement.start < end)
            yield AnswerPassage(document, best.heading, best.line, start, end, held[0].score, USED_BEFORE, held), True

    def _rated(self, statements: Sequence[NoteStatement], title: str) -> list[RatedStatement]:
        """By the question, or where it has several parts, by the one that a statement answers best."""
        if len(self._parts) == 1:
            return rated_statements(self._question, statements, title, self._weights)
        rated = dict[NoteStatement, RatedStatement]()
        for number, part in enumerate(self._parts):
            weights = {term: self._weights[term] for term in part.terms if term in self._weights}
            for each in rated_statements(part, statements, title, weights):
                if each.statement not in rated or rated[each.statement].score < each.score:
                    rated[each.statement] = replace(each, part=number)
        return sorted(rated.values(), key=lambda each: -each.score)

    def _share(self, statements: Sequence[NoteStatement], title: str) -> float:
        """How much of the question a passage holds, by weight. What it asks itself does not count."""
        told = " ".join(
            f"{each.heading} {each.columns} {each.text}" for each in statements if not asks_itself(each.text)
        )
        held = found_terms(self._question.terms, f"{title} {told}")
        if len(held) < self._least:
            return 0.0
        return sum(self._weights[term] for term in held) / (sum(self._weights.values()) or 1.0)


def _around(document: Document, statement: NoteStatement) -> tuple[int, int]:
    """The section of a statement, or as much of it as a passage has."""
    starts = [heading.start for heading in document.parsed.headings]
    above = 0 if statement.start < document.parsed.body_start else document.parsed.body_start
    start = max((each for each in starts if each <= statement.start), default=above)
    end = min((each for each in starts if each > statement.start), default=len(document.text))
    if end - start > MAX_SECTION_CHARS:
        start = max(start, document.text.rfind("\n", 0, max(start, statement.start - MAX_SECTION_CHARS // 2)) + 1)
        end = min(end, max(statement.end, start + MAX_SECTION_CHARS))
    return start, end
