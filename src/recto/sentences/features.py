"""Features: what can be counted about each segment of a conversation, in any language.

These are its speaker and its form; the kinds of values it holds; which of its words are rare, new, echoed by the reply
or mentioned again; and whether a later segment gives another value for the same thing. No lists of phrases and no
embeddings: the same messages give the same numbers everywhere. Their weights are fitted (`scorer.py`).
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from recto.base.text import text_cache
from recto.chat.message import Role
from recto.sentences.segments import UNSPACED, Segment, is_question, readable, segments
from recto.sentences.words import word_class, words_in

FEATURES = (
    "user", "tool", "call", "former", "prose", "item", "heading", "row", "code", "output",
    "length", "terms", "word_length", "commas", "parenthesis", "asks", "announces", "capitals",
    "figures", "digits", "unit", "names", "path", "negation", "user_negation", "question_word", "calendar",
    "place", "distance", "is_last", "message_length", "message_segments", "after_gap",
    "novelty", "recurs_user", "times_again", "last_mention", "echoes", "echoed", "echoes_question",
    "figures_before", "same_shape", "superseded", "task_like", "reply_asks",
)  # fmt: skip

_FIGURE = re.compile(r"\d(?:[\d.,:/–-]*\d)?")
# Each begins with something rare in text: searching for it is several times as fast as for a first letter.
_UNIT = re.compile(
    r"[€$£¥₹%°元円원块\d](?:(?<!\d)| ?(?:[^\W\d_]{1,3}|[^\W\d_]{1,2}[²³]|min|ohm|[kKMGT]B|[mk]?Ah)(?![^\W\d_]))"
)
_NAME = re.compile(r"[A-ZÀ-ÞА-ЯЁ](?:(?:(?<=[^\W\d_] .)|(?<=[^\W\d_][,;:)] .))[^\W\d_]+|(?<!\w.)[A-ZÀ-ÞА-ЯЁ]+\b)")
_PATH = re.compile(r"[/.:_@](?:(?<=[\w.-]/)[\w./-]|(?<=\w\.)[a-z]{2,5}\b|(?<=:)//|(?<=\w_)\w|(?<=\w@)\w)")
_KEY = re.compile(r"\b[A-Z]+-\d")
_SHAPE = re.compile(r"\d+|[^\W\d_]+")
_COMMAS = ",，、;；"
_ANNOUNCES = (":", "：")
_KINDS = ("prose", "item", "heading", "row", "code", "output")
_IS_KIND = {kind: tuple(kind == each for each in _KINDS) for kind in (*_KINDS, "quote")}
_TERM_LETTERS, _LEAST_LETTERS = 6, 3
# How many of its rarest terms are searched for again, and how many times is often.
_RAREST, _OFTEN = 3, 8
# Next to another figure, segments must share this much of their topic to be about the same thing.
_LEAST_COMMON, _MOST_NEAR = 0.5, 12
# The share of the topic of a tool's sentence that makes it something the user asked for.
_ASKED_FOR = 0.6
_SHAPE_LETTERS, _MOST_ALIKE, _SERIES = 40, 10, 3


class PlainMessage(Struct, frozen=True):
    """A message as seen by a summary without a model."""

    role: Role
    text: str
    number: int = 0
    is_call: bool = False
    """The text is the arguments of a tool call."""
    is_former: bool = False
    """A line of the former summary."""
    after_gap: bool = False
    """The previous message is from another day."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        text = readable(self.text) if self.role == "tool" else self.text
        return segments(text, is_output=self.role == "tool" or self.is_call)


class Sentence(Struct):
    message: int
    segment: Segment
    words: frozenset[str]
    terms: frozenset[str]
    figures: frozenset[str]
    superseded_by: int = -1
    """The index of a later sentence with another value for the same thing."""
    is_asked_for: bool = False
    """A tool returned it, the user had asked for it, and nobody repeats its figures."""


def read_conversation(messages: Sequence[PlainMessage]) -> tuple[list[Sentence], list[list[float]]]:
    """Every segment of the messages, in order, and its features in the order of FEATURES."""
    said = [
        Sentence(at, segment, *_read(segment.text))
        for at, message in enumerate(messages)
        for segment in message.segments
    ]
    return said, list(_Conversation(messages, said).rows())


