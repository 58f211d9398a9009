from hypothesis import given
from hypothesis import strategies as st

from recto.text import REPLACEMENT, clean


def test_nul_and_lone_surrogates_become_replacement_characters() -> None:
    assert clean("a\x00b\ud800c") == (f"a{REPLACEMENT}b{REPLACEMENT}c", 2)


def test_invalid_bytes_are_replaced_one_by_one_and_counted() -> None:
    assert clean(b"caf\xc3\xa9 \xff\xfe!") == (f"café {REPLACEMENT}{REPLACEMENT}!", 2)


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
