"""The state of a running chat: its meter."""

from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.cli.test_context_compaction import REPLY, SUMMARY
from tests.conftest import Open, Script

from recto.cli import slash
from recto.cli.chat_state import ChatState, meter_style
from recto.cli.show import console
from recto.events import ContextUsage


def test_the_meter_turns_yellow_and_then_red() -> None:
    assert [meter_style(percent, 85.0) for percent in (10, 79.9, 80, 84.9, 85, 120)] == [
        "",
        "",
        "class:full",
        "class:full",
        "class:due",
        "class:due",
    ]
    assert meter_style(75, 70.0) == "class:due"
    assert meter_style(99, None) == "class:full", "what is never compacted is never due"


def test_the_meter_knows_the_threshold_of_the_agent(desk: Open, script: Script, tmp_path: Path) -> None:
    (tmp_path / "home/agents/clerk").mkdir(parents=True)
    (tmp_path / "home/agents/clerk/agent.toml").write_text("[context]\nthreshold = 0.6\n")
    at = desk(script(REPLY))
    talking = at.conversation(agent="clerk")
    talking.ask("hello")
    chat = ChatState(at, talking, console())
    assert chat.due_percent == pytest.approx(60)
    at = desk(script(REPLY), context__enabled=False)
    assert ChatState(at, at.conversation(talking.id), console()).due_percent is None


def test_the_meter_follows_a_compaction_at_once(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talking = at.conversation()
    for number in range(6):
        talking.ask(f"Message number {number} of a few.")
    chat = ChatState(at, talking, console())
    before = chat.usage
    slash.run(chat, "/compact")
    block = talking.compaction()
    assert before is not None
    assert block is not None
    assert chat.usage == ContextUsage(block.context_size_after, before.limit)
    assert ChatState(at, at.conversation(talking.id), console()).usage == chat.usage
    slash.run(chat, "/uncompact")
    window = talking.window()
    assert chat.usage == ContextUsage(window.total, window.limit), "what is back takes its room again"
    assert ChatState(at, at.conversation(talking.id), console()).usage == chat.usage


def test_the_meter_is_that_of_the_model_that_answers_next(desk: Open, script: Script) -> None:
    large, small = script(REPLY, limit=8000), script(REPLY, limit=4096)
    desk(large).conversation().ask("hello")
    at = desk(small)
    at.conversation(1).ask("hello again")
    shown = ChatState(at, at.conversation(1, as_left=True), console()).usage
    assert shown is not None
    assert shown.limit == 8000


def test_a_row_of_wide_letters_stays_on_one_line(
    desk: Open, script: Script, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    at = desk(script(REPLY))
    talking = at.conversation()
    talking.ask("東京" * 40)
    chat = ChatState(at, talking, console())
    chat.is_at_terminal = True
    slash.run(chat, "/history")
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert all(cell_len(line) < 50 for line in shown)
