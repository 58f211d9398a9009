"""Shortening: single texts within so many tokens: how they begin, or how they begin and end. Pure."""

from collections.abc import Callable

from recto.summary.sentences import beginning, first_lines, last_lines

Measure = Callable[[str], int]
# Characters below which a notice would leave nothing to read.
_WORTH_A_NOTICE = 40


def cut_to(text: str, cap: int, count: Measure) -> str:
    """The longest beginning that counts at most `cap`, up to the end of a word; "…" tells that it was cut."""
    if cap <= 0:
        return ""
    return cut(text, most(lambda size: count(cut(text, size)) <= cap, len(text), guess=4 * cap))


def excerpt(text: str, cap: int, count: Measure, name: str) -> str:
    """How one long message begins and ends, in whole lines or sentences where they are short enough."""
    if cap <= 0:
        return ""
    size = most(lambda size: count(_around(text, size, name)) <= cap, len(text), guess=4 * cap)
    return _around(text, size, name) if size >= _WORTH_A_NOTICE else cut_to(text, cap, count)


def cut(text: str, size: int) -> str:
    kept = beginning(text, size)
    return f"{kept}…" if kept and size < len(text) else kept


def _around(text: str, size: int, name: str) -> str:
    if size >= len(text):
        return text
    first, last = first_lines(text, size * 3 // 5), last_lines(text, size * 2 // 5)
    left_out = len(text) - len(first) - len(last)
    notice = f"[… {left_out} of {len(text)} characters are left out here; the original is kept as message {name} …]"
    return "\n".join(part for part in (first, notice, last) if part)


def most(fits: Callable[[int], bool], top: int, guess: int) -> int:
    """The largest number that fits, of 0 … top; 0 always does. Steps grow from the guess, then halve."""
    low, high, step = 0, top + 1, 1
    at = min(max(guess, 1), top)
    while low + 1 < high:
        if fits(at):
            low, at = at, (at + step if high > top else (at + high) // 2)
        else:
            high, at = at, (at - step if low == 0 else (low + at) // 2)
        step *= 2
        at = min(max(at, low + 1), high - 1)
    return low
