"""Detects the sources that a reply used, by a called tool, quoted words, or a paraphrased sentence.

Content that the conversation already had does not count. Texts are compared by their traces: n-grams, and the terms of
each sentence. A term weighs more the less likely two texts share it by chance: an address, a number or a special
spelling more than a word, and a common word next to nothing.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache

from msgspec import Struct

from recto.search.terms import STOP_WORDS, word_forms, words
from recto.sentences.words import tables
from recto.sources.advice import Sign
from recto.sources.source import SourceId

# This many shared words in a row are a sign of use, unless all of them are common.
NGRAM_SIZE = 6
# SPECIAL is the weight of a spelling that two texts rarely share by chance.
ADDRESS_WEIGHT, SPECIAL_WEIGHT = 4.0, 2.5
WORD_WEIGHT, NAME_WEIGHT, COMMON_WORD_WEIGHT, NUMBER_PAIR_WEIGHT = 1.0, 1.4, 0.3, 0.6
# The weight that makes words in a row a quote rather than a common phrase; each word beyond the n-gram lowers it.
MIN_QUOTE_WEIGHT, DISCOUNT_PER_WORD = 2.4, 0.25
# The same for texts in quotation marks in the source.
MIN_LITERAL_WEIGHT = 1.6
# The new weight that two sentences must share; with the higher weight, the smaller share is enough.
MIN_NEW_WEIGHT, HIGH_NEW_WEIGHT = 2.7, 4.2
MIN_SHARE, MIN_SHARE_WHEN_STRONG = 0.5, 0.33
# Two sentences taken together need this much more weight.
JOINED_PENALTY = 0.6
# The weight of a number, name or address; of a strong one; and of one that suffices alone.
ITEM_WEIGHT, STRONG_WEIGHT, DECISIVE_WEIGHT = 1.5, 2.0, 2.4
# A common word in more sentences of a source than this distinguishes none of them.
MAX_COMMON_SENTENCES = 8
MAX_DETAIL_CHARS = 80
COMMON = "common_words.toml"

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_`]*\s+|(?<=[。！？])|\n+")
_TOKEN = re.compile(r"[^\s`\"'“”‘’«»()\[\]{}<>,;|*=!?…。！？、，：；「」]+(?:[,.:]\d+)*")
_NUMBER = re.compile(r"[€$£]?\d+(?:[.,:]\d+)*[€$£%]?")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_CODE_NAME = re.compile(r"[a-z][A-Z]|\w_\w|\w::\w|^--\w[\w-]+$|^[A-Z]{2,}-[A-Z0-9]+$|^#\w[\w-]+$")
_PATH = re.compile(r"^(?:~?\.?/)[\w.-]+|\w/[\w.-]+/\w|\w\.(?:py|md|toml|json|ya?ml|txt|csv|js|ts|sh|sql|html|cfg|ini)$")
_LITERAL = re.compile(r"[\"“«„]([^\"“”«»„\n]{4,80})[\"”»]|`([^`\s]+(?: [^`\s]+)+)`")


class SentSource(Struct, frozen=True):
    id: SourceId
    text: str
    call_name: str = ""
    """A tool's name for models."""


class UseEvidence(Struct, frozen=True):
    id: SourceId
    sign: Sign
    detail: str = ""
    """The quoted words, or the name of the called tool."""


def detect_uses(reply: str, called: Collection[str], sent: Sequence[SentSource], known: str) -> list[UseEvidence]:
    """The evidence for each source, in their order. `known` is the earlier conversation."""
    traces = {index: _traces(source.text) for index, source in enumerate(sent) if source.id.kind != "tool"}
    text = _ReplyText(reply, _KnownText(known), list(traces.values()))
    found = []
    for index, source in enumerate(sent):
        if index in traces:
            found.append(UseEvidence(source.id, *text.use_of(traces[index])))
        elif source.call_name and source.call_name in called:
            found.append(UseEvidence(source.id, "called", source.call_name))
        else:
            found.append(UseEvidence(source.id, ""))
    return found


class _Sentence(Struct, frozen=True):
    text: str
    terms: Mapping[str, float]
    is_joined: bool = False

    @property
    def weight(self) -> float:
        return sum(self.terms.values())


