"""Traces: what of a text can be found again in another: its words in a row, and the marks of each of its sentences.

A mark is the stem of a word or something spelled in a way of its own (a number, an address, an identifier, a name),
with a weight: how much it tells that two texts share it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from recto.search.forms import alike
from recto.search.terms import STOP, words
from recto.uses.common import COMMON, FAMOUS, NUMBERS

RUN = 6
"""So many words in a row are no chance, when they tell something."""
OWN_SPELLING = 2.5
"""The weight of what hardly anybody would spell so by chance."""
ADDRESS = 4.0
PLAIN, NAME, LITTLE, TOGETHER = 1.0, 1.4, 0.3, 0.6

_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]*_`]*\s+|(?<=[。！？])|\n+")
_CHUNK = re.compile(r"[^\s`\"'“”‘’«»()\[\]{}<>,;|*=!?…。！？、，：；「」]+(?:[,.:]\d+)*")
_NUMBER = re.compile(r"[€$£]?\d+(?:[.,:]\d+)*[€$£%]?")
_INNER = re.compile(r"[a-z][A-Z]|\w_\w|\w::\w|^--\w[\w-]+$|^[A-Z]{2,}-[A-Z0-9]+$|^#\w[\w-]+$")
_PATH = re.compile(r"^(?:~?\.?/)[\w.-]+|\w/[\w.-]+/\w|\w\.(?:py|md|toml|json|ya?ml|txt|csv|js|ts|sh|sql|html|cfg|ini)$")
_LITERAL = re.compile(r"[\"“«„]([^\"“”«»„\n]{4,80})[\"”»]|`([^`\s]+(?: [^`\s]+)+)`")
_KANA = re.compile("^[\u3040-\u30ff]+$")
_WORN = re.compile(
    "[的了是在我你他她它们这那有和不一个会可以您请很也都就为与或及吗呢吧啊]|니다|습니|합니|입니|에서|으로|해야|하는"
)
_THAI = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    marks: Mapping[str, float]
    weight: float
    is_joined: bool = False
    """It is two of them, one behind the other."""


@dataclass(frozen=True, slots=True)
class Traces:
    words: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    places: Mapping[str, tuple[int, ...]]
    """Of each mark: the sentences that bear it."""
    runs: frozenset[str]
    literals: frozenset[str]
    """What stands between quotation marks or as code: to be said just so."""


@lru_cache(maxsize=128)
def traces(text: str) -> Traces:
    """Of a source, which is in one window after another: read once."""
    said = tuple(words(text))
    sentences = tuple(sentences_of(text))
    places: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences):
        for mark in sentence.marks:
            places.setdefault(mark, []).append(place)
    literals = frozenset(" ".join(words(one or two)) for one, two in _LITERAL.findall(text))
    return Traces(said, sentences, {mark: tuple(at) for mark, at in places.items()}, frozenset(runs_of(said)), literals)


def runs_of(said: tuple[str, ...]) -> list[str]:
    return [" ".join(said[start : start + RUN]) for start in range(len(said) - RUN + 1)]


def sentences_of(text: str) -> Iterator[Sentence]:
    for part in _END.split(text):
        if part and (marks := marks_of(part)):
            yield Sentence(part.strip(), marks, sum(marks.values()))


def joined(one: Sentence, two: Sentence) -> Sentence:
    marks = {**one.marks, **two.marks}
    return Sentence(f"{one.text} {two.text}", marks, sum(marks.values()), is_joined=True)


def marks_of(sentence: str) -> dict[str, float]:
    found: dict[str, float] = {}
    before = ""
    for place, chunk in enumerate(_CHUNK.findall(sentence)):
        told = _told(chunk, place > 0 and chunk[:1].isupper())
        for mark, weight in told:
            if weight > found.get(mark, 0.0):
                found[mark] = weight
        first = told[0][0] if told else ""
        # 30 seconds are more than 30 and seconds
        if first and before[:1].isdigit():
            found[f"{before} {first}"] = TOGETHER
        before = first
    return found


@lru_cache(maxsize=16384)
def _told(chunk: str, is_name: bool) -> tuple[tuple[str, float], ...]:
    bare = _bare(chunk)
    special = {part.casefold(): weight for part in _parts(bare) if (weight := _special(part))}
    return tuple(special.items()) or tuple(_word(word, is_name) for word in words(bare))


def _bare(chunk: str) -> str:
    return chunk.rstrip(".:") if chunk.startswith("--") else chunk.strip(".-").rstrip(":/")


def _parts(chunk: str) -> list[str]:
    """A name that is reached through others, as in `orders.due_on`, is a mark by itself."""
    dotted = re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", chunk)
    return chunk.split(".") if dotted and not _PATH.search(chunk) else [chunk]


def _special(chunk: str) -> float:
    """The weight of what is spelled in a way of its own; 0 for a word."""
    if "://" in chunk or re.fullmatch(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", chunk):
        return ADDRESS if len(chunk) > 12 and chunk.casefold() not in FAMOUS else PLAIN
    if _NUMBER.fullmatch(chunk):
        return _number(chunk)
    if not chunk.isascii():
        return 0.0
    mixed = any(sign.isdigit() for sign in chunk) and any(sign.isalpha() for sign in chunk)
    if _INNER.search(chunk) or _PATH.search(chunk) or mixed:
        if chunk.casefold() in FAMOUS:
            return LITTLE
        return OWN_SPELLING if len(chunk) > 3 else PLAIN
    return 0.0


def _number(chunk: str) -> float:
    """The more figures the less by chance; years and the like are said everywhere."""
    figures = sum(sign.isdigit() for sign in chunk)
    if any(sign in ".:," for sign in chunk[1:-1]):
        return 2.0 if figures > 2 else 1.5
    if figures >= 4:
        return 1.4 if re.match(r"(?:19|20)\d\d$", chunk) else 2.0
    return (0.2, 0.3, 0.7, 0.7 if chunk.endswith("0") else 1.2)[figures]


def _word(word: str, is_name: bool) -> tuple[str, float]:
    if not word.isascii() and (weight := _unspaced(word)):
        return word, weight
    if word in STOP or (len(word) == 1 and word.isascii()):
        return word, 0.0
    if word in NUMBERS:
        return NUMBERS[word], _number(NUMBERS[word])
    if word.isdigit():
        return word, _number(word)
    root = stem(word)
    if word in COMMON or root in _common_roots():
        return root, LITTLE
    return root, NAME if is_name else PLAIN


@lru_cache(maxsize=1)
def _common_roots() -> frozenset[str]:
    return frozenset(map(stem, COMMON))


def _unspaced(pair: str) -> float:
    """Of a pair of characters in a script without spaces; 0 where words are parted."""
    if _THAI.match(pair):
        return 0.25
    if "\u3040" <= pair[0] <= "\u30ff" or "\u3400" <= pair[0] <= "\u9fff" or "\uac00" <= pair[0] <= "\ud7af":
        return 0.05 if len(pair) == 1 else 0.15 if _KANA.match(pair) else 0.2 if _WORN.search(pair) else 0.6
    return 0.0


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """What the forms of a word have in common; roughly, for two texts are only compared with each other."""
    group = alike(word)
    if len(group) > 1:
        return min(group)
    for ending, put, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return _undoubled(word.removesuffix(ending) + put)
    return word.removesuffix("e") if len(word) > 3 else word


_ENDINGS = (
    ("ies", "y", 3),
    ("ied", "y", 3),
    ("sses", "ss", 2),
    ("ingly", "", 4),
    ("ings", "", 3),
    ("ing", "", 3),
    ("edly", "", 4),
    ("ed", "", 3),
    ("ss", "ss", 1),
    ("us", "us", 1),
    ("is", "is", 1),
    ("es", "", 3),
    ("s", "", 3),
    ("ly", "", 4),
)


def _undoubled(root: str) -> str:
    if len(root) > 3 and root[-1] == root[-2] and root[-1] in "bdgmnprt":
        return root[:-1]
    return root.removesuffix("e") if len(root) > 3 else root


def weight_of(said: tuple[str, ...]) -> float:
    """How much some words in a row tell."""
    return sum(_word(word, False)[1] for word in dict.fromkeys(said))


def is_phrase(said: tuple[str, ...]) -> bool:
    """Whether there is no word among them but those that anyone says about anything."""
    return all(word.isascii() and _word(word, False)[1] <= LITTLE for word in said)


def mark_of(word: str) -> str:
    return _word(word, False)[0]
