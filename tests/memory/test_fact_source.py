"""Where a statement comes from: what counts as found in a text, in several languages."""

import pytest

from recto.memory.fact_source import FactSource, states_fact


def said(text: str, beside: str = "") -> FactSource:
    return FactSource(text, "user", "", None, beside)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("I am allergic to nuts.", "User is allergic to nuts"),
        ("My budget is 1,000 euros.", "The user's budget is 1000 euros"),
        ("Ich wohne in Bonn.", "Der Nutzer wohnt in Bonn"),
        ("No como gluten.", "El usuario no come gluten"),
        ("Don't forget that my cat is called Tom.", "The user's cat is called Tom"),
        ("J'habite à Lyon depuis 2011.", "L'utilisateur habite à Lyon depuis 2011"),
        ("我住在北京。", "用户住在北京"),
        ("Our cat is Tom. He is 7 years old.", "The cat Tom is 7 years old"),
    ],
)
def test_a_statement_is_found_in_another_form(text: str, statement: str) -> None:
    assert states_fact(said(text), statement)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("- Fuse: 10 A\n- Pump: 7 A", "The fuse is 7 A"),
        ("The fuse takes 10 A.", "The fuse takes seven amperes"),
        ("Is the fuse 16 A?", "The fuse is 16 A"),
        ("Anna lives in Bonn.", "Anne lives in Bonn"),
        ("My exam is tomorrow.", "The user's exam is on 2026-05-03"),
        ("I was born on 5 May 1990.", "User was born on 5 May 2026"),
        ("I don't eat meat.", "The user eats meat"),
        ("Je n'aime pas le café.", "L'utilisateur aime le café"),
        ("Meine Schwester wohnt in Bonn.", "Die Schwester des Nutzers wohnt in Köln"),
        ("我住在北京。", "用户住在上海"),
        ("Ich wohne in Bonn.", "The user lives in Bonn"),  # a translation: nobody said it in these words
        ("The fuse has 7 A.", "7 A"),  # says of nothing what it is
    ],
)
def test_what_a_text_does_not_say_is_not_found(text: str, statement: str) -> None:
    assert not states_fact(said(text), statement)


def test_an_answer_is_found_together_with_its_question() -> None:
    assert states_fact(said("4711", beside="What is the code of the door?"), "The code of the door is 4711")
    assert not states_fact(said("Yes.", beside="Is the code of the door 4711?"), "The code of the door is 4711")


def test_what_a_tool_only_repeats_of_its_arguments_is_not_found() -> None:
    echo = FactSource("Nothing found for fuse 7 A.", "document", "tool search", asked="query: fuse 7 A")
    assert not states_fact(echo, "The fuse is 7 A")
