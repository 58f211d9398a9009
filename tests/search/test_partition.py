"""Partition: passages kept in memory between queries, and their scores by words."""

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import Script

from recto.search import partition as module
from recto.search.finder import Finder, Query
from recto.search.keyword_index import IndexItem, KeywordIndex, keep_recent
from recto.search.partition import (
    EMPTY_TABLE,
    Partition,
    PassageTable,
    WordScores,
    open_partition,
    score_roughly,
    score_words,
)
from recto.search.ranking import K1, NEIGHBOUR_WEIGHTS, RADIUS, B, Posting, idf, max_score, rank


def filled(path: Path, texts: list[str]) -> tuple[KeywordIndex, int]:
    index = KeywordIndex(path / "search.db")
    index.add({"talk": [IndexItem(number, text, number) for number, text in enumerate(texts)]})
    number = index.partition("talk")
    assert number is not None
    return index, number


def lengths(partition: Partition) -> dict[int, float]:
    assert partition.table is not None
    return by_number(partition.table)


def by_number(table: PassageTable) -> dict[int, float]:
    return dict(zip(table.numbers.tolist(), table.lengths.tolist(), strict=True))


def found(index: KeywordIndex, partition: Partition) -> list[int]:
    return [each.item for each in index.passages(sorted(lengths(partition))).values()]


def test_a_partition_is_read_once_and_then_extended(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["kayak", "kayak"])
    kept: dict[int, Partition] = {}
    first = open_partition(index, kept, number, 2)
    (_, last), before = lengths(first), lengths(first)
    KeywordIndex(tmp_path / "search.db").add({"talk": [IndexItem(2, "river tent paddle lake stove rope", 2)]})
    assert open_partition(index, kept, number, 3) is first
    assert found(index, first) == [0, 1, 2]
    assert lengths(first)[last] > before[last], "a new neighbour counts"


def test_removed_passages_disappear(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Partition] = {}
    open_partition(index, kept, number, 2)
    KeywordIndex(tmp_path / "search.db").remove([0])
    assert found(index, open_partition(index, kept, number, 1)) == [1]


def test_a_large_partition_has_a_table_only_if_there_is_time_or_it_is_of_notes(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Partition] = {}
    large = module.MAX_READ_PASSAGES + 1
    assert open_partition(index, kept, number, large).table is None
    assert kept == {}
    assert open_partition(index, {}, number, large, has_time=True).table is not None
    index.keeps_texts = True
    assert open_partition(index, {}, number, large).table is not None
    assert open_partition(index, {}, number, module.MAX_TABLE_PASSAGES + 1).table is None
    assert open_partition(index, {}, None, 1).table is None, "all partitions together never have one"


def test_the_table_of_a_large_partition_is_made_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, number = filled(tmp_path, ["a kayak", *["nothing of note"] * 20, "a red kayak", *["nothing"] * 20])
    monkeypatch.setattr(module, "MAX_READ_PASSAGES", 1)
    search, red = Finder(index), Query("red kayak", "talk")
    assert search.find(red).hits[0].passage.item == 21
    assert not search._cache
    search.warm()
    assert list(search._cache) == [number]
    assert search.find(red).hits[0].passage.item == 21
    KeywordIndex(tmp_path / "search.db").add({"talk": [IndexItem(99, "a red kayak", 99)]})
    assert 99 in [hit.passage.item for hit in search.find(red).hits]


def test_of_many_partitions_only_the_latest_stay_in_memory() -> None:
    cache: dict[int, str] = {}
    for number in (1, 2, 3, 1, 4):
        keep_recent(cache, number, "", 3)
    assert list(cache) == [3, 1, 4]


# -- scores

