"""VaultQuestion: the words and days that carry a message's topic, and the kind of answer it wants.

Based on closed classes of words (`sentences/words.toml`) and on form: the word after a question word, and capitals.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache, lru_cache
from itertools import chain
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import LazyPattern
from recto.search.dates import Day, day_of_term, is_day_term, take_days
from recto.search.passages import QUESTION_MARKS
from recto.search.terms import COMMON_WORDS, STOP_WORDS, UNSPACED_RUN, is_spaced, query_terms, words
from recto.sentences.words import tables

AnswerKind = Literal["name", "date", "number", "reason"]

# The kinds of the first question words of each language, in this order; "how" asks for a number before a topic word.
_KINDS: tuple[AnswerKind, ...] = ("date", "name", "reason", "number")
_FUNCTION_WORDS = ("questions", "first_person", "second_person", "pointing", "articles")
# Classes of words that say nothing about the topic.
_ASKING = (*_FUNCTION_WORDS, "please", "telling", "joining", "future")
# Classes whose words identify a language.
_TELLING_A_LANGUAGE = (*_FUNCTION_WORDS, "negations", "conditions")
# "17*23", "12% of 80", "40 times 64".
_ARITHMETIC = LazyPattern(r"\d ?(?:[*×x^÷=+%]|(?<= )[-/](?= )|(?<= )([^\W\d]+) (?=\d))")
_NOTES = frozenset(("note", "notes", "vault", "notiz", "notizen", "notas"))
# The end of one question among several.
_PARTS = LazyPattern(r"[,;] (?=\w{1,3} (\w+))|\? ")
_FIRST_WORDS = 3
# Words up to this length say nothing, unless in capitals.
_SHORT = 2
# Letters enough to identify a script or a language.
_SAMPLE = 2_000
_WORDS = LazyPattern(r"[^\W\d_]+")


class _Asked(NamedTuple):
    kind: AnswerKind | None
    following: str
    is_measure: bool = False
    """True if the next words only specify a number or date: "how many", "wie hoch", "which year"."""


class VaultQuestion(Struct, frozen=True):
    text: str
    terms: tuple[str, ...]
    """The words that carry the topic, as in the index, and the days."""
    kinds: tuple[AnswerKind, ...] = ()
    asks: bool = False
    """True for a question or a request to be told; false for a statement or a task."""
    verbs: frozenset[str] = frozenset()
    """Terms that an answer often replaces by another word."""
    language: str = ""
    compounds: frozenset[str] = frozenset()
    """Terms that also match parts of longer words, and the reverse."""

    @property
    def days(self) -> tuple[Day, ...]:
        return tuple(day_of_term(term) for term in self.terms if is_day_term(term))

    @property
    def topics(self) -> frozenset[str]:
        """The terms without verbs."""
        return frozenset(self.terms) - self.verbs


def parse_question(text: str) -> VaultQuestion:
    return _parsed(text, date.today())


@lru_cache(maxsize=32)
def _parsed(text: str, today: date) -> VaultQuestion:
    language = language_of(text)
    days, undated = take_days(text, today)
    asked = _asked(text, language)
    request = _request(text)
    ignored = _class(*_ASKING, language=language).union(request)
    measures = {each.following for each in asked if each.is_measure}
    terms = [term.removesuffix("*") for term in query_terms(_without_asking(undated))]
    terms = [
        term
        for term in terms
        if not (is_spaced(term) and term in ignored)
        and (len(term) > _SHORT or not term.isalpha() or f" {term} " not in text)
    ]
    terms = [term for term in terms if term not in measures] or terms
    return VaultQuestion(
        text,
        (*(() if STOP_WORDS.issuperset(terms) else terms), *(day.term for day in days)),
        tuple(dict.fromkeys(each.kind for each in asked if each.kind)),
        bool(request) or any(mark in text for mark in QUESTION_MARKS) or _begins_asking(text),
        frozenset(_verbs(text, language, asked)).intersection(terms),
        language,
    )


@cache
def _class(*names: str, language: str = "") -> frozenset[str]:
    found = (
        table.get(language, []) if language in tables()["questions"] else chain(*table.values())
        for table in (tables()[name] for name in names)
    )
    return frozenset(word for listed in found for each in listed for word in words(each))


def _without_asking(text: str) -> str:
    """Scripts without spaces are read in pairs of characters: question words, like anything in hiragana, would form
    pairs with the topic that no note contains."""
    if text.isascii() or not UNSPACED_RUN.search(text):
        return text
    rest = _unspaced_asking().sub(" ", unicodedata.normalize("NFC", text))
    return rest if any(map(str.isalnum, rest)) else text


@cache
def _unspaced_asking() -> re.Pattern[str]:
    listed = chain.from_iterable(table for name in _ASKING for table in tables()[name].values())
    asking = {form for row in listed for form in row.split("/") if UNSPACED_RUN.match(form)}
    chinese, korean = tables()["particles"]["zh"], "".join(tables()["particles"]["ko"])
    words_first = "|".join(sorted(asking.union(chinese), key=len, reverse=True))
    return re.compile(rf"{words_first}|[\u3040-\u309f]+|(?<=[가-힣]{{2}})[{korean}](?!\w)|[가-힣]{{1,15}}[요까](?!\w)")


@cache
def _question_words(language: str) -> dict[str, tuple[AnswerKind | None, bool]]:
    """Each question word with its kind and whether a measure follows it; those of all languages if the language is
    unknown."""
    told, found = tables()["questions"], dict[str, tuple[AnswerKind | None, bool]]()
    for row in [told[language]] if language in told else told.values():
        for at, each in enumerate(row):
            for form in each.split("/"):
                if phrase := form.strip("#_").replace("_", " "):
                    found.setdefault(phrase, (_KINDS[at] if at < len(_KINDS) else None, form.endswith("#")))
    return found


def _asked(text: str, language: str) -> list[_Asked]:
    """The question words as written. Accents are ignored only if nothing else matches: "cuando" does not count beside
    "quién"."""
    listed = _question_words(language)
    spelled = " ".join(_WORDS.findall(text.lower()))
    plain = {" ".join(words(each)): asked for each, asked in reversed(listed.items())}
    return _found(listed, spelled, language) or _found(plain, " ".join(words(text)), language)


def _found(listed: Mapping[str, tuple[AnswerKind | None, bool]], said: str, language: str) -> list[_Asked]:
    found = list[_Asked]()
    for each, (kind, has_measure) in listed.items():
        _, is_there, rest = f" {said} ".partition(f" {each} ")
        following = "".join(words(rest.split(" ", 1)[0]))
        is_unit = kind is None and following in _class("units", language=language)
        if is_there and has_measure and following in STOP_WORDS:  # "how did"
            found.append(_Asked(None, following))
        elif is_there:
            found.append(_Asked("date" if is_unit else kind, following, is_unit or has_measure))
    return found


def _request(text: str) -> Sequence[str]:
    """A request before a question: "I want to know who …"."""
    said = words(text[:_SAMPLE])
    before = said[: next((at for at, word in enumerate(said) if word in _class("questions")), 0)]
    says_nothing = _class(*_ASKING) | COMMON_WORDS | STOP_WORDS >= set(before)
    return before if says_nothing and not _class("first_person").isdisjoint(before) else ()


def _begins_asking(text: str) -> bool:
    return not _class("questions", "telling").isdisjoint(words(text[:_SAMPLE])[:_FIRST_WORDS])


def is_arithmetic(text: str) -> bool:
    found = _ARITHMETIC.search(text)
    if found is None or found[1] in STOP_WORDS:
        return False
    return all(map(str.isdigit, parse_question(f"{text[: found.start()]} {text[found.end() :]}").terms))


def asks_for_overview(text: str) -> bool:
    """True if a message is about the notes themselves: "Summarize my notes"."""
    return not _NOTES.isdisjoint(words(text))


def _verbs(text: str, language: str, asked: Sequence[_Asked]) -> set[str]:
    """The word after a question word; in German only in lower case, since nouns are capitalised."""
    spelled = _WORDS.findall(text)[1:]
    if language == "de" and any(word[0].isupper() for word in spelled):
        return {part for word in spelled if word[0].islower() for part in words(word)}
    return {each.following for each in asked}


def question_parts(question: VaultQuestion) -> list[VaultQuestion]:
    """The separate questions in a message, if each has words of its own; else the whole."""
    texts = [question.text]
    for match in list(_PARTS.finditer(question.text))[::-1]:
        if not match[1] or not _class("questions").isdisjoint(words(match[1])):
            texts[:1] = [texts[0][: match.start()], texts[0][match.end() :]]
    parts = [replace(parse_question(part), compounds=question.compounds) for part in texts]
    return parts if len(parts) > 1 and all(len(part.terms) > 1 for part in parts) else [question]


@lru_cache(maxsize=64)
def language_of(text: str) -> str:
    """The language, by its closed classes of words, or the script if not Latin. Empty if the text is too short."""
    letters = [sign for sign in text[:_SAMPLE] if sign.isalpha()]
    scripts = Counter(unicodedata.name(sign, "LATIN").split(" ", 1)[0] for sign in letters).most_common(1)
    if scripts and scripts[0][0] != "LATIN":
        return scripts[0][0]
    (most, first), (less, _), *_ = _by_language(text)
    return first if most > less else ""


def _by_language(text: str) -> list[tuple[int, str]]:
    """Matched as written: the Portuguese "lá" is not "la"."""
    found = Counter(_WORDS.findall(text[:_SAMPLE].lower()))
    counts = [(sum(found[word] for word in _telling(each)), each) for each in tables()["questions"]]
    return sorted(counts, key=lambda pair: -pair[0])


@cache
def _telling(language: str) -> frozenset[str]:
    listed = (each for name in _TELLING_A_LANGUAGE for each in tables()[name].get(language, ()))
    return frozenset(form for each in listed for form in each.split("/"))


def leans_on_earlier(text: str) -> bool:
    """True if a message makes sense only with earlier ones: "And when was she renamed?"."""
    question, said = parse_question(text), words(text)
    likely = _by_language(text)[0][1]
    pointing = _class("pointing", language=likely) - _class("articles", "questions")
    is_joined = bool(said) and said[0] in _class("joining")
    return is_joined or not pointing.isdisjoint(said) or (len(question.terms) < 2 and not question.days)
