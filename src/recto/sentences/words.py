"""Closed classes of words (`words.toml`): negations, question words, months and the like, in many languages."""

import re
import tomllib
from functools import cache
from pathlib import Path

from recto.sentences.segments import UNSPACED_OR_KOREAN

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@cache
def tables(file: str = "words.toml") -> dict[str, dict[str, list[str]]]:
    """By class and language, each in its order."""
    found = tomllib.loads(Path(__file__).with_name(file).read_text("utf-8"))
    return {name: {language: words.split() for language, words in table.items()} for name, table in found.items()}


class WordClass:
    """All words of a class, in any language."""

    def __init__(self, *names: str) -> None:
        listed = [word for name in names for table in tables()[name].values() for word in table]
        words = [form for word in listed for form in word.split("/") if form != "_"]
        self._words = frozenset(word for word in words if not UNSPACED_OR_KOREAN.match(word))
        unspaced = sorted({word for word in words if UNSPACED_OR_KOREAN.match(word)}, key=len, reverse=True)
        self._inside = re.compile("|".join(map(re.escape, unspaced)) or "(?!)")

    def is_in(self, words: frozenset[str], text: str) -> bool:
        """True if one of these is a word of the text."""
        return not self._words.isdisjoint(words) or (not text.isascii() and self._inside.search(text) is not None)


@cache
def word_class(*names: str) -> WordClass:
    return WordClass(*names)


def alternatives(*names: str) -> str:
    """The words and phrases of classes as alternatives for a pattern. In the tables `_` is a space, `*` any ending."""
    listed = {word for name in names for table in tables()[name].values() for word in table}
    return "|".join(map(_alternative, sorted(listed, reverse=True)))


def _alternative(word: str) -> str:
    return re.escape(word).replace("_", r"\s").replace("'", "['’]").replace(r"\*", r"\w*")


@cache
def phrases(*names: str) -> re.Pattern[str]:
    """A pattern for the words and phrases of classes."""
    unspaced = UNSPACED_OR_KOREAN.pattern
    pattern = rf"(?:\b|(?={unspaced}))(?:{alternatives(*names)})(?:\b|(?<={unspaced}))"
    return re.compile(pattern, re.IGNORECASE)


def words_in(text: str) -> frozenset[str]:
    """The words of a text, in lower case."""
    return frozenset(_WORD.findall(text.lower().replace("’", "'")))
