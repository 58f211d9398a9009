"""What of a message is worth remembering by itself: sentences in which users tell lasting things about themselves,
their people, their work and their wishes. Rather too little: junk is worse than nothing. Knows no store.

The scorer says how likely a sentence tells something lasting; closed classes of words say whether it is about the user,
and whether it depends on the day, on a condition or on what was said before. A sentence must also name somebody or
something, or have a word for what lasts: an allergy, a birthday, a budget.
"""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from recto.search.terms import UNSPACED_RUN
from recto.sentences.features import FEATURES, PlainMessage, read_conversation
from recto.sentences.scorer import LASTING, scores
from recto.sentences.segments import is_question
from recto.sentences.words import tables, word_class, words_in
from recto.vault.question import language_of

# What is longer was pasted, or is a task.
MAX_CHARS, MAX_LINES = 700, 4
MIN_WORDS, MAX_WORDS = 3, 32
# Of the sentences that pass the other rules and are so likely, readers found seven of ten lasting, on authors that the
# scorer was not fitted on (`bench/summary_data`); of all sentences of users, one of seven.
LIKELY = 0.2
# A sentence is about what is among its first words. A plain one is short and begins with the user.
_FIRST_WORDS, _MAX_PLAIN = 3, 12
_PASSING = ("days", "weekdays", "conditions", "second_person")
_STOPS = (".", "。", "।", "۔")
_NAMES = FEATURES.index("names")
# In German all nouns have capitals.
_LEAST_NAMES, _LEAST_NAMES_DE = 1, 2
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# "line 40", "Aufgabe 3": a part of what is at hand. Four digits are a year.
_NUMBERED = re.compile(r"(?<=[^\W\d_]{2}) #?\d{1,3}(?=[.,;:)]|$)")
_NOT_PROSE = re.compile(r"""[{}<>|=`"“”„«»]|\w\(|\t|:\s|://""")


class UserStatement(Struct, frozen=True):
    """A sentence of a user's message that is the user's own and may be worth remembering."""

    text: str
    is_asked: bool
    """Whether the user asks for it to be remembered."""
    likelihood: float = 0.0
    """Of being lasting, as the scorer sees it in its message."""
    names: int = 0

    @property
    def leans(self) -> bool:
        """Whether it cannot be understood alone."""
        return _is_in("pointing", self._first(_FIRST_WORDS))

    @property
    def passes(self) -> bool:
        """Whether it is no whole sentence, or depends on the day, a condition, the listener or a part of the work."""
        if not self.text.endswith(_STOPS) or _NUMBERED.search(self.text):
            return True
        return any(_is_in(each, self.text) for each in _PASSING)

    @property
    def is_own(self) -> bool:
        """Whether it is about the user."""
        return _is_in("first_person", self._first(_FIRST_WORDS))

    @property
    def is_likely(self) -> bool:
        return self.likelihood >= LIKELY

    @property
    def tells(self) -> bool:
        """Whether it tells something lasting."""
        if self.leans or self.passes:
            return False
        if _is_in("lasting", self.text) and _word_count(self.text) <= _MAX_PLAIN:
            return self.is_own or self.names > 0 or any(map(str.isdigit, self.text))
        return self.is_own and self._is_named and (self.is_likely or self._is_plain)

    @property
    def _is_named(self) -> bool:
        """Whether it names something. Scripts without capitals cannot show it."""
        least = _LEAST_NAMES_DE if language_of(self.text) == "de" else _LEAST_NAMES
        return self.names >= least or (self.text.lower() == self.text.upper() and self.is_likely)

    @property
    def _is_plain(self) -> bool:
        """ "My sister lives in Graz." """
        is_own = _is_in("first_person", self._first(1)) and not _is_in("pointing", self.text)
        return is_own and _word_count(self.text) <= _MAX_PLAIN

    def _first(self, count: int) -> str:
        found = list(_WORD.finditer(self.text[:200]))[:count]
        return self.text[: found[-1].end()] if found else ""


def _is_in(name: str, text: str) -> bool:
    return word_class(name).is_in(words_in(text), text)


def own_statements(text: str) -> Iterator[UserStatement]:
    """The user's own sentences: no questions, no code, tables or quotations, nothing of a text that was pasted."""
    if len(text) > MAX_CHARS or text.count("\n") >= MAX_LINES:
        return
    said, rows = read_conversation([PlainMessage("user", text)])
    for sentence, row, likelihood in zip(said, rows, scores(rows, LASTING), strict=True):
        own = sentence.segment.text
        told = without_request(own)
        if (
            sentence.segment.kind != "prose"
            or _NOT_PROSE.search(told)
            or is_question(told)
            or told.endswith(("…", ":", "："))
        ):
            continue
        if MIN_WORDS <= _word_count(told) <= MAX_WORDS:
            yield UserStatement(told[0].upper() + told[1:], told != own, likelihood, int(row[_NAMES]))


def without_request(sentence: str) -> str:
    """What the user asks to remember: "remember that I am Ada" is "I am Ada", and "I am Ada, remember that." too. Other
    sentences stay as they are."""
    before, after = _requests()
    asked = before.match(sentence)
    if asked and asked.end() < len(sentence):
        return sentence[asked.end() :]
    asked = after.search(sentence)
    return sentence[: asked.start()] + "." if asked and asked.start() else sentence


@cache
def _requests() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Before a statement, and after it."""

    def any_of(name: str) -> str:
        words = {word for each in tables()[name].values() for word in each}
        return "|".join(
            re.escape(word).replace("_", r"\s").replace("'", "['’]") for word in sorted(words, reverse=True)
        )

    please = rf"(?:(?:{any_of('please')})[\s,]*+)?"
    asks = rf"{please}(?:{any_of('requests')})"
    own = rf"(?=(?:{any_of('first_person')})(?:\b|(?<=[^\x00-\u2fff])))"
    told = rf"(?:[\s,]*+(?:{any_of('that')})\s++|\s*+[:：,，、]\s*+|\s*+{own})"
    before = rf"{asks}(?:[\s,]*+(?:{any_of('please')}))?{told}"
    after = rf"[,;，、] ?{asks}(?: (?:{any_of('pointing')}))?[.!。！]*$"
    return re.compile(before, re.IGNORECASE), re.compile(after, re.IGNORECASE)


def _word_count(text: str) -> int:
    """Scripts without spaces have about two characters to a word."""
    return len(text.split()) + sum(map(len, UNSPACED_RUN.findall(text))) // 2


def learnable(text: str) -> Iterator[str]:
    """The statements of a user's message that are worth remembering, word for word."""
    for each in own_statements(text):
        if not each.leans and (each.is_asked or each.tells):
            yield each.text
