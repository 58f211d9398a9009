import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.base.text import REPLACEMENT, clean, text_cache, trim_text_caches, without_key


def test_nul_and_lone_surrogates_become_replacement_characters() -> None:
    assert clean("a\x00b\ud800c") == (f"a{REPLACEMENT}b{REPLACEMENT}c", 2)


@given(st.binary() | st.text(st.characters(codec=None)))
def test_clean_text_can_always_be_stored_and_sent(raw: str | bytes) -> None:
    text, _ = clean(raw)
    assert "\x00" not in text
    assert text.encode().decode() == text
    assert clean(text) == (text, 0)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_good_text_is_left_as_it_is(text: str) -> None:
    assert clean(text) == (text, 0)
    assert clean(text.encode()) == (text, 0)


KEY = "sk-proj-4f9XyZ8821abcdEFGH"


@pytest.mark.parametrize(
    "told",
    [
        f"Incorrect API key provided: {KEY}.",
        "Incorrect API key provided: sk-proj-4f9X************EFGH. Find yours there.",
        "key 'sk-proj-4f9XyZ88...' is not valid",
        "cut off in the middle: sk-proj-4f9XyZ",
        f"{KEY}{KEY}, {KEY}-and-more",
    ],
)
def test_nothing_of_a_key_is_left(told: str) -> None:
    left = without_key(told, KEY)
    assert "***" in left
    assert not any(KEY[:n] in left for n in range(8, len(KEY)))
    assert "EFGH" not in left


@pytest.mark.parametrize("key", [None, "", "test", "sk-1234"])
def test_what_is_too_short_for_a_key_tears_no_words_apart(key: str | None) -> None:
    told = "a test of sk-1234 for testers"
    assert without_key(told, key) == told


@given(st.text("abk-*.", max_size=60), st.text("abk-", min_size=8, max_size=12))
def test_a_key_is_found_wherever_it_stands(around: str, key: str) -> None:
    assert key not in without_key(f"{around} {key} {around}", key, "#")


def test_a_text_cache_forgets_what_a_large_compaction_read_and_keeps_what_a_small_one_did() -> None:
    read: list[str] = []

    @text_cache(4096)
    def length(text: str) -> int:
        read.append(text)
        return len(text)

    assert [length("once"), length("once")] == [4, 4]
    trim_text_caches()
    assert length("once") == 4
    assert read == ["once"], "a few are kept"
    for number in range(2000):
        length(f"sentence {number}")
    trim_text_caches()
    assert length("once") == 4
    assert read.count("once") == 2, "thousands are not"
