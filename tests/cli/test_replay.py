"""`recto conversations replay`: a stored conversation is played; nothing is sent, stored or compacted."""

import os
import signal
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.terminal import Terminal
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.events import Appended, ContextCompacted, Noticed, Replied, Sent, ToolFinished
from recto.reports.playback import playback_events


@pytest.fixture
def talked(desk: Open, script: Script, tmp_path: Path) -> Desk:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Sorrel.md").write_text("# Sorrel\n\nThe boat Sorrel was built in 1934.\n")
    read = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Sorrel.md"}}]}
    answers = [{"text": f"Answer {n} about the boat."} for n in range(9)]
    summary = {"text": "They spoke of a boat.", "when": "summary"}
    opened = desk(script(read, *answers, summary, limit=4000), vault=vault)
    talk = opened.conversation()
    talk.ask("How old is [[Sorrel]]?")
    for number in range(3):
        talk.ask(f"Question {number}?")
    talk.compact()
    talk.pin("#1")
    talk.ask("And after that?")
    return opened


def test_a_conversation_is_played_and_nothing_is_sent_or_stored(talked: Desk, run: Run, tmp_path: Path) -> None:
    before = talked.export(tmp_path / "before.jsonl", everything=True).read_bytes()
    records = talked.store.records.ids()
    done = run("conversations", "replay", "1", "--at-once", "--show-context")
    assert done.exit_code == 0
    assert "› How old is [[Sorrel]]?" in done.stdout
    for shown in ("compaction 1: ", "read_document", "📚"):
        assert shown in done.stderr
    assert talked.store.records.ids() == records
    assert talked.export(tmp_path / "after.jsonl", everything=True).read_bytes() == before


def test_playback_gives_the_events_of_the_turns(talked: Desk) -> None:
    events = list(playback_events(talked.store, talked.conversation(1).head))
    kinds = [type(event) for event in events]
    assert kinds.count(Appended) == 5
    assert kinds.count(Replied) == 6
    assert kinds.count(ToolFinished) == 1
    assert kinds.count(ContextCompacted) == 1
    assert sum(isinstance(event, Noticed) and event.text.startswith("pin") for event in events) == 1
    sent = [event for event in events if isinstance(event, Sent)]
    assert all(event.window.total and event.window.limit == 4000 for event in sent)


def test_ctrl_c_ends_the_playback(talked: Desk, terminal: type[Terminal]) -> None:
    talked.close()
    shown = terminal("conversations", "replay")
    shown.wait_for("How old is")
    os.kill(shown.process, signal.SIGINT)
    assert shown.code() == 0


def test_a_damaged_record_does_not_end_the_playback(talked: Desk, run: Run) -> None:
    with talked.store.database.write() as connection:
        connection.exec_driver_sql("UPDATE requests SET account = x'00'")
    done = run("conversations", "replay", "--at-once")
    assert done.exit_code == 0
    assert "Answer 3 about the boat." in done.stdout
