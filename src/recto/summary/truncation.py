"""Truncation: cuts a text to a number of characters or tokens, keeping its beginning, or its beginning and end."""

import re
from collections.abc import Callable

from recto.sentences.segments import UNSPACED

CountTokens = Callable[[str], int]
"""Returns the tokens of a text."""

# With fewer characters than this, a notice would leave nothing to read.
_MIN_WITH_NOTICE = 40
_SENTENCE_END = re.compile(r"""[.!?…]["'”’)\]]*(?=\s)|[。！？]""")
# Characters that belong to the previous one: accents, joiners, variants and skin tones of an emoji.
_COMBINING = re.compile("[\u0300-\u036f\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|(?<=\u200d).", re.DOTALL)


def cut_to_fit(text: str, limit: int, count: CountTokens) -> str:
    """The longest beginning of at most `limit` tokens, up to the end of a word; "…" marks the cut."""
    if limit <= 0:
        return ""
    return cut_text(text, largest_fitting(lambda size: count(cut_text(text, size)) <= limit, len(text), 4 * limit))


def excerpt(text: str, limit: int, count: CountTokens, message_id: str = "") -> str:
    """The beginning and the end of a long message, in whole lines or sentences if they are short enough. `message_id`
    names where the whole is kept, if anywhere."""
    if limit <= 0:
        return ""
    size = largest_fitting(lambda size: count(_both_ends(text, size, message_id)) <= limit, len(text), 4 * limit)
    return _both_ends(text, size, message_id) if size >= _MIN_WITH_NOTICE else cut_to_fit(text, limit, count)


def cut_text(text: str, size: int) -> str:
    """The beginning of a text, with "…" if it was cut."""
    start = leading_words(text, size)
    return f"{start}…" if start and size < len(text) else start


def _both_ends(text: str, size: int, message_id: str) -> str:
    if size >= len(text):
        return text
    first, last = leading_lines(text, size * 3 // 5), trailing_lines(text, size * 2 // 5)
    left_out = len(text) - len(first) - len(last)
    kept = f"; the original is kept as message {message_id}" if message_id else ""
    notice = f"[… {left_out} of {len(text)} characters are left out here{kept} …]"
    return "\n".join(part for part in (first, notice, last) if part)


def largest_fitting(fits: Callable[[int], bool], limit: int, guess: int) -> int:
    """The largest number from 0 to `limit` that fits; 0 always does. Steps grow from the guess, then halve."""
    low, high, step = 0, limit + 1, 1
    at = min(max(guess, 1), limit)
    while low + 1 < high:
        if fits(at):
            low, at = at, (at + step if high > limit else (at + high) // 2)
        else:
            high, at = at, (at - step if low == 0 else (low + at) // 2)
        step *= 2
        at = min(max(at, low + 1), high - 1)
    return low


def leading_words(text: str, size: int) -> str:
    """At most `size` characters from the start, up to the end of a word unless that removes half of them."""
    if size >= len(text):
        return text
    at = max(size, 0)
    if at and not text[at].isspace() and not UNSPACED.match(text, at):
        at = max(text.rfind(" ", at // 2, at), text.rfind("\n", at // 2, at)) + 1 or at
    while at and _COMBINING.match(text, at):
        at -= 1
    return text[:at].rstrip()


def leading_lines(text: str, size: int) -> str:
    """At most `size` characters from the start, in whole lines or sentences if one ends in the second half."""
    line_end = text.rfind("\n", size // 2, size)
    ends = [found.end() for found in _SENTENCE_END.finditer(text, size // 2, size)] if line_end < 0 else [line_end]
    return text[: ends[-1]].rstrip() if ends else leading_words(text, size)


def trailing_lines(text: str, size: int) -> str:
    """At most `size` characters from the end, starting with a line, a sentence or at least a word."""
    start, middle = len(text) - size, len(text) - size // 2
    line_end = text.find("\n", start, middle)
    if line_end >= 0:
        return text[line_end + 1 :].rstrip().lstrip("\r\n")
    if end := _SENTENCE_END.search(text, start, middle):
        return text[end.end() :].strip()
    return text[next((at for at in range(max(start, 0), middle) if text[at].isspace()), start) :].strip()
