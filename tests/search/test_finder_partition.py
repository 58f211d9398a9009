"""Partition: passages cached between queries."""

from pathlib import Path

import pytest

from recto.search import finder
from recto.search.finder import Partition, keep_recent, open_partition
from recto.search.keyword_index import IndexItem, KeywordIndex


def filled(path: Path, texts: list[str]) -> tuple[KeywordIndex, int]:
    index = KeywordIndex(path / "search.db")
    index.add({"talk": [IndexItem(number, text, number) for number, text in enumerate(texts)]})
    number = index.partition("talk")
    assert number is not None
    return index, number


def test_a_partition_is_read_once_and_then_extended(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Partition] = {}
    first = open_partition(index, kept, number, 2)
    other = KeywordIndex(tmp_path / "search.db")
    other.add({"talk": [IndexItem(2, "three", 2)]})
    assert open_partition(index, kept, number, 3) is first
    assert [each.item for each in first.passages.values()] == [0, 1, 2]


def test_removed_passages_disappear(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Partition] = {}
    open_partition(index, kept, number, 2)
    KeywordIndex(tmp_path / "search.db").remove([0])
    assert [each.item for each in open_partition(index, kept, number, 1).passages.values()] == [1]


def test_a_large_partition_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    monkeypatch.setattr(finder, "MAX_CACHED_PASSAGES", 1)
    kept: dict[int, Partition] = {}
    assert not open_partition(index, kept, number, 2).is_complete
    assert kept == {}


def test_all_partitions_together_are_never_cached(tmp_path: Path) -> None:
    index, _ = filled(tmp_path, ["one"])
    assert open_partition(index, {}, None, 1) == Partition()


def test_lengths_include_known_neighbours(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["kayak", "kayak river tent paddle lake stove rope", "kayak"])
    partition = open_partition(index, {}, number, 3)
    first, middle, last = partition.passages
    lengths = partition.lengths
    assert set(lengths) == set(partition.priors) == {first, middle, last}
    assert 1.0 < lengths[first] == lengths[last] < lengths[middle] < 7.0


def test_a_new_neighbour_changes_the_lengths_next_to_it(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["kayak", "kayak"])
    kept: dict[int, Partition] = {}
    partition = open_partition(index, kept, number, 2)
    _, last = partition.passages
    before = partition.lengths[last]
    KeywordIndex(tmp_path / "search.db").add({"talk": [IndexItem(2, "river tent paddle lake stove rope", 2)]})
    assert open_partition(index, kept, number, 3).lengths[last] > before


def test_of_many_partitions_only_the_latest_stay_in_memory() -> None:
    cache: dict[int, str] = {}
    for number in (1, 2, 3, 1, 4):
        keep_recent(cache, number, "", 3)
    assert list(cache) == [3, 1, 4]
