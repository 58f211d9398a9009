"""Remarks, moods and partings that nobody misses, and what looks like them and matters."""

import pytest
from tests.summary.samples import quarter

from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.small_talk import is_reaction, is_remark
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
