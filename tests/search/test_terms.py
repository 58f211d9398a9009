"""Terms: texts as the index reads them, and the words of a query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.terms import (
    MAX_TERMS,
    STOP_WORDS,
    folded_text,
    folded_words,
    query_terms,
    topic_words,
    word_forms,
    words,
)


def test_case_accents_and_width_are_folded() -> None:
    assert words("Café CAFÉ ｃａｆｅ́") == ["cafe"] * 3


def test_words_that_carry_no_topic_are_not_looked_up() -> None:
    assert query_terms("What did she do with the kayak?") == ["kayak"]


def test_small_words_that_tell_topics_apart_are_looked_up() -> None:
    assert query_terms("Did they break up after the trip?") == ["break", "up", "after", "trip"]


def test_where_no_word_carries_a_topic_all_are_looked_up() -> None:
    assert query_terms("to be or not to be") == ["to", "be", "or", "not"]


def test_a_word_is_looked_up_once() -> None:
    assert query_terms("kayak, Kayak and KAYAK") == ["kayak"]


def test_single_letters_are_looked_up_only_if_there_is_nothing_else() -> None:
    assert query_terms("plan B") == ["plan"]
    assert query_terms("x") == ["x"]


def test_scripts_without_spaces_are_looked_up_in_pairs() -> None:
    assert query_terms("東京タワー") == ["東京", "京タ", "タワ", "ワー"]
    assert set(query_terms("東京")) <= set(words("私は東京に住んでいます"))


def test_a_lone_character_matches_as_a_prefix() -> None:
    assert query_terms("猫") == ["猫*"]
    assert any(word.startswith("猫") for word in words("私の猫"))


def test_words_of_two_scripts_are_split() -> None:
    assert query_terms("iPhoneを買う") == ["iphone", "を買", "買う"]


@pytest.mark.parametrize("text", ["привет мир", "שלום עולם", "γειά σου", "नमस्ते दुनिया", "한국어 공부"])
def test_other_scripts_are_found_by_their_words(text: str) -> None:
    assert query_terms(text)
    assert set(query_terms(text)) <= set(words(f"… {text.upper()}!"))


def test_an_emoji_is_a_word_whatever_its_colour() -> None:
    assert words("great👍🏽job") == ["great", "👍", "job"]
    assert query_terms("👍") == ["👍"]


@pytest.mark.parametrize("text", ["", " ", "\n\t", "?!", '"', "()", "***", "\u200b"])
def test_an_empty_query_has_no_terms(text: str) -> None:
    assert query_terms(text) == []


@pytest.mark.parametrize("text", ['"kayak" AND', "kayak*", "NEAR(kayak", "kayak^2", "text:kayak", "-kayak", "{kayak}"])
def test_operators_of_the_database_are_only_words(text: str) -> None:
    assert "kayak" in query_terms(text)
    assert all(term.isalnum() for term in query_terms(text))


def test_of_ten_thousand_words_the_longest_are_looked_up() -> None:
    text = " ".join(f"w{'o' * (number % 40)}rd{number}" for number in range(10_000))
    assert len(query_terms(text)) == MAX_TERMS
    assert min(map(len, query_terms(text))) > 40


@given(st.text())
def test_every_term_is_among_the_words_of_its_own_text(text: str) -> None:
    said = words(text)
    for term in query_terms(text):
        assert term in said or (term.endswith("*") and any(word.startswith(term[:-1]) for word in said))


@given(st.text(st.characters(max_codepoint=127)))
def test_case_and_punctuation_do_not_matter(text: str) -> None:
    assert words(text.upper()) == words(text.lower()) == words(f"({text})")


@given(st.text())
def test_a_folded_text_has_the_same_words(text: str) -> None:
    assert folded_words(folded_text(text)) == words(text)


@given(st.text())
def test_topic_words_are_a_part_of_the_words(text: str) -> None:
    assert topic_words(text) <= set(words(text))
    assert not topic_words(text) & STOP_WORDS


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        ("When was Sam in the ER?", ["sam", "er"]),
        ("Which US state was it?", ["us", "state"]),
        ("er hat uns gesehen", ["hat", "gesehen"]),
        ("WHEN WAS SAM IN THE ER", ["sam"]),
        ("kayak AND river", ["kayak", "river"]),
    ],
)
def test_an_acronym_is_not_a_stop_word(asked: str, terms: list[str]) -> None:
    assert query_terms(asked) == terms


# -- irregular forms


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
