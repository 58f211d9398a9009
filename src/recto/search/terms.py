"""Terms: normalized text, the words of a query worth looking up, and irregular English forms."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from recto.sentences.segments import HANGUL, UNSPACED_SCRIPTS
from recto.sentences.words import tables

# Only this many words of a query are looked up.
MAX_TERMS = 48

UNSPACED_RUN = re.compile(f"[{UNSPACED_SCRIPTS}{HANGUL}]+")
_PUNCTUATION = {code: " " for code in range(128) if not chr(code).isalnum()}
# The article, also with the prefixes for "and", "in", "like" and "for".
_ARABIC_PREFIX = re.compile(r"^(?:[وف]?(?:[بك]?ال|لل))(?=\w{3})")
# Forms of a long word share about this many first letters in any language.
START_LETTERS = 5
# An unused letter, so that a beginning is not taken for a word.
START_MARK = "\ue000"
# Capitalised ER and US are neither the German "er" nor "us". Operators of other search engines are not words.
_CAPITALS = re.compile(r"\b(?!(?:AND|OR|NOT)\b)[A-Z]{2,4}\b")

_LISTED = tables("common_words.toml")
STOP_WORDS = frozenset(_LISTED["stop"]["all"])
_WITHOUT_TOPIC = STOP_WORDS | {chr(code) for code in range(128)}
_ENGLISH, _NOT_ENGLISH = (frozenset(_LISTED["language"][each]) for each in ("en", "other"))

# Below are accents and the optional vowel signs of Hebrew and Arabic; above, signs that matter.
LAST_VOWEL_SIGN = 0x0660


class _CharacterTable(dict[int, str]):
    """Maps each character once: letters, marks and digits stay, symbols are isolated, the rest becomes a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)
        if kind[0] in "LN":
            mapped = character
        elif kind in ("Mn", "Me", "Cf"):
            # decomposed accents, emoji joiners and emoji colours do not matter to a search
            mapped = "" if code < LAST_VOWEL_SIGN or kind != "Mn" or 0xFE00 <= code <= 0xFE0F else character
        elif kind == "Mc":
            mapped = character
        elif kind == "So":
            mapped = f" {character} "
        else:
            mapped = "" if 0x1F3FB <= code <= 0x1F3FF else " "
        self[code] = mapped
        return mapped


# Arabic letters with two spellings, and the stroke that only lengthens a word.
_CHARACTERS = _CharacterTable({0x0649: "\u064a", 0x0629: "\u0647", 0x0640: "", 0x0670: ""})


def normalize_text(text: str) -> str:
    """Lower case without accents; outside ASCII also without punctuation."""
    if text.isascii():
        return text.lower()
    # decomposing may reveal capitals, and case folding may reveal characters to decompose
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKD", decomposed).translate(_CHARACTERS)


COMMON_WORDS = frozenset(map(normalize_text, _LISTED["requests"]["all"]))
"""Words common in questions and requests, which say little about the topic."""
QUESTION_WORDS = COMMON_WORDS.union(_LISTED["question_verbs"]["en"])


def folded_text(text: str) -> str:
    """The words of a text in lower case without accents, each between two spaces; unspaced scripts stay unsplit."""
    normalized = normalize_text(text)
    # decomposing splits Hangul syllables; this recombines them
    spaced = unicodedata.normalize("NFC", normalized).translate(_PUNCTUATION)
    return f" {' '.join(spaced.split())} "


def index_terms(found: Collection[str]) -> str:
    """The words of a text as indexed: the words, and the beginnings of long ones."""
    starts = set(map(word_start, found)) - {""}
    return " ".join([*found, *(START_MARK + start for start in starts)])


def start_forms(term: str) -> tuple[str, ...]:
    """Index terms for the other forms of this word: those that begin like it."""
    start = word_start(term) or (term if len(term) == START_LETTERS and not UNSPACED_RUN.match(term) else "")
    return (START_MARK + start, start) if start and not term.endswith("*") else ()


