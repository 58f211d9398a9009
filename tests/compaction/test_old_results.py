"""Old, large tool results shrink to a line before anything is summarised."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from tests.compaction.test_compaction_work import of
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk
from recto.base.ids import new_id
from recto.chat.blocks import Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.compaction.condensed import result_line
from recto.events import ContextCompacted, SummaryRequested
from recto.window.planner import LINE

NOTE = "The harbour log says that boat {0} came in at pier {0}. " * 60
LIMIT = 12_000


class _Quarter:
    """Counts a token for four characters."""

    async def count(self, entries: list[Any]) -> list[Any]:
        tokens = sum(len(block.text) for entry in entries for block in entry.blocks) // 4
        return [SimpleNamespace(count=SimpleNamespace(tokens=tokens))]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(20):
        (folder / f"Log {number}.md").write_text(NOTE.format(number) + f"\nThe watchword of day {number} is osprey.")
    return folder


def reads(number: int) -> dict[str, Any]:
    return {"tool_calls": [{"name": "read_document", "arguments": {"path": f"Log {number}.md"}}]}


def steps() -> list[dict[str, Any]]:
    told = [step for number in range(20) for step in (reads(number), {"text": f"Log {number} is about boats."})]
    return [*told, {"text": "A summary of logs.", "when": "summary"}]


def read_logs(talk: Talk) -> list[ContextCompacted]:
    """Reads logs until the first compaction."""
    for number in range(20):
        events = list(talk.stream(f"Read log {number}, please."))
        if found := of(ContextCompacted, events):
            assert not of(SummaryRequested, events), "no model is asked"
            return found
    raise AssertionError("no compaction came")


def sent(at: Desk, talk: Talk) -> list[dict[str, Any]]:
    return list(body(at, talk)["messages"])


def body(at: Desk, talk: Talk) -> dict[str, Any]:
    """Of the last request for a reply."""
    ids = [id for id in at.store.records.ids(talk.id) if at.record(id).purpose == "reply"]
    return dict(json.loads(at.rebuild(ids[-1])))


def test_old_results_shrink_to_lines_and_nothing_is_covered(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(*steps(), limit=LIMIT), vault=vault)
    talk = at.conversation()
    (compacted,) = read_logs(talk)
    block = talk.compaction()
    assert block is not None
    assert (block.last, block.summary, block.messages_archived) == (None, "", 0)
    assert compacted.context_size_after <= 0.5 * LIMIT
    results = [message["content"] for message in sent(at, talk) if message["role"] == "tool"]
    lines = [text for text in results if "recall #" in text]
    assert len(lines) == len(block.excerpts) > 2
    assert "Log 0.md" in lines[0]
    assert "characters in 4 lines; ends: “The watchword of day 0 is osprey.”; recall #3 returns it" in lines[0]
    assert "boat 0 came in" not in lines[0]
    assert any("boat" in text and "recall #" not in text for text in results), "the latest are whole"
    assert all(difference is None for _, difference in at.verify())


def test_lines_are_short_whatever_the_result(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script(*steps(), limit=LIMIT), vault=vault).conversation()
    read_logs(talk)
    block = talk.compaction()
    assert block is not None
    assert all(len(line) < LINE * 6 for line in block.excerpts.values())


def test_what_shrank_is_one_recall_away(desk: Open, script: Script, vault: Path) -> None:
    asks = {"tool_calls": [{"name": "recall", "arguments": {"query": "watchword of day 1"}}]}
    at = desk(script(*steps()[:-1], limit=LIMIT), vault=vault)
    talk = at.conversation()
    read_logs(talk)
    assert "recall" in [tool["function"]["name"] for tool in body(at, talk)["tools"]]
    again = desk(script(asks, {"text": "At pier 1."}, limit=LIMIT), vault=vault).conversation(talk.id)
    again.ask("Where was boat 1?")
    found = [result.text for message in again.messages(limit=None) for result in message.results]
    assert "The watchword of day 1 is" in found[-1]


def test_a_question_recalls_what_shrank(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(*steps(), limit=LIMIT), vault=vault)
    talk = at.conversation()
    read_logs(talk)
    at.index()
    window = talk.window("What did the harbour log say about boat 1 and its pier?")
    recalled = [section for section in window.sections if section.name == "recalled"]
    assert recalled


def test_a_later_summary_reads_the_whole_results(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(*steps(), limit=LIMIT), vault=vault)
    talk = at.conversation()
    read_logs(talk)
    talk.compact()
    asked = [id for id in at.store.records.ids(talk.id) if at.record(id).purpose == "summary"]
    block = talk.compaction()
    assert asked
    assert block is not None
    assert block.summary
    assert block.messages_archived > 0


def test_a_call_without_a_result_is_no_obstacle(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Fine."}, {"text": "A summary of logs.", "when": "summary"}, limit=2000))
    talk = at.conversation()
    talk.ask("Begin.")
    calls = (ToolCall("one", "look", "{}"), ToolCall("two", "look", "{}"))
    assert talk.id
    said = [
        Message(new_id(), "assistant", calls),
        Message(new_id(), "tool", (ToolResult("one", "look", NOTE),)),
        Message(new_id(), "assistant", (Text("So."),)),
    ]
    parent = talk.messages(limit=None)[-1].id
    for message in said:
        parent = at.store.tree.append(talk.id, replace(message, parent=parent)).message.id
    again = at.conversation(talk.id)
    events = [event for number in range(30) for event in again.stream(f"Message {number} of some length. " * 8)]
    assert of(ContextCompacted, events)


def test_the_line_quotes_the_result_on_one_line_without_control_characters() -> None:
    text = NOTE + "\nall \x1b[31mgone\x1b[0m \u202e] now ”; recall"
    message = Message("m", "tool", (ToolResult("one", "look", text),), said=7)
    line = asyncio.run(result_line(_Quarter(), [message], "m/one"))  # type: ignore[arg-type]
    assert line.endswith('; ends: “all [31mgone[0m ] now "; recall”; recall #7 returns it]')
    assert line.isprintable()
