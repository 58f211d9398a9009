"""Words that end a matter, and words that leave it open, in the languages of the cues."""

import pytest

from recto.chat.priority import BINDING
from recto.summary.sentences import rate_sentence
from recto.summary.statements import leaves_open
from recto.summary.worth import is_worth_telling


@pytest.mark.parametrize(
    "text",
    [
        "DECIDED: Harbour Hotel.",
        "Decisión: nos mudamos en mayo",
        "DECIDIDO: o colégio da Foz.",
        "BESLISSING: we huren de bus",
        "Beschluss: der Saal in der Mühle",
        "decyzja: bierzemy Skodę",
        "so the Honda on weekdays, final",
        "on garde le vieux moteur, décidé",
        "das kleine Zelt, entschieden.",
        "mały samochód, postanowione",
        "I go with 2 for now.",
        "haha ok max 70 per day",
        "300 max for me",
        "we set a cap of 400",
        "on s'interdit de sortir la nuit",
        "wir verzichten auf das Feuerwerk",
        "renunciamos a la orquesta",
        "we scrap the boat trip",
        "on supprime la terrasse",
        "la ricetta non si pubblica",
    ],
)
def test_what_ends_a_matter_binds(text: str) -> None:
    assert rate_sentence(text) == BINDING
    assert is_worth_telling(text, is_assistant=False)


@pytest.mark.parametrize(
    "text",
    [
        "ok so never bleach on the deck.",
        "mai aggiungere zucchero",
        "nessuna foto dei bambini",
        "nenhuma foto das crianças",
        "zero alcohol at the party",
        "żadnego disco przed północą!!",
        "only cash",
        "tylko gotówka",
        "wir laden Marc nicht ein",
        "prices in euros please, not dollars",
        "Preise bitte in Franken, nicht in Euro",
        "i want everything in metric not imperial pls",
        "escreve-me sempre em frases curtas",
        "pisz mi krótko",
        "返事は短くお願いします",
    ],
)
def test_rules_and_wishes_bind(text: str) -> None:
    assert rate_sentence(text) == BINDING
    assert is_worth_telling(text, is_assistant=False)


@pytest.mark.parametrize(
    "text",
    [
        "nessun problema",
        "zero errors in the build",
        "mai visto una cosa del genere",
        "only kidding",
        "the semi-final is on TV",
        "no problem!!",
    ],
)
def test_what_only_sounds_so_does_not(text: str) -> None:
    assert rate_sentence(text) != BINDING


@pytest.mark.parametrize(
    "text",
    [
        "open mystery: who paid the bill?",
        "offen: wer fährt",
        "otwarte: kto prowadzi",
        "the council still hasn't given the permit, they haven't answered",
        "noch keine Antwort vom Amt",
        "todavía no ha contestado el ayuntamiento",
        "ils n'ont pas encore répondu",
        "non hanno ancora risposto",
        "ainda não responderam",
        "ze hebben nog niet geantwoord",
        "waiting for the bank's answer",
        "まだ返事がない",
        "You haven't told me their answer.",
    ],
)
def test_what_nobody_has_answered_is_open(text: str) -> None:
    assert leaves_open(text)


def test_a_pain_that_is_gone_is_no_open_matter() -> None:
    assert not leaves_open("still no pain in the knee")
    assert not leaves_open("the door is open")
