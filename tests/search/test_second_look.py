"""Looking again at the texts of the best passages, in any language."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from recto.search.finder import Finder, Query
from recto.search.keyword_index import IndexItem, KeywordIndex
from recto.search.ranking import SecondLook
from recto.search.terms import folded_text


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
