"""Two embedders for one index, the second one slower and only for some languages."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recto.errors import NoVectors
from recto.search.embedder import LOCAL, MULTILINGUAL
from recto.search.embedders import LocalEmbedder, open_embedder
from recto.search.finder import Finder, Query, SearchResult
from recto.search.hybrid_index import HybridIndex
from recto.search.index_item import IndexItem
from recto.search.keyword_index import Passage

TEXTS = ("The mast is tall.", "Rye bread is baked on Thursday.", "The sail is red.")


class Known:
    """Knows what a text is about from a table, in as many numbers as there are texts."""

    def __init__(self, name: str, about: dict[str, int], knows: str = "") -> None:
        self.name = self.key = name
        self._about, self._knows = about, knows
        self.asked, self.is_broken = list[str](), False

    def embed(self, texts: Sequence[str]) -> Any:
        if self.is_broken:
            raise NoVectors(f"{self.name} is broken.")
        self.asked += texts
        return np.array([np.eye(len(TEXTS))[self._about.get(text, 0)] for text in texts], np.float32)

    def familiarity(self, text: str) -> float:
        return 1.0 if not self._knows or text.isascii() else 0.0

    def close(self) -> None: ...


ITSELF = {text: number for number, text in enumerate(TEXTS)}


@pytest.fixture
def first() -> Known:
    return Known(MULTILINGUAL, {**ITSELF, "Qué se cuece": 1, "what is cooked": 2})


@pytest.fixture
def second() -> Known:
    return Known("narrow", {**ITSELF, "what is cooked": 1}, knows="English")


@pytest.fixture
def index(tmp_path: Path, first: Known, second: Known) -> Iterator[HybridIndex]:
    def read(passages: Sequence[Passage]) -> dict[int, str]:
        return {each.number: TEXTS[each.item] for each in passages}

    with closing(
        HybridIndex(tmp_path / "search.db", lambda: LocalEmbedder(first, second), read, timeout_s=60, keeps_texts=True)
    ) as opened:
        opened.keywords.add({"a": [IndexItem(n, text, n, branch=n) for n, text in enumerate(TEXTS)]})
        opened.open()
        yield opened


def found(index: HybridIndex, text: str) -> SearchResult:
    return index.finder.find(Query(text, "a", spreads=False))


def similarities(result: SearchResult) -> dict[int, float]:
    return {hit.passage.item: round(hit.similarity or 0.0, 1) for hit in result.hits}


def test_vectors_of_the_first_are_made_first(index: HybridIndex, first: Known, second: Known) -> None:
    assert index.vectors is not None
    assert index.vectors.make_batch() == len(TEXTS)
    assert (len(first.asked), second.asked, index.vectors.waiting, index.vectors.to_make) == (3, [], 0, 3)
    assert index.vectors.make_batch() == len(TEXTS)
    assert (index.vectors.to_make, index.vectors.make_batch()) == (0, 0)


def test_while_vectors_of_the_second_are_missing_the_first_counts_alone(index: HybridIndex) -> None:
    assert index.vectors is not None
    index.vectors.make_batch()
    result = found(index, "what is cooked")
    assert (similarities(result)[2], result.warning) == (1.3, "")


def test_both_count_for_a_text_in_a_language_that_both_know(index: HybridIndex) -> None:
    index.make_vectors()
    told = similarities(found(index, "what is cooked"))
    assert told[1] == 0.5 < told[2] < 1


def test_the_first_counts_alone_where_the_second_does_not_know_the_language(index: HybridIndex) -> None:
    index.make_vectors()
    assert similarities(found(index, "Qué se cuece"))[1] == 1.3


def test_a_second_that_fails_leaves_the_first(index: HybridIndex, second: Known) -> None:
    index.make_vectors()
    second.is_broken = True
    result = found(index, "what is cooked")
    assert (similarities(result)[2], result.warning) == (1.3, "")


def test_a_first_that_fails_leaves_the_second(index: HybridIndex, first: Known) -> None:
    index.make_vectors()
    first.is_broken = True
    assert similarities(found(index, "what is cooked"))[1] == 1.0


def test_one_vector_of_a_short_text_holds_both(tmp_path: Path) -> None:
    embedder = open_embedder(LOCAL, home=tmp_path)
    assert isinstance(embedder, LocalEmbedder)
    with closing(embedder):
        english, same, german, other = embedder.embed(
            ["Who borrowed the ladder?", "Who took our ladder?", "Wer hat die Leiter geliehen?", "The ferry is late."]
        )
    assert english @ same > english @ german > 0.5 > english @ other


def test_words_count_only_as_far_as_they_cover_the_question(tmp_path: Path, first: Known) -> None:
    """A name alone does not bring a note to the top of a question in another language."""
    index = HybridIndex(tmp_path / "s.db", lambda: first, lambda _: {}, timeout_s=60, keeps_texts=True)
    with closing(index):
        index.keywords.add({"a": [IndexItem(n, text, n, branch=n) for n, text in enumerate(TEXTS)]})
        finder = Finder(index.keywords)
        assert [hit.passage.item for hit in finder.find(Query("mast", "a", spreads=False)).hits] == [0]
