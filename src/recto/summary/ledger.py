"""Ledger: what a summary omits, quoted by message number: `#57: the budget is 12,000 € · never on Sundays`.

An item is a sentence of its message, verbatim on one line; only its end may be cut. A short answer follows its
question: `#2 assistant: How large is the hall? → #3: 640 m²`. Set-aside items have lines of the same form, with `User:
…` if the message number is unknown.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from recto.summary.evidence import is_denied
from recto.summary.truncation import CountTokens, cut_text

SEPARATOR, ANSWER_SIGN = " · ", " → "
_LINE = re.compile(r"(?:#(\d+)(?: (assistant|tool))?|(User|Assistant|Tool)): (.+)")
_MAX_ITEM = 300
# Binding statements go first: this share of that probability is added to the probability that a sentence is needed, and
# more for users' negations, of which readers found a third binding, compared to a tenth of other sentences.
_BINDS, _DENIED = 0.5, 0.25


class KeyStatement(Struct, frozen=True):
    """A sentence of a message that may be needed to continue."""

    number: int
    """Of its message; 0 if unknown."""
    role: str
    text: str
    worth: float = 0.0
    binds: float = 0.0
    """The probability that it limits what may be done or said later."""
    question: Self | None = None
    """The question that it answers, if it is short."""

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
    def head(self) -> str:
        if not self.number:
            return f"{self.role.capitalize()}: "
        return f"#{self.number}: " if self.role == "user" else f"#{self.number} {self.role}: "

    @property
    def spoken(self) -> str:
        return f"{self.role.capitalize()}{f' (#{self.number})' if self.number else ''}: {self.text}"

    @property
    def place(self) -> str:
        """The sentence, and its speaker if that is not the user."""
        return self.text if self.role == "user" else f"{self.role}: {self.text}"


def plain_item(text: str) -> str:
    """On one line, and never parsed as several items."""
    text = " ".join(text.split())
    text = text.strip(SEPARATOR + ANSWER_SIGN) or text
    while SEPARATOR in text or ANSWER_SIGN in text:
        text = text.replace(SEPARATOR, "; ").replace(ANSWER_SIGN, " -> ")
    return text


def ledger_lines(statements: Sequence[KeyStatement], limit: int, count: CountTokens) -> tuple[str, ...]:
    """The most needed statements that fit in `limit` tokens together, as lines in message order."""
    items = [replace(each, text=each.item) for each in statements]
    chosen: list[int] = []
    for at in sorted(range(len(statements)), key=lambda at: (-statements[at].rank, statements[at].number)):
        cost = count(_line([items[at]])) + 1
        if cost <= limit:
            chosen.append(at)
            limit -= cost
    return lines_of(items[at] for at in sorted(chosen))


def lines_of(statements: Iterable[KeyStatement]) -> tuple[str, ...]:
    """One line per message, in order of time; separate lines if the number is unknown."""
    found: dict[str, list[KeyStatement]] = {}
    for each in sorted(statements, key=lambda each: each.number):
        found.setdefault(each.head if each.number else each.head + each.text, []).append(each)
    return tuple(map(_line, found.values()))


def _line(statements: Sequence[KeyStatement]) -> str:
    asked = next((each.question for each in statements if each.question and each.role == "user"), None)
    question = f"{asked.head}{asked.item}{ANSWER_SIGN}" if asked else ""
    return question + statements[0].head + SEPARATOR.join(each.text for each in statements)


def parse_ledger(lines: Iterable[str]) -> list[KeyStatement]:
    """The statements in lines; the first answer of a line has its question."""
    found = []
    for line in lines:
        question, sign, answer = line.partition(ANSWER_SIGN)
        asked = _parse_line(question) if sign else []
        answers = _parse_line(answer) if asked else []
        if answers and answers[0].number and answers[0].role == "user":
            found += [replace(answers[0], question=replace(asked[0], text=question.partition(": ")[2])), *answers[1:]]
        else:
            found += _parse_line(line)
    return found


def _parse_line(line: str) -> list[KeyStatement]:
    match = _LINE.fullmatch(line)
    if match is None:
        return []
    role = match[2] or (match[3] or "user").lower()
    return [KeyStatement(int(match[1] or 0), role, item) for item in match[4].split(SEPARATOR)]


def ledger_items(lines: Iterable[str]) -> list[KeyStatement]:
    return [each for said in parse_ledger(lines) for each in (said.question, said) if each]


def ledger_rows(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Message number, speaker and text for display, with an answer's question before it."""
    for each in parse_ledger(lines):
        yield each.number, each.role, f"{each.question.text}{ANSWER_SIGN}{each.text}" if each.question else each.text


def parse_place(place: str, number: int) -> KeyStatement:
    role, _, text = place.partition(": ")
    is_named = text and role in ("assistant", "tool")
    return KeyStatement(number, role, text) if is_named else KeyStatement(number, "user", place)