class _Traces(Struct, frozen=True):
    sentences: tuple[_Sentence, ...]
    occurrences: Mapping[str, Sequence[int]]
    """The indexes of the sentences that contain a term."""
    ngrams: frozenset[str]
    literals: frozenset[str]
    """Texts in quotation marks or code, which a reply would repeat verbatim."""


@lru_cache(maxsize=128)
def _traces(text: str) -> _Traces:
    """A text's traces, cached because a source is in many windows."""
    sentences = tuple(_sentences(text))
    occurrences: dict[str, list[int]] = {}
    for index, sentence in enumerate(sentences):
        for term in sentence.terms:
            occurrences.setdefault(term, []).append(index)
    literals = frozenset(" ".join(words(quoted or code)) for quoted, code in _LITERAL.findall(text))
    return _Traces(sentences, occurrences, frozenset(_ngrams(words(text))), literals)


def _ngrams(text_words: Sequence[str]) -> list[str]:
    return [" ".join(text_words[start : start + NGRAM_SIZE]) for start in range(len(text_words) - NGRAM_SIZE + 1)]


def _sentences(text: str) -> Iterator[_Sentence]:
    for part in _SENTENCE_END.split(text):
        if part and (terms := _weigh_terms(part)):
            yield _Sentence(part.strip(), terms)


def _joined(first: _Sentence, second: _Sentence) -> _Sentence:
    return _Sentence(f"{first.text} {second.text}", {**first.terms, **second.terms}, is_joined=True)


class _KnownText:
    """The conversation before the reply, parsed lazily."""

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
    """Parse a line, cached because every turn repeats the conversation."""
    line_words = words(line)
    return " ".join(line_words), frozenset(_word_term(word)[0] for word in line_words)


class _ReplyText:
    def __init__(self, reply: str, known: _KnownText, sources: Sequence[_Traces]) -> None:
        self._reply, self._known, self._sources = reply, known, sources
        self._words = tuple(words(reply)) if sources else ()
        self._ngrams = _ngrams(self._words)
        self._line = f" {' '.join(self._words)} "
        single = tuple(_sentences(reply)) if sources else ()
        self._sentences = (*single, *map(_joined, single, single[1:]))
        self._terms = frozenset(term for sentence in single for term in sentence.terms)
        self._novelty_cache: dict[str, float] = {}

    def use_of(self, source: _Traces) -> tuple[Sign, str]:
        """The reply's use of a source, and the words that show it."""
        if quote := self._quote(source):
            return "quoted", _shortened(quote)
        novelty = self._new_terms(source)
        best, items, text = 0.0, "", ""
        for sentence, other, weight in self._close_pairs(source, novelty):
            if weight >= DECISIVE_WEIGHT and (new := _enough_in_common(sentence, other, novelty)):
                new_weight = sum(new.values())
                if new_weight > best:
                    best, text = new_weight, sentence.text
                    # terms with a distinctive spelling: numbers, names, addresses
                    items = ", ".join(term for term, own in new.items() if own >= ITEM_WEIGHT)
        if items:
            return "quoted", _shortened(items)
        return ("paraphrased", _shortened(text)) if text else ("", "")

    def _quote(self, source: _Traces) -> str:
        """The words in a row that the reply takes from the source, if any."""
        for literal in source.literals:
            phrase = literal.split()
            is_strong = f" {literal} " in self._line and _phrase_weight(phrase) >= MIN_LITERAL_WEIGHT
            if is_strong and not self._known.has_phrase(literal):
                return self._as_written(phrase)
        for first, last in self._shared_runs(source.ngrams):
            run = self._words[first : last + NGRAM_SIZE]
            min_weight = MIN_QUOTE_WEIGHT - DISCOUNT_PER_WORD * (len(run) - NGRAM_SIZE)
            is_common = all(word.isascii() and _word_term(word)[1] <= COMMON_WORD_WEIGHT for word in run)
            if not is_common and _phrase_weight(run) >= min_weight:
                return self._as_written(run)
        return ""

    def _shared_runs(self, ngrams: frozenset[str]) -> Iterator[tuple[int, int]]:
        """The first and last n-gram of each run in the source that was not known before."""
        if ngrams.isdisjoint(self._ngrams):
            return
        own = enumerate(self._ngrams)
        starts = [start for start, ngram in own if ngram in ngrams and not self._known.has_phrase(ngram)]
        while starts:
            length = next((n for n, start in enumerate(starts) if start != starts[0] + n), len(starts))
            yield starts[0], starts[length - 1]
            starts = starts[length:]

    def _as_written(self, phrase: Sequence[str]) -> str:
        match = re.search(r"[\W_]+".join(map(re.escape, phrase)), self._reply, re.IGNORECASE)
        if match:
            return match[0]
        text = phrase[0]
        for word in phrase[1:]:  # in a script without spaces they are overlapping pairs of characters
            text += f" {word}" if word.isascii() or word[0] != text[-1] else word[1:]
        return text

    def _new_terms(self, source: _Traces) -> dict[str, float]:
        """The shared terms that were not known before, and how much each says about its origin."""
        return {term: novelty for term in self._terms & source.occurrences.keys() if (novelty := self._novelty(term))}

    def _close_pairs(
        self, source: _Traces, novelty: Mapping[str, float]
    ) -> Iterator[tuple[_Sentence, _Sentence, float]]:
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
        """The weight of a term as evidence of origin: 0 if it was known, less if several sources contain it."""
        if term not in self._novelty_cache:
            sources = sum(term in source.occurrences for source in self._sources) or 1
            self._novelty_cache[term] = 0.0 if self._known.has_term(term) else sources**-0.5
        return self._novelty_cache[term]


