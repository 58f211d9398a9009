"""Query: what to look for. `parse_query` looks up its words and dates in the index, and the speaker it names."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date

from msgspec import Struct, field
from msgspec.structs import replace

from recto.search.dates import date_labels
from recto.search.keyword_index import NO_FILTER, Extent, Filter, KeywordIndex, Passage
from recto.search.ranking import DATE_WEIGHT, FORM_WEIGHT, Posting
from recto.search.terms import MAX_TERMS, query_terms, start_forms, word_forms, words

# Limits on the occurrences read, newest first: the minimum and maximum per term, and the total for all terms.
MIN_PER_TERM, MAX_PER_TERM, MAX_OCCURRENCES = 250, 2500, 20_000
# How many occurrences spread to their neighbours, rarest terms first, since common terms add least.
MAX_SPREAD = 3000
# A search for exact words has few of them: the limits for terms and their occurrences.
MAX_EXACT_TERMS, MAX_EXACT_OCCURRENCES = 6, 2000
# This many of the rarest terms are searched for together: each one more doubles the time.
MAX_JOINT_TERMS = 4

# The user asks, and "you" is the assistant.
_KINDS = {"i": "user", "you": "assistant"}
_SAYS = re.compile(
    r"\b(?:(?:did|had|have) (?P<who>i|you) (?:\w+ )?(?:say|said|tell|told|mention|suggest|recommend|propose|advise)"
    r"|(?P<also>i|you) (?:\w+ )?(?:said|told|mentioned|suggested|recommended|proposed|advised))",
    re.IGNORECASE,
)


class Query(Struct, frozen=True):
    text: str
    partition: str | None = None
    filter: Filter = NO_FILTER
    accepts: Callable[[Passage], bool] | None = None
    """A condition that no other field can express; it requires reading passages."""
    stretch: tuple[int, int, int] | None = None
    """Only passages of this branch, between these positions."""
    branches: Collection[int] | None = None
    spreads: bool = True
    """Neighbours share their words: on for recall in a chat, off for exact words."""
    until: int | None = None
    """Passages at later positions do not spread to neighbours: the question itself may already be indexed."""
    today: date = field(default_factory=date.today)
    limit: int = 200

    def accepts_passage(self, passage: Passage) -> bool:
        if self.stretch is not None:
            branch, first, last = self.stretch
            if passage.branch != branch or not first <= passage.position <= last:
                return False
        if self.branches is not None and passage.branch not in self.branches:
            return False
        return self.filter.matches(passage) and (self.accepts is None or self.accepts(passage))


class NamedSpeaker(Struct, frozen=True):
    name: str
    """The only speaker named in a query; empty if there is none or several."""
    rest: str
    """The query without speakers' names: they say who spoke, not what about."""


class ParsedQuery(Struct, frozen=True):
    postings: tuple[Posting, ...]
    extent: Extent
    speaker: str
    kind: str = ""
    """Set by "did I say" or "you suggested"."""

    @property
    def names_speaker(self) -> bool:
        return bool(self.speaker or self.kind)

    def by_speaker(self, index: KeywordIndex, numbers: Iterable[int]) -> list[int]:
        return index.said_by(self.speaker, self.kind, numbers) if self.names_speaker else []


def find_speaker(index: KeywordIndex, text: str, partition: int | None) -> NamedSpeaker:
    speakers = {name: set(words(name)) for name in index.speakers(partition)} if partition is not None else {}
    query_words, names = set(words(text)), set[str]().union(*speakers.values())
    named = [name for name, parts in speakers.items() if query_words & parts]
    rest = " ".join(word for word in text.split() if not names.intersection(words(word)))
    return NamedSpeaker(named[0] if len(named) == 1 else "", rest or text)


