"""Source lines: the messages, or lines of a former summary, that an extractive summary selects sentences from; their
sentences, and which of these cannot be understood without another. Does not know how much a sentence matters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import NamedTuple

import msgspec
from msgspec import Struct

from recto.chat.priority import CHATTER, NORMAL
from recto.summary.choices import chosen_options
from recto.summary.machine_output import FENCES, is_machine_made, is_noise
from recto.summary.model_orders import SOMEBODY
from recto.summary.pasted_text import quotation_runs, spoken_parts
from recto.summary.quotation import count_topic_words
from recto.summary.sentences import (
    IS_UNSPACED,
    is_heading,
    is_question,
    leans_back,
    rate_sentence,
    refers_back,
    tagged_sentences,
    terms,
    word_set,
)
from recto.summary.statements import accepts, acknowledges, agrees, is_draft, is_empty_offer, is_reaction, says_little
from recto.summary.truncation import leading_lines, trailing_lines
from recto.summary.worth import stands_alone

USER, ASSISTANT, TOOL = "User: ", "Assistant: ", "Tool: "
FORMER_SUMMARY = -1
"""The line number of sentences that are in the summary already."""

SentenceKey = tuple[int, int]
"""Number of the line, and position of the sentence in it."""

# How much is read: of all lines together, and of one of them.
_MAX_CHARACTERS, _MAX_SENTENCES = 4_000_000, 20_000
_MIN_CHARACTERS_OF_LINE = 500
# Fenced code with no more lines than this is a command, not a listing.
_MAX_COMMAND_LINES = 2
# Longer sentences are not added as context.
_MAX_CONTEXT = 240
_MAX_LINES_TO_ANSWER, _MAX_SENTENCES_TO_ANSWER = 8, 5
_MAX_ELLIPTIC_SPACES, _MAX_ELLIPTIC_CHARACTERS = 7, 12
_MAX_REFUSAL = 60
# Terms that tell a topic have so many letters; a sentence with fewer topic words is understood beside another.
_MIN_TOPIC, _MIN_TOPICS, _MAX_AGREEMENT, _MAX_ANSWER_TOPICS = 5, 2, 4, 3
# Two sentences that speak of somebody need not speak of the same, in terms.
_ANYBODY = word_set(
    "everyon everybo someone somebod anyone anybody nobody everyth somethi anythin nothing jemand niemand alles etwas "
    "nichts alguien nadie todos quelque personn"
)
_MAX_SENTENCES_SINCE = 2
# A user's message that is no longer than this is one thought: what it begins with says what it is about.
_SHORT_MESSAGE = 160
# An option is found again by so much of it.
_MIN_OPTION = 40
_YES_OR_NO = re.compile(
    r"(?:yes|no|yep|nope|ja|nein|doch|oui|non|s[ií])\b|是|不是|对|はい|いいえ|네|아니", re.IGNORECASE
)
# What is right comes next: "Oh wait, I must correct."
_ANNOUNCES = re.compile(
    r"(?:(?:oh|ah|no|sorry|ups|oops|perdón|pardon)[, ]+)*(?:wait|correction"
    r"|i (?:must|have to|need to) correct\b[^\d]{0,24}"
    r"|small correction|moment|ich muss mich korrigieren|kleine korrektur|perdón|me corrijo|pardon|je (?:me )?corrige"
    r"|wait, i (?:must|have to) correct[^\d]{0,24})[.!:,…]*",
    re.IGNORECASE,
)
_NAMED = re.compile(r"""(?<=[a-zäöüéíóú,] )[A-ZÄÖÜÉ]\w|["“„«]|\d""")
_FIGURE = re.compile(r"[\d.,:]+\D{0,3}$")
_REFUSAL = re.compile(r"(?:no|nope|nein|non|not|nicht|pas)\b|不|いや|いいえ|아니", re.IGNORECASE)
MIN_TOPIC_TERM = 5
"""Terms with fewer letters do not tell what somebody talks about."""


class SourceLine(Struct, frozen=True):
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
    about: frozenset[str] = frozenset()
    """The terms that the user uses right before and after an assistant's message: what the two talk about."""
    is_accepted: bool = False
    """Whether the user agrees to what it proposes."""
    options: tuple[str, ...] = ()
    """What an assistant's message lists to choose from, or what the message before the user's does."""
    chosen: tuple[int, ...] = ()
    """Which of these the user takes."""
    is_answer: bool = False
    """Whether the message before it asks something."""
    is_small_talk: bool = False
    """Whether the reply takes it for that, or it is such a reply."""
    repeated: frozenset[str] = frozenset()
    """The terms of the user's message before an assistant's."""
    is_former: bool = False
    """Whether a former summary told it: it was worth telling before."""

    def heading(self, speaker: str | None = None) -> str:
        """The label as it is written where it quotes a speaker."""
        if not self.label:
            return ""
        number = f" (#{self.number})" if self.number else ""
        quoting = "" if speaker is None else f", quoting {speaker}".rstrip()
        return f"{self.label[:-2]}{number}{quoting}: "


