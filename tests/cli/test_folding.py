"""A line that is too wide for the terminal continues on the next one, and no name is cut where it fits."""

from hypothesis import given
from hypothesis import strategies as st

from recto.cli.show import fold, fold_offsets

MODEL = "scripted:/home/marta/harbour/models/small.json"


def lines(text: str, width: int) -> list[str]:
    return fold([text], width).split("\n")


def test_a_line_that_fits_stays_as_it_is() -> None:
    assert lines("window      3,000 tokens", 40) == ["window      3,000 tokens"]


def test_a_line_is_broken_between_words() -> None:
    assert lines("the primer takes sixteen hours to dry", 20) == ["the primer takes", "sixteen hours to dry"]


def test_a_value_continues_below_itself() -> None:
    assert lines("window      715 of 3,000 tokens (24 %), compacted later", 40) == [
        "window      715 of 3,000 tokens (24 %),",
        "            compacted later",
    ]


def test_a_long_name_is_broken_after_one_of_its_signs() -> None:
    assert lines(MODEL, 24) == ["scripted:/home/marta/", "harbour/models/", "small.json"]


def test_a_name_that_fits_on_a_line_of_its_own_is_not_broken() -> None:
    assert lines(f"the model is {MODEL}", 50) == ["the model is", MODEL]


def test_a_number_stays_with_its_percent_sign() -> None:
    assert lines("the window is full to 24 %, or so", 24) == ["the window is full to", "24 %, or so"]


def test_an_id_without_signs_fills_its_lines() -> None:
    assert lines("a" * 50, 20) == ["a" * 20, "a" * 20, "a" * 10]


def test_columns_move_together_where_they_do_not_fit() -> None:
    assert lines("embedded:smollm2                       4,096 (built in)          $0 in", 40) == [
        "embedded:smollm2  4,096 (built in)  $0",
        "  in",
    ]


def test_an_indent_goes_on() -> None:
    assert lines("  See the note about paint and varnish", 20) == ["  See the note about", "  paint and varnish"]


def test_two_spaces_after_a_sentence_are_no_label() -> None:
    assert lines("Well.  This is only prose that goes on", 20) == ["Well.  This is only", "prose that goes on"]


def test_codes_take_no_room_and_stay_where_they_are() -> None:
    assert fold(["one ", "\x1b[1m", "two three", "\x1b[0m", " four"], 9) == "one \x1b[1mtwo\nthree\x1b[0m\nfour"


def test_signs_that_take_two_cells_are_counted_so() -> None:
    assert lines("船は冬の間ずっと陸に", 10) == ["船は冬の間", "ずっと陸に"]


@given(st.text(alphabet="ab/:- 船", max_size=60), st.integers(1, 30))
def test_nothing_but_blanks_is_lost(text: str, width: int) -> None:
    assert "".join(fold([text], width).split()) == "".join(text.split())


@given(st.text(alphabet="ab/:- ", max_size=60).map(str.strip), st.integers(4, 30))
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    assert all(len(line) <= width for line in fold([text], width).split("\n"))
    assert fold_offsets(text, width) == sorted(set(fold_offsets(text, width)))


def test_a_row_of_a_tree_continues_below_its_text() -> None:
    assert (
        fold(["└─ ✔ write the answer down for the harbour"], 28) == "└─ ✔ write the answer down\n     for the harbour"
    )
