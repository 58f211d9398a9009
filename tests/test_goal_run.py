"""Agent mode through the Python door: plan, act, check, until done, blocked, out of steps or money."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk
from recto.errors import Invalid
from recto.events import PlanChanged, RunEnded, Sent


def call(name: str, until: str = "", **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": json.dumps(arguments)}], "until": until}


def plan(*steps: tuple[str, str], **more: Any) -> dict[str, Any]:
    return call("update_plan", steps=[{"text": text, "status": status} for text, status in steps], **more)


def ask_before_reading(opened: Desk) -> None:
    agent = opened.home / "agents" / "default"
    agent.mkdir(parents=True)
    (agent / "agent.toml").write_text('[mcpServers.recto.tools.read_document]\napproval = "ask"\n')


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Boat.md").write_text("# Boat\n\nThe boat is called Sorrel.\n")
    return folder


def test_a_goal_is_worked_on_until_its_plan_is_done(desk: Open, script: Script, notes: Path) -> None:
    model = script(
        plan(("read the note", "active"), ("answer", "pending")),
        call("read_document", path="Boat.md"),
        plan(("read the note", "done"), ("answer", "done"), outcome="done", because="the note says it"),
        {"text": "She is called Sorrel."},
    )
    talk = desk(model, notes).conversation()
    events = list(talk.stream_goal("Find out what the boat is called"))
    assert [each.plan.in_words for each in events if isinstance(each, PlanChanged)] == [
        "0 of 2 steps done, 1 pending, 1 active",
        "2 of 2 steps done",
    ]
    assert isinstance(events[-1], RunEnded)
    report = events[-1].report
    assert (report.outcome, report.because, report.steps) == ("done", "the note says it", 3)
    assert report.text == "She is called Sorrel."
    assert [each.relative_path for each in report.references] == ["Boat.md"]


def test_the_report_names_every_note_that_was_read_also_after_it_went_on(
    desk: Open, script: Script, notes: Path
) -> None:
    (notes / "Crew.md").write_text("# Crew\n\nAda steers.\n")
    boat, crew = call("read_document", path="Boat.md"), call("read_document", path="Crew.md")
    talk = desk(script(boat, boat, {"text": "wait"}, {"text": "wait"}), notes).conversation()
    assert [each.relative_path for each in talk.run_goal("Read them", max_steps=4).references] == ["Boat.md"]
    again = desk(script(crew, {"text": "wait"}, {"text": "wait"}), notes).conversation(talk.id)
    report = again.run_goal(None, max_steps=8)
    assert {each.relative_path for each in report.references} == {"Boat.md", "Crew.md"}


def test_messages_of_a_run_tell_run_step_and_status(desk: Open, script: Script) -> None:
    model = script(plan(("one", "done"), outcome="done"), {"text": "done"})
    talk = desk(model).conversation()
    report = talk.run_goal("Do one thing")
    told = [message.task_runs[-1] for message in talk.messages()]
    assert {each["run"] for each in told} == {report.run}
    assert [(each["step"], each["status"]) for each in told] == [
        (0, "running"),
        (1, "running"),
        (1, "running"),
        (2, "done"),
    ]
    assert told[0]["goal"] == "Do one thing"


def test_an_empty_goal_is_refused_and_nothing_is_stored(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "?"})).conversation()
    with pytest.raises(Invalid, match="the goal is empty"):
        talk.run_goal("  \n")
    assert talk.id is None


def test_a_run_is_out_of_steps_and_the_model_has_the_last_word(desk: Open, script: Script, notes: Path) -> None:
    for number in range(4):
        (notes / f"{number}.md").write_text(f"note {number}")
    reads = [call("read_document", path=f"{n}.md") for n in range(3)]
    talk = desk(script(*reads, {"text": "this is how far I came"}), notes).conversation()
    report = talk.run_goal("Read them", max_steps=3)
    assert (report.outcome, report.steps, report.text) == ("out of steps", 3, "this is how far I came")
    results = [message.results[0].text for message in talk.messages() if message.results]
    assert ["rounds of tool calls are left" in text for text in results] == [True, True, False]


def test_a_run_goes_on_with_the_steps_that_it_has_used(desk: Open, script: Script, notes: Path) -> None:
    for number in range(6):
        (notes / f"{number}.md").write_text(f"note {number}")
    reads = [call("read_document", path=f"{n}.md") for n in range(6)]
    opened = desk(script(*reads[:2], {"text": "more"}, *reads[2:3], plan(("r", "done")), {"text": "ok"}), notes)
    talk = opened.conversation()
    assert talk.run_goal("Read them", max_steps=2).outcome == "out of steps"
    with pytest.raises(Invalid, match="all 2 steps of this run are used: --max-steps 4"):
        talk.run_goal()
    report = talk.run_goal(max_steps=5)
    assert (report.outcome, report.steps, report.max_steps) == ("done", 4, 5)
    with pytest.raises(Invalid, match="is reached"):
        talk.run_goal()


def test_a_model_that_only_talks_is_asked_once_and_then_stopped(desk: Open, script: Script) -> None:
    talk = desk(script(plan(("one", "active")), {"text": "I am on it"})).conversation()
    report = talk.run_goal("Do one thing")
    assert (report.outcome, report.steps) == ("stopped", 1)
    assert report.because == "the model replied 2 times without calling a tool, and 1 step is open"
    asked = [message.text for message in talk.messages() if message.role == "user"]
    assert len(asked) == 3
    assert "1 step is open" in asked[1]


def test_a_run_that_is_blocked_says_why_and_can_go_on(desk: Open, script: Script) -> None:
    blocked = plan(("ask the owner", "blocked"), outcome="blocked", because="nobody answers")
    model = script(blocked, {"text": "I wait"}, plan(("ask the owner", "done")), {"text": "she answered"})
    talk = desk(model).conversation()
    report = talk.run_goal("Ask")
    assert (report.outcome, report.because) == ("blocked", "nobody answers")
    run = talk.last_run()
    assert run is not None
    assert run.status == "blocked"
    assert talk.run_goal().outcome == "done"


def test_a_call_that_could_cost_too_much_is_not_made(desk: Open, script: Script) -> None:
    prices = {"input": 1000.0, "output": 1000.0}
    model = script(plan(("one", "active")), {"text": "?"}, prices=prices)
    talk = desk(model).conversation()
    report = talk.run_goal("Do one thing", max_cost=0.5)
    assert report.outcome == "out of money"
    assert "--max-cost" in report.because
    assert report.steps == 0


def test_what_nobody_allows_does_not_run_and_the_report_says_so(desk: Open, script: Script, notes: Path) -> None:
    model = script(call("read_document", path="Boat.md"), plan(("one", "done")), {"text": "ok"})
    opened = desk(model, notes)
    ask_before_reading(opened)
    report = opened.conversation().run_goal("Read it")
    assert (report.outcome, report.refused) == ("done", ("read_document",))


def test_a_run_that_is_going_on_elsewhere_is_not_continued(desk: Open, script: Script) -> None:
    # the next word does not come: the run is still going on when it is left
    model = script(plan(("one", "active")), {"text": "still at it", "delay_s": 600})
    first = desk(model).conversation()
    events = first.stream_goal("Do one thing")
    next(event for event in events if isinstance(event, PlanChanged))
    assert first.id is not None
    second = desk(model).conversation(first.id)
    with pytest.raises(Invalid, match="a run is going on in conversation #1"):
        second.run_goal()
    events.close()
    run = first.last_run()
    assert run is not None
    assert run.status == "stopped"


def test_a_run_is_stopped_by_its_user_after_the_round(desk: Open, script: Script, tmp_path: Path) -> None:
    first = plan(("one", "active"), until=str(tmp_path / "stopped"))
    talk = desk(script(first, plan(("one", "done")), {"text": "ok"})).conversation()
    assert not talk.stop_goal()
    ended = None
    for event in talk.stream_goal("Do one thing"):
        if isinstance(event, Sent):
            assert talk.stop_goal()
            (tmp_path / "stopped").touch()
        ended = event
    assert isinstance(ended, RunEnded)
    assert (ended.report.outcome, ended.report.because, ended.report.steps) == ("stopped", "you stopped it", 1)


def test_what_is_said_while_a_run_works_is_read_with_the_next_results(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    first = plan(("one", "active"), until=str(tmp_path / "queued"))
    talk = desk(script(first, plan(("one", "done")), {"text": "ok"})).conversation()
    said = iter(["and be quick"])
    for event in talk.stream_goal("Do one thing"):
        if isinstance(event, Sent) and (text := next(said, "")):
            talk.queue(text)
            (tmp_path / "queued").touch()
    asked = [message for message in talk.messages() if message.role == "user"]
    assert [message.text for message in asked] == ["Do one thing", "and be quick"]
    assert all(message.task_runs for message in asked)
    run = talk.last_run()
    assert run is not None
    assert (run.status, len(run.messages)) == ("done", 2)


def test_money_that_a_run_has_spent_counts_when_it_goes_on(desk: Open, script: Script) -> None:
    used = {"usage": {"input": 1000, "output": 1000}}
    model = script(
        *[plan((f"part {n}", "active")) | used for n in range(9)],
        {"text": "?"},
        prices={"input": 100.0, "output": 10.0},
    )
    talk = desk(model, reply__max_tokens=600).conversation()
    first = talk.run_goal("Do one thing", max_cost=0.4)
    assert first.outcome == "out of money"
    assert 0 < first.steps < 4
    assert (first.cost_usd or 0) <= 0.4
    again = talk.run_goal()
    assert (again.outcome, again.steps) == ("out of money", first.steps)
    more = talk.run_goal(max_cost=0.8)
    assert more.steps > first.steps
    assert first.cost_usd is not None
    assert (more.cost_usd or 0) > first.cost_usd
