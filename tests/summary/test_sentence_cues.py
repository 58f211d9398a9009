"""Cues: back references, questions and headings are recognised."""

import pytest

from recto.chat.priority import BINDING
from recto.summary.reference import refers_back
from recto.summary.sentences import is_heading, is_question, rate_sentence


@pytest.mark.parametrize(
    "text", ["It is red.", "Das ist rot.", "这是红色的。", "それは赤いです。", "Yeah, that was it."]
)
def test_a_sentence_that_starts_with_a_pronoun_refers_back(text: str) -> None:
    assert refers_back(text)


@pytest.mark.parametrize("text", ["This week we paint.", "Das Budget ist klein.", "Items are red.", "Heredity"])
def test_other_sentences_do_not_refer_back(text: str) -> None:
    assert not refers_back(text)


def test_questions_and_headings_are_recognised_by_their_end() -> None:
    assert is_question('Is it "red"?')
    assert is_question("散歩しますか。")
    assert not is_question("The file is at /search?q=red")
    assert is_heading("Found 3 matches:")
    assert not is_heading("At 10:30")


@pytest.mark.parametrize(
    "sentence",
    [
        "Abbiamo deciso di prendere la casa di Lucca.",
        "Non dire niente a Carla.",
        "Siamo in 31, non 28.",
        "Le iscrizioni vanno mandate entro il 4 maggio.",
        "Non sappiamo ancora chi guida.",
        "Preferisco il treno all'aereo.",
        "Rispondimi solo in italiano.",
        "Mia sorella è celiaca.",
        "Zdecydowaliśmy się na pociąg.",
        "Nie dzwoń do nich przed południem.",
        "Jedzie nas 9, nie 7.",
        "Formularze musimy oddać do 4 maja.",
        "Jeszcze nie wiemy, kto prowadzi.",
        "Wolę pokój od podwórka.",
        "Odpowiadaj krótko, proszę.",
        "Bartek jest uczulony na orzechy.",
        "Decidimos alugar a casa em Sintra.",
        "Não diga nada ao Rui.",
        "Somos 31, não 28.",
        "As inscrições têm de ser enviadas até o dia 4 de maio.",
        "Ainda não sabemos quem conduz.",
        "Prefiro o comboio.",
        "Responde sempre em português.",
        "A minha irmã é celíaca.",
        "会場は公民館にします。",
        "彼にはまだ言わないでください。",
        "集合は9時ではなく10時です。",
        "申込は5月4日までです。",
        "司会はまだ決まっていません。",
        "和食の方がいいです。",
        "返事は短くしてください。",
    ],
)
def test_what_binds_is_known_in_italian_polish_portuguese_and_japanese(sentence: str) -> None:
    assert rate_sentence(sentence) == BINDING


@pytest.mark.parametrize(
    "sentence",
    [
        "Senza dubbio una bella città.",
        "Bez problemu.",
        "Sem problema!",
        "What should I do tomorrow with the 3 boxes?",
        "We did 20 laps in the pool.",
        "En mai nous étions à Brest.",
        "Vamos de vacaciones a Cádiz con mis tíos.",
        "Der Termin war nett.",
        "Il libro era bello.",
        "Byliśmy wczoraj w kinie.",
        "映画を見ました。",
    ],
)
def test_what_only_looks_like_it_does_not_bind(sentence: str) -> None:
    assert rate_sentence(sentence) != BINDING
