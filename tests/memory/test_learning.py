"""What of a message is remembered by itself, and what is not: junk is worse than nothing."""

import pytest
from bench.summary_data import conversations
from hypothesis import given
from hypothesis import strategies as st

from recto.memory.learning import learnable, own_statements, without_request


@pytest.mark.parametrize(
    "text",
    [
        "My sister Anna lives in Berlin.",
        "We decided to use Postgres for billing.",
        "I work as a nurse in Leeds.",
        "Meine Schwester heißt Anna.",
        "Mein Mann Ruedi ist seit Mai pensioniert und ich arbeite noch 40% im Coop, also ist fast immer öpper daheim.",
        "Ik heet Joost, ik ben 3 jaar ouder.",
        "Mi hermana vive en Valencia.",
        "Я за освітою ґрунтознавиця, ANOVA робила в Excel ще з дисертації.",
    ],
)
def test_lasting_things_are_learned_in_the_users_own_words(text: str) -> None:
    assert list(learnable(text)) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "My code is broken.",
        "I'm a bit tired.",
        "I love the idea!",
        "If my boss Ada is there, I would go.",
        "I saw Ada in Graz yesterday.",
        "I love it as much as Ada does.",
        'He said "I live in Rome".',
        "Fix the bug where our server is slow.",
        "Translate: my cat lives in Graz.",
        "Is my sister called Anna?",
        "> I live in Paris.",
        "| my name | is | Tom |",
        "def f(): return 'my name is Tom'",
        "Schreib einen Brief an meine Schwester, die in Graz wohnt.",
        "I live in a house in Graz.\n" * 9,
        "",
    ],
)
def test_what_passes_is_asked_or_pasted_is_not(text: str) -> None:
    assert list(learnable(text)) == []


def test_of_what_many_people_say_only_little_is_learned() -> None:
    said = [message.text for each in conversations() for message in each.messages if message.role == "user"]
    learned = [statement for text in said for statement in learnable(text)]
    assert 0 < len(learned) < len(said) / 20


@pytest.mark.parametrize(
    ("sentence", "requested"),
    [
        ("Remember: the gate code is 4711.", "the gate code is 4711."),
        ("My locker code is 4417, please remember that.", "My locker code is 4417."),
        ("Merk dir bitte: Meine Frau heißt Katrin.", "Meine Frau heißt Katrin."),
        ("覚えておいて、妻の名前は恵子です。", "妻の名前は恵子です。"),
        ("Please remember that I am Ada.", "I am Ada."),
        ("Merk dir, dass der Code 4711 ist.", "der Code 4711 ist."),
        ("N’oublie pas que je suis végétarien.", "je suis végétarien."),
        ("请记住我住在柏林。", "我住在柏林。"),
    ],
)
def test_what_a_user_asks_to_remember_is_learned_whatever_it_is(sentence: str, requested: str) -> None:
    assert without_request(sentence) == requested
    assert [each.lower() for each in learnable(sentence)] == [requested.lower()]


@pytest.mark.parametrize("sentence", ["I remember that it was red.", "Note the difference.", "Remember"])
def test_other_sentences_ask_for_nothing(sentence: str) -> None:
    assert without_request(sentence) == sentence


def test_of_several_sentences_those_that_tell_something_are_taken() -> None:
    assert list(learnable("Hi! My name is Tom and I live in Kiel. What's the weather like?")) == [
        "My name is Tom and I live in Kiel."
    ]


@given(st.text(max_size=400))
def test_any_text_can_be_looked_through(text: str) -> None:
    assert all(len(each.split()) <= 32 for each in learnable(text))
    assert all(0 < each.likelihood < 1 for each in own_statements(text))