class LineSentence(NamedTuple):
    """One sentence of a line. A named tuple, since there are many and it is created in half the time."""

    position: int
    text: str
    terms: set[str]
    is_code: bool = False
    speaker: str | None = None
    """Whom the author of the line quotes; None for his own words."""


class ScoredSentence(Struct, frozen=True):
    """A sentence that may be in the summary."""

    line: int
    position: int
    text: str
    terms: set[str]
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
        return next((sentence for sentence in self.cached_sentences(line) if sentence.position == position), None)


def _tag_listings(text: str) -> Sequence[tuple[str, bool]]:
    """Sentences, and whether each belongs to a listing; a command between fences does not."""
    found = tagged_sentences(text)
    if not any(is_code for _, is_code in found):
        return found
    tagged: list[tuple[str, bool]] = []
    for is_code, run in groupby(found, key=lambda sentence: sentence[1]):
        lines = list(run)
        code_lines = sum(not line.startswith(FENCES) for line, _ in lines)
        tagged += [(line, is_code and code_lines > _MAX_COMMAND_LINES) for line, _ in lines]
    return tagged


class SentenceContext(Struct):
    """The other sentences that one needs to be understood: the one it refers to, its question, its answer, its
    correction. Looked up when a sentence is selected, since most never are."""

    reader: LineReader
    corrections: Mapping[SentenceKey, ScoredSentence] = msgspec.field(default_factory=dict)

    @property
    def summary_corrections(self) -> list[ScoredSentence]:
        """Corrections of sentences in the former summary."""
        return [sentence for (line, _), sentence in self.corrections.items() if line == FORMER_SUMMARY]

    def of(self, sentence: ScoredSentence) -> list[ScoredSentence]:
        """The sentences that it needs, with a score of zero."""
        if sentence.key in self.corrections:
            return [self.corrections[sentence.key], *self._neighbours(sentence)]
        return list(self._neighbours(sentence))

    def following(self, sentence: ScoredSentence, size: int) -> Iterator[ScoredSentence]:
        """The prose after it in its line, up to `size` characters including the sentence itself."""
        size -= len(sentence.text)
        for other in self.reader.cached_sentences(sentence.line):
            if other.position > sentence.position:
                size -= len(other.text)
                is_own = other.speaker is None and not other.is_code
                if size < 0 or not is_own or is_noise(other.text) or is_machine_made(other.text):
                    return
                yield _unscored(sentence.line, other)

    def _neighbours(self, sentence: ScoredSentence) -> Iterator[ScoredSentence]:
        text, line, position = sentence.text, sentence.line, sentence.position
        source = self.reader.lines[line]
        if source.label == TOOL or is_machine_made(text):
            return
        if source.label == USER and source.chosen and (options := self._options(sentence)):
            yield from options
            return
        is_leaning = leans_back(text)
        is_thin = not is_question(text) and count_topic_words(text) < _MIN_TOPICS
        is_short = source.label == USER and len(source.text) <= _SHORT_MESSAGE and sentence.speaker is None
        needs_before = is_short or is_leaning or is_thin or refers_back(text)
        before = self._meaningful(line, position - 1) if needs_before else None
        if before and is_short and before.speaker is not None:
            before = None  # the words of somebody else
        if before is None and sentence.speaker is None and (is_leaning or (source.label == USER and _agrees_to(text))):
            before = self._said_before(sentence)
        if before:
            yield before
        is_opener = before is None and not position and (is_thin or _opens_message(text, is_short))
        is_opener = is_opener or _ANNOUNCES.fullmatch(text) is not None
        if (is_heading(text) or _is_refusal(text) or is_opener) and (after := self._meaningful(line, position + 1)):
            yield after
        if is_question(text) and sentence.speaker is None and not source.is_task and (answer := self._answer(sentence)):
            yield answer
        is_bare = before is None and says_little(text)
        is_short_answer = _is_elliptic(text) or (source.is_answer and count_topic_words(text) <= _MAX_ANSWER_TOPICS)
        said = self._question(sentence) if sentence.speaker is None and is_short_answer else None
        if is_bare and sentence.speaker is None and not said:
            said = self._corrected(sentence)
            # a figure alone answers a question, or is one of many
            said = said or (self._said_before(sentence) if not _FIGURE.match(text) else None)
        if said:
            yield said

    def _options(self, choice: ScoredSentence) -> list[ScoredSentence]:
        """The options that a sentence takes by their places in a list."""
        options, line = self.reader.lines[choice.line].options, self._other_speaker(choice.line, -1)
        taken = [options[at][:_MIN_OPTION] for at in chosen_options(choice.text, options)]
        said = self.reader.cached_sentences(line) if line is not None and taken else []
        return [_unscored(line or 0, found) for found in said if any(start in found.text for start in taken)]

    def _corrected(self, correction: ScoredSentence) -> ScoredSentence | None:
        """The sentence that it corrects."""
        for (line, position), later in self.corrections.items():
            if later.key == correction.key and line != FORMER_SUMMARY:
                found = self.reader.sentence_at(line, position)
                return _unscored(line, found) if found else None
        return None

    def _meaningful(self, line: int, position: int) -> ScoredSentence | None:
        found = self.reader.sentence_at(line, position)
        if not found or found.is_code or not _is_meaningful(found):
            return None
        is_empty = is_reaction(found.text) or agrees(found.text)
        is_empty = is_empty or (acknowledges(found.text) and count_topic_words(found.text) < _MIN_TOPICS)
        return None if is_empty else _unscored(line, found)

    def _answer(self, question: ScoredSentence) -> ScoredSentence | None:
        """The other speaker's first meaningful sentence after a question that ends its own message."""
        after = self.reader.sentence_at(question.line, question.position + 1)
        if after and not is_question(after.text):
            return None
        line = self._other_speaker(question.line, 1)
        if line is None:
            return None
        first = self.reader.cached_sentences(line)[:_MAX_SENTENCES_TO_ANSWER]
        own = [found for found in first if found.speaker is None and not is_draft(self.reader.lines[line].text)]
        answer = next((found for found in own if _is_meaningful(found) and not found.is_code), None)
        return _unscored(line, answer) if answer and not is_question(answer.text) else None

    def _question(self, answer: ScoredSentence) -> ScoredSentence | None:
        """The question at the end of the other speaker's last message, if the answer starts its own."""
        own = self.reader.cached_sentences(answer.line)
        if any(_is_meaningful(sentence) for sentence in own if sentence.position < answer.position):
            return None
        line = self._other_speaker(answer.line, -1)
        last = self.reader.cached_sentences(line)[-_MAX_SENTENCES_SINCE:] if line is not None else []
        asked = next(
            (found for found in reversed(last) if is_question(found.text) and found.text[0] not in "-*•"), None
        )
        return _unscored(line, asked) if line is not None and asked and _is_short_question(asked) else None

    def _said_before(self, sentence: ScoredSentence) -> ScoredSentence | None:
        """What this sentence is the first to answer in the other speaker's last message: the one that speaks of the
        same, one in bold, or the first."""
        own = self.reader.cached_sentences(sentence.line)
        if any(_is_meaningful(found) for found in own if found.position < sentence.position):
            return None
        line = self._other_speaker(sentence.line, -1)
        said = self.reader.cached_sentences(line) if line is not None else []
        said = [found for found in said if _is_meaningful(found) and not found.is_code and _tells(found.text)]
        topic = {term for term in sentence.terms if len(term) >= _MIN_TOPIC} - _ANYBODY
        found = max(said, key=lambda found: (len(topic & found.terms), "**" in found.text), default=None)
        if line is None or found is None or is_empty_offer(found.text) or is_draft(self.reader.lines[line].text):
            return None
        return _unscored(line, found) if _names_something(found.text) or topic & found.terms else None

    def _other_speaker(self, line: int, step: int) -> int | None:
        """The next line in this direction that another speaker wrote; tool results in between are skipped."""
        lines = self.reader.lines
        for other in range(line + step, line + step * _MAX_LINES_TO_ANSWER, step):
            if not 0 <= other < len(lines) or lines[other].label == lines[line].label:
                return None
            if lines[other].label != TOOL:
                return other
        return None


