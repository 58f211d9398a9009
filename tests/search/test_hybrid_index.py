"""Lexicon: words of an index for words of other languages, by the real encoder."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recto.search.hybrid_index import Lexicon
from recto.search.keyword_index import IndexItem, KeywordIndex
from recto.search.onnx_embedder import MultilingualEncoder

NOTES = """The library opens at nine and closes at six; on Mondays it is shut. Books are lent for four weeks. A fine of
twenty pence a day is due for each late book. The heating was repaired in March, the roof leaks above the reading room.
Children may borrow ten comics. A lost card costs three pounds. Coffee is sold in the hall; leave cups out of the
reading room. The cleaner comes on Friday evening with the keys of the cellar. Insurance covers fire and water."""
IN_ENGLISH = {
    "Bücherei": "library",
    "Heizung": "heating",
    "Dach": "roof",
    "Schlüssel": "keys",
    "biblioteca": "library",
    "tejado": "roof",
    "niños": "children",
    "крыша": "roof",
    "страховка": "insurance",
    "咖啡": "coffee",
}


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    return MultilingualEncoder()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[KeywordIndex]:
    with closing(KeywordIndex(tmp_path / "search.db", keeps_texts=True)) as opened:
        opened.add({"notes": [IndexItem(1, NOTES)]})
        yield opened


def test_words_of_other_languages_find_those_of_the_notes(index: KeywordIndex, encoder: MultilingualEncoder) -> None:
    found = Lexicon(index, encoder).translations(list(IN_ENGLISH), [], 60)
    right = [word for word, english in IN_ENGLISH.items() if found.get(word) == english]
    assert len(right) >= len(IN_ENGLISH) - 2


def test_a_word_that_the_notes_have_no_word_for_stays_without(
    index: KeywordIndex, encoder: MultilingualEncoder
) -> None:
    assert not Lexicon(index, encoder).translations(["Eiffelturm", "Präsident", "Frankreich"], [], 60)


def test_vectors_of_words_are_made_once(tmp_path: Path, index: KeywordIndex, encoder: MultilingualEncoder) -> None:
    Lexicon(index, encoder).translations(["Dach"], [], 60)
    assert Lexicon(index, encoder).translations(["Dach"], [], 0) == {"Dach": "roof"}
    index.add({"notes": [IndexItem(2, "The gutter and the chimney are new.")]})
    assert Lexicon(index, encoder).translations(["Schornstein"], [], 60) == {"Schornstein": "chimney"}


def test_where_there_is_no_time_the_words_of_likely_texts_come_first(
    index: KeywordIndex, encoder: MultilingualEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.search.hybrid_index.BATCH", 3)
    monkeypatch.setattr("recto.search.hybrid_index.time.monotonic", iter(range(100)).__next__)
    assert Lexicon(index, encoder).translations(["Dach"], ["the roof leaks"], 2) == {"Dach": "roof"}


def test_an_empty_index_has_no_words(tmp_path: Path, encoder: MultilingualEncoder) -> None:
    with closing(KeywordIndex(tmp_path / "empty.db", keeps_texts=True)) as empty:
        assert Lexicon(empty, encoder).translations(["Dach"], [], 60) == {}
