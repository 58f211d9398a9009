"""What is counted of a summary after several compactions, through the real engine."""

from pathlib import Path

from bench.summary import Job, _judge


def test_a_conversation_is_played_until_it_was_compacted_often_enough(tmp_path: Path) -> None:
    job = Job("planning", 1, 4_096, lossy=True, compactions=2, size=7_000)
    verdict = _judge(tmp_path / "home", job)
    assert verdict.compactions == 2
    assert verdict.findings
    assert 0.3 < verdict.room_used <= 1
    assert verdict.marks.invented
    assert verdict.marks.true > verdict.marks.invented
