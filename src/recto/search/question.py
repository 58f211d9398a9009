"""Question: what is wanted, taken apart: its words and days, where each stands in the index, who is named."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from recto.search.dates import mentioned
from recto.search.forms import alike
from recto.search.index import ANYTHING, Extent, Filter, Index, Passage
from recto.search.rank import DATED, Posting
from recto.search.terms import MOST_TERMS, folded, query_terms, words

# How many places are read, the newest first: of one word at least and at most, and of all words together.
FEWEST_PLACES, MOST_PLACES, MOST_READ = 250, 2500, 20_000
# So many of them can share with their neighbours, those of the rarest words first: common ones add least.
MOST_SPREAD = 3000
# Whoever looks for the very words gives few of them: so many are looked up, in so many places.
MOST_VERY_WORDS, MOST_VERY_PLACES = 6, 2000
# Where all words together stand is looked up among so many places of the rarest.
MOST_WALKED = 8000
# So few holders of the rare words are asked whether they hold a common one too; so many common ones are asked for.
MOST_ASKED, MOST_COMMON = 300, 3
# A label is dense when, of the newest passages, so many have it among so many times as many.
SAMPLE, DENSE = 200, 4

# Whoever asks is the user, who is asked the assistant.
_KINDS = {"i": "user", "you": "assistant"}
_SAYS = re.compile(
    r"\b(?:(?:did|had|have) (?P<who>i|you) (?:\w+ )?(?:say|said|tell|told|mention|suggest|recommend|propose|advise)"
    r"|(?P<also>i|you) (?:\w+ )?(?:said|told|mentioned|suggested|recommended|proposed|advised))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question to an index."""

    text: str
    shelf: str | None = None
    """Where to look; everywhere when not told."""
    only: Filter = ANYTHING
    accepts: Callable[[Passage], bool] | None = None
    """Which passages count, where a filter cannot tell."""
    spreads: bool = True
    """Whether neighbours share what they hold: for recalling a chat; not for finding the very words."""
    today: date = field(default_factory=date.today)
    most: int = 200

    @property
    def takes(self) -> Callable[[Passage], bool] | None:
        """Whether a passage counts; None where all do. Asked for every passage: so it is one call, as a rule."""
        only, accepts = self.only, self.accepts
        if only == ANYTHING or accepts is None:
            return accepts if only == ANYTHING else only.takes
        return lambda passage: only.takes(passage) and accepts(passage)


@dataclass(frozen=True, slots=True)
class Named:
    """Who is named in a question."""

    who: str
    """The one, of those who speak there; empty for nobody, and for several."""
    bare: str
    """The question without the names of those who speak: they say who, not what."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart."""

    postings: tuple[Posting, ...]
    extent: Extent
    named: str
    kind: str = ""
    """What kind of passage it asks for by "did I say", "you suggested"."""
    is_loose: bool = False
    """Whether places were read that the filter does not take, and may have kept others from being read."""

    def said(self, passages: Mapping[int, Passage], numbers: Iterable[int]) -> list[int]:
        """Those of some passages that were said by whom the question speaks of."""
        if not self.named and not self.kind:
            return []
        who, kind = self.named or None, self.kind or None
        return [each for each in numbers if passages[each].who == who or passages[each].kind == kind]


def who_is_named(index: Index, text: str, shelf: int | None) -> Named:
    people = {who: set(words(who)) for who in index.people(shelf)} if shelf is not None else {}
    said, names = set(words(text)), set[str]().union(*people.values())
    named = [who for who, called in people.items() if said & called]
    bare = " ".join(word for word in text.split() if not names.intersection(words(word)))
    return Named(named[0] if len(named) == 1 else "", bare or text)


def ask(index: Index, wanted: Wanted, shelf: int | None, named: Named, *, strict: bool = False) -> Asked:
    """`strict` looks up nothing but what the filter takes, however long that takes."""
    extent = index.extent(shelf)
    labels = [group for group in wanted.only.labels if strict or not _is_dense(index, group, shelf)]
    where = _Where(index, shelf, extent, labels)
    postings = (*_words(where, wanted), *_days(index, wanted, shelf))
    is_loose = len(labels) < len(wanted.only.labels) and any(map(_is_cut, postings))
    return Asked(postings, extent, named.who, _kind(wanted.text), is_loose)


