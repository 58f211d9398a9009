"""Finder: queries answered from an index."""

from collections.abc import Callable, Mapping
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.search import partition as partition_module
from recto.search import query as query_module
from recto.search.finder import Finder, Query, SearchResult
from recto.search.keyword_index import Filter, IndexItem, KeywordIndex
from recto.search.vector_index import Nearest, VectorAnswer, VectorIndex

Fill = Callable[..., Finder]


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    def filled(*texts: str, **more: Any) -> Finder:
        index = KeywordIndex(tmp_path / "search.db")
        index.add({"talk": [IndexItem(number, text, number, **more) for number, text in enumerate(texts)]})
        return Finder(index)

    return filled


def items(found: SearchResult) -> list[int]:
    return [hit.passage.item for hit in found.hits]


def test_matching_passages_come_first_and_their_neighbours_after(fill: Fill) -> None:
    finder = fill(*["Nothing of note."] * 20, "The kayak is blue.", *["Nothing of note."] * 20)
    found = items(finder.find(Query("Which colour has the kayak?", "talk")))
    assert found[0] == 20
    assert set(found) == set(range(16, 25))


def test_an_answer_is_found_by_the_words_of_its_question(fill: Fill) -> None:
    finder = fill(*["All is well here."] * 9, "Where did you buy the kayak?", "In Hamburg, at the fair, last spring.")
    assert 10 in items(finder.find(Query("kayak bought where", "talk")))[:3]


def test_exact_words_are_found_without_neighbours(fill: Fill) -> None:
    finder = fill("Well.", "The kayak is blue.", "Fine.")
    assert items(finder.find(Query("kayak", "talk", spreads=False))) == [1]


def test_among_equals_the_newest_comes_first(fill: Fill) -> None:
    finder = fill("The kayak is blue.", "The kayak is blue.")
    assert items(finder.find(Query("kayak", "talk", spreads=False))) == [1, 0]


def test_whoever_takes_only_the_first_hits_gets_the_same_with_their_reasons(fill: Fill) -> None:
    finder = fill(*["The kayak is blue.", "Nothing of note."] * 100)
    query = Query("Which colour has the kayak?", "talk")
    assert finder.find(query, lambda hits: list(islice(hits, 7))).hits == finder.find(query).hits[:7]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        '"',
        "'; DROP TABLE words; --",
        "AND OR NOT NEAR(",
        "kayak AND",
        '"kayak',
        "kayak*",
        "(kayak",
        "text:kayak",
        "^kayak",
        "the of and",
        "¶kuser",
        "👍🏽",
        "\x00",
        "kayak " * 10_000,
        " ".join(f"word{number}" for number in range(10_000)),
    ],
)
@pytest.mark.parametrize("spreads", [True, False])
def test_any_question_can_be_answered(fill: Fill, text: str, spreads: bool) -> None:
    finder = fill("The kayak is blue.", "And the tent?")
    for partition in ("talk", None):
        found = finder.find(Query(text, partition, spreads=spreads))
        assert not text.strip() or "kayak" not in text or items(found)[0] == 0


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("明日は東京タワーに行きます", "東京"),
        ("私の猫は黒いです", "猫"),
        ("我们在北京见面", "北京"),
        ("오늘은 한국어를 공부했어요", "한국어"),
        ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
        ("Я купил лодку", "лодку"),
        ("Wir fahren über die Brücke", "bruecke brücke"),
        ("Great job 👍🏽", "👍"),
        ("Das Café ist zu", "cafe"),
        ("to be or not to be", "to be"),
    ],
)
def test_other_scripts_symbols_and_mere_function_words_are_found(fill: Fill, said: str, asked: str) -> None:
    finder = fill("Something else entirely.", *["…"] * 3, *["Nothing."] * 9, said)
    assert items(finder.find(Query(asked, "talk")))[0] == 13


def test_a_missing_partition_and_one_with_a_single_message(fill: Fill) -> None:
    finder = fill("The kayak is blue.")
    assert finder.find(Query("kayak", "elsewhere")) == SearchResult()
    (hit,) = finder.find(Query("kayak", "talk")).hits
    assert (hit.score, hit.because) == (1.0, "holds kayak")


def test_filters_and_conditions_decide_what_counts(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    kinds = ["user", "assistant", "tool"]
    said = [
        IndexItem(number, "the kayak", number, kind=kinds[number % 3], time=f"2023-0{number + 1}-15T10:00:00")
        for number in range(9)
    ]
    index.add({"talk": said[:5], "other": said[5:]})
    finder = Finder(index)

    def found(only: Filter, **more: Any) -> list[int]:
        return sorted(items(finder.find(Query("kayak", filter=only, spreads=False, **more))))

    assert found(Filter(kind="tool")) == [2, 5, 8]
    assert found(Filter(since="2023-07-15T10:00:00")) == [6, 7, 8]
    assert found(Filter(since="2023-07-15T10:00:01")) == [7, 8]
    assert found(Filter(before="2023-03-15")) == [0, 1]
    assert found(Filter("user", "2023-02-01", "2023-08-01")) == [3, 6]
    assert found(Filter(), partition="other") == [5, 6, 7, 8]
    assert found(Filter(), accepts=lambda passage: passage.item > 6) == [7, 8]


def test_a_kind_is_found_even_if_another_kind_has_the_word_more_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_module, "SAMPLE", 4)
    monkeypatch.setattr(query_module, "MAX_PER_TERM", 20)
    said = [("user", "the kayak"), *[("user", "well"), ("assistant", "the kayak")] * 40]
    index = KeywordIndex(tmp_path / "search.db")
    index.add({"talk": [IndexItem(number, text, number, kind=kind) for number, (kind, text) in enumerate(said)]})
    found = Finder(index).find(Query("kayak", filter=Filter(kind="user"), spreads=False))
    assert items(found) == [0]


