"""Shelf: passages kept between questions."""

from pathlib import Path

import pytest

from recto.search import shelf as room
from recto.search.index import Index, Item
from recto.search.shelf import Shelf, open_shelf


def filled(path: Path, texts: list[str]) -> tuple[Index, int]:
    index = Index(path / "search.db")
    index.add({"talk": [Item(number, text, number) for number, text in enumerate(texts)]})
    number = index.shelf("talk")
    assert number is not None
    return index, number


def test_it_is_read_once_and_then_extended(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Shelf] = {}
    first = open_shelf(index, kept, number, 2)
    other = Index(tmp_path / "search.db")
    other.add({"talk": [Item(2, "three", 2)]})
    assert open_shelf(index, kept, number, 3) is first
    assert [each.item for each in first.passages.values()] == [0, 1, 2]


def test_what_was_taken_away_is_gone(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    kept: dict[int, Shelf] = {}
    open_shelf(index, kept, number, 2)
    Index(tmp_path / "search.db").remove([0])
    assert [each.item for each in open_shelf(index, kept, number, 1).passages.values()] == [1]


def test_of_a_large_shelf_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, number = filled(tmp_path, ["one", "two"])
    monkeypatch.setattr(room, "MOST_KEPT", 1)
    kept: dict[int, Shelf] = {}
    assert not open_shelf(index, kept, number, 2).is_whole
    assert kept == {}


def test_all_shelves_together_are_never_kept(tmp_path: Path) -> None:
    index, _ = filled(tmp_path, ["one"])
    assert open_shelf(index, {}, None, 1) == Shelf()


def test_lengths_count_the_surroundings_and_what_is_unknown_has_none(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["kayak", "kayak river tent paddle lake stove rope", "kayak"])
    shelf = open_shelf(index, {}, number, 3)
    first, middle, last = shelf.passages
    lengths = shelf.lengths
    assert set(lengths) == set(shelf.priors) == {first, middle, last}
    assert 1.0 < lengths[first] == lengths[last] < lengths[middle] < 7.0


def test_a_new_neighbour_changes_the_lengths_beside_it(tmp_path: Path) -> None:
    index, number = filled(tmp_path, ["kayak", "kayak"])
    kept: dict[int, Shelf] = {}
    shelf = open_shelf(index, kept, number, 2)
    _, last = shelf.passages
    before = shelf.lengths[last]
    Index(tmp_path / "search.db").add({"talk": [Item(2, "river tent paddle lake stove rope", 2)]})
    assert open_shelf(index, kept, number, 3).lengths[last] > before
