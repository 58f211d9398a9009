"""What is typed continues on the next row between words."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Transformation, TransformationInput

from recto.cli.prompt import WordWrap, row_breaks

PREFIX = 2


def wrapped(text: str, width: int) -> Transformation:
    at = TransformationInput(cast(Any, None), Document(text), 0, lambda place: place, [("", text)], width, 10)
    return WordWrap(PREFIX).apply_transformation(at)


def rows(text: str, width: int) -> list[str]:
    shown, room = fragment_list_to_text(wrapped(text, width).fragments), width - PREFIX
    return [shown[start : start + room].rstrip() for start in range(0, len(shown), room)]


def test_a_word_is_not_cut_at_the_end_of_a_row() -> None:
    assert rows("The quick brown fox jumps over the lazy dogs beside the harbour", 22) == [
        "The quick brown fox",
        "jumps over the lazy",
        "dogs beside the",
        "harbour",
    ]


def test_a_word_that_no_row_holds_is_cut() -> None:
    assert rows("see a/path/that/is/much/longer/than/a/row", 12) == [
        "see a/path",
        "/that/is/m",
        "uch/longer",
        "/than/a/ro",
        "w",
    ]


def test_wide_letters_take_two_cells() -> None:
    assert row_breaks("東京 大阪 港", 8).padding == {3: 3}


def test_a_blank_does_not_begin_a_row() -> None:
    assert rows("abcd efgh", 6) == ["abcd", "efgh"]
    assert rows("abcd    efgh", 6) == ["abcd", "efgh"]


@given(st.text(max_size=120), st.integers(4, 40))
def test_every_place_leads_to_itself_and_back(text: str, width: int) -> None:
    line = text.replace("\n", " ").replace("\r", " ")
    made = wrapped(line, width)
    shown = fragment_list_to_text(made.fragments)
    for place, sign in enumerate(line):
        at = made.source_to_display(place)
        assert shown[at : at + 1] == sign or sign.isspace()
        if not sign.isspace():
            assert made.display_to_source(at) == place
    assert made.source_to_display(len(line)) == len(shown)
    assert "".join(line.split()) == "".join(shown.split())
