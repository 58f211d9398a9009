"""Remarks, moods and partings that nobody misses, and what looks like them and matters."""

import pytest
from tests.summary.samples import quarter

from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.small_talk import is_reaction, is_remark, is_small_talk_reply
from recto.summary.statements import accepts


@pytest.mark.parametrize(
    "text",
    [
        "gotta go, the soup boils over",
        "ok brb",
        "boah bin ich heute platt",
        "estoy agotada, menuda semana",
        "je suis crevée aujourd'hui",
        "the rehearsal was fun",
        "all good, the cat is down from the roof",
        "lol my neighbour thinks we are pirates",
        "哈哈哈我弟弟又睡着了",
        "Gracias por todo, mañana seguimos",
        "Uff.",
    ],
)
def test_a_mood_a_joke_and_a_parting_are_remarks(text: str) -> None:
    assert is_remark(text)


@pytest.mark.parametrize(
    "text",
    [
        "I have to go to the consulate with Noor before we fly",
        "The winner is Casa Lobos, as always 😂",
        "the deposit was 400 and the landlord kept it lol, we need a lawyer now",
        "I'm allergic to penicillin",
        "The pump is too hot and smells",
    ],
)
def test_what_matters_is_no_remark(text: str) -> None:
    assert not is_remark(text)


def test_a_conclusion_is_no_reaction() -> None:
    assert not is_reaction("So the tickets need to be printed.")
    assert is_reaction("So proud of you!")


@pytest.mark.parametrize("text", ["ok the flat one then", "yes, take it", "ja, machen wir so", "oui, on prend ça"])
def test_a_yes_that_takes_something_accepts_it(text: str) -> None:
    assert accepts(text)


@pytest.mark.parametrize(
    "text", ["ok let me ask my sister", "ok thank you, very kind", "sí, ya funciona", "yes I am home"]
)
def test_a_yes_alone_takes_nothing(text: str) -> None:
    assert not accepts(text)


def test_small_talk_at_the_end_of_a_former_summary_goes_when_the_reply_shows_it() -> None:
    facts = "Henrike Maas from Emden rents the hall above the bakery for 310 euros a month, and Joost has the key."
    crane = "The crane comes on 4 May, early in the morning, from Cuxhaven."
    former = f"User: {facts}\nUser: {crane}\nUser: My dog ate the plan."
    later = [PlainMessage("assistant", "Oh no, poor dog!"), PlainMessage("user", "The crane costs 900 euros a day.")]
    told = extract(later, 200, quarter, former)
    assert "dog" not in told
    assert "4 May" in told
    assert "900 euros" in told


def test_a_decision_that_a_reply_laughs_about_is_kept() -> None:
    said = [
        PlainMessage("user", "Should the boat be called Sea Otter or Grey Gull?"),
        PlainMessage("assistant", "Both are nice names."),
        PlainMessage("user", "My daughter shouts for Grey Gull, so Grey Gull"),
        PlainMessage("assistant", "Haha, a wise daughter!"),
        PlainMessage("user", "The paint for it costs 60 euros."),
    ]
    assert "so Grey Gull" in extract(said, 200, quarter)


@pytest.mark.parametrize(
    "text",
    [
        "hold on, doorbell",
        "give me a minute, the kids are fighting",
        "brb, washing machine",
        "back in 10",
        "be back in half an hour",
        "ok I'm back now, that was the plumber",
        "sorry, had to take a call",
        "gonna grab lunch",
        "I need a coffee",
        "need a short break",
        "bin gleich wieder da, Hund muss raus",
        "muss kurz telefonieren",
        "Moment, Postbote",
        "bin in 10 Minuten zurück",
        "ahora vuelvo, el timbre",
        "un segundo, el niño llora",
        "vuelvo en 5 minutos",
        "je reviens, on sonne",
        "deux minutes, le téléphone",
        "momentje, de bel gaat",
        "ik ben even weg, de bakker",
        "zaraz będę, pies szczeka",
        "chwileczkę, ktoś dzwoni",
        "少々お待ちください",
        "ちょっと席を外します",
        "tengo sueño",
        "j'ai faim",
        "ich hab Hunger",
        "ik heb honger",
        "jestem głodna",
        "schon wieder Schnee",
        "it's snowing again here",
        "il pleut des cordes",
        "menuda lluvia hoy",
        "お腹すいた",
    ],
)
def test_being_away_hungry_or_under_the_weather_is_a_remark(text: str) -> None:
    assert is_remark(text)


@pytest.mark.parametrize(
    "text",
    [
        "hold the order until Mila has paid 40 euros",
        "the parcel is back in Hamburg",
        "back in 2019 the roof cost 40,000 euros",
        "if it rains we move to the barn",
        "I need the keys of the cellar",
        "the break is from 12:30 to 13:15",
        "muss bis Freitag fertig sein",
        "Moment mal, es sind 42 Gäste",
        "the client wants a minute of silence at noon",
        "son dos minutos de descanso entre canciones",
    ],
)
def test_what_only_sounds_like_being_away_is_no_remark(text: str) -> None:
    assert not is_remark(text)


@pytest.mark.parametrize(
    "reply",
    [
        "Sure, take your time.",
        "No rush, I'm here.",
        "Enjoy your lunch!",
        "Klar, ich warte.",
        "Bis gleich!",
        "Sin prisa, aquí estoy.",
        "Prenez votre temps.",
        "Neem de tijd.",
        "Jasne, poczekam.",
        "Welcome back!",
        "Ich bin hier, wenn du weitermachen willst.",
    ],
)
def test_a_reply_that_waits_takes_what_it_answers_for_small_talk(reply: str) -> None:
    assert is_small_talk_reply(reply)
