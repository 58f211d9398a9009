"""Counts are remembered in memory for a few windows, and in the store for good."""

import pytest
from tests.conftest import Open, Script


def test_counts_that_memory_drops_come_from_the_store(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script({"text": "She was built in 1934."})
    with monkeypatch.context() as small:
        small.setattr("recto.turn.token_cache.MAX_KNOWN", 2)
        talk = desk(model).conversation()
        for number in range(6):
            talk.ask(f"Question {number}: when was the boat built?")
        sections = talk.window("And the mast?").sections
    again = desk(model).conversation(talk.id)
    assert again.window("And the mast?").sections == sections
