"""Ranking: rare words, fused scores, and looking again at the texts of the best passages, in any language."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.finder import Finder, Query
from recto.search.keyword_index import IndexItem, KeywordIndex
from recto.search.ranking import SecondLook, rank
from recto.search.terms import folded_text

scores = st.dictionaries(st.integers(0, 50), st.floats(0.01, 3))


@given(st.dictionaries(st.integers(0, 50), st.sampled_from([0.1, 0.5, 0.9])))
def test_the_best_come_first_and_among_equals_the_newest(values: dict[int, float]) -> None:
    assert rank(values) == sorted(values, key=lambda number: (-values[number], -number))


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


def test_a_part_of_a_compound_is_found() -> None:
    assert best("Welche Meisterschaft gewann er?", "Der Verein spielt dort.", "Die Weltmeisterschaft fand statt.") == 1


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
