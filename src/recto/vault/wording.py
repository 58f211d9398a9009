"""Wording: the words of a question, and which of them a text holds. For texts that stand in no index."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from recto.search.forms import alike
from recto.search.passages import SHORTEST, spans
from recto.search.terms import query_terms, words

# Endings that say nothing of what a word is about, the longest first: what the index's own stemmer takes off, about.
_ENDING = re.compile(r"(?:ations?|ings?|ments?|ness|ies|ied|ers?|ed|es|ly|[sey])$")
_SHORTEST = 3
_STOP = re.compile(r"\n+|(?<=[.!?…])[ \t]+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Wording:
    stems: dict[str, str]
    """What each form of a word ends up as, and the word of the question that it belongs to."""
    begins: tuple[str, ...] = ()
    """Single characters of scripts without spaces: every word that begins so."""

    def held(self, text: str) -> set[str]:
        """The words of the question that a text holds."""
        said = set(words(text))
        found = {self.stems[stem] for word in said if (stem := stem_of(word)) in self.stems}
        return found | {sign for sign in self.begins if any(word.startswith(sign) for word in said)}


def wording(question: str) -> Wording:
    terms = query_terms(question)
    plain = [term for term in terms if not term.endswith("*")]
    stems = {stem_of(form): term for term in reversed(plain) for form in alike(term)}
    return Wording(stems, tuple(term[:-1] for term in terms if term.endswith("*")))


@lru_cache(maxsize=4096)
def stem_of(word: str) -> str:
    """About what the index keeps of a word: enough to tell that two are the same."""
    if not word.isascii() or len(word) <= _SHORTEST or word[-1].isdigit():
        return word
    short = _ENDING.sub("", word)
    if len(short) < _SHORTEST:
        return word
    return short[:-1] if short[-1] == short[-2] and short[-1] not in "ls" else short


def best_part(text: str, question: Wording, most: int) -> tuple[int, int]:
    """Where in a text, within `most` characters, most of a question's words stand, those that stand in few places above
    all; its beginning when none do. Parted where a line or a sentence ends, if that can be."""
    if len(text) <= most:
        return 0, len(text)
    parts = list(_sentences(text, most)) or [(0, 0)]
    holds = [question.held(text[start:end]) for start, end in parts]
    places = Counter(word for held in holds for word in held)
    ends = [_end(parts, first, most) for first in range(len(parts))]
    worth = [sum(1 / places[word] for word in set[str]().union(*holds[at:end])) for at, end in enumerate(ends)]
    first = max(range(len(parts)), key=lambda at: (round(worth[at], 6), -at))
    end = parts[ends[first] - 1][1]
    while first and end - parts[first - 1][0] <= most:
        first -= 1
    return _trimmed(text, parts[first][0], min(end, parts[first][0] + most))


def _sentences(text: str, most: int) -> Iterator[tuple[int, int]]:
    ends = [found.end() for found in _STOP.finditer(text)]
    for start, end in pairwise([0, *ends, len(text)]):
        within = spans(text[start:end], max(1, most - SHORTEST))
        yield from ((start + begin, start + stop) for begin, stop in within)


def _end(parts: Sequence[tuple[int, int]], first: int, most: int) -> int:
    last = first + 1
    while last < len(parts) and parts[last][1] - parts[first][0] <= most:
        last += 1
    return last


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    own = text[start:end].strip()
    begin = text.index(own, start)
    return begin, begin + len(own)
