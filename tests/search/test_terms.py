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


@pytest.mark.parametrize(
    ("asked", "terms"),
    [
        ("What did she do with the kayak?", ["kayak"]),
        ("Did they break up after the trip?", ["break", "up", "after", "trip"]),  # small words that tell topics apart
        ("to be or not to be", ["to", "be", "or", "not"]),  # no word carries a topic
        ("kayak, Kayak and KAYAK", ["kayak"]),
        ("plan B", ["plan"]),
        ("x", ["x"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("猫", ["猫*"]),
        ("iPhoneを買う", ["iphone", "を買", "買う"]),
        ("👍", ["👍"]),
        # an acronym is no stop word
        ("When was Sam in the ER?", ["sam", "er"]),
        ("Which US state was it?", ["us", "state"]),
        ("er hat uns gesehen", ["hat", "gesehen"]),
        ("WHEN WAS SAM IN THE ER", ["sam"]),
        ("kayak AND river", ["kayak", "river"]),
        *((text, []) for text in ("", " ", "\n\t", "?!", '"', "()", "***", "\u200b")),
    ],
)
def test_the_words_that_carry_a_topic_are_looked_up(asked: str, terms: list[str]) -> None:
    assert query_terms(asked) == terms


def test_scripts_without_spaces_are_indexed_in_pairs() -> None:
    assert set(query_terms("東京")) <= set(words("私は東京に住んでいます"))
    assert any(word.startswith("猫") for word in words("私の猫"))


@pytest.mark.parametrize("text", ["привет мир", "שלום עולם", "γειά σου", "नमस्ते दुनिया", "한국어 공부"])
def test_other_scripts_are_found_by_their_words(text: str) -> None:
    assert query_terms(text)
    assert set(query_terms(text)) <= set(words(f"… {text.upper()}!"))


def test_an_emoji_is_a_word_whatever_its_colour() -> None:
    assert words("great👍🏽job") == ["great", "👍", "job"]


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


# -- irregular forms


@pytest.mark.parametrize(
    ("term", "forms"),
    [
        ("go", {"go", "went", "gone"}),
        ("going", {"going", "go", "went", "gone"}),
        ("child", {"child", "children"}),
        ("running", {"running", "run", "ran"}),
        ("writing", {"writing", "write", "wrote", "written"}),
        ("takes", {"takes", "take", "took", "taken"}),
        ("kayak", {"kayak"}),
        ("猫*", {"猫*"}),
    ],
)
def test_irregular_forms_belong_together(term: str, forms: set[str]) -> None:
    assert set(word_forms(term)) == forms


@given(st.text(min_size=1))
def test_the_word_itself_comes_first_and_each_form_once(term: str) -> None:
    found = word_forms(term)
    assert found[0] == term
    assert len(set(found)) == len(found)


@given(st.sampled_from(["go", "took", "people", "best", "teeth"]))
def test_forms_are_symmetric(term: str) -> None:
    assert all(set(word_forms(form)) == set(word_forms(term)) for form in word_forms(term))
