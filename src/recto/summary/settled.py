"""Settled: what later messages have put an end to. A question that was answered after a while, and an error after which
it works, are past. Knows the sentences to choose from, in order of time, not which are chosen.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from recto.chat.priority import BINDING
from recto.summary.decisions import content_terms
from recto.summary.sentence_score import UNWORTHY_FACTOR
from recto.summary.sentences import is_question, rate_sentence
from recto.summary.source_lines import TOOL, ScoredSentence, SourceLine
from recto.summary.statements import leaves_open
from recto.summary.success import tells_failure, works_now

# An error is past if it works within so many messages.
_MAX_UNTIL_WORKS = 14
# Of what a question asks, so much must be in one later statement; a single word may be anything.
_MIN_ANSWERED, _MIN_ANSWER = 0.6, 2

Statement = tuple[ScoredSentence, set[str]]
"""What somebody states, and its content."""


def lower_past(pool: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> list[ScoredSentence]:
    """Errors that were mended and questions that were answered are hardly worth telling; what binds stays."""
    worked = [one.line for one in pool if works_now(one.text)]
    asked = {one.key for one in pool if lines[one.line].label != TOOL and is_question(one.text)}
    stated = _statements(pool, lines) if asked else []

    def is_past(one: ScoredSentence) -> bool:
        if lines[one.line].is_task or rate_sentence(one.text) == BINDING:
            return False
        if one.key in asked:
            return _is_answered(one, stated)
        if not worked or one.speaker is not None or not tells_failure(one.text):
            return False
        return any(one.line < line <= one.line + _MAX_UNTIL_WORKS for line in worked)

    past = {one.key for one in pool if is_past(one)}
    return [replace(one, score=one.score * UNWORTHY_FACTOR) if one.key in past else one for one in pool]


def _statements(pool: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> list[Statement]:
    own = (one for one in pool if lines[one.line].label != TOOL and one.speaker is None)
    return [(one, content_terms(one.text)) for one in own if not is_question(one.text) and not leaves_open(one.text)]


def _is_answered(question: ScoredSentence, stated: Sequence[Statement]) -> bool:
    """Whether somebody states later what it asks, other than the reply right after it."""
    asked = content_terms(question.text)
    return any(one.line > question.line + 1 and is_answered(asked, content) for one, content in stated)


def is_answered(asked: set[str], stated: set[str]) -> bool:
    """Whether a later statement with this content tells what a question asks."""
    shared = len(asked & stated)
    return shared >= _MIN_ANSWER and shared >= _MIN_ANSWERED * len(asked)
