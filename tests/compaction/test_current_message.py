"""A compaction between tool rounds: the message that is answered is sent as it is, so no summary tells it meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.events import ContextCompacted, Event, Sent

QUESTION = "The skipper Ingrid Solheim must know by 14:35 which of the 27 boats of berth K-19 leak."
CALL = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Page.md"}}]}
BROKEN = {"error": "unreachable", "when": "summary"}
SUMMARY = {"text": "Progress: a page was read, and there were some words on it.", "when": "summary"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Page.md").write_text("Some words of a page about masts. " * 20)
    return folder


def told(event: ContextCompacted, desk: Desk) -> str:
    talk = desk.latest()
    assert talk is not None
    block = next(each for each in talk.compactions() if each.compaction_number == event.compaction_number)
    return " ".join((block.summary, *block.ledger))


def bodies(desk: Desk, events: list[Event]) -> list[list[dict[str, Any]]]:
    return [json.loads(desk.rebuild(event.request))["messages"] for event in events if isinstance(event, Sent)]


def test_the_message_that_is_answered_is_sent_once_and_not_summed_up(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(*[CALL] * 14, {"text": "done"}, BROKEN, limit=2048), vault=vault)
    events = list(at.conversation().stream(QUESTION))
    compacted = [event for event in events if isinstance(event, ContextCompacted)]
    assert len(compacted) > 1
    for event in compacted:
        assert "Read: Page.md" in event.summary
        assert "words of a page" not in event.summary, "what a note says is not what was said"
        assert not any(word in told(event, at) for word in ("Solheim", "14:35", "K-19"))
    for body in bodies(at, events):
        assert json.dumps(body).count("Ingrid Solheim") == 1


def test_it_is_summed_up_when_it_is_no_longer_sent(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script(*[CALL] * 14, {"text": "done"}, BROKEN, limit=2048), vault=vault).conversation()
    talk.ask(QUESTION)
    block = talk.summary_block()
    (first,) = block.unsummarized
    assert first == talk.messages()[0].id
    talk.pin(first)
    assert first in talk.unpin(first).lifted, "unpinning loses nothing"
    for number in range(40):
        talk.ask(f"Message number {number} has some words to take up room in the window, and then a few more.")
    last = talk.summary_block()
    assert not last.lifted
    assert not last.unsummarized
    assert "Solheim" in " ".join(" ".join((each.summary, *each.ledger)) for each in talk.compactions())


def test_a_model_that_reads_it_is_asked_not_to_repeat_it(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(*[CALL] * 14, {"text": "done"}, SUMMARY, limit=2048), vault=vault)
    talk = at.conversation()
    talk.ask(QUESTION)
    ids = [id for id in at.store.records.ids(talk.id) if at.record(id).purpose == "summary"]
    asked = [json.loads(at.rebuild(id))["messages"] for id in ids]
    assert len(asked) > 1
    for messages in asked:
        assert "follows your summary word for word" in messages[-1]["content"]
        assert sum(message["content"] == QUESTION for message in messages) == 1, "it rides on the prefix"


def test_a_transcript_for_another_model_leaves_it_out(desk: Open, script: Script, vault: Path) -> None:
    writer = script(SUMMARY)
    at = desk(script(*[CALL] * 14, {"text": "done"}, limit=2048), vault=vault, **{"context.summary_model": writer})
    talk = at.conversation()
    talk.ask(QUESTION)
    ids = [id for id in at.store.records.ids(talk.id) if at.record(id).purpose == "summary"]
    assert len(ids) > 1
    assert not any(b"Solheim" in at.rebuild(id) for id in ids)
