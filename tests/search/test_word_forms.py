"""Irregular forms, which no stemmer brings together."""

from hypothesis import given
from hypothesis import strategies as st

from recto.search.terms import word_forms


def test_irregular_forms_belong_together() -> None:
    assert {"go", "went", "gone"} <= set(word_forms("go"))
    assert {"go", "went"} <= set(word_forms("going"))
    assert "children" in word_forms("child")


def test_endings_lead_to_the_same_forms() -> None:
    assert "ran" in word_forms("running")
    assert "wrote" in word_forms("writing")
    assert "took" in word_forms("takes")


def test_other_words_have_no_further_forms() -> None:
    assert word_forms("kayak") == ("kayak",)
    assert word_forms("猫*") == ("猫*",)


@given(st.text(min_size=1))
def test_the_word_itself_comes_first_and_each_form_once(term: str) -> None:
    found = word_forms(term)
    assert found[0] == term
    assert len(set(found)) == len(found)


@given(st.sampled_from(["go", "took", "people", "best", "teeth"]))
def test_forms_are_symmetric(term: str) -> None:
    assert all(set(word_forms(form)) == set(word_forms(term)) for form in word_forms(term))
