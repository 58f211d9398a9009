"""Detects which sources a reply used: a tool that was called, words that were quoted, a sentence that was paraphrased.

A source only counts for what the conversation did not contain before.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from msgspec import Struct

from recto.search.embedder import Embedder
from recto.search.terms import words
from recto.sources.advice import Sign
from recto.sources.source import SourceId
from recto.sources.text_traces import (
    COMMON_WORD_WEIGHT,
    NGRAM_SIZE,
    TracedSentence,
    Traces,
    extract_traces,
    is_common_phrase,
    join_sentences,
    ngrams,
    phrase_weight,
    term_of,
    trace_sentences,
)

MIN_QUOTE_WEIGHT = 2.4
"""The weight that makes words in a row a quote, and not a phrase that everybody uses."""
DISCOUNT_PER_WORD = 0.25
"""Lowers that weight for every word beyond the first n-gram."""
MIN_LITERAL_WEIGHT = 1.6
"""The same for texts that the source itself puts in quotation marks."""
MIN_NEW_WEIGHT, HIGH_NEW_WEIGHT = 2.7, 4.2
"""The new weight that two sentences must share; with the higher one, the smaller share is enough."""
MIN_SHARE, MIN_SHARE_WHEN_STRONG = 0.5, 0.33
JOINED_PENALTY = 0.6
"""Two sentences taken together need this much more weight."""
ITEM_WEIGHT, STRONG_WEIGHT, DECISIVE_WEIGHT = 1.5, 2.0, 2.4
"""The weight of a number, name or address; of a strong one; and of one that is enough by itself."""
MAX_COMMON_SENTENCES = 8
"""A common word in more sentences of a source than this distinguishes none of them."""
MAX_DETAIL_CHARS = 80
MIN_SHARED_WEIGHT = 1.5
"""The new weight that two sentences must share before their meaning is compared."""
MIN_COSINE = 0.68
"""By all-MiniLM-L6-v2; unrelated sentences never scored above 0.62."""
MAX_PAIRS = 24


class SentSource(Struct, frozen=True):
    """A source with the text that was sent."""

    id: SourceId
    text: str
    call_name: str = ""
    """Of a tool: the name that the model calls."""


class UseEvidence(Struct, frozen=True):
    id: SourceId
    sign: Sign
    detail: str = ""
    """The quoted words, or the name of the called tool."""


# -- by words


def detect_uses(reply: str, called: Collection[str], sent: Sequence[SentSource], known: str) -> list[UseEvidence]:
    """The evidence for each source, in their order. `known` is what the conversation contained before."""
    traces = [extract_traces(source.text) if source.id.kind != "tool" else None for source in sent]
    texts = [each for each in traces if each is not None]
    text = ReplyText(reply, KnownText(known), texts) if texts else None
    return [
        _detect_use(source, each, text) if each and text else _detect_call(source, called)
        for source, each in zip(sent, traces, strict=True)
    ]


def _detect_call(source: SentSource, called: Collection[str]) -> UseEvidence:
    was_called = bool(source.call_name) and source.call_name in called
    return UseEvidence(source.id, "called", source.call_name) if was_called else UseEvidence(source.id, "")


def _detect_use(source: SentSource, traces: Traces, reply: "ReplyText") -> UseEvidence:
    if quote := reply.find_quote(traces):
        return UseEvidence(source.id, "quoted", shorten_quote(quote))
    if (pair := reply.best_pair(traces)) is None:
        return UseEvidence(source.id, "")
    sign: Sign = "quoted" if pair.items else "paraphrased"
    return UseEvidence(source.id, sign, shorten_quote(", ".join(pair.items) or pair.sentence))


class KnownText:
    """The conversation before the reply, parsed only as far as needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> list[tuple[str, frozenset[str]]]:
        return [_parse_line(line) for line in self._text.splitlines() if line]

    @cached_property
    def _words(self) -> str:
        return f" {' '.join(line for line, _ in self._lines)} "

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset().union(*(terms for _, terms in self._lines))

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    def has_phrase(self, phrase: str) -> bool:
        return f" {phrase} " in self._words

    def has_term(self, term: str) -> bool:
        if " " in term:  # a number with its unit
            return all(map(self.has_term, term.split(" ", 1)))
        return term in self._terms or (not term.isalpha() and term in self._folded)


