"""Recalled messages as the model reads them: which of the found fit, in order of time, each marked with its number.

Pure: texts and numbers in, a text out. A number (`#57`) names a message on its path; an id would take sixteen tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

BEGINS = "[Recalled from earlier in this conversation, verbatim; #n is a message's number.]"
ENDS = "[End of what was recalled.]"
# What the frame, a message's mark and a line with the time take, about: the whole is counted in the end.
FRAME, MARK, TIME = 32, 3, 6
# Tokens of a letter of English, and of a character of other scripts, about.
PER_LETTER, PER_SIGN = 0.25, 0.9
# A remainder that is not worth a line.
LEAST = 12


@dataclass(frozen=True, slots=True)
class Snippet:
    """A message that was found, or the part of a long one."""

    id: str
    number: int
    role: str
    at: str
    """The day and time it was said, as the user reads it: 2026-01-31 18:05."""
    text: str
    start: int = 0
    end: int = 0
    size: int = 0
    """How long the message is of which this is a part."""
    tokens: int = 0
    score: float = 0.0
    because: str = ""
    is_recent: bool = False
    """So recent that the hour tells something; of older ones the day is enough."""

    @property
    def day(self) -> str:
        return self.at[:10]


def about(text: str) -> int:
    """About what a text takes. Enough to pack by: what is packed is counted as it is sent, and packed again."""
    plain = len(text.encode("ascii", "ignore"))
    return math.ceil(plain * PER_LETTER + (len(text) - plain) * PER_SIGN)


def pack(ranked: Sequence[Snippet], room: int) -> tuple[list[Snippet], list[Snippet]]:
    """What fits, taken in the order of rank, and what does not. What is too long is passed over, not what follows."""
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


def told(snippets: Sequence[Snippet]) -> str:
    """The snippets, in order of time, as one text."""
    lines = [BEGINS]
    before: Snippet | None = None
    for group in _by_message(snippets):
        if before is None or group[0].day != before.day:
            lines.append(f"[{_when(group[0], before)}]")
        before = group[0]
        lines.append(f"#{group[0].number} {_label(group[0])}{_joined(group)}")
    return "\n".join([*lines, ENDS])


def _when(snippet: Snippet, before: Snippet | None) -> str:
    """The day, with its year where that is another one: there may be a day for every third message."""
    if snippet.is_recent:
        return snippet.at
    return snippet.day[5:] if before is not None and before.day[:5] == snippet.day[:5] else snippet.day


def _by_message(snippets: Sequence[Snippet]) -> list[list[Snippet]]:
    groups: list[list[Snippet]] = []
    for each in snippets:
        if groups and groups[-1][0].number == each.number:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _label(snippet: Snippet) -> str:
    return f"{snippet.role}: " if snippet.role else ""


def _joined(parts: Sequence[Snippet]) -> str:
    """Parts of one message, with a sign where something is left out; a whole message as it was said, to the last
    line break."""
    if len(parts) == 1 and parts[0].end - parts[0].start == parts[0].size:
        return parts[0].text
    text, at = "", 0
    for part in parts:
        text += part.text if part.start == at else f" … {part.text}" if text else f"… {part.text}"
        at = part.end
    return text.strip() + (" …" if at < parts[-1].size else "")


def shared_out(tokens: int, weights: Sequence[int]) -> list[int]:
    """A whole number of tokens in proportion to weights: nothing is lost, nothing is made up."""
    total, spent, out, run = sum(weights) or 1, 0, [], 0
    for weight in weights:
        run += weight
        share = tokens * run // total - spent
        spent += share
        out.append(share)
    if out:
        out[-1] += tokens - spent
    return out
