"""Prohibitions bind without a verb of deciding, and come before other things; what only complains does not bind."""

import pytest
from tests.summary.samples import quarter

from recto.chat.blocks import Text
from recto.chat.message import Message, Role
from recto.chat.priority import BINDING
from recto.summary.decisions import find_decisions
from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.ledger_selection import ledger_lines
from recto.summary.sentences import rate_sentence
from recto.summary.verification import CoveredFacts, FormerSummary, verify_summary


@pytest.mark.parametrize(
    "text",
    [
        "yes, the vet said NOT to bathe her for ten days",
        "The landlord asked us never to store petrol in the shed.",
        "I won't lend out the projector, that's a dealbreaker.",
        "Nadia can't do evenings because of her shift.",
        "my nephew Tom is lactose intolerant",
        "Not before 10:30, the hall is locked.",
        "not with the blue van please",
        "Invoices by mail only!",
        "Everything has to be nut-free.",
        "Grandpa mustn't find out about the trip.",
        "My limit is 900, never go above that.",
        "nothing from the discounter",
        "we publish it, but only after the lawyer has read it",
        "the museum doesn't accept bags",
        "prices by phone, and never names of donors",
        "we don't take the old carpet",
        "mornings only",
        "Der Arzt sagt, dass wir dort nicht baden dürfen",
        "Bier gibt es nicht",
        "Karin kann erst ab 16 Uhr",
        "Der Hausmeister darf nur dienstags in den Keller.",
        "Bloß kein Plastik, das unterschreibe ich nicht.",
        "Opa kann keine langen Strecken laufen.",
        "aber nicht das Schlafzimmer",
        "Julia no puede trabajar los sábados.",
        "ojo, es una sorpresa, no puede enterarse",
        "no firmo ningún contrato de dos años",
        "Paul ne peut pas conduire la nuit.",
        "c'est une surprise pour Zoé",
        "pas avant midi, s'il te plaît",
        "de hond mag niet in de slaapkamer",
        "ik teken geen contract zonder einddatum",
        "nie wolno parkować przed bramą",
        "babcia nie może jeść cukru",
        "祖母は膝が悪いので、二階の部屋はダメです",
        "このことは部長には内緒です",
    ],
)
def test_a_prohibition_binds_in_whatever_words(text: str) -> None:
    assert rate_sentence(text) == BINDING
    assert len(find_decisions(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "I can't believe it's over.",
        "I can't find the receipt.",
        "The server can't connect to the queue.",
        "She can't be serious.",
        "I'm not in the mood today.",
        "It's not bad.",
        "I won't be long.",
        "it's 10:20 now",
        "Das kann ich nicht sagen.",
        "Ich kann das nicht mehr sehen.",
        "Nicht so wichtig.",
        "No puede ser.",
        "Je ne sais pas.",
        "Dat kan ik niet geloven.",
        "Nie wiem.",
    ],
)
def test_complaints_and_findings_are_no_prohibitions(text: str) -> None:
    assert rate_sentence(text) != BINDING


def chat(*texts: str) -> list[PlainMessage]:
    """The user and the assistant in turns."""
    return [PlainMessage("assistant" if at % 2 else "user", text) for at, text in enumerate(texts)]


def ledger(*said: tuple[Role, str], limit: int = 200) -> list[str]:
    facts = CoveredFacts()
    facts.add([Message(str(at), role, (Text(text),), said=at) for at, (role, text) in enumerate(said, 1)])
    return list(ledger_lines(verify_summary("Nothing.", facts, FormerSummary()).lost, limit, quarter))


FILLING = (
    "We paint the club house in March.",
    "Good. Which colour do you want?",
    "My aunt once had a boat with 14 cabins and 3 masts.",
    "How nice.",
    "Where do swallows spend the winter?",
    "In Africa, south of the Sahara.",
)


def test_what_is_forbidden_is_told_before_remarks_and_questions() -> None:
    told = extract(chat(*FILLING, "the ranger said not to light a fire near the reeds", "Understood."), 34, quarter)
    assert "not to light a fire" in told
    assert "swallows" not in told
    lines = ledger(
        ("user", "We paint the club house in March, 14 people."),
        ("assistant", "Which colour do you want?"),
        ("user", "Ochre"),
        ("assistant", "Fine."),
        ("user", "Nadia can't do evenings because of her shift."),
        limit=16,
    )
    assert [line.startswith("#5: Nadia can't do evenings") for line in lines] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "The spring sale starts 3 April, 15 % off everything in the shop. not on tents though",
        "Returns are free until 30 days after the order, after that they cost 6 euros. no cash refunds ever",
        "Der Verkauf beginnt am 3. April, 15 % auf alles im Laden. Aber nicht auf Zelte",
        "La venta empieza el 3 de abril, 15 % en toda la tienda. ojo, no en las tiendas de campaña",
        "La vente commence le 3 avril, 15 % sur tout le magasin. pas sur les tentes par contre",
        "De verkoop begint op 3 april, 15 % op alles in de winkel. alleen niet op tenten",
        "Her party is on 3 April at 19:00 in the boat house on the lake. it's a surprise, so say nothing",
    ],
)
def test_a_sentence_is_told_with_the_one_that_restricts_it(text: str) -> None:
    start, end = text[:12], text[-8:]
    said = [*FILLING, text, "Okay."]
    for limit in range(50, 120, 10):
        told = extract(chat(*said), limit, quarter)
        assert (start in told) <= (end in told)
    lines = ledger(*(("assistant" if at % 2 else "user", one) for at, one in enumerate(said)))
    assert any(end in line for line in lines)
    assert all((start in line) <= (end in line) for line in lines)
