from hypothesis import given
from hypothesis import strategies as st

from recto.chat.conversation import Trail

TRAIL = Trail(((9, 12), (4, 5), (1, 3)))


def test_a_trail_holds_what_lies_before_the_fork_and_nothing_behind_it() -> None:
    held = [(branch, depth) for branch in (1, 4, 7, 9) for depth in range(1, 14) if TRAIL.holds(branch, depth)]
    assert held == [(1, 1), (1, 2), (1, 3), (4, 4), (4, 5), *((9, depth) for depth in range(6, 13))]


def test_an_empty_trail_holds_nothing() -> None:
    assert not Trail().holds(1, 1)
    assert list(Trail().between(1, 9)) == []


def test_a_stretch_is_told_branch_by_branch_in_order() -> None:
    assert list(TRAIL.between(2, 7)) == [(1, 2, 3), (4, 4, 5), (9, 6, 7)]
    assert list(TRAIL.between(4, 4)) == [(4, 4, 4)]
    assert list(TRAIL.between(10, 99)) == [(9, 10, 12)]
    assert list(TRAIL.between(13, 99)) == []
    assert list(TRAIL.between(7, 2)) == []


@given(st.sets(st.integers(1, 40), max_size=8), st.integers(0, 45), st.integers(0, 45))
def test_the_stretches_are_the_depths_between_each_once_on_its_branch(ends: set[int], first: int, last: int) -> None:
    trail = Trail(tuple((100 + depth, depth) for depth in sorted(ends, reverse=True)))
    told = [(branch, depth) for branch, start, end in trail.between(first, last) for depth in range(start, end + 1)]
    deepest = max(ends, default=0)
    assert [depth for _, depth in told] == list(range(max(first, 1), min(last, deepest) + 1))
    assert all(trail.holds(branch, depth) for branch, depth in told)
