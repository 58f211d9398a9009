"""Meaning: vectors that are there, that are not there yet, and that are not what they were."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recto.errors import NoVectors
from recto.search.index import Index, Item, Passage
from recto.search.meaning import BATCH, Meaning
from recto.search.vectors import Vectors

TEXTS = ("The mast is tall.", "Rye bread is baked on Thursday.", "The sail is red.")


class Letters:
    """An embedder that counts letters, in as many numbers as it is told."""

    name = key = "letters"

    def __init__(self, length: int = 26, error: Exception | None = None) -> None:
        self.length, self.error, self.asked = length, error, list[str]()

    def embed(self, texts: Sequence[str]) -> Any:
        if self.error:
            raise self.error
        self.asked += texts
        rows = np.array(
            [[text.lower().count(chr(97 + place)) for place in range(self.length)] for text in texts], float
        )
        return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def close(self) -> None: ...


def opened(path: Path, embedder: Letters, texts: Sequence[str] = TEXTS) -> tuple[Index, Meaning]:
    index = Index(path)
    if not index.mark("filled"):
        index.add({"a": [Item(n, text, n) for n, text in enumerate(texts)]}, {"filled": "yes"})

    def read(passages: Sequence[Passage]) -> dict[int, str]:
        return {each.n: texts[each.item] for each in passages}

    return index, Meaning(index, embedder, read)


def test_before_any_vector_is_made_nothing_is_near_and_nothing_fails(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters())
    assert meaning.near("a tall mast", index.shelf("a"))() == ({}, "")
    assert meaning.near("a tall mast", None)() == ({}, "")


def test_what_is_alike_is_nearest(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters())
    while meaning.make_some():
        pass
    near, note = meaning.near("the mast is tall", index.shelf("a"))()
    assert note == ""
    best = max(near, key=lambda number: near[number])
    assert index.passages([best])[best].item == 0


def test_what_comes_later_is_compared_too(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters(), (*TEXTS, "zzz zebra zoo"))
    while meaning.make_some():
        pass
    meaning.near("x", index.shelf("a"))()
    index.add({"a": [Item(3, "zzz zebra zoo", 9)]})
    while meaning.make_some():
        pass
    near, _ = meaning.near("zebra zzz zoo", index.shelf("a"))()
    assert len(near) == 5


def test_a_text_costs_once(tmp_path: Path) -> None:
    embedder = Letters()
    _, meaning = opened(tmp_path / "search.db", embedder, ["the same words"] * (BATCH + 5))
    while meaning.make_some():
        pass
    assert embedder.asked == ["the same words"]


def test_vectors_of_another_length_are_made_anew_and_that_is_told(tmp_path: Path) -> None:
    index, before = opened(tmp_path / "search.db", Letters(26))
    while before.make_some():
        pass
    index.close()
    index, after = opened(tmp_path / "search.db", Letters(10))
    near, note = after.near("mast", index.shelf("a"))()
    assert near == {}
    assert "another length" in note
    assert after.waiting == len(TEXTS)
    after._rests_until = 0
    while after.make_some():
        pass
    assert len(after.near("mast", index.shelf("a"))()[0]) == len(TEXTS)


@pytest.mark.parametrize("error", [NoVectors("it is down"), ValueError("a bug in there")])
def test_an_embedder_that_fails_is_told_also_when_there_is_nothing_to_compare(tmp_path: Path, error: Exception) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters(error=error))
    near, note = meaning.near("mast", index.shelf("a"))()
    assert near == {}
    assert str(error) in note
    assert "words alone" in note
    assert meaning.make_some() == 0


def test_vectors_that_are_let_go_wait_to_be_made_again(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters())
    while meaning.make_some():
        pass
    kept = Vectors(index.file)
    assert kept.counts() == {"letters": 3}
    kept.forget("letters")
    assert kept.counts() == {"letters": 0}
    assert meaning.waiting == 3
