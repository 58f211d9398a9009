"""Words that end a matter, and words that leave it open, in the languages of the cues."""

import pytest
from tests.summary.samples import quarter

from recto.chat.priority import BINDING
from recto.summary.extractive_summary import PlainMessage, extract
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
        "You're not to give me diagnoses please",
        "Allergies: PENICILLIN, proper one",
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
        "no antibiotics needed",
        "calf nothing, no pain",
        "keine Schmerzen mehr im Knie",
        "geen pijn bij 40 km",
        "letter says not to worry",
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
        "me sigue sin quedar claro si necesito un seguro",
        "mir ist nicht klar, wer das bezahlt",
    ],
)
def test_what_nobody_has_answered_is_open(text: str) -> None:
    assert leaves_open(text)


def test_a_pain_that_is_gone_is_no_open_matter() -> None:
    assert not leaves_open("still no pain in the knee")
    assert not leaves_open("the door is open")


@pytest.mark.parametrize(
    ("before", "after", "old"),
    [
        ("The translation is due on 20 March.", "they want the translation earlier: Thursday 19 March", "20 March"),
        ("Budget for the kitchen is 9,000.", "kitchen budget is 8,500 now", "9,000"),
        ("Golive is on 14 September.", "so golive 28 sept. not 14. tell the others", "14 September"),
        ("Die Miete beträgt 900 Euro.", "die Miete ist jetzt doch 930", "900"),
        ("La reunión es el martes a las 10.", "la reunión pasa al jueves a las 10", "martes"),
        ("Le mariage est le 12 juin.", "le mariage est repoussé au 19 juin", "12 juin"),
        ("La cena è il 4 maggio.", "la cena slitta all'11 maggio", "4 maggio"),
        ("Ślub jest 4 maja.", "ślub jednak 11 maja", "4 maja"),
        ("Paint the hall in grey.", "the hall in blue instead, not grey", "hall in grey"),
    ],
)
def test_where_the_correction_says_it_all_the_former_value_is_not_told(before: str, after: str, old: str) -> None:
    others = ("The shed needs new boards.", "I bought 12 brushes.", "The neighbour lends us a ladder.")
    told = extract([PlainMessage("user", text) for text in (*others[:1], before, *others[1:], after)], 400, quarter)
    assert old not in told
    assert after[:20] in told


@pytest.mark.parametrize(
    "text",
    [
        "mornings suit me best",
        "tutoie-moi",
        "trata-me por tu",
        "ich mag keine Anrufe",
        "as a table, always",
        "skip the intro",
        "I can't stand phone calls",
    ],
)
def test_what_somebody_likes_binds(text: str) -> None:
    assert rate_sentence(text) == BINDING


def test_a_throw_of_dice_is_not_told() -> None:
    matter = (
        "We play a campaign about a lighthouse in Oskarrat, and I want to know where we stood.",
        "The keeper Veda Lisk has the only key, and she limps since the storm of the ninth year.",
        "Pim Hollander the salt-broker owes us 22 drams and remembers every face in the harbour.",
    )
    said = (*matter, "do I know the sign? lore: 9", "I roll 18", "Ysolde never sells the ring")
    told = extract([PlainMessage("user", text) for text in said], 400, quarter)
    assert "lore" not in told
    assert "roll" not in told
    assert "never sells the ring" in told


def test_who_breaks_off_is_told_with_what_he_says_then() -> None:
    said = "she gets 2 tablets of folic acid on Saturdays... no wait. Folic acid is on Sundays, 1 tablet."
    told = extract(
        [PlainMessage("user", "Keep the medicines of my daughter."), PlainMessage("user", said)], 60, quarter
    )
    assert "Sundays" in told


@pytest.mark.parametrize(
    "cry", ["PASSED!!!!", "GEACCEPTEERD 374.500!!", "Prüfung bestanden!!", "approved!!!", "審査通りました。"]
)
def test_a_cry_that_says_how_it_ended_is_told(cry: str) -> None:
    assert is_worth_telling(cry, is_assistant=False)
    said = (
        "My exam for the sailing licence is on 13 June, Harbour School, instructor Brigg.",
        "The mainsail has a tear at batten 2, the sailmaker wants 85 euros for it.",
        "I moor at pontoon C, place 41, the fee is 640 euros a year.",
        cry,
        "next I want to plan the trip to Fowey with my sister.",
    )
    assert cry in extract([PlainMessage("user", text) for text in said], 120, quarter)
