"""Marks: what nobody said is marked in a summary, right behind it; and a marked summary is taken apart again. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from recto.summary.bindings import decisions
from recto.summary.facts import Fact, facts
from recto.summary.figures import LETTER
from recto.summary.ground import Ground
from recto.summary.items import end_of
from recto.summary.layout import PROSE, layout
from recto.summary.turned import KIND, Voices, firm, turned

MARK = " [unverified]"
_MARKS = re.compile(r"^\[unverified\]\n| ?\[unverified\]", re.MULTILINE)
_WORD_GOES_ON = re.compile(rf"(?:['’.@:/\\-]?[{LETTER}])*+")
_OUTER = ("quote", "command", "url", "path", "error")


@dataclass(frozen=True, slots=True)
class Known:
    """What may be told: whatever was said somewhere, and who decided what."""

    grounds: tuple[Ground, ...]
    voices: Voices

    def holds(self, fact: Fact) -> bool:
        return any(ground.holds(fact) for ground in self.grounds)


def unmarked(text: str) -> str:
    return _MARKS.sub("", text)


def marks_in(text: str) -> int:
    return len(_MARKS.findall(text))


def marked(text: str, known: Known, before: Sequence[Fact] = ()) -> tuple[str, list[Fact]]:
    """The text with a mark behind the first mention of each fact that nobody said, and those facts. What was marked
    `before` is looked for by its words, wherever it stands."""
    plain = unmarked(text)
    strange = _invented(plain, known, before)
    lines = layout(plain, by=PROSE)
    places = []
    for fact in strange:
        fence = lines.fence_around(fact.start)
        places.append(_behind(plain, fact) if fence is None else fence[1])
    for place in sorted(set(places), reverse=True):
        at_line = place and plain[place - 1] == "\n"
        mark = MARK.strip() + "\n" if at_line else MARK
        plain = plain[:place] + mark + plain[place:]
    return plain, strange


def _invented(plain: str, known: Known, before: Sequence[Fact]) -> list[Fact]:
    """Each once, the smaller one where a sentence holds another, the larger where a quotation does."""
    found = {fact.key: fact for fact in reversed(turned(plain, known.voices, before))}
    for fact in (*facts(plain, by=PROSE), *decisions(plain), *_again(plain, before)):
        is_cut = "…" in plain[max(0, fact.start - 1) : fact.start] + plain[fact.end : fact.end + 1]
        if fact.counts and not is_cut and fact.key not in found and not known.holds(fact):
            found[fact.key] = fact
    every = list(found.values())
    outer = [fact for fact in every if fact.kind in _OUTER]
    inner = [fact for fact in every if fact.kind != "decision" and not any(_is_in(fact, other) for other in outer)]
    rest = [fact for fact in every if fact.kind == "decision" and not any(_is_in(other, fact) for other in inner)]
    return [*inner, *rest]


def _again(plain: str, before: Iterable[Fact]) -> Iterable[Fact]:
    for fact in before:
        if fact.kind == KIND:
            continue
        if match := re.search(rf"(?<!\w){re.escape(fact.text)}(?!\w)", plain):
            yield replace(fact, start=match.start(), end=match.end())


def _is_in(fact: Fact, other: Fact) -> bool:
    return fact is not other and other.start <= fact.start and fact.end <= other.end and fact.text != other.text


def _behind(text: str, fact: Fact) -> int:
    """The first place behind a fact that is in no word, path or span of code."""
    end = end_of(text, fact)
    going_on = _WORD_GOES_ON.match(text, end)
    end = going_on.end() if going_on else end
    line = text.rfind("\n", 0, fact.start) + 1
    if text.count("`", line, end) % 2:
        closing = text.find("`", end)
        end = closing + 1 if closing >= 0 else end
    return end


@dataclass(frozen=True, slots=True)
class Doubted:
    """A summary taken apart: what it says for sure, and the facts that were marked in it."""

    sure: str
    facts: tuple[Fact, ...] = ()


def doubted(summary: str) -> Doubted:
    if MARK.strip() not in summary:
        return Doubted(summary)
    plain, ends = _unmarked(summary)
    found = [*facts(plain, by=PROSE), *decisions(plain), *firm(plain)]
    keys = {fact.key for fact in found if _behind(plain, fact) in ends}
    bad = [fact for fact in found if fact.key in keys]
    sure, place = "", 0
    for fact in sorted(bad, key=lambda fact: fact.start):
        sure += plain[place : fact.start] + " … " if fact.start >= place else ""
        place = max(place, fact.end)
    return Doubted(sure + plain[place:], tuple(bad))


def _unmarked(summary: str) -> tuple[str, set[int]]:
    """The text without its marks, and where they stood in it."""
    plain, ends, place = "", set(), 0
    for match in _MARKS.finditer(summary):
        plain += summary[place : match.start()]
        ends.add(len(plain))
        place = match.end()
    return plain + summary[place:], ends