@text_cache(8192)
def _read(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The words of a text; their beginnings, or pairs of characters in scripts without spaces; its figures."""
    words, terms = words_in(text), set[str]()
    for word in words:
        if _is_unspaced(word):
            terms.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif len(word) >= _LEAST_LETTERS:
            terms.add(word[:_TERM_LETTERS])
    return words, frozenset(terms), frozenset(_FIGURE.findall(text))


def _is_unspaced(text: str) -> bool:
    return not text.isascii() and UNSPACED.search(text) is not None


def terms_of(text: str) -> frozenset[str]:
    return _read(text)[1]


@text_cache(8192)
def _look(text: str) -> tuple[float, ...]:
    """The features of a text's form, from its length to the words of closed classes, without the user's negation."""
    words, terms, figures = _read(text)
    return (
        math.log1p(len(text) * (2 if _is_unspaced(text) else 1)),
        math.log1p(len(terms)),
        min(len(text) / (text.count(" ") + 1), 12),
        min(sum(map(text.count, _COMMAS)), 6),
        "(" in text or "（" in text,
        is_question(text),
        text.endswith(_ANNOUNCES),
        sum(map(str.isupper, text)) / len(text),
        min(len(figures), 6),
        sum(map(str.isdigit, text)) / len(text) if figures else 0.0,
        bool(_UNIT.search(text)),
        min(len(_NAME.findall(text)), 4),
        bool(_PATH.search(text) or (figures and _KEY.search(text))),
        word_class("negations").is_in(words, text),
        word_class("questions").is_in(words, text),
        word_class("months", "weekdays").is_in(words, text),
    )


class _Conversation:
    def __init__(self, messages: Sequence[PlainMessage], said: Sequence[Sentence]) -> None:
        self.messages, self.said, self.number = messages, said, len(messages)
        self.inside: list[list[Sentence]] = [[] for _ in messages]
        for sentence in said:
            self.inside[sentence.message].append(sentence)
        self.terms = [frozenset[str]().union(*[each.terms for each in found]) for found in self.inside]
        places, last_by_user = dict[str, list[int]](), dict[str, int]()
        self.first_figure, self.last_figure = dict[str, int](), dict[str, int]()
        for at, terms in enumerate(self.terms):
            if messages[at].role == "user":
                last_by_user |= dict.fromkeys(terms, at)
            for term in terms:
                places.setdefault(term, []).append(at)
            for sentence in self.inside[at]:
                for figure in sentence.figures:
                    self.first_figure.setdefault(figure, at)
                    self.last_figure[figure] = at
        self.idf = {term: math.log((self.number + 1) / (len(found) + 0.5)) for term, found in places.items()}
        # idf; the first and last message with the term, and their number; the user's last one
        self.known = {
            term: (self.idf[term], found[0], found[-1], len(found), last_by_user.get(term, -1))
            for term, found in places.items()
        }
        self.shapes = list(map(shape_of, said))
        self.alike = Counter(self.shapes)
        self.before = _nearest_other(messages, range(self.number))
        self.after = _nearest_other(messages, range(self.number - 1, -1, -1))
        self.asks = [is_question(message.text.rstrip()) for message in messages]
        self.task = next((self.terms[at] for at, each in enumerate(messages) if each.role == "user"), frozenset())
        self._find_superseded()

    def rows(self) -> Iterator[list[float]]:
        shapes = iter(self.shapes)
        for at, (message, inside) in enumerate(zip(self.messages, self.inside, strict=True)):
            is_user, size = message.role == "user", sum(len(each.segment.text) for each in inside)
            speaker = (is_user, message.role == "tool", message.is_call, message.is_former)
            place = (at / self.number, math.log1p(self.number - 1 - at))
            around = (math.log1p(size), math.log1p(len(inside)), message.after_gap)
            for sentence in inside:
                *look, denies, asks, dates = _look(sentence.segment.text)
                words = (denies, denies and is_user, asks, dates)
                relations = self._relations(sentence, next(shapes))
                kind, is_last = _IS_KIND[sentence.segment.kind], sentence is inside[-1]
                yield [*speaker, *kind, *look, *words, *place, is_last, *around, *relations]

    def _relations(self, sentence: Sentence, shape: str) -> tuple[float, ...]:
        """The relation of a sentence to the rest of the conversation."""
        at, terms, figures, known = sentence.message, sentence.terms, sentence.figures, self.known
        before, after = self.before[at], self.after[at]
        said_before = self.terms[before] if before >= 0 else frozenset[str]()
        said_after = self.terms[after] if after >= 0 else frozenset[str]()
        whole = new = by_user = echo = echoed = 0.0
        again = last = 0
        often, counts = self.number // 4 + 1, list[int]()
        for term in terms:
            weight, first, latest, times, last_by_user = known[term]
            whole += weight
            counts.append(times)
            if first == at:
                new += weight
            if last_by_user > at:
                by_user += weight
            if term in said_before:
                echo += weight
            if term in said_after:
                echoed += weight
            if 1 < times <= often:
                again += 1
                last += latest == at
        whole = whole or 1.0
        if figures and self.messages[at].role == "tool" and echo >= _ASKED_FOR * whole:
            sentence.is_asked_for = all(self.last_figure[each] == at for each in figures)
        counts.sort()
        return (
            new / whole,
            by_user / whole,
            sum([min(times, _OFTEN) for times in counts[:_RAREST]]) / _RAREST,
            last / (again or 1),
            echo / whole,
            echoed / whole,
            echo / whole if before >= 0 and self.asks[before] else 0.0,
            sum([self.first_figure[each] < at for each in figures]) / (len(figures) or 1),
            min(self.alike[shape] - 1, _MOST_ALIKE),
            sentence.superseded_by >= 0,
            len(terms & self.task) / (len(terms) or 1),
            after >= 0 and self.asks[after],
        )

    def _find_superseded(self) -> None:
        """Find sentences replaced by a later one about the same thing with other figures."""
        by_term: dict[str, list[int]] = {}
        weights: dict[int, float] = {}
        for index, (sentence, shape) in enumerate(zip(self.said, self.shapes, strict=True)):
            if not sentence.figures or sentence.segment.kind in ("row", "code", "output"):
                continue
            weights[index] = self._weight(sentence.terms)
            # many of one shape are different things of one kind, and so are several figures
            near = (
                [by_term.get(term, ())[-_MOST_NEAR:] for term in sentence.terms] if self.alike[shape] <= _SERIES else ()
            )
            for other in set[int]().union(*near):
                earlier = self.said[other]
                if (len(earlier.figures) > 1 < len(sentence.figures)) or earlier.message == sentence.message:
                    continue
                if earlier.figures.isdisjoint(sentence.figures):
                    common = self._weight(earlier.terms & sentence.terms)
                    if common >= _LEAST_COMMON * min(weights[index], weights[other]) > 0:
                        earlier.superseded_by = index
            for term in sentence.terms:
                by_term.setdefault(term, []).append(index)

    def _weight(self, terms: frozenset[str]) -> float:
        return sum(map(self.idf.__getitem__, terms))


def _nearest_other(messages: Sequence[PlainMessage], order: Sequence[int]) -> list[int]:
    """For each message, the last one before it in this order by another speaker, ignoring tools; -1 if none."""
    found, last = [-1] * len(messages), dict[str, int]()
    for at in order:
        role = messages[at].role
        found[at] = last.get("assistant" if role == "user" else "user", -1)
        if role != "tool" and not messages[at].is_call:
            last[role] = at
    return found


@text_cache(8192)
def _shape_of(text: str) -> str:
    start = text[: 4 * _SHAPE_LETTERS]
    return _SHAPE.sub(lambda found: "0" if found[0][0].isdigit() else "a", start)[:_SHAPE_LETTERS]


def shape_of(sentence: Sentence) -> str:
    """The form without figures and words, the same for rows of a table or lines of a log."""
    return sentence.segment.kind + _shape_of(sentence.segment.text)
