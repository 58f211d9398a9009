"""Turned round: what a summary decides the other way than the people whom it sums up. Pure.

A wrong mark is worse than none: something said must clearly refute a sentence, and nothing may support it, not even by
a "no" close by or a change of mind.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recto.summary.facts import Fact, plain
from recto.summary.sentences import placed, sentences
from recto.summary.stances import Stance, changes, chooses, content, denies, likes, stances, subjects

KIND = "stance"
# Characters that are kept in all, and that are read of one text around what is looked for.
_KEPT, _WHOLE, _AROUND, _MENTIONS = 8_000_000, 20_000, 400, 12
# Sentences behind a mention in which "it" may still be what was mentioned; messages that may still answer it.
_NEAR, _ANSWERS = 3, 2
_FEW = 5
_POINTS = re.compile(r"(?<!\w)(?:it|that|this|them|those|one|so|das|es|ihn|cela|ça|eso|lo)(?!\w)", re.IGNORECASE)
_CLAUSES = re.compile(
    r"[,;:()–—]|(?<!\w)(?=(?:instead of|rather than|in place of|over|statt|anstatt|au lieu|plutôt que|en (?:vez"
    r"|lugar) de|and not|und nicht|et pas|but|because|since|so|while|although|aber|weil|sondern|mais|pero|porque"
    r"|sino)(?!\w))",
    re.IGNORECASE,
)


class Voice(NamedTuple):
    """One text, the number of its message, and whether it can refute: people refute what turns their words round, what
    else was read can only support it."""

    said: int
    text: str
    refutes: bool


@dataclass(slots=True)
class Voices:
    """All that was said. What was read once is kept: a summary decides many things."""

    _heard: list[Voice] = field(default_factory=list)
    _size: int = 0
    _lower: list[str] = field(default_factory=list)
    _sentences: dict[int, list[str]] = field(default_factory=dict)

    def add(self, text: str, *, said: int = 0, refutes: bool = False) -> None:
        if self._size <= _KEPT:
            self._heard.append(Voice(said, text, refutes))
            self._size += len(text)

    def with_others(self, others: "Voices") -> "Voices":
        """Both together, in order of time."""
        every = sorted([*self._heard, *others._heard], key=lambda voice: voice.said)
        return Voices(every, self._size + others._size)

    def turns(self, stance: Stance, told: str) -> bool:
        """Whether people said the opposite of this, which is told in that sentence, and nobody the same."""
        if any(True for _ in self._naming([plain(told)])):
            return False
        refuting = [sentence for _, sentence in self._mentions(stance, refute=True) if _refutes(sentence, stance)]
        return bool(refuting) and not self.says(stance, told) and not self._is_taken_back(stance, told, refuting)

    def says(self, stance: Stance, told: str) -> bool:
        """Whether it may fairly be told from something."""
        found = ((sentence, self._behind(at, sentence)) for at, sentence in self._mentions(stance))
        return any(supports(stance, told, sentence, following) for sentence, following in found)

    def _mentions(self, stance: Stance, *, refute: bool = False) -> Iterator[tuple[int, str]]:
        """Sentences that name what a stance is about, and where they stand."""
        # who is for something names all that another is against
        names = all if refute and not stance.is_for else any
        for at in self._naming(stance.about):
            if self._heard[at].refutes or not refute:
                for sentence in self._read(at, stance.about):
                    lower = sentence.lower()
                    if names(each in lower for each in stance.about):
                        yield at, sentence

    def _naming(self, stems: Iterable[str]) -> Iterator[int]:
        if len(self._lower) != len(self._heard):
            self._lower = [voice.text.lower() for voice in self._heard]
        return (at for at, lower in enumerate(self._lower) if any(each in lower for each in stems))

    def _read(self, at: int, stems: Iterable[str]) -> list[str]:
        """Its sentences; of a long text those around these stems."""
        text = self._heard[at].text
        if len(text) > _WHOLE:
            return _around(text, stems)
        if at not in self._sentences:
            self._sentences[at] = sentences(text)
        return self._sentences[at]

    def _behind(self, at: int, sentence: str) -> list[str]:
        """What follows a sentence, in its text and in the next ones."""
        own = self._sentences.get(at, [sentence])
        place = own.index(sentence) + 1
        texts = [voice.text[:_AROUND] for voice in self._heard[at + 1 : at + 1 + _ANSWERS]]
        return [*own[place : place + _NEAR], *(each for text in texts for each in sentences(text)[:2])]

    def _is_taken_back(self, stance: Stance, told: str, refuting: Sequence[str]) -> bool:
        """Whether somebody changed this without naming it: "take Postgres for the queue instead"."""
        about = set().union(*map(subjects, refuting)) - stance.about
        others = set().union(*(each.about for each in stances(told))) - stance.about
        stems = about | others
        said = (sentence for at in self._naming(stems) for sentence in self._read(at, stems))
        return any(sentence not in refuting and _changes(sentence, about, others) for sentence in said)


def _refutes(sentence: str, stance: Stance) -> bool:
    return any(stance.refutes(other) for other in stances(sentence))


def _changes(sentence: str, about: set[str], others: set[str]) -> bool:
    """Whether it says anew what is to be done about something, or chooses what a summary says was chosen instead."""
    if changes(sentence) and not about.isdisjoint(subjects(sentence)):
        return True
    if others.isdisjoint(content(sentence)):
        return False
    return len(sentence.split()) <= _FEW or any(each.is_for for each in stances(sentence))


def _around(text: str, stems: Iterable[str]) -> list[str]:
    named = re.compile("|".join(map(re.escape, sorted(stems))), re.IGNORECASE)
    found = (match.span() for match, _ in zip(named.finditer(text), range(_MENTIONS), strict=False))
    return [each for start, end in found for each in sentences(text[max(0, start - _AROUND) : end + _AROUND])]


def supports(stance: Stance, told: str, sentence: str, following: Sequence[str]) -> bool:
    """Whether one may fairly tell this from that sentence and what was said behind it."""
    if plain(told).strip(" .") in plain(sentence) or any(_agree(stance, other) for other in stances(sentence)):
        return True
    if not stance.about <= content(sentence):
        return False
    if _is_liked(sentence) if stance.is_for else _is_denied(sentence, stance):
        return True
    pointing = [clause for clause in _CLAUSES.split(sentence)[1:] if _POINTS.search(clause)]
    return any(_bears_on(each, stance) for each in (*pointing, *following))


def _agree(one: Stance, other: Stance) -> bool:
    return one.is_for == other.is_for and (one.about <= other.about or other.about <= one.about)


def _is_liked(sentence: str) -> bool:
    if denies(sentence):
        return False
    return len(sentence.split()) <= _FEW or likes(sentence)


def _is_denied(sentence: str, stance: Stance) -> bool:
    """In the very clause that names it."""
    clauses = [clause for clause in _CLAUSES.split(sentence) if not stance.about.isdisjoint(content(clause))]
    return any(denies(clause) for clause in clauses)


def _bears_on(said: str, stance: Stance) -> bool:
    """Whether something that does not name it may be about it: "drop it", "no.", "instead"."""
    if changes(said):
        return True
    is_denied = denies(said)
    if stance.is_for:  # "fine" agrees with a refusal too
        return not is_denied and _POINTS.search(said) is not None and chooses(said)
    return is_denied and (len(said.split()) < _FEW or _POINTS.search(said) is not None)


def turned(text: str, voices: Voices, before: Iterable[Fact] = ()) -> list[Fact]:
    """What of a summary's text is turned round, at most one of each sentence. What was found so `before` stays so
    until somebody says it."""
    known = {fact.normal for fact in before if fact.kind == KIND}
    found = []
    for start, sentence in placed(text):
        firm = [each for each in stances(sentence) if each.is_firm] if "…" not in sentence else []
        if bad := [each for each in firm if _is_turned(each, sentence, voices, known)]:
            found.append(_fact(bad, sentence, start))
    return found


def _is_turned(stance: Stance, sentence: str, voices: Voices, known: set[str]) -> bool:
    if _normal(stance) in known and not voices.says(stance, sentence):
        return True
    return voices.turns(stance, sentence)


def firm(text: str) -> list[Fact]:
    """Everything that could be turned round, each by itself."""
    return [
        _fact([each], sentence, start) for start, sentence in placed(text) for each in stances(sentence) if each.is_firm
    ]


def _fact(bad: Sequence[Stance], sentence: str, start: int) -> Fact:
    first, last = min(each.start for each in bad), max(each.end for each in bad)
    return Fact(KIND, sentence[first:last], _normal(bad[-1]), start + first, start + last)


def _normal(stance: Stance) -> str:
    return ("+" if stance.is_for else "-") + " ".join(sorted(stance.about))
