"""The simulated cache gives what looking through all earlier requests would give."""

from collections.abc import Sequence

from bench.prefix import UNIT, Bill, PrefixCache, total
from hypothesis import given
from hypothesis import strategies as st

# Some share their beginning, each ends with a mark of its own as a rendered message does.
MESSAGES = [(*([1] * 100), 2, -1), (*([1] * 100), *([3] * 90), -1), (*([4] * 130), -1), (5, -1)]
requests = st.lists(st.lists(st.integers(0, len(MESSAGES) - 1), max_size=6), max_size=8)


def flat(request: Sequence[int]) -> list[int]:
    return [token for message in request for token in MESSAGES[message]]


def same(one: list[int], other: list[int]) -> int:
    return next((at for at in range(min(len(one), len(other))) if one[at] != other[at]), min(len(one), len(other)))


@given(requests)
def test_what_is_read_is_the_longest_beginning_of_any_earlier_request_in_whole_units(made: list[list[int]]) -> None:
    cached = PrefixCache(lambda which: MESSAGES[which])
    for number, request in enumerate(made):
        longest = max((same(flat(request), flat(before)) for before in made[:number]), default=0)
        assert cached.send(request) == Bill(len(flat(request)), longest // UNIT * UNIT)


def test_reading_costs_a_tenth_and_everything_else_is_written() -> None:
    assert Bill(1_000, 800).cost() == 80 + 250
    assert Bill(1_000, 800).cost(write=1.0) == 80 + 200


def test_bills_add_up() -> None:
    assert total([Bill(100, 0), Bill(300, 200)]) == Bill(400, 200)
    assert total([Bill(100, 0), Bill(300, 200)]).hit_rate == 0.5
