"""Forms: words that no stemmer brings together."""

from hypothesis import given
from hypothesis import strategies as st

from recto.search.forms import alike


def test_what_went_is_found_by_go() -> None:
    assert {"go", "went", "gone"} <= set(alike("go"))
    assert {"go", "went"} <= set(alike("going"))
    assert "children" in alike("child")


def test_endings_lead_to_the_same_forms() -> None:
    assert "ran" in alike("running")
    assert "wrote" in alike("writing")
    assert "took" in alike("takes")


def test_other_words_are_alone() -> None:
    assert alike("kayak") == ("kayak",)
    assert alike("猫*") == ("猫*",)


@given(st.text(min_size=1))
def test_the_word_itself_comes_first_and_each_form_once(term: str) -> None:
    found = alike(term)
    assert found[0] == term
    assert len(set(found)) == len(found)


@given(st.sampled_from(["go", "took", "people", "best", "teeth"]))
def test_forms_are_alike_both_ways(term: str) -> None:
    assert all(set(alike(form)) == set(alike(term)) for form in alike(term))
