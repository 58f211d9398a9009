"""Source lines: the messages, or lines of a former summary, that an extractive summary selects sentences from, and
their sentences. Does not know how much a sentence matters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

from msgspec import Struct

from recto.summary.machine_output import FENCES, MIN_CELL_ROWS, table_rows
from recto.summary.model_orders import SOMEBODY
from recto.summary.pasted_text import quotation_runs, spoken_parts
from recto.summary.sentences import (
    tagged_sentences,
    terms,
)
from recto.summary.truncation import leading_lines, trailing_lines

USER, ASSISTANT, TOOL = "User: ", "Assistant: ", "Tool: "
FORMER_SUMMARY = -1
"""The line number of sentences that are in the summary already."""

OWN_DISTANCE = 2
"""From what the user asks over the reply to what he takes of it himself."""

SentenceKey = tuple[int, int]
"""Number of the line, and position of the sentence in it."""

# How much is read: of all lines together, and of one of them.
_MAX_CHARACTERS, _MAX_SENTENCES = 4_000_000, 20_000
_MIN_CHARACTERS_OF_LINE = 500
# Fenced code with no more lines than this is a command, not a listing.
_MAX_COMMAND_LINES = 2


class SourceLine(Struct, frozen=True, gc=False):
    """A message, or a line of a former summary. Its `weight` multiplies the score of its sentences."""

    label: str
    text: str
    weight: float
    is_task: bool = False
    """At least one sentence of it must be in the summary."""
    number: int = 0
    """Shown where the order of the lines does not tell when this was said."""
    day: date | None = None
    """When it was said, to tell which day "tomorrow" is."""
    is_settled: bool = False
    """What it asks was answered or done."""
    speaker: str | None = None
    """Whom a line of a former summary quotes. Of messages, their sentences tell."""
    is_accepted: bool = False
    """Whether the user agrees to what it proposes."""
    options: tuple[str, ...] = ()
    """What an assistant's message lists to choose from, or what the message before the user's does."""
    chosen: tuple[int, ...] = ()
    """Which of these the user takes."""
    own_question: str = ""
    """What the user asked or listed before the last reply, of which he now takes something: "Train or car?"."""
    is_answer: bool = False
    """Whether the message before it asks something."""
    is_small_talk: bool = False
    """Whether the reply takes it for that, or it is such a reply."""
    is_wanted: bool = False
    """It tells of what the user wants kept above all."""
    repeated: frozenset[str] = frozenset()
    """The terms of the user's message before an assistant's."""
    is_proposal: bool = False
    """Whether an assistant lists what could be, and the user takes nothing of it."""
    is_document: bool = False
    """Whether a tool returned reading matter: sentences of others, rather than what came out."""
    has_commands: bool = False
    """Whether commands between its fences are meant for the user, rather than told by a work log."""
    asked: frozenset[str] | None = None
    """The terms of the question that an assistant's message answers, unless the user takes the answer."""
    is_done: bool = False
    """Whether an assistant answers what the user asks or orders: that it was done is told by the order."""
    is_step: bool = False
    """Whether an assistant says it beside a call of a tool, of which a work log tells."""
    is_former: bool = False
    """Whether a former summary told it: it was worth telling before."""
    is_person: bool = False
    """Whether who answers the user is a person: what both say weighs the same."""
    is_aside: bool = False
    """Whether it is asked or answered beside the matter of the conversation."""

    def heading(self, speaker: str | None = None) -> str:
        """The label as it is written where it quotes a speaker."""
        if not self.label:
            return ""
        number = f" (#{self.number})" if self.number else ""
        quoting = "" if speaker is None else f", quoting {speaker}".rstrip()
        return f"{self.label[:-2]}{number}{quoting}: "


class LineSentence(Struct, frozen=True, gc=False):
    """One sentence of a line. There are many, and they are in no cycle."""

    position: int
    text: str
    terms: frozenset[str]
    is_code: bool = False
    speaker: str | None = None
    """Whom the author of the line quotes; None for his own words."""


class ScoredSentence(Struct, frozen=True, gc=False):
    """A sentence that may be in the summary."""

    line: int
    position: int
    text: str
    terms: frozenset[str]
    score: float
    speaker: str | None = None

    @property
    def key(self) -> SentenceKey:
        return self.line, self.position


@dataclass(slots=True)
class LineReader:
    """Splits lines into sentences on demand. The same line always gives the same positions."""

    lines: Sequence[SourceLine]
    limit: int = field(init=False)
    _cache: dict[int, list[LineSentence]] = field(default_factory=dict)
    _places: dict[int, dict[int, LineSentence]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_long = sum(len(line.text) for line in self.lines) > _MAX_CHARACTERS
        self.limit = max(_MIN_CHARACTERS_OF_LINE, _MAX_CHARACTERS // len(self.lines)) if is_long else _MAX_CHARACTERS

    def sentences(self, line: int) -> list[LineSentence]:
        """The sentences of a line; of a very long text a sample from all over it."""
        text, limit = self.lines[line].text, self.limit
        ends = (text,) if len(text) <= limit else (leading_lines(text, limit // 2), trailing_lines(text, limit // 2))
        # an empty sentence after each end leaves a gap in the positions: only neighbours are joined again
        found = [sentence for end in ends for sentence in (*self._attributed(end, line), ("", False, None))]
        step = len(found) // _MAX_SENTENCES + 1
        return [
            LineSentence(at, sentence, terms(sentence), is_code, speaker)
            for at, (sentence, is_code, speaker) in zip(range(0, len(found), step), found[::step], strict=True)
            if sentence
        ]

    def _attributed(self, text: str, line: int) -> Iterator[tuple[str, bool, str | None]]:
        """Sentences with their speakers; what two of them say is not joined either."""
        source = self.lines[line]
        parts = [(source.speaker, text)]
        if source.label and source.speaker is None:
            parts = [(part.speaker, part.text) for part in spoken_parts(text)]
        for at, (speaker, said) in enumerate(parts):
            if at:
                yield "", False, None
            tagged = _tag_listings(said)
            quoted = quotation_runs([sentence for sentence, _ in tagged]) if source.label and speaker is None else ()
            for number, (sentence, is_code) in enumerate(tagged):
                yield sentence, is_code, SOMEBODY if number in quoted else speaker

    def cached_sentences(self, line: int) -> list[LineSentence]:
        """The same, cached for lookups around a sentence."""
        if line not in self._cache:
            self._cache[line] = self.sentences(line)
        return self._cache[line]

    def sentence_at(self, line: int, position: int) -> LineSentence | None:
        if line not in self._places:
            self._places[line] = {sentence.position: sentence for sentence in self.cached_sentences(line)}
        return self._places[line].get(position)


def _tag_tables(found: Sequence[tuple[str, bool]]) -> Sequence[tuple[str, bool]]:
    rows = table_rows([sentence for sentence, _ in found])
    return [(sentence, is_code or at in rows) for at, (sentence, is_code) in enumerate(found)] if rows else found


def _tag_listings(text: str) -> Sequence[tuple[str, bool]]:
    """Sentences, and whether each belongs to a listing; a command between fences does not."""
    found = _tag_tables(tagged_sentences(text)) if text.count("\n") >= MIN_CELL_ROWS else tagged_sentences(text)
    if not any(is_code for _, is_code in found):
        return found
    tagged: list[tuple[str, bool]] = []
    for is_code, run in groupby(found, key=lambda sentence: sentence[1]):
        lines = list(run)
        code_lines = sum(not line.startswith(FENCES) for line, _ in lines)
        tagged += [(line, is_code and code_lines > _MAX_COMMAND_LINES) for line, _ in lines]
    return tagged
