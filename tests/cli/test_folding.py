"""A line that is too wide for the terminal continues on the next one, and no name is cut where it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.cli.show import fold, fold_offsets

MODEL = "scripted:/home/marta/harbour/models/small.json"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("window      3,000 tokens", 40, ["window      3,000 tokens"]),
        ("the primer takes sixteen hours to dry", 20, ["the primer takes", "sixteen hours to dry"]),
        (
            "window      715 of 3,000 tokens (24 %), compacted later",
            40,
            ["window      715 of 3,000 tokens (24 %),", "            compacted later"],
        ),
        (MODEL, 24, ["scripted:/home/marta/", "harbour/models/", "small.json"]),
        (f"the model is {MODEL}", 50, ["the model is", MODEL]),
        ("the window is full to 24 %, or so", 24, ["the window is full to", "24 %, or so"]),
        ("a" * 50, 20, ["a" * 20, "a" * 20, "a" * 10]),
        (
            "embedded:smollm2                       4,096 (built in)          $0 in",
            40,
            ["embedded:smollm2  4,096 (built in)  $0", "  in"],
        ),
        ("  See the note about paint and varnish", 20, ["  See the note about", "  paint and varnish"]),
        ("Well.  This is only prose that goes on", 20, ["Well.  This is only", "prose that goes on"]),
        ("船は冬の間ずっと陸に", 10, ["船は冬の間", "ずっと陸に"]),
        ("└─ ✔ write the answer down for the harbour", 28, ["└─ ✔ write the answer down", "     for the harbour"]),
    ],
)
def test_a_line_is_folded_between_words_and_goes_on_below_its_text(text: str, width: int, lines: list[str]) -> None:
    assert fold([text], width).split("\n") == lines


def test_codes_take_no_room_and_stay_where_they_are() -> None:
    assert fold(["one ", "\x1b[1m", "two three", "\x1b[0m", " four"], 9) == "one \x1b[1mtwo\nthree\x1b[0m\nfour"


@given(st.text(alphabet="ab/:- 船", max_size=60), st.integers(1, 30))
def test_nothing_but_blanks_is_lost(text: str, width: int) -> None:
    assert "".join(fold([text], width).split()) == "".join(text.split())


@given(st.text(alphabet="ab/:- ", max_size=60).map(str.strip), st.integers(4, 30))
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    assert all(len(line) <= width for line in fold([text], width).split("\n"))
    assert fold_offsets(text, width) == sorted(set(fold_offsets(text, width)))
