import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.vault.links import front_matter, mask_code


@given(st.text(alphabet="`~%<>-! \n\r\t\\a1.", max_size=80))
def test_a_mask_changes_neither_length_nor_lines(text: str) -> None:
    mask = mask_code(text)
    assert len(mask) == len(text)
    assert all(mine == own or (mine == " " and own != "\n") for mine, own in zip(mask, text, strict=True))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("a `b` c", "b"),
        ("```b``` c", "b"),
        ("```js\nb\n```\nc", "b"),
        ("~~~ a`b\nb\n~~~\nc", "b"),
        ("1. ~~~\n   b\n   ~~~\nc", "b"),
        ("%%b%% c", "b"),
        ("<!--b--> c", "b"),
        ("`%%` b `%%` c", "%"),
        ("%% ` %% c `", "x"),
    ],
)
def test_only_code_and_comments_are_masked(text: str, hidden: str) -> None:
    mask = mask_code(text)
    assert hidden not in mask
    assert ("c" in mask) == ("c" in text)


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("---\na: 1\n---\nb", "a: 1\n"),
        ("\ufeff---\r\na: 1\r\n--- \r\nb", "a: 1\r\n"),
        ("---\n---", ""),
        ("--- \na: 1\n---", "a: 1\n"),
    ],
)
def test_front_matter_is_found(text: str, properties: str) -> None:
    place = front_matter(text)
    assert place is not None
    assert text[place[0] : place[1]] == properties
    assert text[place[2] :] == ("b" if text.endswith("b") else "")


@pytest.mark.parametrize("text", ["", "---", "---\na: 1", " ---\na\n---", "a\n---\nb\n---", "----\na\n----"])
def test_text_that_only_looks_like_front_matter_is_ignored(text: str) -> None:
    assert front_matter(text) is None


def test_a_tick_in_the_properties_opens_no_code() -> None:
    assert mask_code("---\na: `\n---\n[[b]] ` c").endswith("[[b]] ` c")
