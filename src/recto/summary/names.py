"""Names: capitalised words that are not so because a sentence or a heading begins. Pure.

German writes every noun with a capital: there only several in a row are taken for a name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from recto.chat.cues import SMALL_WORDS
from recto.summary.figures import MONTHS, WEEKDAYS, word_set

_BETWEEN = re.compile(r" (?:(?:of|de|der|van|von|del|da|la|le|the|&|and the) )?|-")
_GOES_ON = frozenset(",&'’)+")
_MOST = 6
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_TAIL = re.compile(r"['’](?:s|ll|d|re|ve|m|t)$", re.IGNORECASE)


# Capitals that say nothing: pronouns, courtesy, and the short words of every trade.
_NONE = word_set(
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
_EMPTY = _NONE | _STARTERS | SMALL_WORDS
_DOES = re.compile(
    r"(?:['’]s)? (?:is|was|has|had|will|said|says|wants|wanted|asked|asks|lives|works|prefers|likes|joined|leads|owns|"
    r"moved|"
    r"bought|visited|agreed|decided|suggested|confirmed|wrote|runs|took|went|told|called|met|plans|needs|hates|loves)\b"
)
_COMMON_END = re.compile(r"(?:ed|ing|tion|sion|ment|ly|ity|ness|ance|ence|ency|ism|ship|one|body|thing|s)$")
_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|ich|wir|mit|auf|für|von|dem|den|zu|wird|auch)\b")
_MONTH_LEADS = re.compile(
    r"\b(?:in|since|until|by|of|last|next|this|early|late|mid|im|seit|bis|en)[ -]$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Word:
    """A capitalised word, or several that make a name."""

    start: int
    end: int
    text: str
    counts: bool = True


def joined(text: str, words: Sequence[Word]) -> Iterator[Word]:
    """Names of one or more words. The first word of a sentence is one if it also stands inside another sentence, or is
    no word that sentences begin with and another name follows."""
    opening = {word.start for word in words if _opens(text, word.start)}
    inside = {_bare(word.text) for word in words if word.start not in opening}
    is_german = _is_german(text, len(words))
    for run in _runs(text, words):
        if run[0].start in opening and not (_may_open(run, inside) or _acts(text, run[0])):
            run = run[1:]
        run = _trimmed(run)
        if run and not _is_heading(text, run):
            yield from _told(text, run, is_german)


def _runs(text: str, words: Sequence[Word]) -> Iterator[list[Word]]:
    run: list[Word] = []
    for word in words:
        # what has an apostrophe at its end, "Ada's", ends a name
        if (
            0 < len(run) < _MOST
            and _BETWEEN.fullmatch(text, run[-1].end, word.start)
            and not _TAIL.search(run[-1].text)
        ):
            run.append(word)
            continue
        if run:
            yield run
        run = [word]
    if run:
        yield run


def _may_open(run: Sequence[Word], inside: Iterable[str]) -> bool:
    first = run[0].text
    lower = _TAIL.sub("", first).lower()
    if lower in _EMPTY:
        return False
    return _bare(first) in inside or len(_trimmed([*run])) > 1 or first.isupper()


def _acts(text: str, word: Word) -> bool:
    """Whether a sentence begins with somebody who does something: "Ada leads …"."""
    if word.text.lower() in _EMPTY or _COMMON_END.search(word.text):
        return False
    return _DOES.match(text, word.end) is not None


def _trimmed(run: list[Word]) -> list[Word]:
    while run and run[0].text.lower() in _EMPTY:
        run = run[1:]
    while run and (run[-1].text.lower() in _NONE or _TAIL.sub("", run[-1].text).lower() in _NONE):
        run = run[:-1]
    return run


def _told(text: str, run: Sequence[Word], is_german: bool) -> Iterator[Word]:
    start, end = run[0].start, run[-1].end
    written = text[start:end]
    bare = _TAIL.sub("", written)
    lower = bare.lower()
    if len(run) == 1 and lower in MONTHS:
        if len(bare) > 3 and (
            lower not in ("may", "mars", "march") or _MONTH_LEADS.search(text[max(0, start - 8) : start])
        ):
            yield Word(start, start + len(bare), bare)
        return
    if len(bare) < 2 or (bare.isupper() and (len(run) > 1 or len(bare) > 5)):
        return
    counts = not is_german or len(run) > 1 or lower in WEEKDAYS or (bare.isupper() and len(bare) > 1)
    yield Word(start, start + len(bare), bare, counts)


def _opens(text: str, start: int) -> bool:
    """Whether a sentence, a line, a quotation begins here."""
    at = start - 1
    while at >= 0 and text[at] in " \t\xa0":
        at -= 1
    return at < 0 or not (text[at].isalnum() or text[at] in _GOES_ON)


def _is_heading(text: str, run: Sequence[Word]) -> bool:
    """Whether a line begins with nothing but this and a colon, or with the sign of a heading."""
    start, end = run[0].start, run[-1].end
    before = text[max(0, start - 40) : start].rpartition("\n")[2].strip(" *_-")
    return before.startswith("#") or (before in ("", "Next", "Open", "Key") and text[end : end + 1] == ":")


def _is_german(text: str, capitals: int) -> bool:
    sample = text[:4000]
    return len(_GERMAN.findall(sample)) * 14 > len(sample.split()) > 3


def _bare(word: str) -> str:
    return _POSSESSIVE.sub("", word)


def normal(name: str) -> str:
    lower = name.lower()
    if lower in WEEKDAYS:
        return WEEKDAYS[lower]
    if lower in MONTHS:
        return f"--{MONTHS[lower]:02}"
    return lower


def kind_of(name: str) -> str:
    return "date" if name.lower() in WEEKDAYS or name.lower() in MONTHS else "name"
