"""PassageTable: the same lengths and scores as passage by passage."""

import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search import finder, partition
from recto.search.finder import Finder
from recto.search.index_item import PARTITION_BITS, IndexItem
from recto.search.keyword_index import KeywordIndex, Passage
from recto.search.nearest import Nearest, VectorAnswer
from recto.search.partition import Partition
from recto.search.passage_table import EMPTY_TABLE, PassageTable, Slots, TermShares, WordScores
from recto.search.query import Query
from recto.search.ranking import RADIUS, Posting, best_first, posting_scores, rank, rough_scores, word_scores

FAR = 1 << 32
places = st.integers(0, 60) | st.integers(0, 400) | st.integers(FAR, FAR + 30)
word_counts = st.dictionaries(places, st.integers(0, 90), max_size=60)
found = st.lists(
    st.builds(
        Posting,
        name=st.just("word"),
        numbers=st.lists(places, unique=True, max_size=40).map(lambda numbers: sorted(numbers, reverse=True)),
        frequency=st.floats(1, 300),
        weight=st.sampled_from([1.0, 1.5]),
        spreads=st.booleans(),
    ),
    max_size=5,
)


def table(*batches: dict[int, int]) -> PassageTable:
    made = EMPTY_TABLE
    for batch in batches:
        numbers, words = ",".join(map(str, batch)), ",".join(map(str, batch.values()))
        made = made.extend((numbers, numbers, ",".join("0" for _ in batch), words, ",".join("0" for _ in batch)))
    return made


def one_by_one(counts: dict[int, int]) -> Partition:
    partition = Partition()
    partition._extend(
        {each: Passage(each, 0, 0, 0, each, 0, "", "", "", words, False, b"") for each, words in counts.items()}
    )
    return partition


def listed(scores: WordScores) -> dict[int, float]:
    return dict(zip(scores.numbers.tolist(), scores.scores.tolist(), strict=True))


@given(word_counts, word_counts)
def test_lengths_are_averaged_as_passage_by_passage(first: dict[int, int], added: dict[int, int]) -> None:
    made = table(first, {**added, **first})
    assert dict(zip(made.numbers.tolist(), made.lengths.tolist(), strict=True)) == one_by_one(added | first).lengths


@given(word_counts, found, st.floats(1, 50))
def test_scores_are_those_of_passage_by_passage(counts: dict[int, int], postings: list[Posting], mean: float) -> None:
    lengths = one_by_one(counts).lengths
    assert listed(table(counts).score(postings, 300, mean)) == word_scores(posting_scores(postings, 300), lengths, mean)


@given(word_counts, found, st.floats(1, 50))
def test_passages_that_are_read_as_needed_score_the_same(
    counts: dict[int, int], postings: list[Posting], mean: float
) -> None:
    shares, prepared = TermShares(postings, 300), posting_scores(postings, 300)
    expected = {number: score for number, score in rough_scores(prepared).items() if number >= 0}
    assert listed(shares.score_roughly()) == expected
    lengths = {each: float(words) for each, words in counts.items()}
    assert shares.score_passages(lengths, mean) == word_scores(prepared, lengths, mean)


@given(st.dictionaries(st.integers(0, 300), st.integers(0, 9).map(float)), st.integers(1, 40))
def test_the_best_come_first_some_at_a_time(values: dict[int, float], count: int) -> None:
    ordered = dict(sorted(values.items()))
    scores = WordScores(
        np.array(list(ordered), np.int64), np.array(list(ordered.values()), np.float64), np.arange(len(ordered))
    )
    parts = list(scores.best_first(count))
    assert list(chain.from_iterable(parts)) == list(best_first(values, count)) == rank(values)
    assert all(len(part) >= count for part in parts[:-1])
    assert {number: score for part in parts for number, score in part.items()} == values


