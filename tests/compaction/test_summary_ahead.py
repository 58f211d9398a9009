"""Summaries that are written in the background, before a compaction is due."""

import json
import time
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.compaction.test_compaction_work import REPLY, SAID, SUMMARY, fill, of, say
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk
from recto.compaction.summary_ahead import SummariesAhead
from recto.events import ContextCompacted, SummaryRequested
from recto.store.records import Record

AHEAD: dict[str, Any] = {"text": "Task: count the boats. Facts: 14 boats, written ahead.", "when": "ahead"}
LIMIT = 3000


def asked_ahead(at: Desk, talk: Talk, latest: int = 0) -> list[Record]:
    return [each for id in at.store.records.ids(talk.id)[-latest:] if (each := at.record(id)).purpose == "ahead"]


def settle(at: Desk) -> None:
    """Waits until nothing is written ahead any more."""
    while at.engine.summaries_ahead._tasks:
        time.sleep(0.005)


def until_asked(at: Desk, talk: Talk, *, waits: bool = True) -> Record:
    for number in range(60):
        talk.ask("\n".join(SAID.format(f"{number}, part {part}") for part in range(3)))
        while at.engine.summaries_ahead._tasks and (waits or not asked_ahead(at, talk, latest=6)):
            time.sleep(0.005)  # until it is done, or at least sent
        if found := asked_ahead(at, talk, latest=6):
            return found[0]
    raise AssertionError("no summary was written ahead")


def test_a_compaction_takes_the_summary_that_was_written_ahead(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, AHEAD, SUMMARY, limit=LIMIT))
    talk = at.conversation()
    record = until_asked(at, talk)
    assert talk.compaction() is None, "it is stored with its request, not as a block"
    events = fill(talk)
    assert not of(SummaryRequested, events), "nobody waits for a summary"
    (compacted,) = of(ContextCompacted, events)
    assert "written ahead" in compacted.summary
    block = talk.summary_block()
    assert block.last == record.account.ahead
    assert block.made is not None
    assert block.made.model == record.account.model
    assert block.checks["ahead"] == 1
    assert block.checks["seen"] == block.checks["covered"]
    assert len(asked_ahead(at, talk)) == 1, "once"
    assert all(difference is None for _, difference in at.verify())


def test_nothing_is_prepared_for_a_model_that_writes_no_summaries(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def begin(_: SummariesAhead, conversation: str, work: Coroutine[Any, Any, None]) -> None:
        begun.append(conversation)
        work.close()

    monkeypatch.setattr(SummariesAhead, "begin", begin)
    for summarizes in (True, False):
        begun.clear()
        fill(desk(script(REPLY, SUMMARY, limit=LIMIT, summarizes=summarizes)).conversation())
        assert bool(begun) == summarizes


def test_it_is_asked_for_on_the_prefix_of_the_last_request(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, AHEAD, SUMMARY, limit=LIMIT))
    talk = at.conversation()
    ahead = json.loads(at.rebuild(until_asked(at, talk).id))["messages"]
    ids = [id for id in at.store.records.ids(talk.id) if at.record(id).purpose == "reply"]
    assert json.loads(at.rebuild(ids[-1]))["messages"][: len(ahead) - 1] == ahead[:-1]


def test_another_process_can_take_it(desk: Open, script: Script) -> None:
    model = script(REPLY, AHEAD, SUMMARY, limit=LIMIT)
    first = desk(model)
    talk = first.conversation()
    until_asked(first, talk)
    first.close()
    again = desk(model).conversation(talk.id)
    (compacted,) = of(ContextCompacted, fill(again))
    assert "written ahead" in compacted.summary


def test_one_that_is_still_being_written_is_stopped_and_not_waited_for(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, AHEAD | {"delay_s": 60}, SUMMARY, limit=LIMIT))
    talk = at.conversation()
    until_asked(at, talk, waits=False)
    (compacted,) = of(ContextCompacted, fill(talk))
    assert "written ahead" not in compacted.summary
    assert [record.outcome["finish"] for record in asked_ahead(at, talk)] == ["stopped"]


@pytest.mark.parametrize(
    "bad", [{"text": "", "when": "ahead"}, {"error": "unreachable", "when": "ahead"}, AHEAD | {"finish": "length"}]
)
def test_one_that_failed_is_written_when_it_is_due(desk: Open, script: Script, bad: dict[str, Any]) -> None:
    at = desk(script(REPLY, bad, SUMMARY, limit=LIMIT))
    talk = at.conversation()
    until_asked(at, talk)
    (compacted,) = of(ContextCompacted, fill(talk))
    assert compacted.made_by == "model"
    assert "written ahead" not in compacted.summary


def test_one_that_a_pin_has_made_useless_is_not_used(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, AHEAD, SUMMARY, limit=LIMIT))
    talk = at.conversation()
    until_asked(at, talk)
    talk.pin(talk.messages(limit=None)[1].id)
    (compacted,) = of(ContextCompacted, list(talk.stream("Some more words. " * 150)))
    assert "written ahead" not in compacted.summary


def test_one_of_another_branch_is_not_used(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, AHEAD, SUMMARY, limit=LIMIT))
    talk = at.conversation()
    until_asked(at, talk)
    talk.fork(talk.messages(limit=None)[3].id)
    fill(talk)
    block = talk.summary_block()
    path = [message.id for message in talk.messages(limit=None)]
    assert block.last in path
    assert all(difference is None for _, difference in at.verify())


def test_a_message_stops_it_on_a_server_with_one_slot(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, AHEAD | {"delay_s": 30}, SUMMARY, limit=LIMIT, one_slot=True))
    talk = at.conversation()
    until_asked(at, talk, waits=False)
    events = fill(talk)
    assert of(SummaryRequested, events), "it was asked for again"
    assert {record.outcome.get("finish") for record in asked_ahead(at, talk)} == {"stopped"}


@pytest.mark.parametrize("settings", [{"context__prepare_at": 0}, {"context__enabled": False}])
def test_nothing_is_written_ahead_where_that_is_off(desk: Open, script: Script, settings: dict[str, Any]) -> None:
    at = desk(script(REPLY, AHEAD, SUMMARY, limit=LIMIT), **settings)
    talk = at.conversation()
    say(talk, 60)
    settle(at)
    assert not asked_ahead(at, talk)
