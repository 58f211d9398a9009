"""Query: what to look for. `parse_query` looks up its words and dates in the index, and the speaker it names."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date

from msgspec import Struct, field
from msgspec.structs import replace

from recto.search.dates import date_labels, find_dates
from recto.search.keyword_index import NO_FILTER, Extent, Filter, KeywordIndex, Passage
from recto.search.ranking import DATE_WEIGHT, FORM_WEIGHT, Posting
from recto.search.terms import MAX_TERMS, normalize_text, query_terms, start_forms, word_forms, words

# Limits on the occurrences read, newest first: the minimum and maximum per term, and the total for all terms.
MIN_PER_TERM, MAX_PER_TERM, MAX_OCCURRENCES = 250, 2500, 20_000
# How many occurrences spread to their neighbours, rarest terms first, since common terms add least. A term that gets
# none is only read far enough to estimate its frequency.
MAX_SPREAD = 3000
# A search for exact words has few of them: the limits for terms and their occurrences.
MAX_EXACT_TERMS, MAX_EXACT_OCCURRENCES = 6, 2000
# Passages with all terms are searched for among this many occurrences of the rarest.
MAX_SCANNED = 8000
# Common terms are looked up next to rare ones that are in at most this many passages; and how many common terms.
MAX_RARE_PASSAGES, MAX_COMMON_TERMS = 300, 3
# If all terms are common, this many are searched for together: each one more doubles the time.
MAX_JOINT_TERMS = 4
# A label is dense if the newest SAMPLE passages with it are among the newest SAMPLE * DENSITY of all.
SAMPLE, DENSITY = 200, 4

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

    @property
    def is_plain(self) -> bool:
        """True if stretch and branches are the only conditions, so that no passage has to be read."""
        return self.filter == NO_FILTER and self.accepts is None

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
    is_loose: bool = False
    """Passages were read that the filter rejects, in place of some that it accepts."""

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


def parse_query(
    index: KeywordIndex, query: Query, partition: int | None, speaker: NamedSpeaker, *, strict: bool = False
) -> ParsedQuery:
    """`strict` looks up only passages that the filter accepts, however long that takes."""
    extent, every = index.extent(partition), query.filter.labels
    labels = [group for group in every if strict or not _is_dense(index, group, partition)]
    look_up = _LookUp(index, partition, extent.passages, index.label_expression(labels), query.spreads)
    postings = look_up.word_postings(query.text)
    for mention in find_dates(normalize_text(query.text), query.today):
        days = date_labels(mention)
        if days and (numbers := index.matching([days], partition, MAX_PER_TERM)):
            postings.append(Posting("the day", numbers, len(numbers), DATE_WEIGHT, spreads=False))
    is_loose = len(labels) < len(every) and any(map(_is_truncated, postings))
    who = {(match["who"] or match["also"]).lower() for match in _SAYS.finditer(query.text)}
    kind = _KINDS[who.pop()] if len(who) == 1 else ""
    return ParsedQuery(tuple(postings), extent, speaker.name, kind, is_loose)


def _is_dense(index: KeywordIndex, label: Sequence[str], partition: int | None) -> bool:
    """True if a label is so common that filtering passages while reading is faster: matching the label would
    walk through all of them to find the few with a rare word."""
    numbers = index.matching([label], partition, SAMPLE)
    return len(numbers) == SAMPLE and index.count_from(numbers[-1], partition) <= SAMPLE * DENSITY


class _LookUp(Struct, frozen=True):
    index: KeywordIndex
    partition: int | None
    total: int
    labels: str
    spreads: bool

    def word_postings(self, text: str) -> list[Posting]:
        terms = query_terms(text, MAX_TERMS if self.spreads else MAX_EXACT_TERMS)
        total = MAX_OCCURRENCES if self.spreads else MAX_EXACT_OCCURRENCES
        limit = min(MAX_PER_TERM, max(MIN_PER_TERM, total // max(1, len(terms))))
        first = min(limit, MIN_PER_TERM) if self.spreads else limit
        found = self._postings([(term, word_forms(term)) for term in terms], first)
        found.sort(key=lambda each: each.frequency)
        used = list(_used(found, limit)) if self.spreads else found
        # truncated terms again, and the other forms of all
        again = [(each.name, word_forms(each.name)) for each in used if first < limit and _is_truncated(each)]
        inflected = [(each.name, forms) for each in used if (forms := start_forms(each.name))]
        read = self._postings([*again, *inflected], limit)
        longer = {each.name: each for each in read[: len(again)]}
        found = [longer.get(each.name, each) for each in found]
        others = _other_forms(found, read[len(again) :])
        if self.spreads:
            left, limited = MAX_SPREAD, list[Posting]()
            for posting in sorted((*found, *others), key=lambda posting: posting.frequency):
                limited.append(replace(posting, numbers=posting.numbers[: max(0, left)]))
                left -= len(posting.numbers)
            return limited
        return [*(self._with_joint_matches(found) if len(found) > 1 else found), *others]

    def _postings(self, terms: Sequence[tuple[str, Sequence[str]]], limit: int) -> list[Posting]:
        """The newest occurrences of each term in any of its forms."""
        searches = [[forms] for _, forms in terms]
        each_found = self.index.matching_each(searches, self.partition, limit, labels=self.labels)
        return [self._posting(term, found, limit) for (term, _), found in zip(terms, each_found, strict=True)]

    def _posting(self, term: str, numbers: list[int], limit: int) -> Posting:
        frequency = float(len(numbers))
        if len(numbers) == limit:
            # assumes that older occurrences are as dense as the newest
            frequency *= max(1.0, self.total / max(1.0, self.index.count_from(numbers[-1], self.partition)))
        return Posting(term, numbers, min(frequency, self.total), spreads=self.spreads)

    def _with_joint_matches(self, postings: Sequence[Posting]) -> list[Posting]:
        """Add passages where truncated, common terms occur together with rare ones, or the least common together: what
        a search for exact words looks for."""
        rare = [each for each in postings if not _is_truncated(each)]
        common = [each for each in postings if _is_truncated(each)]
        if not rare:
            first = postings[:MAX_JOINT_TERMS]
            together = [word_forms(each.name) for each in first]
            joint = self.index.matching(together, self.partition, MIN_PER_TERM, _scan_start(first[0]), self.labels)
            return [*(_add_numbers(posting, joint) for posting in first), *postings[MAX_JOINT_TERMS:]]
        if sum(len(posting.numbers) for posting in rare) > MAX_RARE_PASSAGES:
            return list(postings)
        forms = [form for posting in rare for form in word_forms(posting.name)]
        pairs = [[forms, word_forms(each.name)] for each in common[:MAX_COMMON_TERMS]]
        # any order: there are not more of them
        joints = self.index.matching_each(pairs, self.partition, MAX_RARE_PASSAGES, labels=self.labels, order="ASC")
        return [*rare, *map(_add_numbers, common, joints), *common[MAX_COMMON_TERMS:]]


def _used(postings: Sequence[Posting], limit: int) -> Iterator[Posting]:
    """The postings with an occurrence that will spread."""
    left = MAX_SPREAD
    for posting in postings:
        if left > 0:
            yield posting
        left -= min(limit, int(posting.frequency))


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


def _scan_start(posting: Posting) -> int:
    """The number followed by about MAX_SCANNED occurrences: a few milliseconds of work."""
    mean_step = (posting.numbers[0] - posting.numbers[-1]) // len(posting.numbers)
    return posting.numbers[0] - mean_step * MAX_SCANNED


def _add_numbers(posting: Posting, numbers: Sequence[int]) -> Posting:
    return replace(posting, numbers=list(dict.fromkeys((*posting.numbers, *numbers))))
