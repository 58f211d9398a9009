"""Statements: compares them by their words, and finds those in a user's message that are worth remembering.

Two statements may say the same, or the newer may contradict the older. Worth remembering are lasting things that users
say about themselves, their people, their work and their wishes. Better too few: junk is worse than nothing. The scorer
estimates whether a sentence is lasting; closed classes of words show whether it is about the user, and whether it
depends on the day, on a condition or on earlier words. A sentence must also name somebody or something, or have a word
for what lasts: an allergy, a birthday, a budget. Knows no store and no index.
"""

import re
from collections.abc import Iterator
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
    """The first kind whose words a statement contains."""
    return next((kind for kind, name in _KINDS.items() if phrases(name).search(text)), "other")


# Statements with the same numbers and this share of words in common say the same.
SAME = 0.85
# The newer of two statements may contradict the older if the shorter shares this much of its words, or the smaller
# amount if it says that something has changed.
ABOUT_THE_SAME, SAID_TO_CHANGE = 0.5, 0.25
# The subject of a statement is among this many first words.
SUBJECT_WORDS = 4
_FULL_NAME = re.compile(r"\b[^\W\d_a-z]\w+(?:[ -][^\W\d_a-z]\w+)+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@lru_cache(maxsize=4096)
def fact_stems(text: str) -> frozenset[str]:
    return frozenset(stem_word(word) for word in words(text) if word not in STOP_WORDS)


def says_same(one: str, other: str) -> bool:
    """True if two statements say the same in nearly the same words."""
    if numbers_in(one) != numbers_in(other) or is_negated(one) != is_negated(other):
        return False
    ours, theirs = fact_stems(one), fact_stems(other)
    if not ours or not theirs:
        return one.casefold().strip(" .!") == other.casefold().strip(" .!")
    return len(ours & theirs) >= SAME * len(ours | theirs)


def may_contradict(newer: str, older: str) -> bool:
    """True if two statements say different things about the same subject. Errs toward True: both are shown, and the
    user decides."""
    ours, theirs = _topic_stems(newer), _topic_stems(older)
    shared = len({*ours} & {*theirs})
    least = min(len(ours), len(theirs))
    if not shared or says_same(newer, older) or not may_share_subject(newer, older):
        return False
    if ours[0] not in theirs and theirs[0] not in ours:  # the subject of a statement comes first
        return False
    return shared >= (SAID_TO_CHANGE if phrases("changes").search(newer) else ABOUT_THE_SAME) * least


def may_share_subject(one: str, other: str) -> bool:
    """False if both have full names but share none: Anna Weber is not Bruno Weber."""
    ours, theirs = (full_names(" ".join(text.split()[:SUBJECT_WORDS])) for text in (one, other))
    return not ours or not theirs or bool(ours & theirs)


def full_names(text: str) -> set[str]:
    """Empty for scripts without capitals."""
    found = _FULL_NAME.findall(text)
    return {name for name in found if all(part[0].isupper() for part in name.replace("-", " ").split(" "))}


@lru_cache(maxsize=4096)
def _topic_stems(text: str) -> tuple[str, ...]:
    """In order, without numbers, which are what changes, and without the words that merely announce the change."""
    found = (stem_word(word) for word in words(phrases("changes").sub(" ", text)) if word not in STOP_WORDS)
    topical = (stem for stem in found if stem not in _adding() and not any(char.isdigit() for char in stem))
    return tuple(dict.fromkeys(topical))


def numbers_in(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def is_negated(text: str) -> bool:
    return phrases("denials").search(text) is not None


def without_user(text: str) -> str:
    """Remove a model's words for the user, who says "I"."""
    return phrases("the_user").sub(" ", text)


@cache
def _adding() -> frozenset[str]:
    """Verbs with several simultaneous objects."""
    return frozenset(stem_word(word) for words in tables()["adding"].values() for word in words)


# -- what a user says

# Longer messages were pasted, or are tasks.
MAX_CHARS, MAX_LINES = 700, 4
MIN_WORDS, MAX_WORDS = 3, 32
# On authors that the scorer was not fitted on (`bench/summary_data`), readers found seven of ten sentences above this
# value that pass the other rules lasting; of all sentences of users, one of seven.
LIKELY = 0.2
# The subject of a sentence is among its first words. A plain sentence is short and begins with the user.
_FIRST_WORDS, _MAX_PLAIN = 3, 12
_PASSING = ("days", "weekdays", "conditions", "second_person")
_STOPS = (".", "。", "।", "۔")
_NAMES = FEATURES.index("names")
# In German all nouns have capitals.
_LEAST_NAMES, _LEAST_NAMES_DE = 1, 2
_LETTERS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# "line 40", "Aufgabe 3": a part of the current work. Four digits are a year.
_NUMBERED = re.compile(r"(?<=[^\W\d_]{2}) #?\d{1,3}(?=[.,;:)]|$)")
_NOT_PROSE = re.compile(r"""[{}<>|=`"“”„«»]|\w\(|\t|:\s|://""")


class UserStatement(Struct, frozen=True):
    """A sentence in the user's own words that may be worth remembering."""

    text: str
    is_asked: bool
    likelihood: float = 0.0
    """How likely it is lasting, as scored in its message."""
    names: int = 0

    @property
    def leans(self) -> bool:
        return _is_in("pointing", self._first(_FIRST_WORDS))

    @property
    def passes(self) -> bool:
        """True if it is incomplete, or depends on the day, a condition, the listener or part of the work."""
        if not self.text.endswith(_STOPS) or _NUMBERED.search(self.text):
            return True
        return any(_is_in(each, self.text) for each in _PASSING)

    @property
    def is_own(self) -> bool:
        return _is_in("first_person", self._first(_FIRST_WORDS))

    @property
    def is_likely(self) -> bool:
        return self.likelihood >= LIKELY

    @property
    def tells(self) -> bool:
        """True if it says something lasting."""
        if self.leans or self.passes:
            return False
        if _is_in("lasting", self.text) and _word_count(self.text) <= _MAX_PLAIN:
            return self.is_own or self.names > 0 or any(map(str.isdigit, self.text))
        return self.is_own and self._is_named and (self.is_likely or self._is_plain)

    @property
    def _is_named(self) -> bool:
        """True if it names something; scripts without capitals cannot show it."""
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
    """The user's own sentences, without questions, code, tables, quotations and pasted text."""
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
    """Drop the request from what the user asks to remember: "remember that I am Ada" and "I am Ada, remember that."
    become "I am Ada". Other sentences are unchanged."""
    before, after = _requests()
    asked = before.match(sentence)
    if asked and asked.end() < len(sentence):
        return sentence[asked.end() :]
    asked = after.search(sentence)
    return sentence[: asked.start()] + "." if asked and asked.start() else sentence


@cache
def _requests() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Requests before a statement, and after it."""

    please = rf"(?:(?:{alternatives('please')})[\s,]*+)?"
    asks = rf"{please}(?:{alternatives('requests')})"
    own = rf"(?=(?:{alternatives('first_person')})(?:\b|(?<=[^\x00-\u2fff])))"
    told = rf"(?:[\s,]*+(?:{alternatives('that')})\s++|\s*+[:：,，、]\s*+|\s*+{own})"
    before = rf"{asks}(?:[\s,]*+(?:{alternatives('please')}))?{told}"
    after = rf"[,;，、] ?{asks}(?: (?:{alternatives('pointing')}))?[.!。！]*$"
    return re.compile(before, re.IGNORECASE), re.compile(after, re.IGNORECASE)


def _word_count(text: str) -> int:
    """Scripts without spaces have about two characters per word."""
    return len(text.split()) + sum(map(len, UNSPACED_RUN.findall(text))) // 2


def learnable(text: str) -> Iterator[str]:
    """The statements of a user's message worth remembering, verbatim."""
    for each in own_statements(text):
        if not each.leans and (each.is_asked or each.tells):
            yield each.text
