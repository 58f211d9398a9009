"""Queries: their words, dates and speakers, looked up in the index."""

from datetime import date
from pathlib import Path

import pytest

from recto.search import query as query_module
from recto.search.keyword_index import Filter, IndexItem, KeywordIndex
from recto.search.query import NamedSpeaker, ParsedQuery, Query, find_speaker, parse_query


def filled(path: Path, texts: list[str], who: list[str] | None = None) -> KeywordIndex:
    index = KeywordIndex(path / "search.db")
    people = who or [""] * len(texts)
    items = [
        IndexItem(number, text, number, speaker=name, time=f"2023-05-{number % 28 + 1:02}T10:00:00")
        for number, (text, name) in enumerate(zip(texts, people, strict=True))
    ]
    index.add({"talk": items})
    return index


def asked(index: KeywordIndex, text: str, **more: object) -> ParsedQuery:
    partition = index.partition("talk")
    wanted = Query(text, "talk", today=date(2024, 3, 13), **more)  # type: ignore[arg-type]
    return parse_query(index, wanted, partition, find_speaker(index, text, partition))


def test_dates_in_a_query_count_like_words(tmp_path: Path) -> None:
    index = filled(tmp_path, ["one", "two", "three"])
    found = asked(index, "what was said on 2 May 2023?").postings
    days = [posting for posting in found if posting.name == "the day"]
    assert sorted(len(posting.numbers) for posting in days) == [1, 3, 3]
    assert not any(posting.spreads for posting in days)


def test_a_named_speaker_is_found_and_left_out_of_the_vector_query(tmp_path: Path) -> None:
    index = filled(tmp_path, ["hello", "hi", "well", "so"], ["Ann", "Bo", "Ann", "Bo"])
    partition = index.partition("talk")
    assert find_speaker(index, "What did Ann's boat cost?", partition) == NamedSpeaker("Ann", "What did boat cost?")
    assert find_speaker(index, "What do Ann and Bo like?", partition).name == ""
    assert find_speaker(index, "Ann?", partition).rest == "Ann?"
    assert find_speaker(index, "What did Ann say?", None) == NamedSpeaker("", "What did Ann say?")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("What did I say about the boat?", "user"),
        ("the book I mentioned", "user"),
        ("Which hotel did you recommend?", "assistant"),
        ("You once suggested a name", "assistant"),
        ("What did you say when I told you about Rome?", ""),
        ("What should I buy?", ""),
        ("Can you help me?", ""),
    ],
)
def test_did_i_say_and_you_said_name_a_kind(tmp_path: Path, text: str, kind: str) -> None:
    assert asked(filled(tmp_path, ["hello"]), text).kind == kind


def test_common_words_are_found_together_with_rare_ones_however_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(tmp_path, ["kayak river", *["river"] * 60])
    monkeypatch.setattr(query_module, "MAX_PER_TERM", 20)
    kayak, river = asked(index, "river kayak", spreads=False).postings
    assert set(kayak.numbers) <= set(river.numbers)


def test_only_passages_that_the_filter_accepts_are_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "MAX_PER_TERM", 20)
    index = KeywordIndex(tmp_path / "search.db")
    kinds = ["tool", *["user"] * 40]
    index.add({"talk": [IndexItem(number, "river", number, kind=kind) for number, kind in enumerate(kinds)]})
    assert len(asked(index, "river", spreads=False, filter=Filter("tool")).postings[0].numbers) == 1
