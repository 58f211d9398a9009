"""Question: what is wanted, taken apart: its words and days, where each stands in the index, who is named."""

import re
from collections.abc import Callable, Iterator, Sequence
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

    def takes(self, passage: Passage) -> bool:
        if self.only is not ANYTHING and not self.only.takes(passage):
            return False
        return self.accepts is None or self.accepts(passage)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart."""

    postings: tuple[Posting, ...]
    extent: Extent
    named: str
    """The one who is named in it, of those who speak there."""
    bare: str
    """The question without the names of those who speak: they say who, not what."""
    kind: str = ""
    """What kind of passage it asks for by "did I say", "you suggested"."""

    def is_from(self, passage: Passage) -> bool:
        """Whether it was said by whom the question speaks of."""
        return bool(self.named and passage.who == self.named) or bool(self.kind and passage.kind == self.kind)


def ask(index: Index, wanted: Wanted, shelf: int | None) -> Asked:
    people = index.people(shelf) if shelf is not None else []
    said = set(words(wanted.text))
    named = [who for who in people if said & set(words(who))]
    names = {word for who in people for word in words(who)}
    bare = " ".join(word for word in wanted.text.split() if not names.intersection(words(word)))
    extent = index.extent(shelf)
    postings = (*_words(index, wanted, shelf, extent), *_days(index, wanted, shelf))
    return Asked(postings, extent, named[0] if len(named) == 1 else "", bare or wanted.text, _kind(wanted.text))


def _kind(text: str) -> str:
    """Which of the two it asks for; neither where it speaks of both."""
    found = {(match["who"] or match["also"]).lower() for match in _SAYS.finditer(text)}
    return _KINDS[found.pop()] if len(found) == 1 else ""


def _words(index: Index, wanted: Wanted, shelf: int | None, extent: Extent) -> list[Posting]:
    terms = query_terms(wanted.text, MOST_TERMS if wanted.spreads else MOST_VERY_WORDS)
    in_all = MOST_READ if wanted.spreads else MOST_VERY_PLACES
    most = min(MOST_PLACES, max(FEWEST_PLACES, in_all // max(1, len(terms))))
    found = [_posting(index, wanted, term, shelf, extent, most) for term in terms]
    found.sort(key=lambda posting: posting.frequency)
    if wanted.spreads:
        return list(_rarest(found))
    return _together(index, wanted, shelf, found) if len(found) > 1 else found


def _rarest(found: Sequence[Posting]) -> Iterator[Posting]:
    left = MOST_SPREAD
    for posting in found:
        yield replace(posting, numbers=posting.numbers[: max(0, left)])
        left -= len(posting.numbers)


def _posting(index: Index, wanted: Wanted, term: str, shelf: int | None, extent: Extent, most: int) -> Posting:
    places = index.holding([alike(term)], shelf, most, wanted.only)
    frequency = float(len(places))
    if len(places) == most:
        # the newest stand this close together: so, most likely, do the others
        frequency *= max(1.0, extent.passages / max(1.0, index.newer(shelf, places[-1])))
    return Posting(term, places, min(frequency, extent.passages), spreads=wanted.spreads)


def _together(index: Index, wanted: Wanted, shelf: int | None, found: Sequence[Posting]) -> list[Posting]:
    """With the places where common words, of which only the newest were read, stand beside rare ones, or all of them
    together: whoever looks for the very words means those."""
    rare = [posting for posting in found if posting.frequency <= len(posting.numbers)]
    common = [posting for posting in found if posting.frequency > len(posting.numbers)]
    if not rare:
        both = index.holding([alike(each.name) for each in found], shelf, FEWEST_PLACES, wanted.only, _reach(found[0]))
        return [_with(posting, both) for posting in found]
    if sum(len(posting.numbers) for posting in rare) > MOST_ASKED:
        return list(found)
    forms = [form for posting in rare for form in alike(posting.name)]
    beside = [index.holding([forms, alike(each.name)], shelf, MOST_ASKED, wanted.only) for each in common[:MOST_COMMON]]
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
