"""Who somebody is, and how the user wants to be answered, comes before narrative and advice."""

import pytest
from tests.summary.samples import quarter
from tests.summary.test_prohibitions import chat

from recto.chat.priority import BINDING
from recto.summary.answer_style import wants_answers_so
from recto.summary.extractive_summary import extract
from recto.summary.people import names_role
from recto.summary.sentences import rate_sentence


@pytest.mark.parametrize(
    "text",
    [
        "Her vet is Dr. Amara Lund in Kiel.",
        "Our electrician is called Femke.",
        "Petra Olsen is our treasurer.",
        "The keys are with Mrs Adair.",
        "Caretaker: Jan Novak, ground floor.",
        "Unsere Vermieterin heißt Gerda Thoma.",
        "Mi dentista es la doctora Ruiz.",
        "Notre notaire est Maître Blanc.",
        "De voorzitter is mevrouw Smit.",
        "La proprietaria è la signora Conti.",
        "Kierowcą jest pan Nowak.",
        "O meu contabilista chama-se Rui.",
        "司会は総務の岡田さんです。",
    ],
)
def test_a_name_with_its_role_is_known(text: str) -> None:
    assert names_role(text)


@pytest.mark.parametrize(
    "text", ["The boat is red.", "We went to Paris in May.", "Das Haus ist groß.", "Who is our treasurer?"]
)
def test_other_sentences_name_nobody(text: str) -> None:
    assert not names_role(text)


@pytest.mark.parametrize(
    "text",
    [
        "Short answers please.",
        "Please answer in short bullet points.",
        "No emojis.",
        "Antworte bitte kurz.",
        "Responde siempre en español.",
        "Réponds en français s'il te plaît.",
        "Graag korte antwoorden.",
        "Risposte brevi, per favore.",
        "Pisz krótko.",
        "Respostas curtas, por favor.",
        "When you give me temperatures, use Fahrenheit.",
        "Wenn du mir Preise nennst, nimm bitte Franken.",
        "Cuando me des distancias, usa millas.",
    ],
)
def test_how_to_answer_binds(text: str) -> None:
    assert wants_answers_so(text)
    assert rate_sentence(text) == BINDING


@pytest.mark.parametrize(
    "text", ["The answer was yes.", "Write a short poem about it?", "When you write a loop, it runs."]
)
def test_an_answer_that_was_given_does_not(text: str) -> None:
    assert not wants_answers_so(text)


def test_in_little_room_people_and_wishes_come_before_what_happened() -> None:
    said = (
        "We keep sheep on an island near Harris, help me with the paperwork.",
        "Gladly.",
        "The ferry was 20 minutes late on Tuesday and full of tourists.",
        "Ferries do that.",
        "Our vet is Dr. Morag Bain.",
        "Noted.",
        "It rained 14 days in a row and the road to the pier was closed twice.",
        "That is a lot.",
        "Short answers please.",
        "Sure.",
        "We ate 3 kinds of cake at the fair and walked 9 miles home.",
        "Nice.",
    )
    told = extract(chat(*said), 45, quarter)
    assert "Our vet is Dr. Morag Bain." in told
    assert "Short answers please." in told
