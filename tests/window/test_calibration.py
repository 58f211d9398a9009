from hypothesis import given
from hypothesis import strategies as st

from recto.chat.message import Usage
from recto.window.calibration import (
    LEAST_STEADY,
    MOST_STEADY,
    UsageReport,
    is_believable,
    learned,
)


def reports(*ratios: float, conversation: str = "c") -> list[UsageReport]:
    """Newest first, as they are read."""
    return [UsageReport(conversation, 0, 1000, 1000, round(1000 * ratio)) for ratio in reversed(ratios)]


def test_estimates_follow_what_is_reported_both_ways() -> None:
    assert learned(reports(0.8, 0.81, 0.82), "c").factor == 0.82
    assert learned(reports(1.4, 1.41, 1.42), "c").factor == 1.42


def test_one_outlier_changes_nothing_wherever_it_comes() -> None:
    good = (1.1, 1.1, 1.11, 1.1)
    for place in range(5):
        for wild in (0.1, 0.6, 1.7, 30.0):
            assert 1.09 < learned(reports(*good[:place], wild, *good[place:]), "c").factor < 1.12


def test_a_first_report_moves_the_factor_only_so_far() -> None:
    assert learned(reports(1.9), "c").factor == 1.33
    assert 0.7 < learned(reports(0.55), "c").factor < 0.8
    assert learned(reports(1.05), "c").factor == 1.05


def test_what_is_out_of_all_proportion_is_not_learned_from() -> None:
    found = learned(reports(3.0, 12.0, 0.01), "c")
    assert (found.factor, found.replies, found.left_out) == (1.0, 0, 3)


def test_a_new_conversation_begins_with_what_others_taught() -> None:
    others = reports(1.2, 1.22, 1.19, 1.21, conversation="other")
    assert 1.18 < learned(others, "new").factor < 1.23
    assert learned([*reports(1.3, conversation="new"), *others], "new").factor == 1.3


def test_only_the_estimated_part_is_compared() -> None:
    report = UsageReport("c", exact=900, estimated=100, counted=1000, reported=1020)
    assert report.ratio == 1.2
    assert learned([report] * 3, "c").factor == 1.2


@given(st.lists(st.integers(1, 10**8), max_size=30), st.integers(1, 10**6))
def test_the_factor_is_always_bounded(reported: list[int], base: int) -> None:
    found = learned([UsageReport("c", 0, base, base, each) for each in reported], "c")
    assert LEAST_STEADY <= found.factor <= MOST_STEADY


def test_reports_that_agree_are_learned_from_though_they_are_far_from_our_estimates() -> None:
    assert learned(reports(3.0, 3.0), "c").factor == 1.0
    found = learned(reports(3.0, 3.1, 2.9), "c")
    assert (found.factor, found.replies, found.left_out) == (2.9, 3, 0)
    assert learned(reports(0.3, 0.31, 0.3), "c").factor == 0.3
    assert learned(reports(3.0, 3.1, 2.9, conversation="other"), "new").factor > 2.5


def test_one_outlier_changes_nothing_for_a_tokenizer_that_is_far_from_ours() -> None:
    good = (3.0, 3.05, 3.0, 3.0)
    for place in range(5):
        for wild in (0.1, 1.0, 30.0):
            found = learned(reports(*good[:place], wild, *good[place:]), "c")
            assert 2.9 < found.factor < 3.1
            assert found.left_out == 1


def test_reports_that_grow_or_are_too_far_off_are_not_learned_from() -> None:
    assert learned(reports(2.5, 3.2, 3.9), "c").factor == 1.0
    assert learned(reports(9.0, 9.0, 9.0, 9.0), "c").factor == 1.0
    assert learned(reports(9.0, 9.0, 9.0, 9.0), "c").left_out == 4


def test_usage_that_no_provider_can_mean_is_not_believed() -> None:
    assert is_believable(Usage(10, 0))
    for odd in (-1, 0, 10**12, 1.5, "12", None, True):
        assert not is_believable(Usage(odd))  # type: ignore[arg-type]
    assert not is_believable(Usage(10, -3))
