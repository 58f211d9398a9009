"""The plan of a run in every window, whatever was compacted."""

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk
from recto.chat.message import Message
from recto.store.records import Record
from recto.tasks.plan import TaskPlan, plan_from

STEPS = 60


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": json.dumps(arguments)}]}


def plan(done: int) -> dict[str, Any]:
    steps = [
        {"text": f"read the notes of part {n}", "status": "done" if n < done else "active" if n == done else "pending"}
        for n in range(6)
    ]
    return call("update_plan", steps=steps)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for n in range(STEPS):
        (folder / f"Note {n}.md").write_text(f"# Note {n}\n\n" + f"The boat number {n} lies at berth {n * 7}. " * 25)
    return folder


def worked(opened: Desk) -> Talk:
    talk = opened.conversation()
    report = talk.run_goal("Read all notes and say which boat lies where", max_steps=200)
    assert report.outcome == "done", report.because
    return talk


def script_of(script: Script, limit: int) -> str:
    steps: list[dict[str, Any]] = []
    for n in range(STEPS):
        steps += [plan(n // 10)] if n % 10 == 0 else []
        steps.append(call("read_document", path=f"Note {n}.md"))
    return script(
        *steps, plan(6), {"text": "All are read."}, {"when": "summary", "text": "Notes were read."}, limit=limit
    )


class Sent(NamedTuple):
    body: dict[str, Any]
    record: Record
    reply: Message


def requests(opened: Desk, talk: Talk) -> list[Sent]:
    """Each request of the replies."""
    replies = [message for message in talk.messages(limit=None) if message.role == "assistant" and message.request]
    made = [(each.request or "", each) for each in replies]
    return [Sent(json.loads(opened.rebuild(id)), talk.request(id), each) for id, each in made]


def plan_of(calls: Iterable[tuple[str, str]], before: TaskPlan) -> TaskPlan:
    """The plan after these calls, each with its arguments."""
    told = [plan_from(json.loads(arguments)) for name, arguments in calls if name == "update_plan"]
    return told[-1] if told else before


def holds(body: dict[str, Any], plan: TaskPlan) -> bool:
    """Whether a request holds the plan: in the last call that told one, or word for word."""
    made = [each["function"] for message in body["messages"] for each in message.get("tool_calls") or ()]
    told = plan_of(((each["name"], each["arguments"]) for each in made), TaskPlan())
    said = [message["content"] for message in body["messages"] if message["role"] == "user"]
    return told == plan or any(plan.text in text for text in said)


@pytest.mark.parametrize("strategy", ["summarize", "discard", "hybrid"])
def test_every_window_of_a_long_run_holds_the_plan(desk: Open, script: Script, notes: Path, strategy: str) -> None:
    opened = desk(script_of(script, 6000), notes, context__strategy=strategy)
    talk = worked(opened)
    current, sent = TaskPlan(), requests(opened, talk)
    for each in sent:
        assert holds(each.body, current)
        account = each.record.account
        assert (account.total or 0) <= (account.limit or 0)
        current = plan_of(((call.name, call.arguments) for call in each.reply.calls), current)
    assert current.done == 6
    assert len({each.record.account.compaction for each in sent}) > 3, "the window was compacted several times"
    if strategy == "summarize":
        _is_a_pick_once_a_compaction_came(sent)
        _does_not_break_the_prefix_between_compactions(sent)


def _is_a_pick_once_a_compaction_came(sent: list[Sent]) -> None:
    picks = [[pick for pick in each.record.account.picks() if pick.kind == "plan"] for each in sent]
    assert [bool(found) for found in picks] == [each.record.account.compaction is not None for each in sent]
    assert all(pick.tokens > 20 and "as of step" in pick.because for found in picks for pick in found)


def _does_not_break_the_prefix_between_compactions(sent: list[Sent]) -> None:
    pairs = [
        (one, two) for one, two in pairwise(sent) if one.record.account.compaction == two.record.account.compaction
    ]
    assert len(pairs) > STEPS // 2
    for one, two in pairs:
        assert two.body["messages"][: len(one.body["messages"])] == one.body["messages"]


def test_a_window_that_is_cut_for_one_request_holds_the_plan_too(desk: Open, script: Script, notes: Path) -> None:
    opened = desk(script_of(script, 6000), notes, context__enabled=False)
    current, sent = TaskPlan(), requests(opened, worked(opened))
    for each in sent:
        assert holds(each.body, current)
        current = plan_of(((call.name, call.arguments) for call in each.reply.calls), current)
    assert any(each.record.account.passing for each in sent)


def test_a_conversation_without_a_run_has_neither_plan_nor_tool(desk: Open, script: Script, notes: Path) -> None:
    window = desk(script({"text": "Yes."}), notes).conversation().window("hello")
    assert not [pick for section in window.sections for pick in section.picks if pick.kind == "plan"]
    assert "update_plan" not in {pick.name for section in window.sections for pick in section.picks}