@dataclass(frozen=True, slots=True)
class _Where:
    """Where words are looked up."""

    index: Index
    shelf: int | None
    extent: Extent
    labels: Sequence[Sequence[str]]

    def holding(self, terms: Sequence[Sequence[str]], most: int, after: int = -1) -> list[int]:
        return self.index.holding([*terms, *self.labels], self.shelf, most, after)


def _is_dense(index: Index, label: Sequence[str], shelf: int | None) -> bool:
    """Whether so many of the newest passages have a label that it is better looked at when they are read: walking
    through all that have it, to find the few that hold a rare word, would take longest of all."""
    places = index.holding([label], shelf, SAMPLE)
    return len(places) == SAMPLE and index.newer(shelf, places[-1]) <= SAMPLE * DENSE


def _kind(text: str) -> str:
    """Which of the two it asks for; neither where it speaks of both."""
    found = {(match["who"] or match["also"]).lower() for match in _SAYS.finditer(text)}
    return _KINDS[found.pop()] if len(found) == 1 else ""


def _words(where: _Where, wanted: Wanted) -> list[Posting]:
    terms = query_terms(wanted.text, MOST_TERMS if wanted.spreads else MOST_VERY_WORDS)
    in_all = MOST_READ if wanted.spreads else MOST_VERY_PLACES
    most = min(MOST_PLACES, max(FEWEST_PLACES, in_all // max(1, len(terms))))
    found = [_posting(where, term, most, spreads=wanted.spreads) for term in terms]
    found.sort(key=lambda posting: posting.frequency)
    if wanted.spreads:
        return list(_rarest(found))
    return _together(where, found) if len(found) > 1 else found


def _rarest(found: Sequence[Posting]) -> Iterator[Posting]:
    left = MOST_SPREAD
    for posting in found:
        yield replace(posting, numbers=posting.numbers[: max(0, left)])
        left -= len(posting.numbers)


def _posting(where: _Where, term: str, most: int, *, spreads: bool) -> Posting:
    places, total = where.holding([alike(term)], most), where.extent.passages
    frequency = float(len(places))
    if len(places) == most:
        # the newest stand this close together: so, most likely, do the others
        frequency *= max(1.0, total / max(1.0, where.index.newer(where.shelf, places[-1])))
    return Posting(term, places, min(frequency, total), spreads=spreads)


def _is_cut(posting: Posting) -> bool:
    """Whether only the newest places were read."""
    return posting.frequency > len(posting.numbers)


def _together(where: _Where, found: Sequence[Posting]) -> list[Posting]:
    """With the places where common words, of which only the newest were read, stand beside rare ones, or all of them
    together: whoever looks for the very words means those."""
    rare, common = [each for each in found if not _is_cut(each)], [each for each in found if _is_cut(each)]
    if not rare:
        both = where.holding([alike(each.name) for each in found], FEWEST_PLACES, _reach(found[0]))
        return [_with(posting, both) for posting in found]
    if sum(len(posting.numbers) for posting in rare) > MOST_ASKED:
        return list(found)
    forms = [form for posting in rare for form in alike(posting.name)]
    beside = [where.holding([forms, alike(each.name)], MOST_ASKED) for each in common[:MOST_COMMON]]
    return [*rare, *map(_with, common, beside), *common[MOST_COMMON:]]


def _reach(posting: Posting) -> int:
    """How far back so many places of a word go as can be walked through in a few milliseconds."""
    apart = (posting.numbers[0] - posting.numbers[-1]) // len(posting.numbers)
    return posting.numbers[0] - apart * MOST_WALKED


def _with(posting: Posting, numbers: Sequence[int]) -> Posting:
    return replace(posting, numbers=list(dict.fromkeys((*posting.numbers, *numbers))))


def _days(index: Index, wanted: Wanted, shelf: int | None) -> Iterator[Posting]:
    for days in mentioned(folded(wanted.text), wanted.today):
        if places := index.of_time(shelf, days, MOST_PLACES):
            yield Posting("the day", places, len(places), DATED, spreads=False)
