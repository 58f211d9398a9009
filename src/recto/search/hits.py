"""Hit: a passage that was found, with its score and what it was found by."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from recto.search.keyword_index import Passage
from recto.search.query import ParsedQuery
from recto.search.ranking import RADIUS, max_score


class Hit(Struct, frozen=True):
    passage: Passage
    score: float
    """Between 0 and 1: 1 for the best of every ranking."""
    because: str = ""
    word_score: float = 0.0
    """How much of the query it contains, neighbours included; between 0 and about 1."""
    similarity: float | None = None


class SearchResult(Struct, frozen=True):
    hits: tuple[Hit, ...] = ()
    warning: str = ""
    """Why the result may be incomplete: no vectors, or not yet."""


def make_hits(
    parsed: ParsedQuery,
    passages: Mapping[int, Passage],
    scores: Mapping[int, float],
    similarity: Mapping[int, float],
    best: Mapping[int, float],
) -> list[Hit]:
    possible = max_score(parsed.postings, parsed.extent.passages) or 1.0
    around = {number for each in best for number in range(each - RADIUS, each + RADIUS + 1)}
    terms = [
        (posting.name.removesuffix("*"), around.intersection(posting.numbers))
        for posting in parsed.postings
        if posting.numbers
    ]
    return [
        Hit(
            passages[each],
            round(min(1.0, score), 4),
            _because(each, terms, similarity.get(each)),
            min(1.0, scores.get(each, 0.0) / possible),
            similarity.get(each),
        )
        for each, score in best.items()
        if each in passages
    ]


def _because(number: int, terms: Sequence[tuple[str, set[int]]], similarity: float | None) -> str:
    parts = []
    if own := list(dict.fromkeys(name for name, numbers in terms if number in numbers)):
        parts.append("holds " + ", ".join(own[:4]))
    else:
        around = range(number - RADIUS, number + RADIUS + 1)
        if nearby := list(dict.fromkeys(name for name, numbers in terms if not numbers.isdisjoint(around))):
            parts.append("stands beside what holds " + ", ".join(nearby[:3]))
    if similarity is not None:
        parts.append(f"near in meaning ({similarity:.2f})")
    return "; ".join(parts) or "near to what was found"
