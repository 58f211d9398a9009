"""Control texts lose their force, and nothing else is changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.window.request import COMMON_CONTROL, ZERO_WIDTH_SPACE, defuse

# few letters, so that control texts overlap, nest and repeat all the time
words = st.text(alphabet="<|ab>", min_size=2, max_size=5)
controls = st.lists(words, min_size=1, max_size=6).map(tuple)
fragments = st.lists(st.sampled_from((*COMMON_CONTROL, "<|im_", "start|>", "<|", "|>", " ", "\n", "日本", "😀", "x")))


@given(st.text(alphabet="<|ab>x", max_size=60), controls)
def test_no_control_text_is_left_and_only_zero_width_spaces_are_added(text: str, control: tuple[str, ...]) -> None:
    defused = defuse(text, control)
    assert not any(word in defused for word in control)
    assert defuse(defused, control) == defused
    assert defused.replace(ZERO_WIDTH_SPACE, "") == text


@pytest.mark.parametrize(
    ("text", "control", "defused"),
    [
        ("a <|im_start|> b", ("<|im_start|>",), "a <_|im_start|> b"),
        ("<|im_<|im_start|>start|>", ("<|im_start|>",), "<|im_<_|im_start|>start|>"),
        ("aaa", ("aa",), "a_a_a"),
        (f"<{ZERO_WIDTH_SPACE}|im_start|>", ("<|im_start|>",), "<_|im_start|>"),
        ("\n\n", ("\n\n",), "\n_\n"),
        ("<s>", ("<", ""), "<s>"),
        ("<s>", (), "<s>"),
    ],
)
def test_one_space_goes_after_the_first_character(text: str, control: tuple[str, ...], defused: str) -> None:
    assert defuse(text, control).replace(ZERO_WIDTH_SPACE, "_") == defused


@given(st.text())
def test_text_without_control_texts_is_left_as_it_is(text: str) -> None:
    if not any(word in text for word in COMMON_CONTROL):
        assert defuse(text, COMMON_CONTROL) == text


@given(fragments.map("".join))
def test_common_control_texts_lose_their_force_wherever_they_stand(text: str) -> None:
    defused = defuse(text, COMMON_CONTROL)
    assert not any(word in defused for word in COMMON_CONTROL)
    assert defused.replace(ZERO_WIDTH_SPACE, "") == text


def test_html_is_left_alone_by_the_common_list() -> None:
    html = "<s>struck</s> <b>bold</b> <!-- [inst] --> a <| b"
    assert defuse(html, COMMON_CONTROL) == html
