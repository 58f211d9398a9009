"""Short numbers for people, in place of ids."""

import pytest

from recto.base.ids import new_id
from recto.reports.transcript import number_in
from recto.wire import ids_in, with_ids


@pytest.mark.parametrize(("named", "number"), [("#57", 57), ("57", 57), (" #3 ", 3), ("0", 0)])
def test_a_number_is_written_with_or_without_its_sign(named: str, number: int) -> None:
    assert number_in(named) == number


@pytest.mark.parametrize("named", ["01M7GK6FM87BCDR8V2NTKZEK4Y", "last", "", "#", "-3", "3.5", "1234567890", "٣"])
def test_what_is_no_number_is_an_id(named: str) -> None:
    assert number_in(named) is None


def test_ids_are_found_and_replaced_wherever_they_stand() -> None:
    known, unknown = new_id(), new_id()
    value = {"id": known, known: [f"after {known}, {unknown}"], "n": 1, "none": None, "pair": (known, 2.5)}
    assert ids_in(value) == {known, unknown}
    assert with_ids(value, lambda each: "#7" if each == known else each) == {
        "id": "#7",
        "#7": [f"after #7, {unknown}"],
        "n": 1,
        "none": None,
        "pair": ("#7", 2.5),
    }
    assert value["id"] == known, "the value itself stays as it was"


def test_a_longer_word_is_no_id() -> None:
    assert ids_in(f"x{new_id()} {new_id()}A sha256:{'A' * 64}") == set()
