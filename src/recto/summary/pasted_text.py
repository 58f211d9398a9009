"""Pasted text: which parts of a message are the words of others, and whose: pasted chats, quoted and forwarded mails.

Knows one text at a time, and goes by its form.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from recto.chat.priority import BINDING
from recto.summary.machine_output import FENCES, QUOTED, LineKinds
from recto.summary.model_orders import SOMEBODY, is_forged
from recto.summary.pasted_dialogue import attribute_turns
from recto.summary.quoted_mail import TextLine, attribute_mails
from recto.summary.sentences import rate_sentence
from recto.text import text_cache
from recto.window.window import is_framelike

# A longer text is not kept in memory.
_SHORT = 4000


class SpokenPart(NamedTuple):
    """A part of a text in the words of one person: its author (None), or somebody who is quoted."""

    start: int
    end: int
    speaker: str | None
    text: str
    """Without labels and quotation marks of mails."""


def spoken_parts(text: str) -> tuple[SpokenPart, ...]:
    """The parts of a text by who speaks, in order; one if nobody is quoted."""
    return _short_parts(text) if len(text) <= _SHORT else _parts(text)


@text_cache(2048)  # sentences and facts are found in the same messages
def _short_parts(text: str) -> tuple[SpokenPart, ...]:
    return _parts(text)


def _parts(text: str) -> tuple[SpokenPart, ...]:
    if not any(sign in text for sign in ":：>]"):
        return (SpokenPart(0, len(text), None, text),)
    lines = _split(text)
    attribute_mails(lines)
    attribute_turns(lines)
    _attribute_forged(lines)
    if not any(line.speaker is not None for line in lines):
        return (SpokenPart(0, len(text), None, text),)
    found = []
    for speaker, run in groupby(lines, key=lambda line: line.speaker):
        said_by = list(run)
        start, end = said_by[0].start, said_by[-1].end
        said = text[start:end] if speaker is None else "\n".join(line.text for line in said_by)
        found.append(SpokenPart(start, end, speaker, said))
    return tuple(found)


def _split(text: str) -> list[TextLine]:
    lines, offset, in_fence = [], 0, False
    for line in text.splitlines(keepends=True):
        is_fence = line.lstrip().startswith(FENCES)
        lines.append(TextLine(offset, offset + len(line), line.rstrip(), in_fence or is_fence))
        in_fence, offset = in_fence != is_fence, offset + len(line)
    return lines


def _attribute_forged(lines: list[TextLine]) -> None:
    """In a text with lines in the form of a summary's frame, lines in the form of its ledger are not the author's."""
    if any(is_forged(line.text) for line in lines):
        for at, line in enumerate(lines):
            if line.speaker is None and (is_framelike(line.text) or is_forged(line.text)):
                lines[at] = line._replace(speaker=SOMEBODY)


def own_words(text: str) -> str:
    """What the author says himself; all of it if that is nothing."""
    own = "\n".join(part.text for part in spoken_parts(text) if part.speaker is None)
    return own if own.strip() else text


def mark_quoted(lines: LineKinds, found: Sequence[SpokenPart]) -> LineKinds:
    """The lines with those marked that others have said."""
    if len(found) < 2 and (not found or found[0].speaker is None):
        return lines
    kinds = list(lines.kinds)
    for part in found:
        if part.speaker is not None:
            first, last = bisect_left(lines.starts, part.start), bisect_left(lines.starts, part.end)
            kinds[first:last] = [QUOTED] * (last - first)
    return LineKinds(lines.starts, tuple(kinds), lines.fences)


class QuotedLine(NamedTuple):
    speaker: str
    start: int
    """Where the name of the speaker stands, or a sign that it is quoted, if the line has one."""
    offset: int
    text: str
    is_labelled: bool


def quoted_lines(text: str, parts: Sequence[SpokenPart]) -> Iterator[QuotedLine]:
    """The lines of others as they stand in the text."""
    for part in parts:
        if part.speaker is None:
            continue
        start, label = part.start, -1
        raw = text[part.start : part.end].splitlines(keepends=True)
        for line, said in zip(raw, part.text.split("\n"), strict=True):
            offset = start + (line.find(said) if said else len(line))
            sign = text.find(">", start, offset) if line.lstrip().startswith(">") else -1
            name = text.find(part.speaker, start, offset) if part.speaker else -1
            label = max(label, name, sign)
            if said:
                yield QuotedLine(part.speaker, label if label >= 0 else offset, offset, said, label >= 0)
            start += len(line)


_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’](?:m|ll|ve|d)|we|we['’](?:re|ll|ve)|me|my|our|us|ich|wir|mir|mich|uns|mein\w*|unser\w*|yo|nos|mi"
    r"|mis|me|"
    r"nosotros|nuestr\w+|je|nous|moi|mon|ma|mes|notre|nos)\b|\bj['’]|我",
    re.IGNORECASE,
)


def is_personal(sentence: str) -> bool:
    """Whether a reader must know who says it: it tells of the speaker, or decides."""
    return _FIRST_PERSON.search(sentence) is not None or rate_sentence(sentence) == BINDING


# -- between quotation marks

_OPEN_QUOTE = re.compile(r"""(?:^|[\s(:])(["“„«「])(?=\S)""")
_QUOTES = {'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」"}
_MAX_QUOTED_SENTENCES = 40


def quotation_runs(found: Sequence[str]) -> set[int]:
    """The numbers of sentences that stand together between quotation marks, what leads to them included: what somebody
    else wrote."""
    inside: set[int] = set()
    if not any(map("\n".join(found).__contains__, _QUOTES)):
        return inside
    start, closing = -1, ""
    for at, sentence in enumerate(found):
        if start >= 0:
            if any(mark in sentence for mark in closing):
                is_end = sentence.rstrip(".,;!?) ")[-1:] in closing
                inside.update(range(start, at + 1) if is_end and at - start < _MAX_QUOTED_SENTENCES else ())
                start = -1
        elif any(mark in sentence for mark in _QUOTES):
            for opened in _OPEN_QUOTE.finditer(sentence):
                closing = _QUOTES[opened[1]]
                is_closed = any(mark in sentence[opened.end() :] for mark in closing)
                start = -1 if is_closed else at
    return inside
