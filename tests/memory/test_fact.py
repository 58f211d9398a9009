"""A fact is one line; two of them are compared by what they are about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import Invalid
from recto.memory.statements import guessed_kind, may_contradict, says_same
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