FAR = 1 << 32
places = st.integers(0, 60) | st.integers(0, 400) | st.integers(FAR, FAR + 30)
word_counts = st.dictionaries(places, st.integers(0, 90), max_size=60)
some_postings = st.lists(
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


def averaged(counts: dict[int, int]) -> dict[int, float]:
    """The mean of a passage's word count and those of its neighbours, written out."""
    near = {
        each: [
            (counts[each + step], NEIGHBOUR_WEIGHTS[abs(step)])
            for step in range(-RADIUS, RADIUS + 1)
            if each + step in counts
        ]
        for each in counts
    }
    return {each: sum(n * part for n, part in known) / sum(part for _, part in known) for each, known in near.items()}


def scored(postings: list[Posting], known: dict[int, float], mean: float) -> dict[int, float]:
    """BM25 of each passage, with a share for the distance to the nearest occurrence, written out."""
    scores: dict[int, float] = {}
    for posting in postings:
        weight = posting.weight * idf(posting.frequency, 300)
        for each, length in known.items():
            distance = min((abs(each - number) for number in posting.numbers), default=RADIUS + 1)
            if posting.spreads and distance <= RADIUS:
                share = NEIGHBOUR_WEIGHTS[distance]
                part = weight * (1 + K1) * share / (share + K1 * (1 - B + B * length / mean))
                scores[each] = scores.get(each, 0.0) + part
            elif distance == 0:
                scores[each] = scores.get(each, 0.0) + weight
    return scores


def listed(scores: WordScores) -> dict[int, float]:
    return dict(zip(scores.numbers.tolist(), scores.scores.tolist(), strict=True))


@given(word_counts, word_counts)
def test_lengths_are_averaged_with_neighbours(first: dict[int, int], added: dict[int, int]) -> None:
    assert by_number(table(first, {**added, **first})) == pytest.approx(averaged(added | first))


@given(word_counts, some_postings, st.floats(1, 50))
def test_a_passage_scores_for_its_words_and_those_beside_it(
    counts: dict[int, int], postings: list[Posting], mean: float
) -> None:
    made = table(counts)
    scores = score_words(postings, 300, made.numbers, made.lengths, mean)
    assert listed(scores) == pytest.approx(scored(postings, by_number(made), mean))
    without = score_words(postings, 300, made.numbers, made.lengths, mean, np.array([5, 7]))
    others = [replace(each, numbers=[number for number in each.numbers if number not in (5, 7)]) for each in postings]
    assert listed(without) == pytest.approx(scored(others, by_number(made), mean))


@given(some_postings)
def test_rough_scores_are_those_of_passages_of_the_mean_length(postings: list[Posting]) -> None:
    roughly = listed(score_roughly(postings, 300))
    assert roughly == pytest.approx(scored(postings, dict.fromkeys(roughly, 1.0), 1.0))
    occurrences = {number for posting in postings for number in posting.numbers}
    assert occurrences <= roughly.keys()


@given(some_postings)
def test_no_passage_of_usual_length_exceeds_the_maximum_score(postings: list[Posting]) -> None:
    scores = listed(score_roughly(postings, 300)).values()
    assert all(score <= max_score(postings, 300) + 1e-9 for score in scores)


@given(st.dictionaries(st.integers(0, 300), st.integers(0, 9).map(float)), st.integers(1, 40))
def test_the_best_come_first_some_at_a_time(values: dict[int, float], count: int) -> None:
    ordered = dict(sorted(values.items()))
    scores = WordScores(
        np.array(list(ordered), np.int64), np.array(list(ordered.values()), np.float64), np.arange(len(ordered))
    )
    parts = list(scores.best_first(count))
    assert list(chain.from_iterable(parts)) == rank(values)
    assert all(len(part) >= count for part in parts[:-1])
    assert {number: score for part in parts for number, score in part.items()} == values


@given(word_counts, st.tuples(st.just(0), places, places))
def test_what_is_outside_of_a_stretch_does_not_count(counts: dict[int, int], stretch: tuple[int, int, int]) -> None:
    made = table(counts)
    inside = [each for each in counts if stretch[1] <= each <= stretch[2]]
    assert made.within([*counts, 7_000], made.mask(stretch, None)) == inside
    assert made.within(counts, made.mask(stretch, {1})) == []


SEARCH = """
import sys
from pathlib import Path
from recto.search.finder import Finder, Query
from recto.search.keyword_index import IndexItem
from recto.search.keyword_index import KeywordIndex

index = KeywordIndex(Path(sys.argv[1]))
assert not Finder(index).find(Query("which mast leans?")).hits
print("numpy" in sys.modules)
index.add({"chat": [IndexItem(number, f"the mast number{number} leans") for number in range(30)]})
for partition in ("chat", None):
    assert Finder(index).find(Query("which mast leans?", partition)).hits
print("numpy.ma" in sys.modules)
"""


def test_numpy_is_imported_only_to_score_passages_and_without_masked_arrays(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SEARCH, str(tmp_path / "search.db")], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


ASK = """
import sys
sys.argv = ["recto", "ask", "--model", sys.argv[1], "hi"]
from recto.cli.main import main
try:
    main()
except SystemExit:
    pass
print("numpy" in sys.modules)
"""


def test_a_question_in_an_empty_home_imports_no_numpy(tmp_path: Path, script: Script) -> None:
    asked = [sys.executable, "-c", ASK, script({"text": "Hello."})]
    environment = {**os.environ, "RECTO_HOME": str(tmp_path / "home")}
    done = subprocess.run(asked, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["Hello.", "False"], done.stderr
