"""Ties: which sentences cannot be read without another one: what leans on the one before, a question and its answer,
a short answer and its question, what was corrected and its correction. Pure; decides nothing about what is worth it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recto.chat.priority import CHATTER
from recto.summary.figures import word_set
from recto.summary.lines import BEFORE, TOOL, Part, Reader, Sentence
from recto.summary.sentences import is_noise
from recto.summary.worth import Weights, is_heading, is_machine_made, is_question, leans, numbers, weight_of

Key = tuple[int, int]

# Longer ones are not brought along.
_SHORT = 240
_ANSWER_WITHIN = 8
_FIRST = 5
_ELLIPTIC_WORDS, _ELLIPTIC_SIGNS = 7, 12
_REPLIES = re.compile(r"(?:yes|no|yep|nope|ja|nein|doch|oui|non|s[ií])\b|是|不是|对|はい|いいえ|네|아니", re.IGNORECASE)
_REFUSES = re.compile(r"(?:no|nope|nein|non|not|nicht|pas)\b|不|いや|いいえ|아니", re.IGNORECASE)
_REFUSAL = 60
_CORRECTS = re.compile(
    r"\b(?:actually|instead|rather than|correct(?:ion|ed|s|ing)?|scratch that|wrong|mistake|changed|moved|postponed"
    r"|no longer|on second thou?ght\w*|I meant|not \w+,? but"
    r"|stattdessen|doch lieber|lieber|statt|korrektur|falsch|verschoben|geändert|nicht mehr|sondern|ich meinte"
    r"|plutôt|en fait|erreur|au lieu|finalement|reporté\w*|corrección|en realidad|en vez|mejor|cambi\w+|equivoc\w+)\b"
    r"|^no[,.] |^nein[,.] |^non[,.] |改成|改为|改到|更正|不对|而是|其实"
    r"|ではなく|じゃなくて|変更|変わり|訂正|아니라|변경",
    re.IGNORECASE,
)
# Of the terms of what corrects one is among these, in ASCII: the search above takes longer than all else here.
_SIGNS = word_set(
    "actuall instead rather correct scratch wrong mistake changed moved postpon longer second meant not stattde lieber "
    "statt korrekt falsch verscho mehr sondern meinte fait erreur lieu finalem vez mejor realida equivoc cambio cambia "
    "cambiar cambiad cambiam no nein non"
)
# How much of what is told two sentences must share, by weight, for one to be a correction of the other.
_SAME_SUBJECT, _SAME_WORDS = 0.35, 0.7
_NEAR, _NEARNESS = 6, 0.1
_SMALL = 3
# What differs in its numbers from so many others is one of a series, no correction.
_SERIES = 3
_POSTINGS = 40


@dataclass(slots=True)
class Ties:
    """Looked up when a sentence is taken: most never are."""

    reader: Reader
    corrections: Mapping[Key, Sentence] = field(default_factory=dict)

    @property
    def renewals(self) -> list[Sentence]:
        """Corrections of what stands in the summary already."""
        return [each for (line, _), each in self.corrections.items() if line == BEFORE]

    def of(self, each: Sentence) -> list[Sentence]:
        """What must be there too, as sentences of no worth of their own."""
        if each.key in self.corrections:
            return [self.corrections[each.key], *self._around(each)]
        return list(self._around(each))

    def run(self, each: Sentence, size: int) -> Iterator[Sentence]:
        """What follows it in its line, up to so many characters with it, or to what is not prose."""
        size -= len(each.text)
        for part in self.reader.again(each.line):
            if part.place > each.place:
                size -= len(part.text)
                if size < 0 or part.is_code or is_noise(part.text) or is_machine_made(part.text):
                    return
                yield _needed(each.line, part)

    def _around(self, each: Sentence) -> Iterator[Sentence]:
        line = self.reader.lines[each.line]
        if line.label == TOOL or is_machine_made(each.text):
            return
        if leans(each.text) and (before := self._readable(each.line, each.place - 1)):
            yield before
        if (is_heading(each.text) or _refuses(each.text)) and (after := self._readable(each.line, each.place + 1)):
            yield after
        if is_question(each.text) and not line.is_wanted and (answer := self._answer(each)):
            yield answer
        if _is_elliptic(each.text) and (question := self._question(each)):
            yield question

    def _readable(self, at: int, place: int) -> Sentence | None:
        part = self.reader.around(at, place)
        return _needed(at, part) if part and not part.is_code and _says_something(part) else None

    def _answer(self, each: Sentence) -> Sentence | None:
        """The first thing that the other side says to a question that nothing of its own message follows."""
        if (following := self.reader.around(each.line, each.place + 1)) and not is_question(following.text):
            return None
        at = self._next_speaker(each.line, 1)
        if at is None:
            return None
        said = (part for part in self.reader.again(at)[:_FIRST] if _says_something(part) and not part.is_code)
        answer = next(said, None)
        return _needed(at, answer) if answer and not is_question(answer.text) else None

    def _question(self, each: Sentence) -> Sentence | None:
        """What was asked last, when this is the first that the other side says."""
        if any(_says_something(part) for part in self.reader.again(each.line) if part.place < each.place):
            return None
        at = self._next_speaker(each.line, -1)
        asked = self.reader.again(at)[-1:] if at is not None else []
        return _needed(at, asked[0]) if at is not None and asked and _is_plain_question(asked[0]) else None

    def _next_speaker(self, line: int, step: int) -> int | None:
        lines = self.reader.lines
        for at in range(line + step, line + step * _ANSWER_WITHIN, step):
            if not 0 <= at < len(lines) or lines[at].label == lines[line].label:
                return None
            if lines[at].label != TOOL:
                return at
        return None


def _needed(at: int, part: Part) -> Sentence:
    return Sentence(at, part.place, part.text, part.terms, 0.0)


def _says_something(part: Part) -> bool:
    text = part.text
    return len(text) <= _SHORT and not is_noise(text) and not is_machine_made(text) and weight_of(text) != CHATTER


def _is_plain_question(part: Part) -> bool:
    return is_question(part.text) and len(part.text) <= _SHORT


def _refuses(text: str) -> bool:
    """What is wanted instead comes next."""
    return len(text) <= _REFUSAL and _REFUSES.match(text) is not None


def _is_elliptic(text: str) -> bool:
    """Too short to be understood alone, or a plain yes or no."""
    if _REPLIES.match(text) or len(text) <= _ELLIPTIC_SIGNS:
        return True
    return text.isascii() and text.count(" ") < _ELLIPTIC_WORDS


class Told(NamedTuple):
    """A sentence taken apart: what it is about, without numbers and small words, and the numbers that it says of it."""

    sentence: Sentence
    key: Key
    about: set[str]
    numbers: set[str]
    weight: int


def corrections(pool: Sequence[Sentence], weights: Weights) -> dict[Key, Sentence]:
    """What was said, and the latest that takes it back or says it with another number."""
    found: dict[Key, Sentence] = {}
    seen: dict[str, list[Told]] = {}
    times: Counter[Key] = Counter()
    for each in pool:
        told = _told(each, weights)
        former = list(_corrected(told, seen, weights))
        found |= dict.fromkeys(former, each)
        times.update([*former, *[told.key] * len(former)])
        for term in told.about:
            seen.setdefault(term, []).append(told)
    return {key: each for key, each in found.items() if max(times[key], times[each.key]) < _SERIES}


def _told(each: Sentence, weights: Weights) -> Told:
    said = numbers(each.terms)
    about = {term for term in each.terms - said if len(term) > _SMALL or not term.isascii()}
    return Told(each, each.key, about, said, weights.of(about) or 1)


def _corrected(each: Told, seen: Mapping[str, Sequence[Told]], weights: Weights) -> Iterator[Key]:
    signed = _is_signed(each.sentence)
    if not signed and not each.numbers:
        return
    near = {one.key: one for term in sorted(each.about) for one in seen.get(term, ())[-_POSTINGS:]}
    by_sign: list[tuple[float, Key]] = []
    for key, one in near.items():
        shared = weights.of(one.about & each.about) / one.weight
        if shared >= _SAME_WORDS and _has_other_numbers(one, each):
            yield key
        elif signed:
            by_sign.append((shared + _NEARNESS * (each.key[0] - key[0] <= _NEAR), key))
    if by_sign and max(by_sign)[0] >= _SAME_SUBJECT:
        yield max(by_sign)[1]


def _is_signed(each: Sentence) -> bool:
    if each.text.isascii() and _SIGNS.isdisjoint(each.terms):
        return False
    return _CORRECTS.search(each.text[:_SHORT]) is not None


def _has_other_numbers(one: Told, other: Told) -> bool:
    return bool(one.numbers and other.numbers) and not one.numbers <= other.numbers
