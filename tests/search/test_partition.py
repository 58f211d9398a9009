"""Partition: passages cached between queries."""

from pathlib import Path

import pytest

from recto.search import finder
from recto.search import partition as module
from recto.search.index_item import IndexItem
from recto.search.keyword_index import KeywordIndex
from recto.search.partition import Partition, keep_recent, open_partition


def filled(path: Path, texts: list[str]) -> tuple[KeywordIndex, int]:
    index = KeywordIndex(path / "search.db")
    index.add({"talk": [IndexItem(number, text, number) for number, text in enumerate(texts)]})
    number = index.partition("talk")
    assert number is not None
    return index, number


@pytest.fixture(params=["numpy", "plain"], autouse=True)
def scoring(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(module, "load_arrays", lambda: None)
    else:
        pytest.importorskip("numpy")


def lengths(partition: Partition) -> dict[int, float]:
    if partition.table is None:
        return partition.lengths
    return dict(zip(partition.table.numbers.tolist(), partition.table.lengths.tolist(), strict=True))


def found(index: KeywordIndex, partition: Partition) -> list[int]:
    return [each.item for each in index.passages(sorted(lengths(partition))).values()]


def test_a_partition_is_read_once_and_then_extended(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Partition] = {}
    first = open_partition(index, kept, number, 2)
    other = KeywordIndex(tmp_path / "search.db")
    other.add({"talk": [IndexItem(2, "three", 2)]})
    assert open_partition(index, kept, number, 3) is first
    assert found(index, first) == [0, 1, 2]


def test_removed_passages_disappear(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Partition] = {}
    open_partition(index, kept, number, 2)
    KeywordIndex(tmp_path / "search.db").remove([0])
    assert found(index, open_partition(index, kept, number, 1)) == [1]


def test_a_large_partition_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    monkeypatch.setattr(module, "MAX_CACHED_PASSAGES", 1)
    kept: dict[int, Partition] = {}
    assert not open_partition(index, kept, number, 2).is_complete
    assert kept == {}


def test_of_notes_a_larger_partition_is_cached_as_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    index.keeps_texts = True
    monkeypatch.setattr(module, "MAX_CACHED_PASSAGES", 1)
    assert open_partition(index, {}, number, 2).is_complete == (module.load_arrays() is not None)
    assert not open_partition(index, {}, number, module.MAX_TABLE_PASSAGES + 1).is_complete


def test_a_large_partition_is_read_into_arrays_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, number = filled(tmp_path, ["a kayak", *["nothing of note"] * 20, "a red kayak", *["nothing"] * 20])
    monkeypatch.setattr(module, "MAX_CACHED_PASSAGES", 1)
    monkeypatch.setattr(finder, "load_arrays", module.load_arrays)
    search, red = finder.Finder(index), finder.Query("red kayak", "talk")
    assert search.find(red).hits[0].passage.item == 21
    assert not search._cache
    search.warm()
    assert list(search._cache) == ([number] if module.load_arrays() else [])
    assert search.find(red).hits[0].passage.item == 21
    KeywordIndex(tmp_path / "search.db").add({"talk": [IndexItem(99, "a red kayak", 99)]})
    assert 99 in [hit.passage.item for hit in search.find(red).hits]


def test_all_partitions_together_are_never_cached(tmp_path: Path) -> None:
    index, _ = filled(tmp_path, ["one"])
    assert open_partition(index, {}, None, 1) == Partition()


def test_lengths_include_known_neighbours(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["kayak", "kayak river tent paddle lake stove rope", "kayak"])
    partition = open_partition(index, {}, number, 3)
    first, middle, last = lengths(partition)
    known = lengths(partition)
    assert partition.table is not None or set(known) == set(partition.priors)
    assert 1.0 < known[first] == known[last] < known[middle] < 7.0


def test_a_new_neighbour_changes_the_lengths_next_to_it(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["kayak", "kayak"])
    kept: dict[int, Partition] = {}
    partition = open_partition(index, kept, number, 2)
    _, last = lengths(partition)
    before = lengths(partition)[last]
    KeywordIndex(tmp_path / "search.db").add({"talk": [IndexItem(2, "river tent paddle lake stove rope", 2)]})
    assert lengths(open_partition(index, kept, number, 3))[last] > before


def test_a_partition_read_before_numpy_was_there_goes_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, number = filled(tmp_path, ["kayak", "river tent"])
    kept: dict[int, Partition] = {}
    with monkeypatch.context() as without:
        without.setattr(module, "load_arrays", lambda: None)
        before = dict(lengths(open_partition(index, kept, number, 2)))
    index.add({"other": [IndexItem(9, "lake")]})
    assert lengths(open_partition(index, kept, number, 2)) == before


def test_of_many_partitions_only_the_latest_stay_in_memory() -> None:
    cache: dict[int, str] = {}
    for number in (1, 2, 3, 1, 4):
        keep_recent(cache, number, "", 3)
    assert list(cache) == [3, 1, 4]
