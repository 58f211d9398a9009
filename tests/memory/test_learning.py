"""What of a message is remembered by itself, and what is not: junk is worse than nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.memory.learning import learnable


@pytest.mark.parametrize(
    "text",
    [
        "My sister Anna lives in Berlin.",
        "I'm allergic to peanuts.",
        "I prefer short answers.",
        "We decided to use Postgres for billing.",
        "I work as a nurse in Leeds.",
        "The deadline is 12 June.",
        "Call me Ada.",
        "Meine Schwester heißt Anna.",
        "Ich wohne in Graz und arbeite als Lehrer.",
        "Mi hermana vive en Valencia.",
        "Soy alérgica al marisco.",
    ],
)
def test_lasting_things_are_learned_in_the_users_own_words(text: str) -> None:
    assert list(learnable(text)) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "My code is broken.",
        "My question is simple.",
        "I'm a bit tired.",
        "I like it.",
        "I love the idea!",
        "If my boss is there, I would go.",
        "It is my favourite.",
        "I want to write a letter to my wife.",
        "My son is sick today.",
        'He said "I live in Rome"',
        "Fix the bug where our server is slow.",
        "Translate: my cat is black",
        "Is my sister called Anna?",
        "> I live in Paris",
        "| my name | is | Tom |",
        "def f(): return 'my name is Tom'",
        "Schreib einen Brief an meine Schwester, die in Graz wohnt.",
        "I live in a house.\n" * 9,
        "",
    ],
)
def test_what_passes_is_asked_or_pasted_is_not(text: str) -> None:
    assert list(learnable(text)) == []


def test_what_a_user_asks_to_remember_is_learned_whatever_it_is() -> None:
    assert list(learnable("Remember: the gate code is 4711.")) == ["The gate code is 4711."]
    assert list(learnable("Merk dir, dass der Code 4711 ist.")) == ["Der Code 4711 ist."]


def test_of_several_sentences_those_that_tell_something_are_taken() -> None:
    assert list(learnable("Hi! My name is Tom and I live in Kiel. What's the weather like?")) == [
        "My name is Tom and I live in Kiel."
    ]


@given(st.text(max_size=400))
def test_any_text_can_be_looked_through(text: str) -> None:
    assert all(len(each.split()) <= 32 for each in learnable(text))
