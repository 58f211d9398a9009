"""Features: what can be counted about each segment of a conversation, in any language.

Who said it and how it looks; what kinds of values it holds; which of its words are rare, new, echoed by the reply or
taken up again; whether a later segment gives another value for the same. No list of phrases, no vectors of meaning: the
same messages give the same numbers everywhere. What they are worth is fitted (`scorer.py`).
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from msgspec import Struct

from bench.scored.segments import UNSPACED, Segment, readable, segments
from bench.scored.words import word_class, words_in
from recto.chat.message import Role
from recto.text import text_cache

FEATURES = (
    "user", "tool", "call", "former", "prose", "item", "heading", "row", "code", "output",
    "length", "terms", "word_length", "commas", "parenthesis", "asks", "announces", "capitals",
    "figures", "digits", "unit", "names", "path", "negation", "user_negation", "question_word", "calendar",
    "place", "distance", "is_last", "message_length", "message_segments", "after_gap",
    "novelty", "recurs_user", "times_again", "last_mention", "echoes", "echoed", "echoes_question",
    "figures_before", "same_shape", "superseded", "task_like", "reply_asks",
)  # fmt: skip

_FIGURE = re.compile(r"\d(?:[\d.,:/–-]*\d)?")
_UNIT = re.compile(r"[€$£¥₹%°元円원块]|\d ?(?:[^\W\d_]{1,3}|[^\W\d_]{1,2}[²³]|min|ohm|[kKMGT]B|[mk]?Ah)(?![^\W\d_])")
_NAME = re.compile(r"(?:(?<=[^\W\d_] )|(?<=[^\W\d_][,;:)] ))[A-ZÀ-ÞА-ЯЁ][^\W\d_]+|\b[A-ZÀ-ÞА-ЯЁ]{2,}\b")
_PATH = re.compile(r"[\w.-]+/[\w./-]+|\w\.[a-z]{2,5}\b|://|\w_\w|\b[A-Z]+-\d|\w@\w")
_SHAPE = re.compile(r"\d+|[^\W\d_]+")
_COMMA = re.compile("[,，、;；]")
_ASKS, _ANNOUNCES = ("?", "？", "؟"), (":", "：")
_TERM_LETTERS, _LEAST_LETTERS = 6, 3
# How many of its rarest terms are looked for again, and how often counts.
_RAREST, _OFTEN = 3, 8
# Beside another figure, so much of what two segments are about makes them speak of the same.
_LEAST_COMMON, _MOST_NEAR = 0.5, 12
_SHAPE_LETTERS, _MOST_ALIKE, _SERIES = 40, 10, 3


class PlainMessage(Struct, frozen=True):
    """A message as a summary without a model reads it."""

    role: Role
    text: str
    number: int = 0
    is_call: bool = False
    """The text is the arguments of a tool call."""
    is_former: bool = False
    """A line of the former summary."""
    after_gap: bool = False
    """Another day than the message before."""
    day: date | None = None

    @property
    def segments(self) -> tuple[Segment, ...]:
        text = readable(self.text) if self.role == "tool" else self.text
        return segments(text, is_output=self.role == "tool" or self.is_call)


class Sentence(Struct):
    """A segment in its conversation."""

    message: int
    """The index of its message."""
    segment: Segment
    words: frozenset[str]
    terms: frozenset[str]
    figures: frozenset[str]
    superseded_by: int = -1
    """The index of a later sentence that gives another value for the same."""


def read_conversation(messages: Sequence[PlainMessage]) -> tuple[list[Sentence], list[list[float]]]:
    """Every segment of the messages, in order, and its features in the order of FEATURES."""
    said = [_sentence(at, segment) for at, message in enumerate(messages) for segment in message.segments]
    conversation = _Conversation(messages, said)
    return said, [[*conversation.look(each), *conversation.relations(each)] for each in said]


def _sentence(message: int, segment: Segment) -> Sentence:
    words, terms, figures = _read(segment.text)
    return Sentence(message, segment, words, terms, figures)


@text_cache(8192)
def _read(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Its words; the beginnings of these, or pairs of characters where words have no spaces; its figures."""
    words = words_in(text)
    terms: set[str] = set()
    for word in words:
        if word.isascii() or not UNSPACED.search(word):
            if len(word) >= _LEAST_LETTERS:
                terms.add(word[:_TERM_LETTERS])
        else:
            terms.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return words, frozenset(terms), frozenset(_FIGURE.findall(text))


def terms_of(text: str) -> frozenset[str]:
    return _read(text)[1]


