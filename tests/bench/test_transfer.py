"""What is measured is really brought out and in."""

from pathlib import Path

import pytest
from bench.transfer import main

pytestmark = pytest.mark.untraced


def test_every_form_is_measured_and_the_table_names_its_goals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.transfer.QUICK_SIZE", 60)
    monkeypatch.setattr("bench.transfer.QUICK_TURNS", 3)
    monkeypatch.setattr("bench.transfer._folder", lambda: tmp_path)
    # in this process: a new one would take longer than the work
    monkeypatch.setattr("bench.transfer.apart", lambda work, *args: work(*args))
    main(quick=True)
    shown = capsys.readouterr().out
    assert "60 messages, and 3 turns" in shown
    assert "≤ 30: met" in shown
    for what in ("import ChatGPT", "import llm", "import records", "export HTML", "import message list"):
        assert what in shown