@lru_cache(maxsize=50_000)  # about ten megabytes; without it indexing words takes twice as long
def word_start(word: str) -> str:
    """The part that forms of a long word share in any language; empty for short words, numbers and scripts without
    spaces."""
    if UNSPACED_RUN.match(word) or word.isdigit():
        return ""
    bare = word if word.isascii() else _ARABIC_PREFIX.sub("", word)
    return bare[:START_LETTERS] if len(bare) > START_LETTERS or bare != word else ""


def words(text: str) -> list[str]:
    """All words of a text as indexed, before stemming."""
    return folded_words(folded_text(text))


def folded_words(folded: str) -> list[str]:
    """The words of a text from `folded_text`. Scripts without spaces yield overlapping pairs and the last character,
    so that a single character is found as a prefix."""
    if folded.isascii():
        return folded.split()
    return UNSPACED_RUN.sub(lambda run: f" {' '.join([*_pairs(run[0]), run[0][-1]])} ", folded).split()


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run) - 1))


def topic_words(text: str) -> set[str]:
    """The words that carry a topic. Their number is the length of a text in scores."""
    return topical(set(words(text)))


def topical(found: set[str]) -> set[str]:
    return found - _WITHOUT_TOPIC


def query_terms(text: str, limit: int = MAX_TERMS) -> list[str]:
    """The words to look up, without duplicates: those that carry a topic, or all if none does. A lone character of a
    script without spaces ends in `*` and matches as a prefix."""
    folded = folded_text(text)
    if not folded.isascii():
        folded = UNSPACED_RUN.sub(lambda run: f" {' '.join(_pairs(run[0])) or run[0] + '*'} ", folded)
    found = list(dict.fromkeys(folded.split()))
    capitals = set[str]() if text.isupper() else {word.lower() for word in _CAPITALS.findall(text)}
    topical = [term for term in found if term not in STOP_WORDS or term in capitals]
    # single letters and digits are looked up only if there is nothing else
    long = [term for term in topical if len(term) > 1 or not term.isascii()]
    chosen = long or topical or found
    if len(chosen) > limit:
        longest = set(sorted(chosen, key=len, reverse=True)[:limit])
        chosen = [term for term in chosen if term in longest]
    return chosen


_GROUPS = [tuple(group.split("/")) for group in _LISTED["irregular"]["en"]]
_FORMS = {form: group for group in _GROUPS for form in group}
_ENDINGS = (("", ""), ("s", ""), ("es", ""), ("ing", ""), ("ing", "e"), ("ning", ""), ("ting", ""))


def word_forms(term: str) -> tuple[str, ...]:
    """The term, followed by other forms of the same word."""
    for ending, replacement in _ENDINGS:
        if term.endswith(ending) and (group := _FORMS.get(term.removesuffix(ending) + replacement)):
            return (term, *(form for form in group if form != term))
    return (term,)


# Endings that do not change what a word is about, longest first; approximates the index's stemmer.
_STEM_ENDING_LIST = "ations ation ments ings ment ness ers ing ies ied er ed es ly s e y"
_STEM_ENDINGS = tuple(_STEM_ENDING_LIST.split())
_MIN_STEM = 3


@lru_cache(maxsize=4096)
def stem_word(word: str) -> str:
    """Approximates the stem stored in the index, well enough to compare words."""
    if not word.isascii() or len(word) <= _MIN_STEM or word[-1].isdigit():
        return word
    short = next((word.removesuffix(ending) for ending in _STEM_ENDINGS if word.endswith(ending)), word)
    if len(short) < _MIN_STEM:
        return word
    return short[:-1] if short[-1] == short[-2] and short[-1] not in "ls" else short


def is_spaced(term: str) -> bool:
    return not UNSPACED_RUN.match(term)


def is_not_english(found: Sequence[str]) -> bool:
    """True if the most common words of other languages outnumber those of English."""
    return sum(word in _NOT_ENGLISH for word in found) > sum(word in _ENGLISH for word in found)
