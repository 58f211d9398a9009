"""A fact is one line; two of them are compared by what they are about."""

import pytest
from bench.summary_data import conversations
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import Invalid
from recto.memory.statements import (
    guessed_kind,
    learnable,
    may_contradict,
    own_statements,
    says_same,
    without_request,
)
from recto.store.fact import MAX_CHARS, checked_kind, checked_text


def test_a_fact_is_one_line_without_control_characters() -> None:
    assert checked_text("  My \x1b[31mcat\x07\n is  Tom ") == "My [31mcat is Tom"


@pytest.mark.parametrize("text", ["", " \n\t", "\x1b\x07"])
def test_a_fact_without_a_text_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="a fact needs a text"):
        checked_text(text)


def test_a_book_is_no_fact() -> None:
    with pytest.raises(Invalid, match=f"at most {MAX_CHARS:,} characters, and this has 100,000"):
        checked_text("x" * 100_000)


def test_an_unknown_kind_is_refused() -> None:
    assert checked_kind("person") == "person"
    with pytest.raises(Invalid, match="unknown kind of fact 'people'; use preference, person"):
        checked_kind("people")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My cat is called Tom.", "my cat is called Tom"),
        ("The release is on 3 May", "the release is on 3 May!"),
        ("Ich trinke gern grünen Tee", "ich trinke gern grünen Tee."),
        ("我住在上海", "我住在上海"),
    ],
)
def test_the_same_words_say_the_same(one: str, other: str) -> None:
    assert says_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The release is on 3 May", "The release is on 4 May"),
        ("I eat fish", "I do not eat fish"),
        ("My cat is called Tom", "My dog is called Tom"),
    ],
)
def test_another_number_name_or_a_negation_is_another_statement(one: str, other: str) -> None:
    assert not says_same(one, other)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("Our dentist is Dr. Lee now", "Our dentist is Dr. Kim"),
        ("Anna moved to Hamburg", "My sister Anna lives in Berlin"),
        ("The release is on 12 June", "The release is on 3 May"),
        ("I do not eat fish", "I eat fish"),
        ("Der Termin ist jetzt am Freitag", "Der Termin ist am Montag"),
        ("El presupuesto es ahora de 900 euros", "El presupuesto es de 700 euros"),
        ("Ana se mudó a Cádiz", "Ana vive en Sevilla"),
        ("我的妹妹搬到了北京", "我的妹妹住在上海"),
        ("أختي انتقلت إلى القاهرة", "أختي تعيش في بيروت"),
        ("The office moved to Fleet Street", "The office is on Baker Street"),
    ],
)
def test_a_newer_statement_about_the_same_may_contradict_the_older(newer: str, older: str) -> None:
    assert may_contradict(newer, older)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("The garden gets 300 euros", "The kitchen budget is 5,000 euros"),
        ("Ben was born on 4 June", "Anna's birthday is 3 May"),
        ("I like tea in the morning", "The server runs Debian"),
        ("My house is red", "My car is red"),
        ("I like tea", "I like coffee"),
        ("The office moved to Fleet Street", "Anna moved to Hamburg"),
        ("Bruno Weber lives in Kiel", "Anna Weber lives in Graz"),
        ("My cat is called Tom.", "my cat is called Tom"),
    ],
)
def test_statements_about_other_things_or_the_same_words_do_not(newer: str, older: str) -> None:
    assert not may_contradict(newer, older)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I prefer short answers", "preference"),
        ("My sister is called Anna", "person"),
        ("We decided to use Postgres", "decision"),
        ("The project's deadline is in June", "project"),
        ("Water boils at 100 degrees", "other"),
        ("Meine Schwester heißt Anna", "person"),
    ],
)
def test_the_kind_is_guessed_from_what_is_said(text: str, kind: str) -> None:
    assert guessed_kind(text) == kind


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    assert says_same(one, other) == says_same(other, one)
    assert not (says_same(one, other) and may_contradict(one, other))


# -- what of a message is remembered by itself


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
