"""A run as the messages of a path tell it. Whatever a file from elsewhere says there, the worst is no run."""

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from recto.chat.blocks import ToolCall
from recto.chat.message import Message
from recto.tasks.run import DEFAULT_STEPS, RunStatus, TaskRun


def run_entry(message: Message) -> Mapping[str, Any] | None:
    """What a message says about the run that it belongs to; None for one that belongs to none."""
    return next((each for each in reversed(message.task_runs) if isinstance(each.get("run"), str)), None)


def begins_run(message: Message) -> bool:
    entry = run_entry(message)
    return entry is not None and isinstance(entry.get("goal"), str)


def rebuilt_run(messages: Sequence[Message]) -> TaskRun:
    """The run of these messages, the oldest first, of which the first begins it."""
    first = run_entry(messages[0]) or {}
    run = TaskRun(str(first["run"]), str(first["goal"]))
    calls: Sequence[ToolCall] = ()
    for message in messages:
        entry = run_entry(message) or {}
        if entry.get("status") in get_args(RunStatus):
            run.end(cast(RunStatus, entry["status"]), str(entry.get("because") or ""))
        if message.role == "user":
            run.begin_turn(message.id)
            _read_limits(run, entry)
        elif message.role == "assistant":
            calls = message.calls
        elif message.role == "tool":
            _take(run, calls, message)
    return run.reopened()


def _read_limits(run: TaskRun, entry: Mapping[str, Any]) -> None:
    steps, cost = entry.get("max_steps"), entry.get("max_cost_usd")
    run.max_steps = steps if isinstance(steps, int) and steps > 0 else DEFAULT_STEPS
    run.max_cost = cost if isinstance(cost, int | float) and cost > 0 else None


def _take(run: TaskRun, calls: Sequence[ToolCall], message: Message) -> None:
    """A process that was killed may have left calls without a result."""
    results = {result.call_id: result for result in message.results}
    made = [call for call in calls if call.id in results]
    if made:
        run.take(made, [results[call.id] for call in made])
