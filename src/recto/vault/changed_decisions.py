"""What holds no more: where the best answer is a decision that was taken back, what changed it later comes first, or at
least with it; where it tells of the past, what holds today comes first.

A change is told by its words (`instead`, `no longer`, `statt`, `ya no`), and is later by the day of its heading or
note, or by standing below in the same note."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from recto.search.dates import MONTHS
from recto.search.terms import COMMON_WORDS, STOP_WORDS, normalize_text, words
from recto.text import LazyPattern
from recto.vault.answer_passage import AnswerPassage, part_around
from recto.vault.answers import RatedStatement
from recto.vault.document import Document
from recto.vault.note_dates import NO_TIME, order_in_time
from recto.vault.note_statements import NoteStatement, note_statements
from recto.vault.question import VaultQuestion
from recto.vault.related_words import is_same_word
from recto.vault.vault_search import VaultSearch

_DECIDES = LazyPattern(
    r"\b(?:chose|choose|chosen|decided?|agreed?|picked|settled|voted|will (?:use|take|buy|be)|we (?:use|take)"
    r"|stays?|remains?|plan(?:ned)?|is set|booked|beschlossen|entschieden|gewahlt|einigten|nehmen|bleibt|bleiben"
    r"|geplant|gebucht"
    r"|decidi\w+|elegi\w+|acord\w+|queda|sigue|choisi\w*|decide\w*|reste|prenons|retenu)\b"
)
_PLACES = LazyPattern(
    r"decision|decided|minutes|meeting|protokoll|beschl|sitzung|entscheid|acuerdo|acta|reunion|proces-verbal"
)
_CHANGES = LazyPattern(
    r"\b(?:instead|no longer|any ?more|switched|changed(?: to)?|replaced?|moved?|moves|postponed|cancell?ed|rises?"
    r"|raised|drops|rather than|from now on|now|update|withdrawn|dropped|back to|(?:is|are) off"
    r"|statt|stattdessen|anstelle|nicht mehr|kein\w* mehr|geandert|andert|verschoben|abgesagt|wechsel\w*|gewechselt"
    r"|ersetzt|steigt|sinkt|ab jetzt|kunftig|doch"
    r"|en (?:vez|lugar) de|ya no|cambi\w+|sustitu\w+|reemplaz\w+|aplaz\w+|cancel\w+|sube|ahora"
    r"|au lieu de|ne \w+ plus|remplac\w+|chang\w+|reporte\w*|annul\w+|desormais|plutot)\b"
)
# Words that say of a statement itself that it holds no more.
_PAST = LazyPattern(
    r"\b(?:formerly|previously|used to|in the past|back then|old (?:note|value|rule|plan|price)s?"
    r"|fruher\w*|ehemals|damals|vormals|anteriormente|antiguamente|autrefois|auparavant|jadis"
    r"|(?:was|were|had been)\b[^.;:]{0,200}\buntil|(?:war|waren|wurden?|galt(?:en)?)\b[^.;:]{0,200}\bbis"
    r"|bis\b[^.;:]{0,200}\b(?:war|waren|wurden?|galt(?:en)?)|(?:era|eran|fue|fueron|habia)\b[^.;:]{0,200}\bhasta"
    r"|hasta\b[^.;:]{0,200}\b(?:era|eran|fue|fueron|habia)|(?:etait|etaient)\b[^.;:]{0,200}\bjusqu)\b"
)
# What may come about has changed nothing: "when the main switch is off".
_CONDITIONS = LazyPattern(r"\b(?:when|whenever|if|unless|wenn|falls|sobald|cuando|quand)\b[^,.;:]*")
_NAME = LazyPattern(r"(?<=\w )[A-ZÀ-Þ][\w'’-]+")
ReadNote = Callable[[str], Document | None]
# How many passages are looked at for a change, and how well one must answer to come before what it changes.
LOOKED_AT, LEAST_SCORE = 8, 0.7
MIN_LETTERS, STEP, MAX_CHARS = 4, 0.05, 900
CHANGES = "changes what was decided before"


class _Change(NamedTuple):
    document: Document
    statement: NoteStatement

    @property
    def time(self) -> tuple[int, int, int]:
        return order_in_time(self.document, self.statement.heading, self.statement.text)


def with_changes(
    search: VaultSearch, read: ReadNote, question: VaultQuestion, passages: Sequence[AnswerPassage]
) -> Sequence[AnswerPassage]:
    """The passages with the newest statement that changes what the best one says; as they are where the question is
    about what was before. It comes first if it answers the question too, else second."""
    passages = passages if question.days else _of_its_time(passages, past=question.is_past)
    best = passages[0]
    said = _Change(best.document, best.statements[0].statement)
    if question.is_past or _is_change(said.statement) or question.days:
        return passages
    least = LEAST_SCORE * best.statements[0].score
    answers = [
        _Change(each.document, rated.statement)
        for each in passages
        for rated in each.statements
        if rated.score >= least and _is_change(rated.statement)
    ]
    later = [
        each
        for each in answers
        if _is_later(each, said) and (_shares(said, each) or (_is_decision(said) and each.time > said.time))
    ]
    is_answer = bool(later) and "reason" not in question.kinds
    if not later and (_is_decision(said) or _is_among_decisions(said)):
        later = [each for each in _elsewhere(search, read, said) if _is_later(each, said)]
    if not later:
        return passages
    newest = max(later, key=lambda each: (each.time, each.statement.start))
    return _placed(newest, passages, STEP if is_answer else -STEP)


def _of_its_time(passages: Sequence[AnswerPassage], *, past: bool) -> Sequence[AnswerPassage]:
    """Where the best statement says that it holds no more: first the best of those that answer about as well and do
    not. Where the question is about the past it is the other way round."""
    best = passages[0].statements[0]
    if _is_past(best.statement) == past:
        return passages
    rated = [(each, said) for each in passages for said in each.statements if _is_past(said.statement) == past]
    passage, answer = max(rated, key=lambda each: each[1].score, default=(passages[0], best))
    if answer is best or answer.score < LEAST_SCORE * best.score:
        return passages
    return _placed(_Change(passage.document, answer.statement), passages, STEP)


def _placed(change: _Change, passages: Sequence[AnswerPassage], step: float) -> Sequence[AnswerPassage]:
    """Right before or after the best passage, as a part of its own passage where it has one."""
    best, (document, statement) = passages[0], change
    score = best.statements[0].score + step
    rated = RatedStatement(statement, score, best.statements[0].part)
    place = (document, statement.heading, statement.line)
    part = part_around(document, statement.start, statement.end, MAX_CHARS)
    made = AnswerPassage(*place, *part, best.score + step, CHANGES, (rated,))
    own = next((each for each in passages if each.overlaps(made)), None)
    if own is None:
        return sorted((*passages, made), key=lambda each: -each.score)
    others = tuple(each for each in own.statements if each.statement != statement)
    held = tuple(sorted((rated, *others), key=lambda each: -each.score))
    moved = replace(own, score=max(own.score, made.score), statements=held)
    return sorted((*(each for each in passages if each is not own), moved), key=lambda each: -each.score)


def _elsewhere(search: VaultSearch, read: ReadNote, said: _Change) -> Iterator[_Change]:
    """Changes that share words with a decision, wherever they stand."""
    for hit in search.find_excerpts(said.statement.text, LOOKED_AT).hits:
        note = read(hit.path)
        for each in note_statements(note, hit.start, hit.end) if note else ():
            if note and _is_change(each) and _shares(said, _Change(note, each)):
                yield _Change(note, each)


def _is_decision(said: _Change) -> bool:
    return _DECIDES.search(normalize_text(said.statement.text)) is not None


def _is_among_decisions(said: _Change) -> bool:
    """Whether it stands where decisions are written down with their days."""
    place = normalize_text(f"{said.document.path} {said.document.title} {said.statement.heading}")
    return said.time > NO_TIME and _PLACES.search(place) is not None


def _is_change(statement: NoteStatement) -> bool:
    return _CHANGES.search(_CONDITIONS.sub("", normalize_text(statement.text))) is not None


def _is_past(statement: NoteStatement) -> bool:
    return _PAST.search(normalize_text(statement.text)) is not None


def _is_later(change: _Change, said: _Change) -> bool:
    """By their days; without any by their places in the same note."""
    if change.document.path == said.document.path and change.time == said.time:
        return change.statement.start > said.statement.start
    return change.time > said.time > NO_TIME


def _shares(said: _Change, change: _Change) -> bool:
    """Whether both have two words, or a name; the titles of two notes count too."""
    is_same = said.document.path == change.document.path
    titles = ("", "") if is_same else (f"{said.document.title} ", f"{change.document.title} ")
    paragraph = change.document.text[change.statement.start : change.statement.end]
    mine, theirs = _content(titles[0] + said.statement.text), _content(titles[1] + paragraph)
    shared = {word for word in mine if any(is_same_word(word, each) for each in theirs)}
    names = {word for found in _NAME.findall(said.statement.text) for word in words(found)}
    return len(shared) > 1 or bool(shared & names)


def _content(text: str) -> set[str]:
    """Names and longer words; not those of dates, which decisions share without being about the same."""
    names = {word for name in _NAME.findall(text) for word in words(name)}
    found = {word for word in words(text) if len(word) >= MIN_LETTERS} | names
    return {word for word in found - STOP_WORDS - COMMON_WORDS if not word.isdigit() and word not in MONTHS}
