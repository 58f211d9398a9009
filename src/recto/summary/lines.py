"""Lines and sentences: what was said, as a summary without a model reads it. Knows who spoke, not what it is worth."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from recto.summary.sentences import first_lines, last_lines, marked, terms

USER, ASSISTANT, TOOL = "User: ", "Assistant: ", "Tool: "
BEFORE = -1
"""The line of sentences that stand in the summary already."""

# How much is looked at: of all lines together, and of one of them.
_CHARACTERS, _SENTENCES = 4_000_000, 20_000
_LEAST_OF_A_LINE = 500
# Code of so many lines is a command rather than a listing.
_COMMAND = 2


@dataclass(frozen=True, slots=True)
class Line:
    """Where sentences come from: a message, or a line of a former summary. `favour` is what it lends to them."""

    label: str
    text: str
    favour: float
    is_wanted: bool = False
    """Something of it is to be in the summary, whatever else is."""


class Part(NamedTuple):
    """One sentence of a line, and where it stands in it. There are many: a tuple is made in half of the time."""

    place: int
    text: str
    terms: set[str]
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """One that may be in the summary."""

    line: int
    place: int
    text: str
    terms: set[str]
    worth: float

    @property
    def key(self) -> tuple[int, int]:
        return self.line, self.place


@dataclass(slots=True)
class Reader:
    """Lines taken apart when they are asked for; always alike, so that a place is a name."""

    lines: Sequence[Line]
    limit: int = field(init=False)
    _kept: dict[int, list[Part]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_long = sum(len(line.text) for line in self.lines) > _CHARACTERS
        self.limit = max(_LEAST_OF_A_LINE, _CHARACTERS // len(self.lines)) if is_long else _CHARACTERS

    def parts(self, at: int) -> list[Part]:
        """Its sentences; of a text that goes on and on only some, from all over it."""
        text, limit = self.lines[at].text, self.limit
        ends = (text,) if len(text) <= limit else (first_lines(text, limit // 2), last_lines(text, limit // 2))
        # a gap between the ends is a gap between the places: what is joined again must have been together
        found = [sentence for end in ends for sentence in (*_code_apart(end), ("", False))]
        step = len(found) // _SENTENCES + 1
        kept = [(place, *found[place]) for place in range(0, len(found), step) if found[place][0]]
        return [Part(place, text, terms(text), is_code) for place, text, is_code in kept]

    def again(self, at: int) -> list[Part]:
        """The same, kept for those who look around in a line."""
        if at not in self._kept:
            self._kept[at] = self.parts(at)
        return self._kept[at]

    def around(self, at: int, place: int) -> Part | None:
        """The sentence at that place, if there is one."""
        return next((part for part in self.again(at) if part.place == place), None)


def _code_apart(text: str) -> list[tuple[str, bool]]:
    """Sentences, and whether they are a piece of a listing; a command between fences is not."""
    found = marked(text)
    if not any(is_code for _, is_code in found):
        return found
    listed: list[tuple[str, bool]] = []
    for is_code, run in groupby(found, key=lambda each: each[1]):
        lines = list(run)
        said = sum(not line.startswith(("```", "~~~")) for line, _ in lines)
        listed += [(line, is_code and said > _COMMAND) for line, _ in lines]
    return listed