@given(word_counts, found, st.tuples(st.just(0), places, places), st.integers(1, 9))
def test_the_best_within_a_stretch_are_the_best_of_those_that_are_in_it(
    counts: dict[int, int], postings: list[Posting], stretch: tuple[int, int, int], count: int
) -> None:
    made = table(counts)
    scores = made.score(postings, 300, 10.0)
    best = made.best_within(scores, stretch, None, count)
    inside = {number: score for number, score in listed(scores).items() if stretch[1] <= number <= stretch[2]}
    expected = rank(inside)[: len(best)]
    assert list(best.items()) == [(number, inside[number]) for number in expected]
    assert len(best) >= min(count, len(inside))


@given(st.sets(places, min_size=1), places)
def test_slots_keep_the_distances_between_neighbours(known: set[int], number: int) -> None:
    slots = Slots(np.array(sorted(known), np.int64))
    own = int(slots.find(np.array([number]))[0])
    near = {each: abs(each - number) for each in known if abs(each - number) <= RADIUS}
    by_number = dict(zip(slots.numbers.tolist(), slots.of_numbers.tolist(), strict=True))
    assert (own >= 0) == bool(near)
    assert all(abs(own - by_number[each]) == distance for each, distance in near.items())


TEXTS = ["The kayak is red.", "Is it?", "A tent and a stove.", "We paddle down the river.", "The stove is broken!"]


class Known:
    """Vectors whose similarity is known beforehand."""

    def __init__(self, similarity: dict[int, float]) -> None:
        self.similarity = similarity

    def prepare(self, text: object) -> None: ...

    def nearest(self, text: str, partition: int | None) -> VectorAnswer:
        return lambda: Nearest(self.similarity)

    def familiarity(self, text: str) -> float:
        return 1.0


@given(
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=30),
    until=st.integers(0, 30),
    is_large=st.booleans(),
    removed=st.integers(0, 2),
    asked=st.sampled_from(["the red stove on the river", "What did I say about the stove?"]),
    limits=st.fixed_dictionaries({"stretch": st.none() | st.tuples(st.integers(0, 1), st.integers(0, 9), st.just(20))})
    | st.just({"accepts": lambda passage: passage.item != 1})
    | st.fixed_dictionaries({"branches": st.sets(st.integers(0, 1))}),
    near=st.lists(st.integers(0, 40), unique=True, max_size=20),
)
def test_searches_find_the_same_with_numpy_and_without(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    until: int,
    is_large: bool,
    removed: int,
    asked: str,
    limits: dict[str, Any],
    near: list[int],
) -> None:
    index = KeywordIndex(tmp_path_factory.mktemp("index") / "search.db")
    items = [
        IndexItem(n, text, n, channel=n % 5 // 4, branch=n % 7 // 6, kind=("user", "assistant")[n % 2])
        for n, text in enumerate(texts)
    ]
    index.add({"talk": items[: len(items) // 2]})
    query = Query(asked, "talk", until=until, **limits)
    first = (index.partition("talk") or 0) << PARTITION_BITS
    vectors = Known({first + number: 1 - place / 20 for place, number in enumerate(near)})
    with pytest.MonkeyPatch.context() as patch:
        if is_large:
            patch.setattr(partition, "MAX_CACHED_PASSAGES", 1)
            patch.setattr(partition, "MAX_TABLE_PASSAGES", 1)
        arrays, plain = Finder(index, vectors), Finder(index, vectors)
        for step in range(3):
            if step == 1:
                index.add({"talk": items[len(items) // 2 :]})
            if step == 2:
                index.remove([removed])
            with_numpy = arrays.find(query)
            with patch.context() as without:
                for module in (finder, partition):
                    without.setattr(module, "load_arrays", lambda: None)
                assert plain.find(query) == with_numpy
    index.close()


SEARCH = """
import sys, numpy
from pathlib import Path
from recto.search.finder import Finder, Query
from recto.search.index_item import IndexItem
from recto.search.keyword_index import KeywordIndex

index = KeywordIndex(Path(sys.argv[1]))
index.add({"chat": [IndexItem(number, f"the mast number{number} leans") for number in range(30)]})
for partition in ("chat", None):
    assert Finder(index).find(Query("which mast leans?", partition)).hits
print("numpy.ma" in sys.modules)
"""


def test_a_search_imports_no_masked_arrays(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SEARCH, str(tmp_path / "search.db")], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
