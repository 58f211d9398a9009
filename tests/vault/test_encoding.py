"""Decoding files, and refusing binary ones."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.base.text import REPLACEMENT, clean
from recto.errors import Invalid
from recto.vault.decoding import decode_text

written = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=f"\0{REPLACEMENT}"))


@given(written)
def test_utf_8_is_the_text_itself(text: str) -> None:
    assert decode_text(text.encode(), "a.md") == text.removeprefix("\ufeff")


@given(written, st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]))
def test_a_byte_order_mark_sets_the_encoding_and_is_removed(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding), "a.md") == text


@pytest.mark.parametrize(
    ("raw", "because"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "NUL"),
        (b"x" * 7_999 + b"\0", "NUL"),
        (codecs.BOM_UTF8 + b"a\0", "NUL"),
        ("a\0".encode("utf-16"), "NUL"),
        ("ab".encode("utf-16-le"), "NUL"),
        ("Здравствуй, море".encode("cp1251"), "not UTF-8"),
        (bytes(range(128, 256)) * 99, "not UTF-8"),
        (codecs.BOM_UTF16_LE + b"\x00\xdc" * 99, "not UTF-16"),
    ],
)
def test_a_binary_file_is_refused_by_name(raw: bytes, because: str) -> None:
    with pytest.raises(Invalid, match=f"a/b\\.md is not text: .*{because}") as failure:
        decode_text(raw, "a/b.md")
    assert failure.value.data["path"] == "a/b.md"


def test_only_the_beginning_decides() -> None:
    assert decode_text(b"x" * 8_000 + b"\0", "a.md").endswith(f"x{REPLACEMENT}")
    assert len(decode_text(b"x" * 8_000 + b"\xff" * 8_000, "a.md")) == 16_000
    assert decode_text("x🦊".encode() * 4_000, "a.md") == "x🦊" * 4_000, "a sign on the border is whole"


@given(st.binary(max_size=200))
def test_any_bytes_are_valid_text_or_refused(raw: bytes) -> None:
    try:
        text = decode_text(raw, "a.md")
    except Invalid:
        return
    assert clean(text) == (text, 0)
