"""A line that is too wide for the terminal continues on the next one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.cli.show import fold


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("the primer takes sixteen hours to dry", 20, ["the primer takes", "sixteen hours to dry"]),
        ("the window is full to 24 %, or so", 24, ["the window is full to", "24 %, or so"]),
        ("a" * 50, 20, ["a" * 50]),
        ("  See the note about paint and varnish", 20, ["  See the note about", "  paint and varnish"]),
    ],
)
def test_a_line_is_folded_between_words(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width).split("\n") == lines


def test_codes_take_no_room_and_stay_in_their_order() -> None:
    assert fold("one \x1b[1mtwo three\x1b[0m four", 9) == "one\x1b[1m two\nthree\x1b[0m\nfour"


@given(st.text(alphabet="ab/:- 船", max_size=60), st.integers(1, 30))
def test_nothing_but_blanks_is_lost(text: str, width: int) -> None:
    assert "".join(fold(text, width).split()) == "".join(text.split())
