"""KeywordIndex: items are found by every thread and process, and the file can be lost."""

import subprocess
import sys
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


def test_closing_a_file_under_readers_and_writers_raises_errors_at_most(tmp_path: Path) -> None:
    """In a process of its own: a connection that is closed under a thread takes the whole process with it."""
    script = """
import sys, threading, time
from pathlib import Path
from recto.errors import RectoError
from recto.search.index_file import IndexFile

slow = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) SELECT sum(x) FROM n"
for round in range(15):
    file = IndexFile(Path(sys.argv[1]) / "index.db")
    ends = time.monotonic() + 0.1

    def work(writes: bool) -> None:
        while time.monotonic() < ends:
            try:
                if writes:
                    file.write(lambda db: db.execute(slow).fetchall())
                else:
                    file.read(slow)
            except RectoError:
                pass

    threads = [threading.Thread(target=work, args=(number == 0,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while time.monotonic() < ends:
        file.close()
    for thread in threads:
        thread.join()
    file.close()
print("done")
"""
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout.strip()) == (0, "done"), ran.stderr


def many_partitions(text: str) -> dict[str, list[IndexItem]]:
    return {f"talk {n}": [IndexItem(n, text, 1), IndexItem(n, text, 2, channel=n % 2)] for n in range(1200)}


def test_what_all_partitions_hold_is_summed_as_they_grow(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    assert index.extent(None).passages == 0
    index.add(many_partitions("The mast is tall."))
    index.add({"talk 700": [IndexItem(5000, "Lupins make me sneeze.", 3)], "other": [IndexItem(5001, "A keel", 1)]})
    assert index.extent(None).passages == index.count_from(0, None) == 2402
    index.clear([], {}, "message:")
    assert index.extent(None).passages == index.count_from(0, None) == 0


def test_one_addition_to_several_partitions_leaves_one_segment_in_whatever_order_they_come(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    for round in range(2):
        names = [f"talk {n}" for n in range(20)]
        items = {name: [IndexItem(n, f"word{n}", round)] for n, name in enumerate(names)}
        index.add(dict(reversed(items.items())) if round else items)
    assert index.file.read("SELECT count(DISTINCT segid) FROM words_idx")[0][0] == 2
    assert found(Finder(index), "word7", "talk 7") == [7, 7]
