"""The past planned again: what a turn would have been sent with another strategy, window or model. Nothing is sent and
nothing is stored."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.compaction.test_compaction_work import REPLY, SAID, SUMMARY
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk, open_desk
from recto.chat.blocks import MessageRange
from recto.errors import Invalid, NotFound

pytestmark = pytest.mark.untraced

TURNS = 40
SMALL: dict[str, Any] = {"context.reserved_response_tokens": 100, "context.prepare_at": 0.0}


def said(talk: Talk, turns: int = TURNS) -> Talk:
    for number in range(turns):
        talk.ask(SAID.format(number))
    return talk


def replies(talk: Talk) -> list[str]:
    return [message.id for message in talk.messages(limit=None) if message.role == "assistant"]


@pytest.fixture(scope="module")
def opened() -> Iterator[list[tuple[Desk, Talk]]]:
    found: list[tuple[Desk, Talk]] = []
    yield found
    for at, _ in found:
        at.close()


@pytest.fixture
def shared(opened: list[tuple[Desk, Talk]], tmp_path: Path) -> tuple[Desk, Talk]:
    """A long conversation for all tests: planning again stores nothing, as one of them shows.

    Opened by the first test that needs it, in the quiet surroundings of a test.
    """
    if not opened:
        (tmp_path / "script.json").write_text(json.dumps({"limit": 1200, "steps": [REPLY, SUMMARY]}))
        at = open_desk(home=tmp_path / "home", model=f"scripted:{tmp_path / 'script.json'}", settings=SMALL)
        opened.append((at, said(at.conversation())))
    return opened[0]


@pytest.fixture
def desk_with_turns(shared: tuple[Desk, Talk]) -> Desk:
    return shared[0]


@pytest.fixture
def talk(shared: tuple[Desk, Talk]) -> Talk:
    return shared[1]


def stored(at: Desk) -> list[str]:
    file = at.store.database.file
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


def numbers(ranges: tuple[MessageRange, ...]) -> list[int]:
    return [number for each in ranges for number in range(each.first, each.last + 1)]


def test_a_turn_that_is_planned_again_unchanged_has_the_window_that_it_had(talk: Talk) -> None:
    compacting = {use.reply for use in talk.request_use() if use.compaction}
    assert compacting
    for reply in replies(talk):
        found = talk.what_if(reply)
        assert found.was
        assert found.would
        if reply not in compacting:
            assert found.would.account.sections == found.was.account.sections
            assert found.difference
            moved = (*found.difference.came_in, *found.difference.went_out)
            assert moved == ()
        assert found.would.messages == found.was.messages


def test_planning_again_stores_nothing_and_asks_no_model(
    desk_with_turns: Desk, talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "bodies.log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    before, head = stored(desk_with_turns), talk.head
    talk.what_if(replies(talk)[-1], strategy="hybrid", window=700)
    assert stored(desk_with_turns) == before
    assert talk.head == head
    assert not log.exists()


def test_a_smaller_window_would_have_been_compacted(talk: Talk) -> None:
    found = talk.what_if(replies(talk)[9], window=420)
    assert found.was
    assert found.would
    assert not found.was.messages.summarised
    assert found.compaction
    assert found.is_estimate
    assert "over the" in found.because or "have reached" in found.because
    assert found.would.account.limit == 420
    assert (found.would.account.total or 0) <= 320
    assert found.would.messages.summarised
    told = [*numbers(found.would.messages.verbatim), *numbers(found.would.messages.summarised)]
    assert sorted(told) == list(range(1, 20))
    assert any("would write the summary" in note for note in found.notes)


def test_what_was_compacted_before_stays_so(talk: Talk) -> None:
    found = talk.what_if(replies(talk)[-1], window=100_000)
    assert found.would
    assert found.would.messages.summarised
    assert found.compaction is None


def test_settings_of_context_are_changed_and_others_refused(talk: Talk) -> None:
    found = talk.what_if("#24", settings={"threshold": 0.3, "context.low_water": 0.2})
    assert found.compaction
    assert found.changes.to_json() == {"context.threshold": 0.3, "context.low_water": 0.2}
    with pytest.raises(Invalid, match="not kept with a conversation"):
        talk.what_if("#12", settings={"model": "scripted:x"})
    with pytest.raises(Invalid, match="threshold"):
        talk.what_if("#12", settings={"context.threshold": 7})
    with pytest.raises(Invalid, match="strategy"):
        talk.what_if("#12", strategy="forget")
    with pytest.raises(NotFound):
        talk.what_if("#999")


def test_a_round_of_tool_calls_is_planned_with_its_results(desk: Open, script: Script, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Boat.md").write_text("# Boat\n" + "The mast is of spruce. " * 40)
    calls = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Boat"}}]}
    at = desk(script(calls, {"text": "Spruce."}, limit=8000), vault=str(vault))
    talk = at.conversation()
    talk.ask("What is the mast made of?")
    first, second = replies(talk)
    for reply in (first, second):
        found = talk.what_if(reply)
        assert found.was
        assert found.would
        assert found.would.account.sections == found.was.account.sections
    shorter = talk.what_if(second, window=2200)
    assert shorter.would
    assert shorter.would.account.messages
    assert len(shorter.would.account.messages.rounds) == 2


def test_a_conversation_without_records_is_planned_all_the_same(desk: Open, script: Script, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text('[{"role": "user", "content": "Where is she?"}, {"role": "assistant", "content": "In the yard."}]')
    at = desk(script(REPLY))
    at.import_file(file, format="openai")
    talk = at.conversation(1)
    found = talk.what_if("#2")
    assert found.was is None
    assert found.difference is None
    assert found.would
    assert found.would.messages.verbatim == (MessageRange(1, 1),)
