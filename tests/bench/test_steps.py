"""The steps of a turn are timed where they are, once each, and a name that has gone is an error."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.corpus import Speaker
from bench.steps import BESIDE, REST, STEPS, Ran, find, recorded, seconds_by_step
from bench.turn import REPLY, Turn, import_history, take_turn

from bench import steps
from recto.turn import planned_request
from recto.turn import turn as turns

NAMES = [name for names in STEPS.values() for name in names]


def test_a_name_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "recto.turn.planned_request"
    for gone in (f"{module}:no_such", "recto.nowhere:plan_turn", f"{module}:PlannedRequest.no_such"):
        monkeypatch.setattr(steps, "STEPS", {"assemble": (gone,)})
        with pytest.raises(LookupError, match=gone), recorded():
            pass


def test_wrapped_functions_are_put_back_everywhere() -> None:
    before = [find(name)[2] for name in NAMES]
    with recorded():
        assert turns.plan_turn is planned_request.plan_turn  # type: ignore[attr-defined]
        assert all(find(name)[2] is not original for name, original in zip(NAMES, before, strict=True))
    assert [find(name)[2] for name in NAMES] == before
    assert turns.plan_turn is planned_request.plan_turn  # type: ignore[attr-defined]


@pytest.fixture
def turn(tmp_path: Path, real_embedder: None) -> Iterator[Turn]:
    """A turn with everything in it: something is archived, indexed and embedded."""
    chat = import_history(tmp_path / "chat", 60)
    usage = {"input": 10, "output": 10}
    script = {"limit": 1500, "steps": [{"text": REPLY, "usage": usage}, {"text": "So.", "when": "summary"}]}
    (chat.home / "script.json").write_text(json.dumps(script))

    async def taken() -> Turn:
        talk = desk.conversation(chat.conversation)
        with recorded() as recorder:
            await take_turn(talk, Speaker(1).message(), recorder)
            desk.engine.message_index.catch_up(vectors=True)
            return await take_turn(talk, next(iter(talk.messages(limit=None))).text, recorder)

    with chat.open() as desk:
        yield asyncio.run(taken())


@pytest.mark.slow
def test_every_step_of_a_turn_takes_time_and_all_together_as_much_as_the_turn(turn: Turn) -> None:
    assert turn.has_recalled
    assert {step for step, seconds in turn.steps.items() if seconds <= 0} <= {REST}
    assert sum(seconds for step, seconds in turn.steps.items() if step not in BESIDE) == pytest.approx(turn.both)


def test_only_what_lies_within_the_spans_counts_and_the_rest_is_what_is_left() -> None:
    ran = [Ran("store", 0.0, 2.0), Ran("count", 2.0, 3.0), Ran("embed", 1.0, 9.0), Ran("record", 20.0, 30.0)]
    found = seconds_by_step(ran, [(1.0, 5.0), (25.0, 26.0)])
    taken = {step: seconds for step, seconds in found.items() if seconds}
    assert taken == {"store": 1.0, "count": 1.0, "embed": 4.0, "record": 1.0, REST: 2.0}


def test_steps_that_run_side_by_side_share_the_time() -> None:
    ran = [Ran("store", 0.0, 4.0), Ran("files", 1.0, 3.0), Ran("embed", 0.0, 6.0), Ran("embed", 0.0, 6.0)]
    found = seconds_by_step(ran, [(0.0, 8.0)])
    taken = {step: seconds for step, seconds in found.items() if seconds}
    assert taken == {"store": 3.0, "files": 1.0, "embed": 6.0, REST: 4.0}
