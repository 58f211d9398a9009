"""Passages: a long text in pieces that can be found, read and sent on their own; a short one is a single piece."""

import re
from collections.abc import Iterator

# About two hundred tokens: what the embedder reads at once, and a fair share of a small window.
LONGEST = 900
# The last piece takes along a remainder that would be too short to stand alone.
SHORTEST = 150

# Where to part, the best first: paragraphs, lines, sentences, words.
_PARTINGS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?;。！？；])\s*(?=\S)"),
    re.compile(r"\s+"),
)

Span = tuple[int, int]


def spans(text: str, most: int = LONGEST) -> list[Span]:
    """Where the pieces of a text begin and end, in order; together they leave out nothing but white space."""
    return [span for span in _spans(text, most) if text[slice(*span)].strip()]


def _spans(text: str, most: int) -> Iterator[Span]:
    at = 0
    while len(text) - at > most + SHORTEST:
        end = _end(text, at, most)
        yield at, end
        at = end
    yield at, len(text)


def _end(text: str, at: int, most: int) -> int:
    """The best place to part in the second half of what a piece may take; in mid-word where there is none."""
    half, limit = at + most // 2, at + most
    for parting in _PARTINGS:
        places = [found.end() for found in parting.finditer(text, half, limit)]
        if places:
            return places[-1]
    return limit
