"""Question: words, days and people of a question, and where they stand."""

from datetime import date
from pathlib import Path

import pytest

from recto.search import question as room
from recto.search.index import Filter, Index, Item
from recto.search.question import Asked, Named, Wanted, ask, who_is_named


def filled(path: Path, texts: list[str], who: list[str] | None = None) -> Index:
    index = Index(path / "search.db")
    people = who or [""] * len(texts)
    items = [
        Item(number, text, number, who=name, at=f"2023-05-{number % 28 + 1:02}T10:00:00")
        for number, (text, name) in enumerate(zip(texts, people, strict=True))
    ]
    index.add({"talk": items})
    return index


def asked(index: Index, text: str, **more: object) -> Asked:
    shelf = index.shelf("talk")
    wanted = Wanted(text, "talk", today=date(2024, 3, 13), **more)  # type: ignore[arg-type]
    return ask(index, wanted, shelf, who_is_named(index, text, shelf))


def test_each_word_is_known_by_where_it_stands_the_rarest_first(tmp_path: Path) -> None:
    index = filled(tmp_path, ["the river", "a river and a kayak", "river"])
    found = asked(index, "rivers and kayaks").postings
    assert [(posting.name, len(posting.numbers), posting.frequency) for posting in found] == [
        ("kayaks", 1, 1.0),
        ("rivers", 3, 3.0),
    ]


def test_the_days_of_a_question_count_like_words(tmp_path: Path) -> None:
    index = filled(tmp_path, ["one", "two", "three"])
    found = asked(index, "what was said on 2 May 2023?").postings
    days = [posting for posting in found if posting.name == "the day"]
    assert sorted(len(posting.numbers) for posting in days) == [1, 3, 3]
    assert not any(posting.spreads for posting in days)


def test_one_who_is_named_is_known_and_not_looked_up_by_meaning(tmp_path: Path) -> None:
    index = filled(tmp_path, ["hello", "hi", "well", "so"], ["Ann", "Bo", "Ann", "Bo"])
    shelf = index.shelf("talk")
    assert who_is_named(index, "What did Ann's boat cost?", shelf) == Named("Ann", "What did boat cost?")
    assert who_is_named(index, "What do Ann and Bo like?", shelf).who == ""
    assert who_is_named(index, "Ann?", shelf).bare == "Ann?"
    assert who_is_named(index, "What did Ann say?", None) == Named("", "What did Ann say?")


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
def test_whose_words_are_meant_is_told_by_who_said(tmp_path: Path, text: str, kind: str) -> None:
    assert asked(filled(tmp_path, ["hello"]), text).kind == kind


def test_a_frequency_that_was_not_counted_is_judged_by_how_close_the_newest_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(tmp_path, ["river" if number % 4 == 0 else "lake" for number in range(400)])
    monkeypatch.setattr(room, "MOST_PLACES", 20)
    (posting,) = asked(index, "river").postings
    assert len(posting.numbers) == 20
    assert 80 <= posting.frequency <= 130


def test_common_words_are_found_beside_rare_ones_however_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(tmp_path, ["kayak river", *["river"] * 60])
    monkeypatch.setattr(room, "MOST_PLACES", 20)
    kayak, river = asked(index, "river kayak", spreads=False).postings
    assert set(kayak.numbers) <= set(river.numbers)


def test_common_words_are_found_together_however_far_apart_the_others_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(tmp_path, ["lake river", *["river", "lake"] * 40])
    monkeypatch.setattr(room, "MOST_PLACES", 20)
    one, other = asked(index, "lake river", spreads=False).postings
    assert len(set(one.numbers) & set(other.numbers)) == 1


def test_of_many_common_words_the_rarest_share_with_their_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(tmp_path, ["kayak river", *["river"] * 60])
    monkeypatch.setattr(room, "MOST_SPREAD", 5)
    kayak, river = asked(index, "river kayak").postings
    assert (len(kayak.numbers), len(river.numbers)) == (1, 4)


KINDS = ["user", "assistant"]


def shared(path: Path, texts: list[str], kinds: list[str]) -> Index:
    index = Index(path / "search.db")
    pairs = enumerate(zip(texts, kinds, strict=True))
    index.add({"talk": [Item(number, text, number, kind=kind) for number, (text, kind) in pairs]})
    return index


def test_a_kind_that_is_common_is_looked_at_when_passages_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "SAMPLE", 10)
    index = shared(tmp_path, ["river"] * 40, KINDS * 20)
    found = asked(index, "river", spreads=False, only=Filter("user"))
    assert len(found.postings[0].numbers) == 40
    assert not found.is_loose, "all places were read"


def test_a_kind_that_is_rare_is_looked_up_with_the_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "SAMPLE", 2)
    index = shared(tmp_path, ["river"] * 40, [*["tool"] * 2, *["user"] * 38])
    assert len(asked(index, "river", spreads=False, only=Filter("tool")).postings[0].numbers) == 2


def test_where_the_newest_places_crowd_out_what_is_wanted_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "SAMPLE", 4)
    monkeypatch.setattr(room, "MOST_PLACES", 20)
    index = shared(tmp_path, ["river", *["well", "river"] * 40], ["user", *KINDS * 40])
    shelf, wanted = index.shelf("talk"), Wanted("river", "talk", spreads=False, only=Filter("user"))
    assert ask(index, wanted, shelf, Named("", "river")).is_loose
    strict = ask(index, wanted, shelf, Named("", "river"), strict=True)
    assert not strict.is_loose
    assert len(strict.postings[0].numbers) == 1
