"""A run as the messages of a path tell it. Whatever a file from elsewhere says there, the worst is no run."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, get_args

from msgspec import Struct

from recto.chat.blocks import ToolCall
from recto.chat.message import Message
from recto.tasks.run import DEFAULT_STEPS, RunStatus, TaskRun

# Messages read at a time on the way back to the one that began a run.
PAGE = 256


class StoredRun(Struct, frozen=True):
    """A run with its messages, the oldest first."""

    run: TaskRun
    messages: tuple[Message, ...]


class ReadPage(Protocol):
    def __call__(self, head: str, /, *, most: int) -> Sequence[Message]:
        """At most so many messages up to a head, the newest first."""


def read_run(read: ReadPage, head: str | None) -> StoredRun | None:
    """The last run on the path to `head`; other messages may follow it."""
    found: list[Message] = []
    run, at = None, head
    while at:
        page = read(at, most=PAGE)
        for message in page:
            entry = run_entry(message)
            if entry is None or entry["run"] != (run or entry["run"]):
                continue
            run = entry["run"]
            found.append(message)
            if begins_run(message):
                messages = tuple(reversed(found))
                return StoredRun(rebuilt_run(messages), messages)
        at = page[-1].parent if len(page) == PAGE else None
    return None


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
