"""The past planned again: what a turn would have been sent with another strategy, window or model, and a whole
conversation strategy by strategy. Nothing is sent and nothing is stored."""

import asyncio
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
            moved = (*found.difference.came_in, *found.difference.went_out, *found.difference.said_in)
            assert moved == ()
        assert found.would.messages == found.was.messages


def test_planning_again_stores_nothing_and_asks_no_model(
    desk_with_turns: Desk, talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "bodies.log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    before, head = stored(desk_with_turns), talk.head
    talk.what_if(replies(talk)[-1], strategy="hybrid", window=700)
    talk.compare_strategies()
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
    assert any("chosen sentences stand in" in note for note in found.notes)


def test_what_was_compacted_before_stays_so_unless_it_is_planned_from_the_start(talk: Talk) -> None:
    last = replies(talk)[-1]
    kept, anew = talk.what_if(last, window=100_000), talk.what_if(last, window=100_000, from_start=True)
    assert kept.would
    assert anew.would
    assert kept.would.messages.summarised
    assert anew.would.messages.verbatim == (MessageRange(1, 2 * TURNS - 1),)
    assert anew.compaction is None
    assert anew.difference
    assert anew.difference.said_in


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
    assert talk.compare_strategies(["discard"]).recorded is None


# -- a whole conversation


def test_a_comparison_can_be_stopped_at_any_request(desk_with_turns: Desk, talk: Talk) -> None:
    before = stored(desk_with_turns)

    async def stopped() -> bool:
        def stop(done: int, of: int) -> None:
            if done == TURNS + 5:
                running.cancel()

        opened = await desk_with_turns.asynchronous.conversation(talk.id)
        running = asyncio.ensure_future(opened.compare_strategies(progress=stop))
        await asyncio.wait([running])
        return running.cancelled()

    assert asyncio.run(stopped())
    assert stored(desk_with_turns) == before
    assert talk.compare_strategies(["discard"]).runs


def test_strategies_are_played_over_all_turns_side_by_side(talk: Talk) -> None:
    done: list[tuple[int, int]] = []
    found = talk.compare_strategies(progress=lambda *told: done.append(told))
    assert [run.name for run in found.runs] == ["discard", "summarize", "hybrid"]
    assert done[-1] == (3 * TURNS, 3 * TURNS)
    assert found.recorded
    assert found.recorded.name == "as it was"
    assert found.recorded.compactions == len(talk.compactions())
    assert found.recorded.tokens == sum(use.tokens for use in talk.request_use())
    for run in found.runs:
        assert len(run.requests) == TURNS
        assert run.compactions == sum(use.compaction is not None for use in run.requests) > 0
        assert all(0 < use.tokens <= 1100 for use in run.requests)
        assert 0 < run.statements <= found.statements
        assert 0 < run.statements_share < 1
        assert run.cost_usd is None, "nobody knows the price of a script"
    discard, summarize, _ = found.runs
    assert discard.summary_tokens == 0 < summarize.summary_tokens
    assert found.statements
    assert any("stand in" in note for note in found.notes)


def test_costs_count_what_is_read_from_a_cache(desk: Open, script: Script) -> None:
    prices = {"input": 10, "output": 10, "cache_read": 1}
    at = desk(script(REPLY, limit=50_000, prices=prices), system_prompt="You are the clerk of a harbour. " * 300)
    talk = said(at.conversation(), 4)
    (run,) = talk.compare_strategies(["summarize"]).runs
    first, *later = run.requests
    assert first.usage.cache_read == 0
    assert all(use.usage.cache_read > 1024 for use in later)
    assert first.usage.cost_usd
    assert all(use.usage.cost_usd and use.usage.cost_usd < first.usage.cost_usd for use in later)
    assert 0.5 < run.cached_share < 1
    assert run.cost_usd == pytest.approx(sum(use.usage.cost_usd or 0 for use in run.requests))


def test_clears_and_pins_of_the_user_are_followed(desk: Open, script: Script) -> None:
    talk = said(
        desk(
            script(REPLY, SUMMARY, limit=1200), **{key.replace(".", "__"): value for key, value in SMALL.items()}
        ).conversation(),
        3,
    )
    talk.clear()
    said(talk, 2)
    pinned = talk.messages(limit=None)[-2].id
    talk.pin(pinned)
    said(talk, 30)
    found = talk.what_if(replies(talk)[-1], strategy="hybrid", from_start=True)
    assert found.would
    sent = numbers(found.would.messages.verbatim)
    assert talk.message(pinned).said in sent
    assert found.would.messages.left_out[0] == MessageRange(1, 6), "what was cleared is in no summary"
