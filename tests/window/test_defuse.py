"""Control texts lose their force, and nothing else is changed."""

from hypothesis import given
from hypothesis import strategies as st

from recto.window.request import COMMON_CONTROL, ZERO_WIDTH_SPACE, defuse

# few letters, so that control texts overlap, nest and repeat all the time
words = st.text(alphabet="<|ab>", min_size=2, max_size=5)
controls = st.lists(words, min_size=1, max_size=6).map(tuple)
fragments = st.lists(st.sampled_from((*COMMON_CONTROL, "<|im_", "start|>", "<|", "|>", " ", "\n", "日本", "😀", "x")))


@given(st.text(alphabet="<|ab>x", max_size=60), controls)
def test_no_control_text_is_left(text: str, control: tuple[str, ...]) -> None:
    defused = defuse(text, control)
    assert not any(word in defused for word in control)


@given(st.text(alphabet="<|ab>x", max_size=60), controls)
def test_defusing_twice_changes_nothing(text: str, control: tuple[str, ...]) -> None:
    once = defuse(text, control)
    assert defuse(once, control) == once


@given(st.text(alphabet="<|ab>x", max_size=60), controls)
def test_only_zero_width_spaces_are_added(text: str, control: tuple[str, ...]) -> None:
    assert defuse(text, control).replace(ZERO_WIDTH_SPACE, "") == text


@given(st.text())
def test_text_without_control_texts_is_left_as_it_is(text: str) -> None:
    if not any(word in text for word in COMMON_CONTROL):
        assert defuse(text, COMMON_CONTROL) == text


@given(fragments.map("".join))
def test_common_control_texts_lose_their_force_wherever_they_stand(text: str) -> None:
    defused = defuse(text, COMMON_CONTROL)
    assert not any(word in defused for word in COMMON_CONTROL)
    assert defused.replace(ZERO_WIDTH_SPACE, "") == text


def test_one_space_goes_after_the_first_character() -> None:
    assert defuse("a <|im_start|> b", ("<|im_start|>",)) == f"a <{ZERO_WIDTH_SPACE}|im_start|> b"


def test_a_nested_control_text_does_not_close_to_a_new_one() -> None:
    trick = "<|im_<|im_start|>start|>"
    assert defuse(trick, ("<|im_start|>",)) == f"<|im_<{ZERO_WIDTH_SPACE}|im_start|>start|>"


def test_overlapping_control_texts_are_both_broken() -> None:
    assert defuse("aaa", ("aa",)) == f"a{ZERO_WIDTH_SPACE}a{ZERO_WIDTH_SPACE}a"


def test_a_space_that_was_there_before_is_kept() -> None:
    text = f"<{ZERO_WIDTH_SPACE}|im_start|>"
    assert defuse(text, ("<|im_start|>",)) == text


def test_a_control_text_across_lines_is_found() -> None:
    assert defuse("\n\n", ("\n\n",)) == f"\n{ZERO_WIDTH_SPACE}\n"


def test_single_characters_and_no_control_at_all_change_nothing() -> None:
    assert defuse("<s>", ("<", "")) == "<s>"
    assert defuse("<s>", ()) == "<s>"


def test_html_is_left_alone_by_the_common_list() -> None:
    html = "<s>struck</s> <b>bold</b> <!-- [inst] --> a <| b"
    assert defuse(html, COMMON_CONTROL) == html
