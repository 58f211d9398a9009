"""Statements: compared by their words, and those of a user's message that are worth remembering by themselves.

Two statements may say the same, or the newer may contradict the older. Worth remembering are sentences in which users
tell lasting things about themselves, their people, their work and their wishes. Rather too little: junk is worse than
nothing. The scorer says how likely a sentence tells something lasting; closed classes of words say whether it is about
the user, and whether it depends on the day, on a condition or on what was said before. A sentence must also name
somebody or something, or have a word for what lasts: an allergy, a birthday, a budget. Knows no store and no index.
"""

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache

from msgspec import Struct

from recto.search.terms import STOP_WORDS, UNSPACED_RUN, stem_word, words
from recto.sentences.features import FEATURES, PlainMessage, read_conversation
from recto.sentences.scorer import LASTING, scores
from recto.sentences.segments import is_question
from recto.sentences.words import alternatives, phrases, tables, word_class, words_in
from recto.store.fact import FactKind
from recto.vault.question import language_of

_KINDS: dict[FactKind, str] = {
    "decision": "decisions",
    "preference": "preferences",
    "person": "people",
    "project": "projects",
}


def guessed_kind(text: str) -> FactKind:
    """The first kind whose words a statement holds."""
    return next((kind for kind, name in _KINDS.items() if phrases(name).search(text)), "other")


# Statements with this share of their words in common, and the same numbers, say the same.
SAME = 0.85
# The newer of two statements may contradict the older if the shorter shares this much of its words, or this much where
# it says itself that something has changed.
ABOUT_THE_SAME, SAID_TO_CHANGE = 0.5, 0.25
# Whom a statement is about stands among its first words.
SUBJECT_WORDS = 4
_FULL_NAME = re.compile(r"\b[^\W\d_a-z]\w+(?:[ -][^\W\d_a-z]\w+)+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@lru_cache(maxsize=4096)
def fact_stems(text: str) -> frozenset[str]:
    """The words that a statement is about, in any form."""
    return frozenset(stem_word(word) for word in words(text) if word not in STOP_WORDS)


def says_same(one: str, other: str) -> bool:
    """Whether two statements say the same in nearly the same words."""
    if numbers_in(one) != numbers_in(other) or is_negated(one) != is_negated(other):
        return False
    ours, theirs = fact_stems(one), fact_stems(other)
    if not ours or not theirs:
        return one.casefold().strip(" .!") == other.casefold().strip(" .!")
    return len(ours & theirs) >= SAME * len(ours | theirs)


def may_contradict(newer: str, older: str) -> bool:
    """Whether two statements are about the same thing and say something else of it. Rather once too often: both are
    shown, and the user decides."""
    ours, theirs = _topic_stems(newer), _topic_stems(older)
    shared = len({*ours} & {*theirs})
    least = min(len(ours), len(theirs))
    if not shared or says_same(newer, older) or not may_share_subject(newer, older):
        return False
    if ours[0] not in theirs and theirs[0] not in ours:  # what a statement is about comes first in it
        return False
    return shared >= (SAID_TO_CHANGE if phrases("changes").search(newer) else ABOUT_THE_SAME) * least


def may_share_subject(one: str, other: str) -> bool:
    """Two statements with full names are about the same only if they share one: Anna Weber is not Bruno Weber."""
    ours, theirs = (full_names(" ".join(text.split()[:SUBJECT_WORDS])) for text in (one, other))
    return not ours or not theirs or bool(ours & theirs)


def is_about_others(text: str, names: Collection[str]) -> bool:
    """Whether a statement names somebody who shares a part of one of these full names, and nobody who may be meant. A
    capital at the beginning of a sentence may have made a name longer than it is."""
    if not names:
        return False
    asked, told = ([frozenset(_parts(name)) for name in some] for some in (names, full_names(text)))
    pairs = [(one, other) for one in asked for other in told]
    may_be_meant = any(one <= other or other <= one for one, other in pairs)
    return not may_be_meant and any(one & other for one, other in pairs)


def full_names(text: str) -> set[str]:
    """Scripts without capitals have none."""
    found = _FULL_NAME.findall(text)
    return {name for name in found if all(part[0].isupper() for part in _parts(name))}


def _parts(name: str) -> list[str]:
    return name.replace("-", " ").split(" ")


@lru_cache(maxsize=4096)
def _topic_stems(text: str) -> tuple[str, ...]:
    """In their order, without numbers, which are what changes, and without the words that only say that it did."""
    found = (stem_word(word) for word in words(phrases("changes").sub(" ", text)) if word not in STOP_WORDS)
    topical = (stem for stem in found if stem not in _adding() and not any(char.isdigit() for char in stem))
    return tuple(dict.fromkeys(topical))


def numbers_in(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def is_negated(text: str) -> bool:
    return phrases("denials").search(text) is not None


def without_user(text: str) -> str:
    """Without what a model calls the user, who says "I"."""
    return phrases("the_user").sub(" ", text)


@cache
def _adding() -> frozenset[str]:
    """Verbs of which many objects are true at once."""
    return frozenset(stem_word(word) for words in tables()["adding"].values() for word in words)


# -- what a user says

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
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
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
        found = list(_LETTERS.finditer(self.text[:200]))[:count]
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

    please = rf"(?:(?:{alternatives('please')})[\s,]*+)?"
    asks = rf"{please}(?:{alternatives('requests')})"
    own = rf"(?=(?:{alternatives('first_person')})(?:\b|(?<=[^\x00-\u2fff])))"
    told = rf"(?:[\s,]*+(?:{alternatives('that')})\s++|\s*+[:：,，、]\s*+|\s*+{own})"
    before = rf"{asks}(?:[\s,]*+(?:{alternatives('please')}))?{told}"
    after = rf"[,;，、] ?{asks}(?: (?:{alternatives('pointing')}))?[.!。！]*$"
    return re.compile(before, re.IGNORECASE), re.compile(after, re.IGNORECASE)


def _word_count(text: str) -> int:
    """Scripts without spaces have about two characters to a word."""
    return len(text.split()) + sum(map(len, UNSPACED_RUN.findall(text))) // 2


def learnable(text: str) -> Iterator[str]:
    """The statements of a user's message that are worth remembering, word for word."""
    for each in own_statements(text):
        if not each.leans and (each.is_asked or each.tells):
            yield each.text
