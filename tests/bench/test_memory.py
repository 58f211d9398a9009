"""The bench of memory measures what it says, in small."""

from pathlib import Path

from bench.memory_texts import planted

from bench import memory


def test_planted_facts_are_found_and_no_outdated_one_comes_alone(tmp_path: Path) -> None:
    facts = planted(3, 18, 6)
    assert sum(bool(each.changed) for each in facts) == 6
    measured = memory.measure(tmp_path / "home", facts, "none")
    assert measured.share == 1.0
    assert measured.outdated == 0
    assert 0 < measured.tokens <= 1000


def test_facts_are_learned_and_chatter_is_not() -> None:
    learned, junk, count = memory.learned_by_itself(60, 300)
    assert learned > 0.9
    assert junk == 0
    assert count >= 54
