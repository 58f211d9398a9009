"""What may have been meant: of many names those that look like one that is none."""

from hypothesis import given
from hypothesis import strategies as st

from recto.vault.likeness import Likeness

NAMES = [f"{first} {second}" for first in ("budget", "garden", "harbour", "ledger") for second in range(2000, 2060)]


@given(st.sampled_from(NAMES), st.data())
def test_a_name_with_a_letter_too_few_is_found_first_among_many(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, name.index(" ")))
    assert Likeness(NAMES).closest(name[:at] + name[at + 1 :])[0] == name


def test_the_most_alike_come_first() -> None:
    found = Likeness(["budget", "budget 2024", "badge", "sail"]).closest("budgets")
    assert found[0] == "budget"
    assert "sail" not in found


def test_where_few_names_share_a_pair_of_letters_the_others_are_looked_at_too() -> None:
    assert Likeness(["a", "zebra"]).closest("ab") == ["a"]


def test_nothing_is_like_what_nobody_is_called() -> None:
    assert Likeness(NAMES).closest("zzz") == []
    assert Likeness([]).closest("a") == []
