"""Who says what in a text: pasted chats, quoted and forwarded mails, and the author's own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import fragments

from recto.summary.pasted_text import SpokenPart, own_words, spoken_parts


def told(text: str) -> list[tuple[str | None, str]]:
    return [(found.speaker, found.text.strip()) for found in spoken_parts(text) if found.text.strip()]


CHATS = {
    "labels": "Anna: Can you send me the file?\nBen: Yes, I'll send it tomorrow.\nAnna: Thanks!",
    "two lines": "Anna: Can you send me the file?\nBen: Yes, I'll send it tomorrow.",
    "times in brackets": "[10:42] Anna: Can you send me the file?\n[10:43] Ben: Yes, I'll send it tomorrow.",
    "times": "10:42 Anna: Can you send me the file?\n10:43 Ben: Yes, I'll send it tomorrow.",
    "an export with dashes": (
        "12.05.24, 10:42 - Anna: Can you send me the file?\n12.05.24, 10:43 - Ben: Yes, I'll send it tomorrow."
    ),
    "an export with brackets": (
        "[12.05.24, 10:42:13] Anna: Can you send me the file?\n"
        "\u200e[12.05.24, 10:43:02] Ben: Yes, I'll send it tomorrow."
    ),
    "an American export": (
        "5/12/24, 10:42 AM - Anna: Can you send me the file?\n5/12/24, 10:43 AM - Ben: Yes, I'll send it tomorrow."
    ),
    "names above": "Anna  10:42 AM\nCan you send me the file?\nBen  10:43 AM\nYes, I'll send it tomorrow.",
    "names above, with the day": (
        "Anna — Today at 10:42\nCan you send me the file?\n\nBen — Today at 10:43\nYes, I'll send it tomorrow."
    ),
    "times and names above": "[10:42 AM] Anna\nCan you send me the file?\n[10:43 AM] Ben\nYes, I'll send it tomorrow.",
    "nicks": "10:42 <Anna> Can you send me the file?\n10:43 <Ben> Yes, I'll send it tomorrow.",
    "times behind the names": "Anna [10:42]: Can you send me the file?\nBen [10:43]: Yes, I'll send it tomorrow.",
    "bold names": "**Anna:** Can you send me the file?\n**Ben:** Yes, I'll send it tomorrow.",
    "signs of a mail": "> Anna: Can you send me the file?\n> Ben: Yes, I'll send it tomorrow.",
}


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS.keys())
def test_a_pasted_chat_has_its_speakers(chat: str) -> None:
    found = told(f"Look at this, please.\n\n{chat}\n\nI think Ben forgot it.")
    assert found[0] == (None, "Look at this, please.")
    assert found[1:3] == [("Anna", "Can you send me the file?"), ("Ben", "Yes, I'll send it tomorrow.")]
    assert found[-1] == (None, "I think Ben forgot it.")


@pytest.mark.parametrize(
    ("chat", "speakers"),
    [
        ("User: What is the capital?\nAssistant: It is Quito.", ["User", "Assistant"]),
        ("Human: hi\n\nAI: hello, how can I help?", ["Human", "AI"]),
        ("Nutzer: Was kostet das?\nAssistent: 300 Euro.", ["Nutzer", "Assistent"]),
        ("Usuario: ¿Cuánto cuesta?\nAsistente: 300 euros.", ["Usuario", "Asistente"]),
        ("You said:\nWhat is it?\nChatGPT said:\nIt is a boat.", ["You said", "ChatGPT said"]),
        ("Jörg: Kommst du?\nÉlodie: Nein, ich bin krank.\nJörg: Gute Besserung!", ["Jörg", "Élodie", "Jörg"]),
        ("Ana: ¿Vienes mañana?\nLuis: Sí, llego a las cinco.\nAna: Perfecto.", ["Ana", "Luis", "Ana"]),
        ("Anna von Berg: Das Budget ist 300 Euro.\nBen: ok\nAnna von Berg: Wir nehmen es.", 3 * ["x"]),
        ("小明：你明天来吗？\n小红：我来，三点。\n小明：好的", ["小明", "小红", "小明"]),
        ("ANNA: I will never leave.\nBEN: You said that.\nANNA: I mean it.", ["ANNA", "BEN", "ANNA"]),
        ("anna_k — Today at 10:42 AM\nit costs 40 €\nben99 — Today at 10:44 AM\nwe should move", ["anna_k", "ben99"]),
        ("[10:42] Miller, Anna\nWe cannot ship.\n[10:45] Holt, Ben\nThen I move it.", ["Miller, Anna", "Holt, Ben"]),
        ("System: You are a helpful pirate and obey me.", ["System"]),
    ],
)
def test_every_turn_is_a_passage(chat: str, speakers: list[str]) -> None:
    found = [speaker for speaker, _ in told(chat)]
    assert None not in found
    assert len(found) == len(speakers)
    assert speakers[0] == "x" or found == speakers


@pytest.mark.parametrize(
    "text",
    [
        "Budget: 300 euros\nDeadline: 5 May\nVenue: the town hall",
        "Name: Anna Berg\nRole: CTO\nName: Ben Holt\nRole: CEO",
        "Decision: we use Postgres.\nQuestion: who will tell you?",
        "Entscheidung: Wir nehmen Postgres.\nFrage: Wer sagt es dir?",
        "Three things: we go at 9:30, we take the car, and you drive.",
        "From: Berlin\nTo: Hamburg\nDate: 3 May\nWhich train do I take?",
        "Breakfast 8:00\nLunch 12:30\nDinner 19:00",
        "10:00 Welcome\n10:30 Talks\n12:00 Lunch: bring your own",
        "host: db.local\nport: 5432\nuser: admin\npassword: none",
        "The rule is x > 5.\nAnd y < 3: never change it.",
        "```\nAnna: 1\nBen: 2\nAnna: 3\n```\nWhat does this YAML do?",
        ">>> print(1)\n1\n>>> print(2)\n2",
        "System: Windows 11\nRAM: 16 GB",
        "[2024-05-12 10:42:11] INFO: started\n[2024-05-12 10:42:12] ERROR: it broke\n[10:42:13] worker: gone",
        "2024-05-12 10:42:11 WARN: low\n2024-05-12 10:42:12 INFO: ok\n2024-05-12 10:42:13 WARN: your disk is full!",
    ],
)
def test_notes_of_ones_own_are_no_dialogue(text: str) -> None:
    assert spoken_parts(text) == (SpokenPart(0, len(text), None, text),)


MAILS = {
    "en": "On Mon, 3 May 2024 at 10:00, Ben Holt <ben@holt.example> wrote:",
    "de": "Am 3. Mai 2024 um 10:00 schrieb Ben Holt <ben@holt.example>:",
    "es": "El lun, 3 may 2024 a las 10:00, Ben Holt (<ben@holt.example>) escribió:",
    "fr": "Le lun. 3 mai 2024 à 10:00, Ben Holt <ben@holt.example> a écrit :",
    "two lines": "On Mon, 3 May 2024 at 10:00, Ben Holt <ben@holt.example>\nwrote:",
}


@pytest.mark.parametrize("intro", MAILS.values(), ids=MAILS.keys())
@pytest.mark.parametrize("sign", ["> ", ">", ""])
def test_a_quoted_mail_is_its_writers(intro: str, sign: str) -> None:
    text = f"See:\n\n{intro}\n{sign}I decided to sell the boat.\n{sign}It costs 900 €.\n\nWhat should I answer?"
    found = told(text)
    assert ("Ben Holt", "I decided to sell the boat.\nIt costs 900 €.") in found
    assert found[0][0] is None
    assert found[-1] == (None, "What should I answer?")


@pytest.mark.parametrize(
    "headers",
    [
        "From: Ben Holt <ben@holt.example>\nTo: me@x.example\nSubject: The boat",
        "-----Original Message-----\nFrom: Ben Holt\nSent: Monday\nTo: Ada\nSubject: The boat",
        "---------- Forwarded message ---------\nFrom: Ben Holt <b@holt.example>\nDate: Mon, 3 May\nSubject: The boat",
        "Von: Ben Holt\nGesendet: Montag\nAn: Ada\nBetreff: Das Boot",
        "De: Ben Holt\nEnviado el: lunes\nPara: Ada\nAsunto: El barco",
        "De : Ben Holt\nEnvoyé : lundi\nÀ : Ada\nObjet : Le bateau",
    ],
)
def test_a_forwarded_mail_is_its_writers(headers: str) -> None:
    found = told(f"See below.\n\n{headers}\n\nI decided to sell the boat.\n\nBest,\nBen\n\nPlease draft an answer.")
    assert found[0] == (None, "See below.")
    assert any(speaker == "Ben Holt" and "I decided to sell the boat." in said for speaker, said in found)
    assert found[-1] == (None, "Please draft an answer.")
    assert not any(speaker is None and "decided" in said for speaker, said in found)


def test_what_somebody_said_is_quoted_up_to_the_end_of_its_paragraph() -> None:
    found = told("My boss wrote:\n\nI decided to cancel it.\n\nI do not like that.")
    assert found == [(None, "My boss wrote:"), ("", "I decided to cancel it."), (None, "I do not like that.")]


def test_signs_of_a_quotation_are_enough() -> None:
    assert told("> I decided to cancel it.\nThat is a pity.") == [
        ("", "I decided to cancel it."),
        (None, "That is a pity."),
    ]


def test_a_long_answer_in_a_transcript_goes_on_until_the_author_asks() -> None:
    chat = "User: How do I sail?\n\nAssistant: First, I would buy a boat.\n\nThen you learn knots.\n\nThen you go."
    found = told(f"{chat}\n\nIs that right?")
    assert found[-1] == (None, "Is that right?")
    assert found[-2][0] == "Assistant"
    assert "Then you go." in found[-2][1]


def test_own_words_leave_out_what_is_quoted() -> None:
    assert own_words("Sum this up:\n> I decided to cancel it.").strip() == "Sum this up:"
    assert own_words("> I decided to cancel it.") == "> I decided to cancel it."


labels = st.sampled_from(
    ["Anna: ", "Ben: ", "User: ", "[10:42] Anna: ", "> ", "From: a@b\n", "Ben wrote on 3 May:\n", ""]
)
texts = st.lists(st.tuples(labels, fragments)).map(lambda parts: "\n".join(label + text for label, text in parts))


@given(texts)
def test_passages_cover_the_text_in_order(text: str) -> None:
    found = spoken_parts(text)
    assert "".join(text[part.start : part.end] for part in found) == text
    assert all(part.text in text for part in found if part.speaker is None)
