"""SimilarNames: suggestions for a name that does not exist."""

from hypothesis import given
from hypothesis import strategies as st

from recto.vault.link_resolver import SimilarNames

NAMES = [f"{first} {second}" for first in ("budget", "garden", "harbour", "ledger") for second in range(2000, 2060)]


@given(st.sampled_from(NAMES), st.data())
def test_a_name_with_a_letter_too_few_is_found_first_among_many(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, name.index(" ")))
    assert SimilarNames(NAMES).closest(name[:at] + name[at + 1 :])[0] == name


def test_the_most_similar_names_come_first() -> None:
    found = SimilarNames(["budget", "budget 2024", "badge", "sail"]).closest("budgets")
    assert found[0] == "budget"
    assert "sail" not in found


def test_all_names_are_compared_if_few_share_a_pair_of_letters() -> None:
    assert SimilarNames(["a", "zebra"]).closest("ab") == ["a"]


def test_an_unlike_name_has_no_similar_ones() -> None:
    assert SimilarNames(NAMES).closest("zzz") == []
    assert SimilarNames([]).closest("a") == []