def _unscored(line: int, sentence: LineSentence) -> ScoredSentence:
    return ScoredSentence(line, sentence.position, sentence.text, sentence.terms, 0.0, sentence.speaker)


def _is_meaningful(sentence: LineSentence) -> bool:
    text = sentence.text
    return (
        len(text) <= _MAX_CONTEXT
        and not is_noise(text)
        and not is_machine_made(text)
        and rate_sentence(text) != CHATTER
    )


def _names_something(text: str) -> bool:
    """Whether a pronoun in the answer may stand for something in it that a reader wants to know."""
    return _NAMED.search(text) is not None or rate_sentence(text) > NORMAL


def _tells(text: str) -> bool:
    return stands_alone(text) and not acknowledges(text) and not is_reaction(text)


def _agrees_to(text: str) -> bool:
    """Whether it takes what the other said, and hardly says what that is."""
    return accepts(text) and count_topic_words(text) <= _MAX_AGREEMENT


def _opens_message(text: str, is_short: bool) -> bool:
    """Whether the next sentence says what this one is about: "Went weighing on Saturday. Hive 1 has 41 kg", "Setlist?
    75 minutes are about 16 songs"."""
    return count_topic_words(text) < (_MIN_TOPICS if is_question(text) else _MIN_TOPICS + is_short)


def _is_short_question(sentence: LineSentence) -> bool:
    text = sentence.text
    is_wanted = is_question(text) and not is_empty_offer(text)
    return is_wanted and len(text) <= _MAX_CONTEXT and rate_sentence(text) != CHATTER


def _is_refusal(text: str) -> bool:
    """The next sentence says what is wanted instead."""
    return len(text) <= _MAX_REFUSAL and _REFUSAL.match(text) is not None


def _is_elliptic(text: str) -> bool:
    """Too short to be understood alone, or a plain yes or no."""
    if _YES_OR_NO.match(text) or len(text) <= _MAX_ELLIPTIC_CHARACTERS:
        return True
    return text.count(" ") < _MAX_ELLIPTIC_SPACES and (text.isascii() or not IS_UNSPACED.search(text))
