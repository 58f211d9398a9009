"""The index: what is put there is found there, by whoever looks, and the file can be lost."""

import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from recto.errors import StoreError
from recto.search.finder import Finder, Wanted
from recto.search.index import GAP, Filter, Index, Item


def found(finder: Finder, text: str, shelf: str = "a") -> list[int]:
    return [hit.passage.item for hit in finder.find(Wanted(text, shelf)).hits if hit.words > 0]


def test_what_the_same_thread_adds_later_is_found_too(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    finder = Finder(index)
    index.add({"a": [Item(1, "The mast is tall.", 1)]})
    assert found(finder, "mast") == [1]
    index.add({"a": [Item(2, "Lupins make me sneeze.", 2)]})
    assert 2 in found(finder, "lupins")


def test_what_comes_to_one_lane_after_another_is_found(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    finder = Finder(index)
    index.add({"a": [Item(1, "The mast is tall.", 1), Item(2, "a tool's output", 2, lane=1)]})
    assert found(finder, "mast") == [1]
    index.add({"a": [Item(3, "Lupins make me sneeze.", 3)]})
    assert 3 in found(finder, "lupins")


def test_what_another_thread_adds_is_found_too(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    finder = Finder(index)
    index.add({"a": [Item(1, "The mast is tall.", 1)]})
    assert found(finder, "mast") == [1]
    thread = Thread(target=index.add, args=({"a": [Item(2, "Lupins make me sneeze.", 2)]},))
    thread.start()
    thread.join()
    assert 2 in found(finder, "lupins")


def test_what_is_removed_is_not_found(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    finder = Finder(index)
    index.add({"a": [Item(1, "The mast is tall.", 1), Item(2, "Another mast.", 2)]})
    assert sorted(found(finder, "mast")) == [1, 2]
    index.remove([1])
    assert found(finder, "mast") == [2]


def test_shelves_are_kept_apart_and_searched_together(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    index.add({"a": [Item(1, "The mast is tall.")], "b": [Item(2, "A mast of steel.")]})
    finder = Finder(index)
    assert (found(finder, "mast", "a"), found(finder, "mast", "b")) == ([1], [2])
    assert found(finder, "mast", "c") == []
    hits = finder.find(Wanted("mast", spreads=False)).hits
    assert {hit.passage.item for hit in hits} == {1, 2}


def test_another_sitting_and_another_branch_are_no_neighbours(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    items = [
        Item(1, "one", 1, 1, at="2026-01-01T10:00:00"),
        Item(2, "two", 2, 1, at="2026-01-01T10:01:00"),
        Item(3, "three", 3, 1, at="2026-01-02T10:00:00"),
        Item(4, "four", 4, 9, at="2026-01-02T10:00:00"),
    ]
    index.add({"a": items})
    first, second, third, fourth = index.on_shelf(index.shelf("a"))
    assert second - first == 1
    assert third - second == fourth - third == GAP


def test_a_mark_that_another_has_moved_stops_the_step(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    index.add({"a": [Item(1, "mast")]}, {"done": "1"}, expects={"done": ""})
    index.add({"a": [Item(1, "mast")]}, {"done": "1"}, expects={"done": ""})
    assert index.mark("done") == "1"
    assert len(index.on_shelf(index.shelf("a"))) == 1


def test_filters_hold_in_words_and_times(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    index.add(
        {
            "a": [
                Item(1, "mast", kind="user", at="2026-01-01T10:00:00"),
                Item(2, "mast", kind="assistant", at="2026-02-01T10:00:00"),
                Item(3, "mast", kind="user", at="2026-03-01T10:00:00"),
            ]
        }
    )
    finder = Finder(index)
    for only, wanted in (
        (Filter(kind="user"), {1, 3}),
        (Filter(since="2026-01-15"), {2, 3}),
        (Filter(before="2026-02-15"), {1, 2}),
        (Filter("user", "2026-01-15", "2026-04-01"), {3}),
    ):
        hits = finder.find(Wanted("mast", only=only, spreads=False)).hits
        assert {hit.passage.item for hit in hits} == wanted


def test_the_file_can_be_thrown_away_and_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "search.db"
    index = Index(path)
    index.add({"a": [Item(1, "mast")]}, {"done": "1"})
    index.close()
    path.write_bytes(b"this is no database at all, but long enough to be read as one" * 40)
    assert index.mark("done") == ""
    assert "damaged" in index.file.was_renewed
    index.add({"a": [Item(1, "mast")]}, {"done": "1"})
    assert index.mark("done") == "1"


def test_a_place_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "search.db").mkdir()
    with pytest.raises(StoreError, match=r"search\.db cannot be used"):
        Index(tmp_path / "search.db").mark("done")


def test_every_mark_that_is_expected_must_stand(tmp_path: Path) -> None:
    index = Index(tmp_path / "search.db")
    index.add({"a": [Item(1, "mast")]}, {"done": "1", "growing": "[]"})
    index.add({"a": [Item(2, "late")]}, {"growing": "[2]"}, expects={"done": "1", "growing": "[3]"})
    assert [passage.item for passage in index.on_shelf(index.shelf("a")).values()] == [1]


def test_a_file_that_is_closed_under_readers_and_writers_ends_in_errors_at_most(tmp_path: Path) -> None:
    """In a process of its own: a connection that is closed under a thread takes the whole process with it."""
    script = """
import sys, threading, time
from pathlib import Path
from recto.errors import RectoError
from recto.search.file import IndexFile

slow = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) SELECT sum(x) FROM n"
for round in range(15):
    file = IndexFile(Path(sys.argv[1]) / "index.db")
    ends = time.monotonic() + 0.1

    def work(writes: bool) -> None:
        while time.monotonic() < ends:
            try:
                if writes:
                    with file.write() as db:
                        db.execute(slow).fetchall()
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
