"""What a model says about a message counts only as far as the user's own words support it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.memory.fact_proposals import is_worth_asking, proposal_order, supported_facts

MESSAGE = "My sister Anna called. She lives in Berlin since 2019, not in Bonn."


def proposed(quote: str, fact: str = "", message: str = MESSAGE) -> list[str]:
    found = supported_facts(json.dumps([{"quote": quote, "fact": fact, "kind": "person"}]), message)
    assert found is not None
    return [each.text for each in found]


def test_a_sentence_is_kept_as_the_user_wrote_it() -> None:
    message = "I keep bees in Graz. Where can I buy frames?"
    assert proposed("keep bees", "The user is a beekeeper", message) == ["I keep bees in Graz."]


def test_a_sentence_that_leans_on_another_is_told_in_words_of_the_message() -> None:
    fact = "My sister Anna lives in Berlin since 2019, not in Bonn"
    assert proposed("She lives in Berlin since 2019, not in Bonn.", fact) == [fact]
    assert proposed("She lives in Berlin", f"The user's {fact[3:]}") == [f"The user's {fact[3:]}"]


@pytest.mark.parametrize(
    ("quote", "fact"),
    [
        ("She lives in Berlin", "My sister Anna lives in Hamburg since 2019, not in Bonn"),
        ("She lives in Berlin", "My sister Anna lives in Berlin since 2020, not in Bonn"),
        ("She lives in Berlin", "My sister Anna lives in Berlin since 2019, in Bonn"),
        ("She lives in Berlin", "Anna"),
        ("She lives in Berlin", ""),
        ("She lives in Hamburg", "My sister Anna lives in Berlin since 2019, not in Bonn"),
        ("", "My sister Anna lives in Berlin"),
    ],
)
def test_what_the_message_does_not_say_is_dropped(quote: str, fact: str) -> None:
    assert proposed(quote, fact) == []


@pytest.mark.parametrize(
    "message",
    [
        "Where does my sister live?",
        "Translate: my brother is a pilot.",
        "If I lived in Rome, I would learn Italian.",
        "> I live in Paris",
        'He said "I live in Rome" to me.',
        "I'm tired today.",
        "Write a poem about my cat.",
        "def f(): return 'my name is Tom'",
        "My house is red.\n" * 9,
        "The build fails on line 40.",
        "Berlin is the capital of Germany.",
        "Die Tabelle hat drei Spalten.",
        "I love it, especially the end.",
        "Thanks for my new password.",
        "I read the article about bees.",
    ],
)
def test_nothing_of_it_can_be_pointed_to(message: str) -> None:
    assert not is_worth_asking(message)
    assert proposed(message.splitlines()[0], message.splitlines()[0], message) == []


@pytest.mark.parametrize(
    "message",
    [
        "Je travaille à Lyon depuis dix ans.",
        "Ik heet Filipa.",
        "Я за освітою ґрунтознавиця, ANOVA робила в Excel ще з дисертації.",
        "أنا نهى، منسقة البيانات (يعني كل إشي مش طبي بطلع عليّ) في مستوصف خيري بحي الرمانة.",
    ],
)
def test_other_languages_are_asked_about(message: str) -> None:
    assert is_worth_asking(message)
    assert proposed(message, message, message) == [message]


@pytest.mark.parametrize("answer", ["", "none", "{}", "[", '{"facts": 3}', "[" * 5000])
def test_an_answer_that_is_no_list_is_known_as_such(answer: str) -> None:
    assert supported_facts(answer, MESSAGE) is None


def test_a_list_may_stand_between_other_words_and_hold_anything() -> None:
    assert supported_facts("Here: ```json\n[]\n```", MESSAGE) == []
    assert supported_facts('[1, null, "x", {}, {"quote": 3}, {"quote": "x", "fact": []}]', MESSAGE) == []


def test_braces_in_a_message_do_not_break_the_order() -> None:
    assert "{a} {0}" in proposal_order("{a} {0}")


@given(st.text(max_size=300), st.text(max_size=60))
def test_any_proposal_can_be_checked(message: str, quote: str) -> None:
    found = supported_facts(json.dumps([{"quote": quote, "fact": quote}]), message)
    assert found is not None
