"""Sentence series: what is said again and again, of others or with other figures. Of most, the latest is enough."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from recto.chat.priority import BINDING
from recto.summary.facts import is_passing
from recto.summary.sentence_score import UNWORTHY_FACTOR, is_binding
from recto.summary.sentences import rate_sentence, sentences
from recto.summary.source_lines import ASSISTANT, TOOL, USER, ScoredSentence, SourceLine

Told = TypeVar("Told")

_SERIES_FACTOR = 0.7
_MIN_SERIES, _MIN_ECHOES, _MIN_SERIES_WORDS, _MAX_SERIES_WORDS = 3, 2, 3, 8
_MAX_INSPECTED = 400
_STATUS = re.compile(r"\d+(?:[.,:]\d+)*")


def lower_series(pool: Sequence[ScoredSentence], lines: Sequence[SourceLine]) -> list[ScoredSentence]:
    """What is said again and again, of others with other figures, counts for less; of an assistant's, of a tool's, of
    passing remarks and of one figure that changes only the latest is worth telling."""
    output = [one for one in pool if lines[one.line].label == TOOL]
    latest = {_STATUS.sub("0", one.text): one.key for one in output}
    factors = {one.key: UNWORTHY_FACTOR for one in output if latest[_STATUS.sub("0", one.text)] != one.key}
    for found in _series(pool, lambda sentence: sentence.text):
        if len({one.text for one in found}) >= _MIN_SERIES:
            replaced = _replaced([one.text for one in found])
            for at, one in enumerate(found):
                is_earlier, binds = one is not found[-1], is_binding(one)
                if (is_earlier and lines[one.line].label == ASSISTANT) or (not binds and at in replaced):
                    factors[one.key] = UNWORTHY_FACTOR
                elif not binds:
                    factors.setdefault(one.key, _SERIES_FACTOR)
    return [replace(one, score=one.score * factors.get(one.key, 1.0)) for one in pool] if factors else list(pool)


def without_passing_series(lines: Sequence[str]) -> list[str]:
    """Lines of a summary without repetitions and what later lines of the same form replace."""
    outcomes = [(at, _STATUS.sub("0", line)) for at, line in enumerate(lines) if line.startswith(TOOL)]
    newest = {line: at for at, line in outcomes}
    dropped = {at for at, line in outcomes if newest[line] != at}
    for label in (USER, ASSISTANT):
        said = [(at, line.removeprefix(label)) for at, line in enumerate(lines) if line.startswith(label)]
        remarks = [(at, text) for at, text in said if len(sentences(text)) == 1 and rate_sentence(text) != BINDING]
        for found in _series(remarks, lambda remark: remark[1], _MIN_ECHOES):
            texts = [text for _, text in found]
            is_series = len(found) >= _MIN_SERIES or all(map(is_passing, texts))
            replaced = range(len(found) - 1) if label == ASSISTANT else _replaced(texts) if is_series else ()
            dropped |= {found[at][0] for at in replaced}
    latest = {line: at for at, line in enumerate(lines)}
    return [line for at, line in enumerate(lines) if at not in dropped and (latest[line] == at or not line.strip())]


def _replaced(texts: Sequence[str]) -> set[int]:
    """Which of a series are out of date: passing remarks, and those of which only a figure has changed since."""
    latest = {_STATUS.sub("0", text): at for at, text in enumerate(texts)}
    return {
        at
        for at, text in enumerate(texts[:-1])
        if is_passing(text) or (len(_STATUS.findall(text)) == 1 and latest[_STATUS.sub("0", text)] != at)
    }


def _series(found: Iterable[Told], text_of: Callable[[Told], str], least: int = _MIN_SERIES) -> list[list[Told]]:
    """Those with the same words but for names and figures, if there are several."""
    alike: dict[tuple[str, ...], list[Told]] = {}
    for one in found:
        written = (word.strip(".!") for word in text_of(one)[:_MAX_INSPECTED].split())
        words = tuple(word for word in written if word.islower() and word.isalpha())
        if len(words) >= _MIN_SERIES_WORDS:
            alike.setdefault(words[:_MAX_SERIES_WORDS], []).append(one)
    return [each for each in alike.values() if len(each) >= least]
