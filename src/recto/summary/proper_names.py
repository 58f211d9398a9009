"""Proper names: capitalised words whose capital is not due to the start of a sentence or a heading.

German capitalises every noun: there, only several such words in a row count as a name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from recto.chat.cues import SMALL_WORDS
from recto.summary.numbers_and_dates import MONTHS, WEEKDAYS
from recto.summary.sentences import word_set

_JOINT = re.compile(r" (?:(?:of|de|der|van|von|del|da|la|le|the|&|and the) )?|-")
_MID_SENTENCE = frozenset(",&'’)+")
_MAX_WORDS = 6
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_CONTRACTION = re.compile(r"['’](?:s|ll|d|re|ve|m|t)$", re.IGNORECASE)

# Capitalised words that name nothing: pronouns, courtesy, common abbreviations.
_NOT_NAMES = word_set(
    "i i'm i'll i've i'd i’m i’ll i’ve i’d ok okay mr mrs ms dr prof yes no hi hey thanks please note todo fixme ps "
    "etc am pm api apis url urls json http https html css sql xml yaml csv pdf ui ux id ids cli cpu gpu ram os ai "
    "llm io ci cd pr prs faq tl dr fyi asap eta tv pc us uk eu usa wip lol omg btw imo a an the and or not never "
    "always must only if in on at it ascii utf rest sdk ide dns ip tcp udp ssh ssl tls vpn usb qa hr ceo cto kpi "
    "sla mvp poc rfc"
)
_STARTERS = word_set(
    "the a an in on at by for from with after before when while if since until because although though as once then "
    "there this that these those it he she they we you my our your his her their its what which who why how where "
    "now today yesterday tomorrow yes no not never always please also but and or so let let's do don't did does is "
    "are was were has have had will would can could should must may might first second third finally next last all "
    "some any each every both one two three four five six seven eight nine ten here just only maybe perhaps well "
    "sure thanks thank great good nice wow oh hey hi hello okay ok use add run see try make get go keep set task "
    "progress facts decisions open done note summary user assistant tool error result der die das ein eine wir ich "
    "sie es und aber wenn dann am im bitte le la les il elle je nous vous un une el los las yo que sorry actually "
    "another during about many most more such even still earlier later meanwhile however instead besides between "
    "against under over through without within"
)
_NEVER_FIRST = _NOT_NAMES | _STARTERS | SMALL_WORDS
_VERB_FOLLOWS = re.compile(
    r"(?:['’]s)? (?:is|was|has|had|will|said|says|wants|wanted|asked|asks|lives|works|prefers|likes|joined|leads|owns|"
    r"moved|"
    r"bought|visited|agreed|decided|suggested|confirmed|wrote|runs|took|went|told|called|met|plans|needs|hates|loves)\b"
)
_COMMON_ENDING = re.compile(r"(?:ed|ing|tion|sion|ment|ly|ity|ness|ance|ence|ency|ism|ship|one|body|thing|s)$")
_GERMAN_WORDS = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|ich|wir|mit|auf|für|von|dem|den|zu|wird|auch)\b")
_BEFORE_MONTH = re.compile(
    r"\b(?:in|since|until|by|of|last|next|this|early|late|mid|im|seit|bis|en)[ -]$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A capitalised word, or several that form a name."""

    start: int
    end: int
    text: str
    is_significant: bool = True


def find_names(text: str, words: Sequence[NameSpan]) -> Iterator[NameSpan]:
    """Names of one or more of the capitalised `words`. The first word of a sentence belongs to a name if it also
    occurs inside another sentence, if another name follows, or if a verb follows that people are the subject of."""
    starters = {word.start for word in words if _starts_sentence(text, word.start)}
    inside = {_without_possessive(word.text) for word in words if word.start not in starters}
    is_german = _is_german(text)
    for run in _runs(text, words):
        if run[0].start in starters and not (_can_start(run, inside) or _is_acting(text, run[0])):
            run = run[1:]
        run = _trim(run)
        if run and not _is_heading(text, run):
            yield from _name_of_run(text, run, is_german)


def _runs(text: str, words: Sequence[NameSpan]) -> Iterator[list[NameSpan]]:
    run: list[NameSpan] = []
    for word in words:
        # a word with an apostrophe at its end, "Ada's", ends a name
        if (
            0 < len(run) < _MAX_WORDS
            and _JOINT.fullmatch(text, run[-1].end, word.start)
            and not _CONTRACTION.search(run[-1].text)
        ):
            run.append(word)
            continue
        if run:
            yield run
        run = [word]
    if run:
        yield run


def _can_start(run: Sequence[NameSpan], inside: Iterable[str]) -> bool:
    first = run[0].text
    if _CONTRACTION.sub("", first).lower() in _NEVER_FIRST:
        return False
    return _without_possessive(first) in inside or len(_trim([*run])) > 1 or first.isupper()


def _is_acting(text: str, word: NameSpan) -> bool:
    """Whether a sentence starts with somebody who does something: "Ada leads …"."""
    if word.text.lower() in _NEVER_FIRST or _COMMON_ENDING.search(word.text):
        return False
    return _VERB_FOLLOWS.match(text, word.end) is not None


def _trim(run: list[NameSpan]) -> list[NameSpan]:
    while run and run[0].text.lower() in _NEVER_FIRST:
        run = run[1:]
    while run and (run[-1].text.lower() in _NOT_NAMES or _CONTRACTION.sub("", run[-1].text).lower() in _NOT_NAMES):
        run = run[:-1]
    return run


def _name_of_run(text: str, run: Sequence[NameSpan], is_german: bool) -> Iterator[NameSpan]:
    start, end = run[0].start, run[-1].end
    name = _CONTRACTION.sub("", text[start:end])
    lower = name.lower()
    if len(run) == 1 and lower in MONTHS:
        is_word_too = lower in ("may", "mars", "march")
        if len(name) > 3 and (not is_word_too or _BEFORE_MONTH.search(text[max(0, start - 8) : start])):
            yield NameSpan(start, start + len(name), name)
        return
    if len(name) < 2 or (name.isupper() and (len(run) > 1 or len(name) > 5)):
        return
    is_significant = not is_german or len(run) > 1 or lower in WEEKDAYS or (name.isupper() and len(name) > 1)
    yield NameSpan(start, start + len(name), name, is_significant)


def _starts_sentence(text: str, start: int) -> bool:
    """Whether a sentence, a line or a quotation starts here."""
    at = start - 1
    while at >= 0 and text[at] in " \t\xa0":
        at -= 1
    return at < 0 or not (text[at].isalnum() or text[at] in _MID_SENTENCE)


def _is_heading(text: str, run: Sequence[NameSpan]) -> bool:
    """Whether the line starts as a heading does, or consists of nothing but this name before a colon."""
    start, end = run[0].start, run[-1].end
    before = text[max(0, start - 40) : start].rpartition("\n")[2].strip(" *_-")
    return before.startswith("#") or (before in ("", "Next", "Open", "Key") and text[end : end + 1] == ":")


def _is_german(text: str) -> bool:
    sample = text[:4000]
    return len(_GERMAN_WORDS.findall(sample)) * 14 > len(sample.split()) > 3


def _without_possessive(word: str) -> str:
    return _POSSESSIVE.sub("", word)


def normalize_name(name: str) -> str:
    lower = name.lower()
    if lower in WEEKDAYS:
        return WEEKDAYS[lower]
    if lower in MONTHS:
        return f"--{MONTHS[lower]:02}"
    return lower


def kind_of_name(name: str) -> str:
    return "date" if name.lower() in WEEKDAYS or name.lower() in MONTHS else "name"
