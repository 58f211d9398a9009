"""Ledger: what a summary leaves out, quoted by message number: `#57: the budget is 12,000 € · never on Sundays`.

An item is a sentence of its message, word for word on one line; only its end may be cut. A short answer has what it
answers before it: `#2 assistant: How large is the hall? → #3: 640 m²`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from recto.summary.evidence import is_denied
from recto.summary.truncation import CountTokens, cut_text

SEPARATOR, ANSWER_SIGN = " · ", " → "
_LINE = re.compile(r"#(\d+)(?: (assistant|tool))?: (.+)")
_ANSWERED = re.compile(r"#(\d+)(?: (assistant|tool))?: (.+?) → (#\d+: .+)")
_MAX_ITEM = 300
# What binds goes first: so much of it is added to how likely a sentence is needed, and more for what users deny, of
# which readers found a third binding, and a tenth of what else users say.
_BINDS, _DENIED = 0.5, 0.25


class AnsweredQuestion(NamedTuple):
    """What a short answer answers."""

    number: int
    text: str
    role: str = "assistant"


class KeyStatement(Struct, frozen=True):
    """A sentence of a message that whoever goes on may need."""

    number: int
    """Of its message."""
    role: str
    text: str
    worth: float = 0.0
    """How likely it is needed."""
    binds: float = 0.0
    """How likely it limits what may be done or said later."""
    question: AnsweredQuestion | None = None

    @property
    def key(self) -> tuple[int, str]:
        return self.number, self.text

    @property
    def rank(self) -> float:
        forbids = self.role == "user" and is_denied(self.text)
        return self.worth + _BINDS * self.binds + _DENIED * forbids

    @property
    def item(self) -> str:
        return cut_text(plain_item(self.text), _MAX_ITEM)

    @property
    def place(self) -> str:
        """The sentence, and who says it if that is not the user."""
        return self.text if self.role == "user" else f"{self.role}: {self.text}"


def plain_item(text: str) -> str:
    """On one line, and never read as several."""
    text = " ".join(text.split())
    text = text.strip(SEPARATOR + ANSWER_SIGN) or text
    while SEPARATOR in text or ANSWER_SIGN in text:
        text = text.replace(SEPARATOR, "; ").replace(ANSWER_SIGN, " -> ")
    return text


def ledger_lines(statements: Sequence[KeyStatement], limit: int, count: CountTokens) -> tuple[str, ...]:
    """The most needed statements that take at most `limit` tokens together, as lines in the order of the messages."""
    chosen: set[int] = set()
    left = limit
    for at in sorted(range(len(statements)), key=lambda at: (-statements[at].rank, statements[at].number)):
        cost = count(_line([statements[at]])) + 1
        if cost <= left:
            chosen.add(at)
            left -= cost
    by_message: dict[tuple[int, str], list[KeyStatement]] = {}
    for each in sorted((statements[at] for at in sorted(chosen)), key=lambda each: each.number):
        by_message.setdefault((each.number, each.role), []).append(each)
    return tuple(map(_line, by_message.values()))


def _line(statements: Sequence[KeyStatement]) -> str:
    first = statements[0]
    asked = next((each.question for each in statements if each.question), None)
    line = f"{_head(first.number, first.role)}{SEPARATOR.join(each.item for each in statements)}"
    if asked is None or first.role != "user":
        return line
    question = KeyStatement(asked.number, asked.role, asked.text).item
    return f"{_head(asked.number, asked.role)}{question}{ANSWER_SIGN}{line}"


def _head(number: int, role: str) -> str:
    return f"#{number}: " if role == "user" else f"#{number} {role}: "


def ledger_quotations(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """The number of a message, who says it, and an item of it."""
    for line in lines:
        if match := _ANSWERED.fullmatch(line):
            yield int(match[1]), match[2] or "user", match[3]
            yield from ledger_quotations([match[4]])
        elif match := _LINE.fullmatch(line):
            for item in match[3].split(SEPARATOR):
                yield int(match[1]), match[2] or "user", item


def ledger_items(lines: Iterable[str]) -> list[tuple[int, str]]:
    """The items of a ledger's lines, each with the number of its message."""
    return [(number, item) for number, _, item in ledger_quotations(lines)]


def ledger_rows(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """As `ledger_quotations`, for people to read: an answer has its question before it, in one row."""
    for line in lines:
        match = _ANSWERED.fullmatch(line)
        for at, (number, role, item) in enumerate(ledger_quotations([match[4] if match else line])):
            yield number, role, f"{match[3]}{ANSWER_SIGN}{item}" if match and not at else item


def parse_ledger(lines: Iterable[str]) -> list[KeyStatement]:
    """The statements in a ledger's lines."""
    found = []
    for line in lines:
        match = _ANSWERED.fullmatch(line)
        asked = AnsweredQuestion(int(match[1]), match[3], match[2] or "user") if match else None
        for at, (number, role, item) in enumerate(ledger_quotations([match[4] if match else line])):
            found.append(KeyStatement(number, role, item, question=None if at else asked))
    return found


def parse_place(place: str, number: int) -> KeyStatement:
    role, _, text = place.partition(": ")
    return (
        KeyStatement(number, role, text)
        if text and role in ("assistant", "tool")
        else KeyStatement(number, "user", place)
    )