def test_a_date_in_the_question_raises_passages_of_that_date(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    index.add(
        {
            "talk": [
                IndexItem(number, "We rowed.", number, time=f"2023-0{number + 1}-15T10:00:00") for number in range(9)
            ]
        }
    )
    found = Finder(index).find(Query("Did we row in April?", "talk", today=date(2024, 1, 1)))
    assert items(found)[0] == 3


def test_naming_a_speaker_raises_their_passages(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    said = [("Ann", "I like tea."), ("Bo", "I like coffee."), ("Ann", "Good night."), ("Bo", "Good night.")]
    index.add({"talk": [IndexItem(number, text, number, speaker=who) for number, (who, text) in enumerate(said)]})
    finder = Finder(index)
    assert items(finder.find(Query("What does Ann like?", "talk")))[0] == 0
    assert items(finder.find(Query("What does Bo like?", "talk")))[0] == 1


class Told(VectorIndex):
    """Somebody who knows what is near."""

    def __init__(self, near: Mapping[int, float], note: str = "") -> None:
        self.told, self.warning = near, note

    def prepare(self, text: Callable[[], str]) -> None: ...

    def nearest(self, text: str, partition: int | None) -> VectorAnswer:
        return lambda: Nearest(self.told, self.warning)

    def familiarity(self, text: str) -> float:
        return 1.0 if text.isascii() else 0.0


def test_similar_passages_are_found_together_with_matching_ones(fill: Fill) -> None:
    finder = fill(*["Nothing of note."] * 30, "The kayak is blue.")
    (first, _), *_, (last, _) = finder.index.hashes(finder.index.partition("talk"))
    finder.vectors = Told({first: 0.8, last: 0.7})
    found = finder.find(Query("kayak", "talk"))
    assert items(found)[:2] == [30, 0]
    assert found.hits[1].because == "near in meaning (0.80)"
    assert found.hits[0].because == "holds kayak; near in meaning (0.70)"


def test_meaning_does_not_count_among_texts_in_a_language_that_the_embedder_does_not_know(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db", keeps_texts=True)
    said = ["Ο Ned έχτισε τη βάρκα.", "Η βάρκα είναι κόκκινη.", "Σήμερα βρέχει.", "Αύριο όχι."]
    index.add({"notes": [IndexItem(number, text, branch=number) for number, text in enumerate(said)]})
    finder = Finder(index)
    alone = finder.find(Query("Ned", "notes")).hits
    numbers = [number for number, _ in index.hashes(index.partition("notes"))]
    finder.vectors = Told(dict.fromkeys(numbers[1:], 0.9))
    assert finder.find(Query("Ned", "notes")).hits == alone
    index.close()


def test_without_vectors_only_words_are_searched_with_a_warning(fill: Fill) -> None:
    finder = fill("The kayak is blue.")
    alone = finder.find(Query("kayak", "talk"))
    finder.vectors = Told({}, "no weights")
    found = finder.find(Query("kayak", "talk"))
    assert (found.hits, found.warning) == (alone.hits, "no weights")


def test_a_large_partition_gives_the_same_best_hits_as_a_small_one(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    finder = fill(*["Nothing of note."] * 30, "The blue kayak.", *["Nothing."] * 9, "A blue tent.", "Well.")
    whole = items(finder.find(Query("blue kayak", "talk")))
    monkeypatch.setattr(partition_module, "MAX_READ_PASSAGES", 1)
    assert items(finder.find(Query("blue kayak", "talk")))[0] == whole[0] == 30
    assert set(items(finder.find(Query("blue kayak", "talk")))) == set(whole)


texts = st.lists(st.sampled_from(["kayak", "river", "tent", "lake", "the", "a", "?", "blue"]), max_size=8).map(" ".join)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(texts, max_size=25), asked=texts, limit=st.integers(1, 30), spreads=st.booleans())
def test_hits_are_unique_ordered_by_score_and_limited(
    tmp_path_factory: pytest.TempPathFactory, said: list[str], asked: str, limit: int, spreads: bool
) -> None:
    index = KeywordIndex(tmp_path_factory.mktemp("index") / "search.db")
    index.add({"talk": [IndexItem(number, text, number) for number, text in enumerate(said)]})
    finder = Finder(index)
    wanted = Query(asked, "talk", spreads=spreads, limit=limit)
    hits = finder.find(wanted).hits
    assert len({hit.passage.number for hit in hits}) == len(hits) <= limit
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0.0 < hit.score <= 1.0 and 0.0 <= hit.word_score <= 1.0 and hit.because for hit in hits)
    assert finder.find(wanted).hits == hits
    index.close()
