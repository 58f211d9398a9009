"""What is measured is what the engine would send, and it is really saved and proved."""

from itertools import pairwise
from pathlib import Path

import pytest
from bench.record import CHOSEN, CONSIDERED, REFERENCES, RULES, TOOLS, TURNS, measure, measure_blobs, requests
from bench.wire import tokens

pytestmark = pytest.mark.untraced


def test_the_windows_are_of_8k_tokens_with_fifty_sources_and_twenty_considered() -> None:
    made = list(requests("01C", TURNS * 3))
    sizes = [tokens(each.body.decode()) for each in made]
    assert 7_500 < sum(sizes) / len(sizes) < 9_000
    assert RULES + REFERENCES + TOOLS + CHOSEN == 50
    for each in made:
        assert len(list(each.account.picks())) == 50
        assert len(each.account.not_picked) == CONSIDERED
        assert b'"messages":[' in each.body


def test_requests_share_their_stable_part_until_a_compaction() -> None:
    made = list(requests("01C", TURNS + 1))
    for before, after in pairwise(made[:TURNS]):
        assert after.pieces[: before.stable] == before.pieces[: before.stable]
    assert made[TURNS].pieces[: made[TURNS - 1].stable] != made[TURNS - 1].pieces[: made[TURNS - 1].stable]


def test_both_sides_keep_and_prove_the_same_requests(tmp_path: Path) -> None:
    ours, last = measure(tmp_path / "recto.db", 20)
    theirs = measure_blobs(tmp_path / "blobs.db", 20)
    assert len(ours.saved.seconds) == len(theirs.saved.seconds) == 20
    assert ours.bytes > 0
    assert theirs.bytes > len(last.body)