@lru_cache(maxsize=4096)
def _parse_line(line: str) -> tuple[str, frozenset[str]]:
    """Cached: every turn repeats the conversation with a few more lines."""
    line_words = words(line)
    return " ".join(line_words), frozenset(map(term_of, line_words))


class SentencePair(Struct, frozen=True):
    """A sentence of the reply and the closest sentence of a source."""

    sentence: str
    new_weight: float
    """The weight of the shared terms that were not known before."""
    items: tuple[str, ...]
    """Those of them with a spelling of their own: numbers, names, addresses."""


class ReplyText:
    """A reply, to be compared with one source after another."""

    def __init__(self, reply: str, known: KnownText, sources: Sequence[Traces]) -> None:
        self._reply, self._known, self._sources = reply, known, sources
        self._words = tuple(words(reply))
        self._ngrams = ngrams(self._words)
        self._line = f" {' '.join(self._words)} "
        single = tuple(trace_sentences(reply))
        self._sentences = (*single, *map(join_sentences, single, single[1:]))
        self._terms = frozenset(term for sentence in single for term in sentence.terms)
        self._novelty_cache: dict[str, float] = {}

    def find_quote(self, source: Traces) -> str:
        """Words in a row that the reply takes from the source; empty where there are none."""
        for literal in source.literals:
            phrase = tuple(literal.split())
            is_strong = f" {literal} " in self._line and phrase_weight(phrase) >= MIN_LITERAL_WEIGHT
            if is_strong and not self._known.has_phrase(literal):
                return self._as_written(phrase)
        for first, last in self._shared_runs(source.ngrams):
            phrase = self._words[first : last + NGRAM_SIZE]
            min_weight = MIN_QUOTE_WEIGHT - DISCOUNT_PER_WORD * (len(phrase) - NGRAM_SIZE)
            if phrase_weight(phrase) >= min_weight and not is_common_phrase(phrase):
                return self._as_written(phrase)
        return ""

    def _shared_runs(self, source_ngrams: frozenset[str]) -> Iterator[tuple[int, int]]:
        """The first and last n-gram of each run that the source contains and that was not known before."""
        if source_ngrams.isdisjoint(self._ngrams):
            return
        starts = [
            start
            for start, ngram in enumerate(self._ngrams)
            if ngram in source_ngrams and not self._known.has_phrase(ngram)
        ]
        while starts:
            length = next((n for n, start in enumerate(starts) if start != starts[0] + n), len(starts))
            yield starts[0], starts[length - 1]
            starts = starts[length:]

    def _as_written(self, phrase: Sequence[str]) -> str:
        match = re.search(r"[\W_]+".join(map(re.escape, phrase)), self._reply, re.IGNORECASE)
        return match[0] if match else _join_words(phrase)

    def best_pair(self, source: Traces) -> SentencePair | None:
        """The pair of sentences that shares the most new terms, if that is enough evidence."""
        novelty = self.new_terms(source)
        pairs = (
            _check_pair(sentence, other, novelty)
            for sentence, other, weight in self.close_pairs(source, novelty)
            if weight >= DECISIVE_WEIGHT
        )
        return max((pair for pair in pairs if pair), key=lambda pair: pair.new_weight, default=None)

    def new_terms(self, source: Traces) -> dict[str, float]:
        """The terms that both contain and that were not known before, and how much each says about its origin."""
        return {term: novelty for term in self._terms & source.occurrences.keys() if (novelty := self._novelty(term))}

    def close_pairs(
        self, source: Traces, novelty: Mapping[str, float]
    ) -> Iterator[tuple[TracedSentence, TracedSentence, float]]:
        """Sentences of reply and source with common terms, and the new weight that they share."""
        for sentence in self._sentences:
            weights: dict[int, float] = {}
            for term in sentence.terms.keys() & novelty.keys():
                indexes = source.occurrences[term]
                if sentence.terms[term] <= COMMON_WORD_WEIGHT and len(indexes) > MAX_COMMON_SENTENCES:
                    continue
                for index in indexes:
                    weight = min(sentence.terms[term], source.sentences[index].terms[term])
                    weights[index] = weights.get(index, 0.0) + weight * novelty[term]
            yield from ((sentence, source.sentences[index], weight) for index, weight in weights.items())

    def _novelty(self, term: str) -> float:
        """How much a term says about its origin: nothing if it was known, less if several sources contain it."""
        if term not in self._novelty_cache:
            sources = sum(term in source.occurrences for source in self._sources) or 1
            self._novelty_cache[term] = 0.0 if self._known.has_term(term) else sources**-0.5
        return self._novelty_cache[term]


