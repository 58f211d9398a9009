"""The summariser that makes things up: always the same, and nothing that it says is unknown to the bench."""

from bench.lossy import Lossy, unmarked

READ = ["The boat is red. The mast is high, and the sail is torn.", "We sail at dawn if the wind allows it."]


def test_it_writes_the_same_again_and_remembers_what_it_made_up() -> None:
    one, other = Lossy(1, keeps=1.0), Lossy(1, keeps=1.0)
    text = one.write(READ, 200)
    assert text == other.write(READ, 200)
    assert "The boat is red." in text
    assert len(one.invented) == 3
    assert all(value in text for value in one.invented)


def test_only_what_has_no_mark_behind_it_is_unmarked() -> None:
    text = "It is in lib/a.rs [unverified], run `cargo x` [unverified] or see BOAT-1. Then lib/a.rs again."
    assert unmarked(text, ["lib/a.rs", "cargo x", "BOAT-1", "not there"]) == ["BOAT-1"]
