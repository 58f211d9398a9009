"""WordPiece: a text as the token ids that BERT's uncased vocabulary has for it. Knows no model.

Ours instead of a library: the one that is made for this brings an HTTP client and a hub, takes control tokens in a text
for real ones, and reads a megabyte to the end before it cuts it.
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
LONGEST_WORD = 100
# A token stands for four characters or so; sixteen leave room for long names without reading a megabyte.
CHARACTERS_PER_TOKEN = 16
# Chinese and Japanese ideographs, each a word of its own; the ranges are BERT's.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class WordPiece:
    """Thread-safe; words that were seen are remembered, since most words come again."""

    def __init__(self, vocabulary: Path) -> None:
        lines = vocabulary.read_text("utf-8").split("\n")
        self._ids = {piece: id for id, piece in enumerate(lines) if piece}
        self._longest = max(map(len, self._ids))
        self._table = _Letters()
        self._pieces = lru_cache(1 << 15)(self._split)

    def ids(self, text: str, limit: int) -> list[int]:
        """At most `limit` ids, with the two marks around them; none at all where the text says nothing."""
        found: list[int] = []
        for word in self._words(text[: limit * CHARACTERS_PER_TOKEN]):
            found += self._pieces(word)
            if len(found) >= limit - 2:
                break
        return [self._ids[CLS], *found[: limit - 2], self._ids[SEP]] if found else []

    def _words(self, text: str) -> list[str]:
        """Lower case without accents; punctuation marks and ideographs stand alone."""
        return unicodedata.normalize("NFD", text).translate(self._table).split(" ")

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return (self._ids[UNKNOWN],)
        pieces = tuple(self._longest_first(word))
        return (self._ids[UNKNOWN],) if None in pieces else pieces  # type: ignore[return-value]

    def _longest_first(self, word: str) -> Iterator[int | None]:
        """The longest piece that the word begins with, again and again; None where there is no such piece."""
        start, mark = 0, ""
        while start < len(word):
            ends = range(min(len(word), start + self._longest), start, -1)
            end = next((end for end in ends if mark + word[start:end] in self._ids), None)
            yield None if end is None else self._ids[mark + word[start:end]]
            start, mark = end or len(word), "##"


class _Letters(dict[int, str | None]):
    """What becomes of a character, worked out when it is first seen."""

    def __missing__(self, code: int) -> str | None:
        self[code] = letter = _letter(chr(code))
        return letter


def _letter(char: str) -> str | None:
    kind = unicodedata.category(char)
    if char in "\t\n\r" or kind.startswith("Z"):
        return " "
    if kind in ("Cc", "Cf", "Co", "Cs", "Mn") or char == "\N{REPLACEMENT CHARACTER}":
        return None
    code = ord(char)
    # BERT takes all of ASCII that is no letter or digit for punctuation, $ and + too
    if kind.startswith("P") or (code < 128 and not char.isalnum()) or any(a <= code <= b for a, b in IDEOGRAPHS):
        return f" {char.lower()} "
    return char.lower()