def _enough_in_common(sentence: _Sentence, other: _Sentence, novelty: Mapping[str, float]) -> dict[str, float]:
    """The new terms shared by two sentences, by weight, if they are enough evidence."""
    shared = {term: min(weight, other.terms[term]) for term, weight in sentence.terms.items() if term in other.terms}
    new = {term: weight * novelty[term] for term, weight in shared.items() if term in novelty}
    new_weight, largest = sum(new.values()), max(new.values(), default=0.0)
    share = sum(shared.values()) / min(sentence.weight, other.weight)
    if sentence.is_joined:
        new_weight, share = new_weight - JOINED_PENALTY, share - JOINED_PENALTY / 4
    is_strong = largest >= STRONG_WEIGHT or new_weight >= HIGH_NEW_WEIGHT
    is_shared = new_weight >= MIN_NEW_WEIGHT and share >= (MIN_SHARE_WHEN_STRONG if is_strong else MIN_SHARE)
    return new if largest >= DECISIVE_WEIGHT or is_shared else {}


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1].rstrip() + "…"


# -- terms and their weights


def _weigh_terms(sentence: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    previous = ""
    for index, token in enumerate(_TOKEN.findall(sentence)):
        terms = _token_terms(token, index > 0 and token[:1].isupper())
        for term, weight in terms:
            if weight > weights.get(term, 0.0):
                weights[term] = weight
        first = terms[0][0] if terms else ""
        # "30 seconds" is stronger evidence than "30" and "seconds" apart
        if first and previous[:1].isdigit():
            weights[f"{previous} {first}"] = NUMBER_PAIR_WEIGHT
        previous = first
    return weights


@lru_cache(maxsize=16384)
def _token_terms(token: str, is_name: bool) -> tuple[tuple[str, float], ...]:
    bare = token.rstrip(".:") if token.startswith("--") else token.strip(".-").rstrip(":/")
    # each part of a qualified name such as `orders.due_on` is a term too
    parts = bare.split(".")
    is_dotted = all(part.isidentifier() and part[0].isascii() for part in parts) and not _PATH.search(bare)
    special = {
        each.casefold(): weight for each in (parts if is_dotted else [bare]) if (weight := _special_weight(each))
    }
    return tuple(special.items()) or tuple(_word_term(word, is_name) for word in words(bare))


@cache
def _common() -> tuple[frozenset[str], frozenset[str], Mapping[str, str], frozenset[str]]:
    """Words common to any two texts, and their stems; numbers as words; frequent names."""
    table, values = tables(COMMON), (*range(21), *range(30, 110, 10))
    listed = frozenset(word for name in ("everyday", "measures") for row in table[name].values() for word in row)
    common = listed - STOP_WORDS
    numbers = dict(zip((*tables()["numbers"]["en"], *table["tens"]["en"]), map(str, values), strict=True))
    return common, frozenset(map(_rough_stem, common)), numbers, frozenset(table["famous"]["names"])


def _special_weight(token: str) -> float:
    """The weight of an address, a number or an unusual spelling; 0 for a word."""
    is_famous = token.casefold() in _common()[3]
    if "://" in token or _ADDRESS.fullmatch(token):
        return ADDRESS_WEIGHT if len(token) > 12 and not is_famous else WORD_WEIGHT
    if _NUMBER.fullmatch(token):
        return _number_weight(token)
    if not token.isascii():
        return 0.0
    is_mixed = any(map(str.isdigit, token)) and any(map(str.isalpha, token))
    if not (is_mixed or _CODE_NAME.search(token) or _PATH.search(token)):
        return 0.0
    return COMMON_WORD_WEIGHT if is_famous else SPECIAL_WEIGHT if len(token) > 3 else WORD_WEIGHT


def _number_weight(number: str) -> float:
    """The weight of a number: more for more digits, less for years and round numbers, which are everywhere."""
    digits = sum(map(str.isdigit, number))
    if any(char in ".:," for char in number[1:-1]):
        return 2.0 if digits > 2 else 1.5
    if digits >= 4:
        return 1.4 if len(number) == 4 and number[:2] in ("19", "20") else 2.0
    return (0.2, 0.3, 0.7, 0.7 if number.endswith("0") else 1.2)[digits]


def _word_term(word: str, is_name: bool = False) -> tuple[str, float]:
    if not word.isascii() and (weight := _unspaced_weight(word)):
        return word, weight
    if word in STOP_WORDS or (len(word) == 1 and word.isascii()):
        return word, 0.0
    common, stems, numbers, _ = _common()
    number = numbers.get(word, word)  # "thirty seconds" matches "30 seconds"
    if number.isdigit():
        return number, _number_weight(number)
    stem = _rough_stem(word)
    if word in common or stem in stems:
        return stem, COMMON_WORD_WEIGHT
    return stem, NAME_WEIGHT if is_name else WORD_WEIGHT


def _phrase_weight(phrase: Sequence[str]) -> float:
    return sum(_word_term(word)[1] for word in dict.fromkeys(phrase))


def _unspaced_weight(pair: str) -> float:
    """The weight of a pair of characters in a script without spaces; 0 in scripts with spaces."""
    first = pair[0]
    if "\u0e00" <= first <= "\u0eff" or "\u1000" <= first <= "\u109f" or "\u1780" <= first <= "\u17ff":
        return 0.25
    if "\u3040" <= first <= "\u30ff" or "\u3400" <= first <= "\u9fff" or "\uac00" <= first <= "\ud7af":
        if len(pair) == 1:
            return 0.05
        if all("\u3040" <= character <= "\u30ff" for character in pair):
            return 0.15
        everyday = tables(COMMON)["everyday"]
        return 0.2 if any(word in pair for word in (*everyday["zh"], *everyday["ko"])) else 0.6
    return 0.0


# Ending, its replacement, and the minimum length of the rest.
_ENDINGS = (
    *(("ies", "y", 3), ("ied", "y", 3), ("sses", "ss", 2), ("ingly", "", 4), ("ings", "", 3), ("ing", "", 3)),
    *(("edly", "", 4), ("ed", "", 3), ("ss", "ss", 1), ("us", "us", 1), ("is", "is", 1), ("es", "", 3), ("s", "", 3)),
    ("ly", "", 4),
)


@lru_cache(maxsize=8192)
def _rough_stem(word: str) -> str:
    """A rough stem, good enough for comparing two texts stemmed the same way."""
    group = word_forms(word)
    if len(group) > 1:
        return min(group)
    for ending, replacement, min_length in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= min_length:
            word = word.removesuffix(ending) + replacement
            if len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdgmnprt":
                return word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word
