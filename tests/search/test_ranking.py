"""Ranking: rare words, fused scores, and looking again at the texts of the best passages, in any language."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.finder import Finder, Query
from recto.search.keyword_index import IndexItem, KeywordIndex
from recto.search.ranking import SecondLook, fuse, idf, rank
from recto.search.terms import folded_text

scores = st.dictionaries(st.integers(0, 50), st.floats(0.01, 3))


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_a_rarer_word_counts_more(one: int, other: int) -> None:
    assert (idf(one, 20_000) > idf(other, 20_000)) == (one < other)


@given(st.dictionaries(st.integers(0, 50), st.sampled_from([0.1, 0.5, 0.9])))
def test_the_best_come_first_and_among_equals_the_newest(values: dict[int, float]) -> None:
    assert rank(values) == sorted(values, key=lambda number: (-values[number], -number))


def test_the_best_by_words_and_by_meaning_scores_one() -> None:
    assert fuse({7: 3.0, 1: 2.0}, {7: 0.6, 2: 0.5})[7] == 1.0


@given(scores, scores)
def test_fused_scores_cover_words_and_meaning_between_zero_and_one(
    by_words: dict[int, float], similarity: dict[int, float]
) -> None:
    fused = fuse(by_words, similarity)
    assert set(fused) == {*by_words, *similarity}
    assert all(0.0 < score <= 1.0 + 1e-9 for score in fused.values())


@given(scores)
def test_words_alone_keep_their_order(by_words: dict[int, float]) -> None:
    assert rank(fuse(by_words, {})) == rank(by_words)


def test_a_faint_similarity_does_not_outweigh_a_clear_match_of_words() -> None:
    assert rank(fuse({1: 1.0, 2: 0.4}, {2: 0.3, 3: 0.1}))[0] == 1


# -- a second look


def look_again(question: str, *batches: Mapping[int, str]) -> dict[int, float]:
    look = SecondLook(question)
    for texts in batches:
        look.read(texts)
    return look.scores()


def best(question: str, *texts: str) -> int:
    scores = look_again(question, {number: folded_text(text) for number, text in enumerate(texts)})
    return max(scores, key=scores.__getitem__)


def first(tmp_path: Path, question: str, *texts: str) -> str:
    index = KeywordIndex(tmp_path / "search.db", keeps_texts=True)
    items = [IndexItem(number, text, branch=number) for number, text in enumerate(texts)]
    index.add({"notes": items})
    hits = Finder(index).find(Query(question, "notes")).hits
    index.close()
    return texts[hits[0].passage.item] if hits else ""


def test_scores_are_between_zero_and_one_and_the_best_of_all_kinds_has_one() -> None:
    scores = look_again("red boat", {1: " the red boat ", 2: " a red car ", 3: " nothing "})
    assert scores[1] == pytest.approx(1.0)
    assert scores[1] > scores[2] > scores[3] == 0.0


def test_texts_that_are_read_one_by_one_score_like_those_read_at_once() -> None:
    texts = {1: " the red boat ", 2: " a red car ", 3: " boats are red ", 4: " nothing "}
    assert look_again("red boat", *({number: text} for number, text in texts.items())) == look_again("red boat", texts)


def test_a_part_of_a_compound_is_found() -> None:
    assert best("Welche Meisterschaft gewann er?", "Der Verein spielt dort.", "Die Weltmeisterschaft fand statt.") == 1


def test_words_that_stand_together_in_the_question_are_found_together() -> None:
    texts = ("The storm jib is green; the sail locker is dry.", "The sail in the locker is a jib for a storm, and dry.")
    assert best("Where is the storm jib?", *texts) == best("Where is the storm jib?", *reversed(texts)) - 1 == 0


def test_a_common_word_counts_less_than_what_the_question_is_about() -> None:
    texts = ("Everybody must wear a vest, and must pay.", "He is allergic to shellfish.")
    assert best("Who must not eat shellfish?", *texts) == 1


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("кто построил мост через реку", "Мосты через реки строил инженер Петров.", "Погода сегодня хорошая."),
        ("من بنى الجسور", "بنى المهندس الجسر القديم في المدينة.", "الطقس جميل اليوم."),
        ("谁建造了大桥", "工程师李明在河上建造了这座大桥。", "今天天气很好。"),
        ("橋を建てたのは誰ですか", "技師の田中が川に橋を建てた。", "今日は天気がいい。"),
        ("kuka rakensi sillan", "Sillan rakentaja oli insinööri Virtanen.", "Sää on tänään kaunis."),
        ("köprüyü kim yaptı", "Köprünün mimarı Ahmet Bey idi.", "Bugün hava güzel."),
        ("kto budował mosty", "Most zbudował inżynier; budowała go gmina.", "Pogoda jest dziś ładna."),
        ("qui a construit les ponts", "Le pont fut une construction de Martin.", "Il fait beau aujourd'hui."),
        ("wer reparierte die Maschinen", "Die Maschine hat Huber repariert.", "Das Wetter ist heute schön."),
        ("quién construyó los puentes", "El puente fue construido por García.", "Hoy hace buen tiempo."),
        ("ποιος έχτισε τη γέφυρα", "Οι γέφυρες χτίστηκαν από τον Νίκο.", "Ο καιρός είναι καλός."),
    ],
)
def test_other_forms_of_a_word_are_found_in_many_languages(
    tmp_path: Path, question: str, answer: str, other: str
) -> None:
    assert first(tmp_path, question, other, answer, other) == answer


def test_a_list_of_questions_yields_to_the_answer(tmp_path: Path) -> None:
    asked = "1. How long is the boat? 2. Who must not eat shellfish? 3. Which fuse protects the pump?"
    answer = "Oskar is allergic to shellfish."
    assert first(tmp_path, "Who must not eat shellfish?", asked, "We eat at noon.", answer) == answer


def test_the_word_itself_comes_before_one_that_begins_alike(tmp_path: Path) -> None:
    index = KeywordIndex(tmp_path / "search.db")
    texts = ("the internet was slow", "an international meeting", "the internal rules")
    index.add({"chat": [IndexItem(number, text, branch=number) for number, text in enumerate(texts)]})
    hits = Finder(index).find(Query("internet", "chat", spreads=False)).hits
    index.close()
    assert hits[0].passage.item == 0
    assert len(hits) == 3
