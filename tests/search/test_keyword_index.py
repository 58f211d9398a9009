"""KeywordIndex: items are found by every thread and process, and the file can be lost."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from threading import Thread

import pytest

from recto.search.finder import Finder, Query
from recto.search.keyword_index import GAP, Filter, IndexItem, KeywordIndex, Passage


def all_passages(index: KeywordIndex, partition: str | None = None) -> list[Passage]:
    hashes = index.hashes(index.partition(partition) if partition else None)
    return list(index.passages(number for number, _ in hashes).values())


def found(finder: Finder, text: str, partition: str = "a") -> list[int]:
    return [hit.passage.item for hit in finder.find(Query(text, partition)).hits if hit.word_score > 0]


def in_a_thread(work: Callable[[], None]) -> None:
    thread = Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize("run", [lambda work: work(), in_a_thread])
def test_items_added_later_are_found(tmp_path: Path, run: Callable[[Callable[[], None]], None], channel: int) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    finder = Finder(index)
    index.add({"a": [IndexItem(1, "The mast is tall.", 1), IndexItem(2, "a tool's output", 2, channel=channel)]})
    assert found(finder, "mast")[0] == 1
    run(lambda: index.add({"a": [IndexItem(3, "Lupins make me sneeze.", 3)]}))
    assert 3 in found(finder, "lupins")


def test_removed_items_are_not_found(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    finder = Finder(index)
    index.add({"a": [IndexItem(1, "The mast is tall.", 1), IndexItem(2, "Another mast.", 2)]})
    assert sorted(found(finder, "mast")) == [1, 2]
    index.remove([1])
    assert found(finder, "mast") == [2]


def test_partitions_are_separate_and_can_be_searched_together(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    index.add({"a": [IndexItem(1, "The mast is tall.")], "b": [IndexItem(2, "A mast of steel.")]})
    finder = Finder(index)
    assert (found(finder, "mast", "a"), found(finder, "mast", "b")) == ([1], [2])
    assert found(finder, "mast", "c") == []
    hits = finder.find(Query("mast", spreads=False)).hits
    assert {hit.passage.item for hit in hits} == {1, 2}


def test_passages_of_another_session_or_branch_are_not_neighbours(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    items = [
        IndexItem(1, "one", 1, 1, time="2026-01-01T10:00:00"),
        IndexItem(2, "two", 2, 1, time="2026-01-01T10:01:00"),
        IndexItem(3, "three", 3, 1, time="2026-01-02T10:00:00"),
        IndexItem(4, "four", 4, 9, time="2026-01-02T10:00:00"),
    ]
    index.add({"a": items})
    first, second, third, fourth = (each.number for each in all_passages(index, "a"))
    assert second - first == 1
    assert third - second == fourth - third == GAP


@pytest.mark.parametrize("expected", [{"done": ""}, {"done": "1", "growing": "[3]"}])
def test_a_changed_mark_stops_the_transaction(tmp_path: Path, expected: dict[str, str]) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    index.add({"a": [IndexItem(1, "mast")]}, {"done": "1", "growing": "[]"}, expected={"done": ""})
    index.add({"a": [IndexItem(2, "late")]}, {"done": "2"}, expected=expected)
    assert index.mark("done") == "1"
    assert [passage.item for passage in all_passages(index, "a")] == [1]


def test_a_kind_within_days_months_and_years_is_found_exactly(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    days = ("1999-12-31", "2000-01-01", "2009-05-17", "2010-06-01", "2011-01-01", "2011-03-09", "2012-12-31")
    kinds = [(kind, f"{day}T10:00:00") for day in days for kind in ("user", "assistant", "tool", "")]
    index.add({"a": [IndexItem(n, "mast", n, kind=kind, time=at) for n, (kind, at) in enumerate(kinds)]})
    finder, ends = Finder(index), (None, "2000", "2009-05-17T10:00:00", "2010-01-01", "2011-01", "2011-03-09", "2020")
    everything = all_passages(index)
    for since, before in product(ends, ends):
        only = Filter("tool", since, before)
        hits = finder.find(Query("mast", filter=only, spreads=False)).hits
        assert {hit.passage.item for hit in hits} == {each.item for each in everything if only.matches(each)}