def parse_query(index: KeywordIndex, query: Query, partition: int | None, speaker: NamedSpeaker) -> ParsedQuery:
    extent = index.extent(partition)
    postings = _LookUp(index, partition, extent.passages, query.filter, query.spreads).word_postings(query.text)
    for days in date_labels(query.text, query.today):
        if numbers := index.matching([days], partition, MAX_PER_TERM, query.filter):
            postings.append(Posting("the day", numbers, len(numbers), DATE_WEIGHT, spreads=False))
    who = {(match["who"] or match["also"]).lower() for match in _SAYS.finditer(query.text)}
    kind = _KINDS[who.pop()] if len(who) == 1 else ""
    return ParsedQuery(tuple(postings), extent, speaker.name, kind)


class _LookUp(Struct, frozen=True):
    index: KeywordIndex
    partition: int | None
    total: int
    only: Filter
    spreads: bool

    def word_postings(self, text: str) -> list[Posting]:
        terms = query_terms(text, MAX_TERMS if self.spreads else MAX_EXACT_TERMS)
        total = MAX_OCCURRENCES if self.spreads else MAX_EXACT_OCCURRENCES
        limit = min(MAX_PER_TERM, max(MIN_PER_TERM, total // max(1, len(terms))))
        found = self._postings([(term, word_forms(term)) for term in terms], limit)
        found.sort(key=lambda each: each.frequency)
        inflected = [(each.name, forms) for each in found if (forms := start_forms(each.name))]
        others = _other_forms(found, self._postings(inflected, limit))
        if not self.spreads:
            return [*(self._with_joint_matches(found) if len(found) > 1 else found), *others]
        left, limited = MAX_SPREAD, list[Posting]()
        for posting in sorted((*found, *others), key=lambda posting: posting.frequency):
            limited.append(replace(posting, numbers=posting.numbers[: max(0, left)]))
            left -= len(posting.numbers)
        return limited

    def _postings(self, terms: Sequence[tuple[str, Sequence[str]]], limit: int) -> list[Posting]:
        """The newest occurrences of each term in any of its forms."""
        searches = [[forms] for _, forms in terms]
        each_found = self.index.matching_each(searches, self.partition, limit, self.only)
        return [self._posting(term, found, limit) for (term, _), found in zip(terms, each_found, strict=True)]

    def _posting(self, term: str, numbers: list[int], limit: int) -> Posting:
        frequency = float(len(numbers))
        if len(numbers) == limit:
            # assumes that older occurrences are as dense as the newest
            frequency *= max(1.0, self.total / max(1.0, self.index.count_from(numbers[-1], self.partition)))
        return Posting(term, numbers, min(frequency, self.total), spreads=self.spreads)

    def _with_joint_matches(self, postings: Sequence[Posting]) -> list[Posting]:
        """Add passages where truncated, common terms occur together with the rarest ones: what a search for exact words
        looks for."""
        together = postings[:MAX_JOINT_TERMS]
        if not any(map(_is_truncated, together)):
            return list(postings)
        forms = [word_forms(each.name) for each in together]
        joint = self.index.matching(forms, self.partition, MIN_PER_TERM, self.only)
        return [*(_add_numbers(posting, joint) for posting in together), *postings[MAX_JOINT_TERMS:]]


def _other_forms(found: Sequence[Posting], inflected: Sequence[Posting]) -> Iterator[Posting]:
    """Only passages with another form of the word: the word itself counts already."""
    known = {posting.name: posting for posting in found}
    for posting in inflected:
        word = known[posting.name]
        own = set(word.numbers)
        if numbers := [number for number in posting.numbers if number not in own]:
            frequency = max(posting.frequency, word.frequency)
            yield replace(posting, numbers=numbers, frequency=frequency, weight=FORM_WEIGHT, is_other_form=True)


def _is_truncated(posting: Posting) -> bool:
    """True if only the newest occurrences were read."""
    return posting.frequency > len(posting.numbers)


def _add_numbers(posting: Posting, numbers: Sequence[int]) -> Posting:
    return replace(posting, numbers=list(dict.fromkeys((*posting.numbers, *numbers))))
