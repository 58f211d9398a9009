"""Passages of a vault that answer a message, with the answering sentences: found by the vault's search, compared with
the message's words, ranked by their best sentence. Distant ones are left out, with the reason.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice

from msgspec.structs import replace

from recto.base.text import counted
from recto.errors import RectoError
from recto.search.dates import YEAR
from recto.search.terms import normalize_text
from recto.vault.answers import (
    LEAST_OF_BEST,
    NEAR_ALONE,
    NEAR_ALONE_FOREIGN,
    POOL,
    AnswerPassage,
    FoundPassages,
    Lookup,
    RatedStatement,
    asks_itself,
    found_terms,
    has_kind,
    is_foreign,
    is_near,
    near_share,
    part_around,
    rated_by_meaning,
    rated_statements,
    term_weights,
    with_compounds,
)
from recto.vault.document import Document, note_name
from recto.vault.folder import is_note
from recto.vault.note_chunks import note_day
from recto.vault.note_statements import NoteStatement, note_statements, plain_text
from recto.vault.question import VaultQuestion, language_of, parse_question, question_parts
from recto.vault.vault import Vault
from recto.vault.vault_search import Excerpt, VaultSearch

ReadDocument = Callable[[str], Document | None]
"""None if a note has vanished since it was found."""
# The penalty per rank after the first.
RANK_COST = 0.01
# The weight of an earlier question's words in a message that depends on it and has its own topic; and their share of
# their earlier weight if it has none.
EARLIER_WEIGHT, EARLIER_SHARE = 0.4, 0.8
# In another language, a name alone may mean anything: "Mount" in "Mount Everest".
LEAST_FOREIGN = 2
# A writing task does not need notes that share just one word with it.
LEAST_OF_TASK = 2
# Characters read of a note in use, and the size of a passage around a sentence.
MAX_NOTE_CHARS, MAX_SECTION_CHARS = 40_000, 900
# Passages compared by their statements, if no words are shared.
MOST_BY_MEANING = 4
# In an overview: the notes named, and the unreadable notes listed with the reason.
MOST_NAMED, MOST_TOLD = 8, 3
# Notes whose questions are read, latest first, and the limits on the length of a question worth offering.
MOST_READ, LONGEST_QUESTION, SHORTEST_QUESTION = 80, 90, 12
_QUESTION = re.compile(
    r"^[ \t]*(?:#{1,6}|[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?(\S.*?[?？])(?:[ \t]*\(.*\))?[ \t]*$", re.MULTILINE
)
OTHER_WORDS = "your notes do not contain the words of your question; the quotes are the nearest in meaning"
OTHER_LANGUAGE = "your notes are in another language than your question; the quotes are the nearest in meaning"
USED_BEFORE, OF_THAT_DAY = "in use, and the message leans on it", "of the day that is asked about"


def find_passages(
    search: VaultSearch, read: Callable[[str], Document], lookup: Lookup, *, is_named: bool = False
) -> FoundPassages:
    """`is_named`: the user named the notes, and only these are read."""

    @cache
    def document(path: str) -> Document | None:
        try:
            return read(path)
        except RectoError:
            return None

    question = asked = parse_question(lookup.text)
    hits, warning = search.find_excerpts(" ".join((lookup.text, *(day.written for day in question.days))), POOL)
    if lookup.earlier:
        hits = _joined(search.find_excerpts(f"{lookup.text}\n{lookup.earlier}", POOL).hits, hits)
    is_other = _is_other(question, hits)
    if is_other and (translated := _translated(search, question, hits)):
        question = translated
        hits = _joined(search.find_excerpts(question.text, POOL).hits, hits)
    pool = list(map(_whole_text, hits))
    rater = _Rater(with_compounds(question, pool), parse_question(lookup.earlier), pool, document)
    used = [each for path in lookup.in_use for each in rater.used(path, is_named=is_named)]
    found = list[tuple[AnswerPassage, bool]]()
    if not is_named:
        found += [each for path in search.find_dated(question.days) for each in rater.dated(path)]
        found += [each for rank, hit in enumerate(hits) for each in rater.found(hit, rank)]
    passages = _best(each for each, is_close in (*used, *found) if is_close)
    told = OTHER_LANGUAGE if is_other else "" if passages else OTHER_WORDS
    if question.asks and not is_named:
        # the top search result, whatever its words; without a match by words, any result
        nearest = _best(_nearest(search, document, asked, hits[:1] if passages else hits))
        passages += tuple(each for each in nearest if not any(map(each.overlaps, passages)))
    if told and passages:
        warning = f"{told}; {warning}" if warning else told
    far = sorted((each for each, is_close in found if not is_close), key=_order)
    return FoundPassages(passages, tuple(far[:3]), warning, question)


def _joined(more: Sequence[Excerpt], hits: Sequence[Excerpt]) -> tuple[Excerpt, ...]:
    return tuple({(each.path, each.start): each for each in (*more, *hits)}.values())


def _whole_text(hit: Excerpt) -> str:
    return f"{hit.title} {hit.heading} {hit.text}"


def _is_other(question: VaultQuestion, hits: Sequence[Excerpt]) -> bool:
    """True if a question is, or may be, in another language than the notes: unknown, with hardly any word found."""
    if not question.asks or not hits:
        return False
    if question.language:
        told = [language_of(hit.text) for hit in hits]
        return question.language not in told and any(told)
    held = frozenset[str]().union(*(found_terms(question, _whole_text(hit)) for hit in hits))
    return 2 * len(held) < len(question.terms)


def _translated(search: VaultSearch, question: VaultQuestion, hits: Sequence[Excerpt]) -> VaultQuestion | None:
    """The question in words of the notes; words without a match stay, so that they count as missing. None if none
    match."""
    # as written: without capitals and accents the encoder confuses words
    written = {normalize_text(word): word for word in re.findall(r"\w+", question.text)}
    found = search.translations([written.get(term, term) for term in question.terms], [hit.text for hit in hits])
    if not found:
        return None
    words = {term: found.get(written.get(term, term), term) for term in question.terms}
    parsed = parse_question(" ".join(words.values()))
    return replace(
        question,
        text=parsed.text,
        terms=parsed.terms,
        verbs=frozenset(words[verb] for verb in question.verbs) | parsed.verbs,
        language="",
        compounds=frozenset(),
    )


def _nearest(
    search: VaultSearch, read: ReadDocument, question: VaultQuestion, hits: Sequence[Excerpt]
) -> list[AnswerPassage]:
    """Passages near in meaning to a question, if their words do not suffice."""
    looked = list[tuple[Excerpt, Document, list[NoteStatement]]]()
    for hit in sorted(hits, key=lambda hit: -(hit.similarity or 0.0))[:MOST_BY_MEANING]:
        # names and numbers are the same in both languages
        is_far = is_foreign(question, [hit.text]) and not found_terms(question, hit.text)
        least = NEAR_ALONE_FOREIGN if is_far else NEAR_ALONE
        if (hit.similarity or 0.0) >= least and (document := read(hit.path)):
            statements = note_statements(document, hit.start, hit.end)
            telling = [each for each in statements if not (each.is_link or asks_itself(each.text))]
            looked += [(hit, document, telling)] if telling else []
    similarities = search.similarities(question.text, [each.text for *_, telling in looked for each in telling])
    if not similarities:  # another embedder, or it has failed
        return []
    near, found = iter(similarities), list[AnswerPassage]()
    for hit, document, telling in looked:
        rated = rated_by_meaning(question, telling, document.title, list(islice(near, len(telling))))
        place = (document, hit.heading, hit.line, hit.start, hit.end)
        found.append(AnswerPassage(*place, hit.similarity or 0.0, hit.because, tuple(rated)))
    return found


def _order(passage: AnswerPassage) -> float:
    return -passage.score


def _best(passages: Iterable[AnswerPassage]) -> tuple[AnswerPassage, ...]:
    """Each text once, if it answers about as well as the best one."""
    chosen = list[AnswerPassage]()
    for each in sorted(passages, key=_order):
        is_known = any(map(each.overlaps, chosen))
        if not is_known and (not chosen or each.score >= LEAST_OF_BEST * chosen[0].score):
            chosen.append(each)
    return tuple(chosen)


class _Rater:
    """Rates parts of notes for a question and the one it depends on."""

    def __init__(
        self, question: VaultQuestion, earlier: VaultQuestion, pool: Sequence[str], read: ReadDocument
    ) -> None:
        self._asked, self._read = question, read
        self._least = min(len(question.topics), LEAST_FOREIGN) if is_foreign(question, pool) else 1
        if not question.asks:
            self._least = min(len(question.terms), LEAST_OF_TASK)
        before = {
            term: EARLIER_WEIGHT if question.topics else EARLIER_SHARE * weight
            for term, weight in term_weights(earlier, pool).items()
        }
        own = term_weights(question, pool)
        self._weights = own | {term: weight for term, weight in before.items() if term not in own}
        kinds, verbs = question.kinds or earlier.kinds, question.verbs | earlier.verbs
        self._question = replace(question, terms=tuple(self._weights), verbs=verbs, kinds=kinds)
        parts = question_parts(question)
        self._parts = parts if len(parts) > 1 else [self._question]

    def found(self, hit: Excerpt, rank: int) -> Iterator[tuple[AnswerPassage, bool]]:
        document = self._read(hit.path)
        if document is None:
            return
        statements, start = note_statements(document, hit.start, hit.end), hit.start
        if rated := self._rated(statements, document):
            score = round(max(0.0, rated[0].score - RANK_COST * rank), 4)
            start = start if rated[0].statement.start < hit.start else hit.start
            place = (document, hit.heading, hit.line, start, hit.end)
            passage = AnswerPassage(*place, score, hit.because, tuple(rated))
            yield passage, self._is_near(document, statements, rated, hit.similarity)

    def used(self, path: str, *, is_named: bool) -> Iterator[tuple[AnswerPassage, bool]]:
        """The part of a note in use that answers best. It counts as near, since the message depends on it, unless the
        topic has changed: "And what is the capital of France?"."""
        for passage, statements in self._whole(path, USED_BEFORE):
            own = self._asked.topics
            is_close = is_named or not own or bool(own & self._held(passage.document, statements))
            yield passage, is_close and (is_named or _speaks_of_year(self._asked, passage.document))

    def dated(self, path: str) -> Iterator[tuple[AnswerPassage, bool]]:
        """The answers in a note whose name has the day of the question."""
        for passage, statements in self._whole(path, OF_THAT_DAY):
            yield passage, self._is_near(passage.document, statements, passage.statements, None)

    def _whole(self, path: str, because: str) -> Iterator[tuple[AnswerPassage, list[NoteStatement]]]:
        document = self._read(path)
        if document is None:
            return
        statements = note_statements(document, document.parsed.body_start, min(len(document.text), MAX_NOTE_CHARS))
        if rated := self._rated(statements, document):
            best = rated[0].statement
            start, end = part_around(document, best.start, best.end, MAX_SECTION_CHARS)
            held = tuple(each for each in rated if start <= each.statement.start < end)
            place = (document, best.heading, best.line, start, end)
            yield AnswerPassage(*place, held[0].score, because, held), statements

    def _title(self, document: Document) -> str:
        """The text above all statements of a note, with its day if the question names one."""
        if not self._asked.days:
            return document.title
        day = note_day(document)
        return f"{document.title} {note_name(document.path)} {day.written if day else ''}"

    def _rated(self, statements: Sequence[NoteStatement], document: Document) -> list[RatedStatement]:
        """Rated by the question, or by whichever of its parts a statement answers best."""
        title = self._title(document)
        if len(self._parts) == 1:
            return rated_statements(self._question, statements, title, self._weights)
        rated = dict[NoteStatement, RatedStatement]()
        for number, part in enumerate(self._parts):
            for each in rated_statements(part, statements, title, self._of(part)):
                if each.statement not in rated or rated[each.statement].score < each.score:
                    rated[each.statement] = replace(each, part=number)
        return sorted(rated.values(), key=lambda each: -each.score)

    def _held(self, document: Document, statements: Sequence[NoteStatement]) -> frozenset[str]:
        """The terms that a part of a note states, without its own questions and link captions."""
        told = " ".join(
            f"{each.heading} {each.columns} {each.text}"
            for each in statements
            if not (each.is_link or asks_itself(each.text))
        )
        return found_terms(self._question, f"{self._title(document)} {told}")

    def _is_near(
        self,
        document: Document,
        statements: Sequence[NoteStatement],
        rated: Sequence[RatedStatement],
        similarity: float | None,
    ) -> bool:
        held, asked = self._held(document, statements), self._question
        if len(held) < self._least or not _speaks_of_year(asked, document):
            return False
        share = max(near_share(part, held, self._of(part)) for part in self._parts)
        # without the verb, it must be of the requested kind or surely near
        lacks_verb = bool(asked.verbs) and not held & asked.verbs and not has_kind(asked, rated)
        return is_near(share, similarity, lacks_verb=lacks_verb)

    def _of(self, part: VaultQuestion) -> dict[str, float]:
        return {term: self._weights[term] for term in part.terms if term in self._weights}


def _speaks_of_year(question: VaultQuestion, document: Document) -> bool:
    """True if a note may be about the year in question: it names that year, or none at all."""
    asked, told = set(YEAR.findall(question.text)), set(YEAR.findall(f"{document.path} {document.text}"))
    return not asked or not told or bool(asked & told)


def why_nothing(vault: Vault) -> str:
    """Why no note can be found: the folder is gone or has no notes; else empty."""
    if not vault.root.is_dir():
        return f"the folder {vault.root} is no longer there: your notes could not be searched"
    try:
        return "" if vault.documents() else f"there are no notes in {vault.root}: nothing was searched"
    except RectoError as why:
        return f"your notes could not be searched: {why.message}"


def unread_notes(vault: Vault) -> str:
    """The notes left out of searches because they are unreadable; else empty."""
    readable = vault.hashes()
    unread = [each for each in vault.documents() if each.path not in readable]
    if not unread:
        return ""
    named = "; ".join(each.problem or each.path for each in unread[:MOST_TOLD])
    more = f"; and {len(unread) - MOST_TOLD} more" if len(unread) > MOST_TOLD else ""
    return f"not searched: {named}{more}"


def vault_overview(vault: Vault) -> str:
    """The number of notes, and the first by name, starting with those outside folders."""
    notes = sorted(vault.documents(), key=lambda each: (each.path.count("/"), each.path.casefold()))
    named = ", ".join(each.title for each in notes[:MOST_NAMED])
    more = f" and {len(notes) - MOST_NAMED} more" if len(notes) > MOST_NAMED else ""
    return f"{counted(len(notes), 'note')}: {named}{more}"


def questions_in_notes(vault: Vault, most: int) -> list[str]:
    """Questions in the notes themselves, as headings or list items, starting with notes that ask several."""
    entries = sorted((each for each in vault.folder.walk() if is_note(each.path)), key=lambda each: -each.mtime_ns)
    asked = [list(_questions(vault, entry.path)) for entry in entries[:MOST_READ]]
    return list(dict.fromkeys(each for found in sorted(asked, key=len, reverse=True) for each in found))[:most]


def _questions(vault: Vault, path: str) -> Iterator[str]:
    try:
        text = vault.read(path).text
    except RectoError:
        return
    for match in _QUESTION.finditer(text):
        question = plain_text(match[1])
        if SHORTEST_QUESTION <= len(question) <= LONGEST_QUESTION:
            yield question
