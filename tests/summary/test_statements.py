"""Statements that bind, requests, and whether a reply settles them."""

import pytest
from tests.summary.samples import quarter

from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.ids import new_id
from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.statements import answers, is_empty_offer, is_request, leaves_open, settles
from recto.summary.verification import CoveredFacts

ANSWER = "It has a long history and many books are about it, some practical and some not. Most people like it a lot."


@pytest.mark.parametrize(
    "text", ["Explain tides, please.", "Can you elaborate?", "Erzähl mir mehr.", "Dime más.", "帮我写一封信。"]
)
def test_a_request_is_recognised(text: str) -> None:
    assert is_request(text)


@pytest.mark.parametrize("text", ["Plans changed.", "The list is long.", "Wir nehmen Eiche.", "No smoking."])
def test_a_statement_is_no_request(text: str) -> None:
    assert not is_request(text)


def test_an_answer_settles_what_was_asked_and_an_acknowledgement_does_not() -> None:
    assert settles(ANSWER)
    for reply in ("", "Will do.", "I'll remind you when we are through with the rest.", f"{ANSWER} Which one?"):
        assert not settles(reply)
    assert not settles("I do not know either, the town hall would know that, so let us leave it open.")


@pytest.mark.parametrize("text", ["I have no idea.", "Das müssen wir noch klären.", "Nadie lo sabe.", "还不知道。"])
def test_what_is_not_known_yet_is_left_open(text: str) -> None:
    assert leaves_open(text)


def test_answered_requests_yield_to_prohibitions_and_decisions() -> None:
    topics = ("tides", "glass", "bees", "salt", "wool", "maps", "chess", "bread", "violins", "paper")
    said = [PlainMessage("user", "We plan a party at the lake."), PlainMessage("assistant", "Lovely.")]
    for topic in topics[:5]:
        said += [PlainMessage("user", f"Explain {topic} briefly, please."), PlainMessage("assistant", ANSWER)]
    said += [PlainMessage("user", "Fine, no phones at the table. We stay with the old caterer.")]
    for topic in topics[5:]:
        said += [PlainMessage("user", f"Tell me more about {topic}."), PlainMessage("assistant", ANSWER)]
    told = extract(said, 34, quarter)
    assert "no phones" in told
    assert "We stay with the old caterer" in told
    assert "Explain" not in told


def test_an_offer_that_names_nothing_is_empty() -> None:
    assert is_empty_offer("Should I go on with the next part?")
    assert is_empty_offer("Soll ich weitermachen?")
    assert is_empty_offer("¿Quieres que siga con la parte siguiente?")
    assert not is_empty_offer("Shall I book the train to Bergen at 14:20?")
    assert not is_empty_offer("Who pays for the hall?")


def test_a_yes_to_an_empty_offer_is_no_fact() -> None:
    said = [
        Message(new_id(), "assistant", (Text("The first part is done. Should I go on with the next part?"),), said=1),
        Message(new_id(), "user", (Text("Yes please"),), said=2),
        Message(new_id(), "assistant", (Text("Shall I book the hall for 14 June?"),), said=3),
        Message(new_id(), "user", (Text("Yes please"),), said=4),
    ]
    covered = CoveredFacts()
    covered.add(said)
    quoted = {entry.number for entry in covered.entries.values() if entry.text == "Yes please"}
    assert quoted == {4}


def test_what_an_assistant_says_of_something_unnamed_is_no_fact() -> None:
    said = [Message(new_id(), "assistant", (Text("Ilse once needed 35 attempts for that. The hall holds 80 people."),))]
    covered = CoveredFacts()
    covered.add(said)
    quoted = " ".join(entry.text for entry in covered.entries.values())
    assert "80 people" in quoted
    assert "35 attempts" not in quoted


def test_a_question_at_the_end_of_a_reply_takes_nothing_back() -> None:
    done = "The poster should be warm: people read it from far away, and they look at it for a second at most."
    assert settles(f"{done} Shall I go on with the next part?")
    assert answers("A little. Should I go on?")
    assert settles(f"{done} {done} What size did you have in mind for the printed version?")
    assert not settles("Which of the two posters do you mean, the one for the hall or the one for the street?")
    assert not answers("Which one?")
