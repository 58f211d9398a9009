"""Which statements of the passages that answer are quoted: each thing once, of a list or table as much as was asked."""

from collections.abc import Sequence

from msgspec.structs import replace

from recto.search.terms import topic_words
from recto.vault.answer_passage import AnswerPassage
from recto.vault.answers import RatedStatement
from recto.vault.note_dates import NO_TIME, order_in_time
from recto.vault.note_statements import NoteStatement
from recto.vault.question import VaultQuestion

# A statement that answers this much less than the best one is about something else.
LEAST_OF_BEST = 0.55
# Of statements that answer about as well as each other the newest comes first.
ABOUT_AS_WELL = 0.06
# Rows of one table that a question for several may get, and how well rows must answer beside the best one.
MOST_ROWS, LEAST_ROW = 6, 0.85

Answer = tuple[AnswerPassage, NoteStatement]
_Ranked = tuple[RatedStatement, AnswerPassage]


def answering(passages: Sequence[AnswerPassage], most: int, question: VaultQuestion | None = None) -> list[Answer]:
    """The statements that answer, the best first, one of each paragraph or table; the best for each part of a question
    come before all others."""
    ranked = sorted(
        ((each, passage) for passage in passages for each in passage.statements if _says_something(each.statement)),
        key=lambda pair: -_total(pair),
    )
    ranked = _by_time(ranked)
    firsts = {each.part: (each, passage) for each, passage in reversed(ranked)}
    least = LEAST_OF_BEST * max((each.score for each, _ in ranked), default=0.0)
    others = [
        (each, passage) for each, passage in ranked if each.score >= max(least, _least_row(each, passage, ranked))
    ]
    if len(rows := _rows(ranked)) > 1:
        return rows
    chosen = list[Answer]()
    for each, passage in (*(firsts[part] for part in sorted(firsts)), *others):
        if not any(_is_known(passage, each.statement, *known) for known in chosen):
            chosen.append((passage, each.statement))
    return chosen[:most]


def _least_row(each: RatedStatement, passage: AnswerPassage, ranked: Sequence[_Ranked]) -> float:
    """How well a row must answer: what the columns of a table are called all its rows have in common."""
    if each.statement.kind != "row":
        return 0.0
    path, table = passage.document.path, each.statement.table
    rows = (row.score for row, other in ranked if row.statement.table == table and other.document.path == path)
    return LEAST_ROW * max(rows)


def _by_time(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """The newest first among those that answer about as well as each other."""
    ordered = list[_Ranked]()
    for pair in ranked:
        at, time = len(ordered), _time(pair)
        while at and _total(ordered[at - 1]) - _total(pair) < ABOUT_AS_WELL:
            before = _time(ordered[at - 1])
            if min(before, time) == NO_TIME or before >= time:
                break
            at -= 1
        ordered.insert(at, pair)
    return ordered


def _total(pair: _Ranked) -> float:
    return pair[0].score + pair[1].score


def _time(pair: _Ranked) -> tuple[int, int, int]:
    statement = pair[0].statement
    return order_in_time(pair[1].document, statement.heading, statement.text)


def _rows(ranked: Sequence[_Ranked]) -> list[Answer]:
    """Where rows of a table answer best and equally well: these, in its order, and how many more there are."""
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
        told = f"… and {left} more {'row' if left == 1 else 'rows'}"
        last, row = chosen[MOST_ROWS - 1]
        chosen[MOST_ROWS - 1] = last, replace(row, more=told)
    return chosen[:MOST_ROWS]


def _is_known(passage: AnswerPassage, statement: NoteStatement, other: AnswerPassage, known: NoteStatement) -> bool:
    """Whether two statements say the same, share a paragraph, or are a table and one of its rows."""
    if passage.document.path == other.document.path and statement.start < known.end and known.start < statement.end:
        return True
    return topic_words(statement.text) == topic_words(known.text)


def _says_something(statement: NoteStatement) -> bool:
    is_remark = statement.text.startswith("(") and statement.text.endswith(")")
    return bool(topic_words(statement.text)) and not is_remark