class _Conversation:
    """What is known of all messages together."""

    def __init__(self, messages: Sequence[PlainMessage], said: Sequence[Sentence]) -> None:
        self.messages, self.said, self.number = messages, said, len(messages)
        self.inside: list[list[Sentence]] = [[] for _ in messages]
        for sentence in said:
            self.inside[sentence.message].append(sentence)
        self.terms = [frozenset[str]().union(*(each.terms for each in found)) for found in self.inside]
        self.places: dict[str, list[int]] = {}
        self.last_by_user: dict[str, int] = {}
        self.first_figure: dict[str, int] = {}
        for at, terms in enumerate(self.terms):
            is_user = messages[at].role == "user"
            for term in terms:
                self.places.setdefault(term, []).append(at)
                if is_user:
                    self.last_by_user[term] = at
            for sentence in self.inside[at]:
                for figure in sentence.figures:
                    self.first_figure.setdefault(figure, at)
        self.idf = {term: math.log((self.number + 1) / (len(found) + 0.5)) for term, found in self.places.items()}
        self.sizes = [sum(len(each.segment.text) for each in found) for found in self.inside]
        self.shapes = Counter(map(_shape, said))
        self.before, self.after = _neighbours(messages)
        self.asks = [message.text.rstrip().endswith(_ASKS) for message in messages]
        self.task = next((self.terms[at] for at, each in enumerate(messages) if each.role == "user"), frozenset())
        self._find_superseded()

    def look(self, sentence: Sentence) -> Iterator[float]:
        """How it looks, and where it is."""
        at, segment, text, words = sentence.message, sentence.segment, sentence.segment.text, sentence.words
        message, inside = self.messages[at], self.inside[at]
        is_user = message.role == "user"
        yield from (is_user, message.role == "tool", message.is_call, message.is_former)
        for kind in ("prose", "item", "heading", "row", "code", "output"):
            yield segment.kind == kind
        is_ascii = text.isascii()
        yield math.log1p(len(text) * (1 if is_ascii or not UNSPACED.search(text) else 2))
        yield math.log1p(len(sentence.terms))
        yield min(len(text) / (text.count(" ") + 1), 12)
        yield min(len(_COMMA.findall(text)), 6)
        yield "(" in text or "（" in text
        yield text.endswith(_ASKS)
        yield text.endswith(_ANNOUNCES)
        yield sum(map(str.isupper, text)) / len(text)
        yield min(len(sentence.figures), 6)
        yield sum(map(str.isdigit, text)) / len(text) if sentence.figures else 0.0
        yield bool(_UNIT.search(text))
        yield min(len(_NAME.findall(text)), 4)
        yield bool(_PATH.search(text))
        denies = word_class("negations").is_in(words, text)
        yield denies
        yield denies and is_user
        yield word_class("questions").is_in(words, text)
        yield word_class("months", "weekdays").is_in(words, text)
        yield at / self.number
        yield math.log1p(self.number - 1 - at)
        yield inside[-1] is sentence
        yield math.log1p(self.sizes[at])
        yield math.log1p(len(inside))
        yield message.after_gap

    def relations(self, sentence: Sentence) -> Iterator[float]:
        """How it stands to the rest of the conversation."""
        at, terms, figures = sentence.message, sentence.terms, sentence.figures
        before, after = self.before[at], self.after[at]
        said_before = self.terms[before] if before >= 0 else frozenset[str]()
        said_after = self.terms[after] if after >= 0 else frozenset[str]()
        whole = new = by_user = echo = echoed = 0.0
        again = last = 0
        for term in terms:
            weight, places = self.idf[term], self.places[term]
            whole += weight
            new += weight * (places[0] == at)
            by_user += weight * (self.last_by_user.get(term, -1) > at)
            echo += weight * (term in said_before)
            echoed += weight * (term in said_after)
            if 1 < len(places) <= self.number // 4 + 1:
                again += 1
                last += places[-1] == at
        whole = whole or 1.0
        yield new / whole
        yield by_user / whole
        rarest = sorted(terms, key=lambda term: (-self.idf[term], term))[:_RAREST]
        yield sum(min(len(self.places[term]), _OFTEN) for term in rarest) / _RAREST
        yield last / (again or 1)
        yield echo / whole
        yield echoed / whole
        yield echo / whole if before >= 0 and self.asks[before] else 0.0
        yield sum(self.first_figure[each] < at for each in figures) / (len(figures) or 1)
        yield min(self.shapes[_shape(sentence)] - 1, _MOST_ALIKE)
        yield sentence.superseded_by >= 0
        yield len(terms & self.task) / (len(terms) or 1)
        yield after >= 0 and self.asks[after]

    def _find_superseded(self) -> None:
        """Of two sentences about the same with other figures, the later one holds."""
        by_term: dict[str, list[int]] = {}
        weights = [sum(map(self.idf.__getitem__, each.terms)) for each in self.said]
        for index, sentence in enumerate(self.said):
            if not sentence.figures or sentence.segment.kind in ("row", "code", "output"):
                continue
            near = Counter(other for term in sentence.terms for other in by_term.get(term, ())[-_MOST_NEAR:])
            for other in near:
                earlier = self.said[other]
                if earlier.message == sentence.message or earlier.figures & sentence.figures:
                    continue
                if min(len(earlier.figures), len(sentence.figures)) > 1 or self.shapes[_shape(sentence)] > _SERIES:
                    continue  # another thing of the same kind
                common = sum(self.idf[term] for term in earlier.terms & sentence.terms)
                if common >= _LEAST_COMMON * min(weights[index], weights[other]) > 0:
                    earlier.superseded_by = index
            for term in sentence.terms:
                by_term.setdefault(term, []).append(index)


def _neighbours(messages: Sequence[PlainMessage]) -> tuple[list[int], list[int]]:
    """For each message, the nearest of another speaker before and after it, tools aside; -1 where there is none."""

    def nearest(order: Sequence[int]) -> list[int]:
        found, last = [-1] * len(messages), dict[str, int]()
        for at in order:
            role = messages[at].role
            found[at] = last.get("assistant" if role == "user" else "user", -1)
            if role != "tool" and not messages[at].is_call:
                last[role] = at
        return found

    return nearest(range(len(messages))), nearest(range(len(messages) - 1, -1, -1))


@text_cache(8192)
def _shape_of(text: str) -> str:
    return _SHAPE.sub(lambda found: "0" if found[0][0].isdigit() else "a", text[: 4 * _SHAPE_LETTERS])[:_SHAPE_LETTERS]


def _shape(sentence: Sentence) -> str:
    """Rows of a table and lines of a log look alike, figures and words aside."""
    return sentence.segment.kind + _shape_of(sentence.segment.text)
