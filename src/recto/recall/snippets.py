"""Snippets: recalled messages as the model reads them, packed into their room, in order of time, with their numbers.

Pure: texts and numbers in, a text out. A number (`#57`) names a message on its path; an id would take sixteen
tokens."""

import math
from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

BEGINS = "[Recalled from earlier in this conversation, verbatim; #n is a message's number.]"
ENDS = "[End of what was recalled.]"
# After messages of a known day.
UNDATED = "day not known"
# Estimated tokens of the frame, of a message's number and of a line with the time; the whole is counted in the end.
FRAME, MARK, TIME = 32, 3, 6
# Estimated tokens of an English letter and of a character of other scripts.
PER_LETTER, PER_SIGN = 0.25, 0.9
# Less room than this is not worth a snippet.
LEAST = 12


class Snippet(Struct, frozen=True):
    id: str
    number: int
    role: str
    at: str
    """The day and time it was said, as the user reads it: 2026-01-31 18:05. Empty if unknown."""
    text: str
    start: int = 0
    end: int = 0
    size: int = 0
    """The length of the whole message."""
    tokens: int = 0
    score: float = 0.0
    because: str = ""
    is_recent: bool = False
    """Recent enough that the hour matters; older ones show the day."""

    @property
    def day(self) -> str:
        return self.at[:10]


def estimate_tokens(text: str) -> int:
    """An estimate for packing; the result is counted as it is sent."""
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain * PER_LETTER + (len(text) - plain) * PER_SIGN)


def pack_snippets(ranked: Sequence[Snippet], room: int) -> tuple[list[Snippet], list[Snippet]]:
    """Snippets that fit, taken by rank and sorted by time, and those that do not. A long one does not block others."""
    chosen: list[Snippet] = []
    passed: list[Snippet] = []
    left, days = room - FRAME, set[str]()
    for each in ranked:
        cost = each.tokens + MARK + (TIME if each.day not in days else 0)
        if cost <= left:
            chosen.append(each)
            days.add(each.day)
            left -= cost
        else:
            passed.append(each)
    return sorted(chosen, key=lambda each: (each.number, each.start)), passed


def snippets_text(snippets: Sequence[Snippet]) -> str:
    """The snippets as one text, sorted by time."""
    lines = [BEGINS]
    before: Snippet | None = None
    for number, parts in groupby(snippets, lambda each: each.number):
        group = list(parts)
        if group[0].day != (before.day if before else ""):
            lines.append(f"[{_when(group[0], before)}]")
        before = group[0]
        lines.append(f"#{number} {f'{before.role}: ' if before.role else ''}{_joined(group)}")
    return "\n".join([*lines, ENDS])


def _when(snippet: Snippet, before: Snippet | None) -> str:
    """The day, with its year only if the year changes."""
    if not snippet.at:
        return UNDATED
    if snippet.is_recent:
        return snippet.at
    return snippet.day[5:] if before is not None and before.day[:5] == snippet.day[:5] else snippet.day


def _joined(parts: Sequence[Snippet]) -> str:
    """An ellipsis marks omissions; a whole message is unchanged."""
    if len(parts) == 1 and parts[0].end - parts[0].start == parts[0].size:
        return parts[0].text
    text, at = "", 0
    for part in parts:
        text += part.text if part.start == at else f" … {part.text}" if text else f"… {part.text}"
        at = part.end
    return text.strip() + (" …" if at < parts[-1].size else "")