def _check_pair(sentence: TracedSentence, other: TracedSentence, novelty: Mapping[str, float]) -> SentencePair | None:
    shared = {term: min(weight, other.terms[term]) for term, weight in sentence.terms.items() if term in other.terms}
    new = {term: weight * novelty[term] for term, weight in shared.items() if term in novelty}
    new_weight, largest = sum(new.values()), max(new.values(), default=0.0)
    share = sum(shared.values()) / min(sentence.weight, other.weight)
    penalty = JOINED_PENALTY if sentence.is_joined else 0.0
    if not _is_enough(new_weight - penalty, share - penalty / 4, largest):
        return None
    return SentencePair(sentence.text, new_weight, tuple(term for term, weight in new.items() if weight >= ITEM_WEIGHT))


def _is_enough(new_weight: float, share: float, largest: float) -> bool:
    if largest >= DECISIVE_WEIGHT:
        return True
    is_strong = largest >= STRONG_WEIGHT or new_weight >= HIGH_NEW_WEIGHT
    return new_weight >= MIN_NEW_WEIGHT and share >= (MIN_SHARE_WHEN_STRONG if is_strong else MIN_SHARE)


def _join_words(phrase: Sequence[str]) -> str:
    """Joins words; in a script without spaces they are overlapping pairs of characters."""
    text = phrase[0]
    for word in phrase[1:]:
        text += f" {word}" if word.isascii() or word[0] != text[-1] else word[1:]
    return text


def shorten_quote(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1].rstrip() + "…"


# -- by meaning


class CloseSentence(NamedTuple):
    shared: float
    source: int
    """The index of the source."""
    sentence: TracedSentence
    other: TracedSentence


def detect_by_meaning(reply: str, sent: Sequence[SentSource], known: str, embedder: Embedder) -> list[UseEvidence]:
    """The paraphrases of each source, in their order. Raises NoVectors from an embedder that cannot be used."""
    pairs = sorted(_close_sentences(reply, sent, known), key=lambda pair: (-pair.shared, pair.source))[:MAX_PAIRS]
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.sentence.text, pair.other.text)))
    vectors = dict(zip(texts, embedder.embed(texts), strict=True)) if texts else {}
    best: dict[int, tuple[float, str]] = {}
    for pair in pairs:
        cosine = float(vectors[pair.sentence.text] @ vectors[pair.other.text])
        if cosine >= MIN_COSINE:
            best[pair.source] = max(best.get(pair.source, (0.0, "")), (cosine, pair.sentence.text))
    return [
        UseEvidence(source.id, "paraphrased", shorten_quote(best[index][1]))
        if index in best
        else UseEvidence(source.id, "")
        for index, source in enumerate(sent)
    ]


def _close_sentences(reply: str, sent: Sequence[SentSource], known: str) -> list[CloseSentence]:
    """Pairs of sentences with common terms. ASCII terms only: the model hardly knows other scripts."""
    traces = {index: extract_traces(source.text) for index, source in enumerate(sent) if source.id.kind != "tool"}
    text = ReplyText(reply, KnownText(known), list(traces.values()))
    found: list[CloseSentence] = []
    for index, source in traces.items():
        novelty = {term: value for term, value in text.new_terms(source).items() if term.isascii()}
        for sentence, other, shared in text.close_pairs(source, novelty):
            if shared >= MIN_SHARED_WEIGHT and not sentence.is_joined:
                found.append(CloseSentence(shared, index, sentence, other))
    return found
