"""Terms: texts as the index reads them, and the words of a query."""

import pytest

from recto.search.terms import (
    query_terms,
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
