import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import Open, Script, examples

from recto.api.blocking import open_desk
from recto.events import ContextCompacted
from recto.providers import model as models

pytestmark = pytest.mark.untraced

WILD = {"input": 100_000, "output": 5}


def estimating(script: Script, *usages: Any, limit: int = 4096, text: str = "ok") -> str:
    """A model whose tokens are only estimated, and what it reports."""
    steps = [{"text": text, **({} if usage == "ours" else {"usage": usage})} for usage in usages]
    return script(*steps, limit=limit, exact=False)


def reporting(script: Script, factor: float, totals: Iterator[int], limit: int = 4096) -> str:
    return estimating(script, *({"input": round(total * factor), "output": 1} for total in totals), limit=limit)


def test_one_over_reported_usage_bricks_nothing(desk: Open, script: Script) -> None:
    talk = desk(estimating(script, WILD, "ours", limit=8192)).conversation()
    talk.ask("one")
    assert talk.ask("two").text == "ok"
    for _ in range(6):
        talk.ask("word " * 200)
    assert talk.compact().messages_archived


def test_the_window_shows_the_figure_that_triggers(desk: Open, script: Script) -> None:
    base = [talk_total(desk, script, turns) for turns in range(1, 5)]
    at = desk(reporting(script, 1.25, iter(base)))
    talk = at.conversation()
    for number in range(4):
        reply = talk.ask(f"question {number}")
    drafted, before = talk.window("more"), base[-1]
    assert drafted.total > before * 1.2
    assert drafted.to_json()["calibration"] == {
        "factor": drafted.calibration.factor,
        "replies": 4,
        "estimated": drafted.total,
    }
    assert abs(drafted.calibration.factor - 1.25) < 0.02
    sent = talk.ask("more")
    assert (sent.window.total, sent.window.calibration) == (drafted.total, drafted.calibration)
    assert at.record(sent.request_id).account.calibration == drafted.to_json()["calibration"]
    assert at.record(reply.request_id).account.calibration != drafted.to_json()["calibration"], "fixed when it was sent"


def talk_total(desk: Open, script: Script, turns: int) -> int:
    """Our own count of the last of so many requests."""
    talk = desk(estimating(script, *[None] * turns)).conversation()
    return [talk.ask(f"question {number}") for number in range(turns)][-1].window.total


def test_a_calibration_outlives_its_process_and_belongs_to_its_model(desk: Open, script: Script) -> None:
    base = [talk_total(desk, script, turns) for turns in range(1, 4)]
    model = reporting(script, 0.8, iter(base))
    talk = desk(model).conversation()
    for number in range(3):
        talk.ask(f"question {number}")
    again = desk(model)
    assert again.conversation(talk.id).window("x").calibration.factor < 0.85
    assert again.conversation().window("x").calibration.replies == 3
    assert again.calibration(model).replies == 3
    other = estimating(script, "ours")
    assert desk(other).conversation().window("x").calibration.replies == 0


def test_two_processes_teach_one_calibration(desk: Open, script: Script) -> None:
    model = estimating(script, "ours")
    one, other = desk(model), desk(model)
    for _ in range(33):
        one.conversation().ask("x")
        other.conversation().ask("y")
    assert one.calibration(model) == other.calibration(model)
    assert one.calibration(model).replies == 64, "older ones are forgotten"


def test_a_calibrated_view_is_the_same_loaded_or_extended(desk: Open, script: Script) -> None:
    base = [talk_total(desk, script, turns) for turns in range(1, 4)]
    model = reporting(script, 1.3, iter(base))
    talk = desk(model).conversation()
    for number in range(3):
        talk.ask(f"question {number}")
        fresh = desk(model).conversation(talk.id)
        assert talk.window("x").sections == fresh.window("x").sections


def test_a_compaction_comes_earlier_where_the_provider_counts_more(desk: Open, script: Script) -> None:
    base = [talk_total(desk, script, turns) for turns in range(1, 6)]

    def turns_until_compacted(factor: float) -> int:
        talk = desk(reporting(script, factor, iter(base)), context__threshold=0.6).conversation()
        for number in range(5):
            talk.ask(f"question {number}")
        for number in range(60):
            if any(isinstance(event, ContextCompacted) for event in talk.stream("word " * 60)):
                return number
        return 60

    assert turns_until_compacted(1.3) < turns_until_compacted(1.0) < turns_until_compacted(0.75)


def test_usage_that_cannot_be_right_is_ignored_with_a_note(desk: Open, script: Script) -> None:
    for usage in ({"input": -5, "output": 3}, {"input": 9, "output": -1}, {"input": 10**15}, {"output": 3}):
        talk = desk(script({"text": "ok", "usage": usage})).conversation()
        reply = talk.ask("x")
        assert any("reported a usage that cannot be right" in note for note in reply.notes)
        assert (reply.usage.input, reply.usage.reported) == (reply.window.total, False)
        assert not talk.ask("y").notes, "once is enough"


def test_a_tokenizer_that_fails_is_told_although_counts_are_cached(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script({"text": "ok"})
    talk = desk(model).conversation()
    talk.ask("one")

    def broken(name: str) -> Any:
        raise OSError("the vocabulary is damaged")

    monkeypatch.setattr(models, "vocabulary", broken)
    later = desk(model).conversation(talk.id)
    drafted = later.window("two")
    assert any("its tokenizer failed: the vocabulary is damaged" in note for note in drafted.notes)
    assert not drafted.exact
    reply = later.ask("two")
    assert any("its tokenizer failed: the vocabulary is damaged" in note for note in reply.notes)


@settings(max_examples=examples(40, few=6))
@given(st.lists(st.integers(-10, 20_000), min_size=4, max_size=4))
def test_whatever_is_reported_every_message_can_be_sent(reported: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.json"
        steps = [{"text": "ok", "usage": {"input": each}} for each in reported]
        path.write_text(json.dumps({"limit": 2048, "exact": False, "steps": steps}))
        prompt = {"system_prompt": "word " * 1300}
        with open_desk(home=Path(folder) / "home", model=f"scripted:{path}", settings=prompt) as at:
            talk = at.conversation()
            for number in range(5):
                reply = talk.ask(f"question {number} " + "word " * 30 * number)
                assert reply.window.free >= 0
