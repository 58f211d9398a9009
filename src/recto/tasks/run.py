"""TaskRun: work toward one goal: its limits, its plan, the calls that repeat.

It takes every round, live or from the messages of a path: the same rounds make the same run. A damaged import makes no
run at worst.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, cast, get_args

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from recto.chat.blocks import DocumentReference, ToolCall, ToolResult
from recto.chat.message import Message
from recto.errors import RectoError
from recto.sources.tools import CANCELLED
from recto.tasks.plan import UPDATE_PLAN, TaskPlan, plan_from

RunStatus = Literal["running", "done", "blocked", "out of steps", "out of money", "stopped"]
DEFAULT_STEPS, MOST_RUN_STEPS = 20, 10_000
# The longest plan fits whole into windows from 6k on.
OF_ROOM_FOR_PLAN, CHARACTERS_PER_TOKEN = 0.25, 3
# The model is warned about a repeated call; one more ends the run.
REPEATS = 2
# From here on every round says how many are left.
FEW = 3
LONGEST_GOAL = 2_000
_REMARK = "\n\n[Recto: "


class TaskRun(Struct):
    id: str
    goal: str
    max_steps: int = DEFAULT_STEPS
    max_cost: float | None = None
    steps: int = 0
    plan: TaskPlan = TaskPlan()
    status: RunStatus = "running"
    because: str = ""
    messages: list[str] = field(default_factory=list)
    """The messages that its turns answer: the goal, and later ones."""
    refused: list[str] = field(default_factory=list)
    """Names of tools that did not run for lack of approval."""
    stops: str = ""
    """Why it must stop after this round."""
    _results: dict[str, str] = field(default_factory=dict)
    """The last result of each call, by tool and arguments, as hashes."""
    _repeats: dict[str, int] = field(default_factory=dict)
    """How often each call repeated since the last new result."""

    @property
    def steps_left(self) -> int:
        return max(0, self.max_steps - self.steps)

    def rounds_left(self, used: int = 1) -> str:
        """Rounds left after the current, uncounted one, for the model."""
        left = max(0, self.steps_left - used)
        return f"{left} of {self.max_steps} rounds of tool calls are left."

    def record(self, *, begins: bool = False) -> dict[str, object]:
        """The entry of a message of this run; one that begins a turn also has goal and limits."""
        told: dict[str, object] = {"run": self.id, "step": self.steps + (not begins), "status": self.status}
        if self.because:
            told["because"] = self.because
        if begins:
            told |= {"goal": self.goal} if not self.messages else {}
            told |= {"max_steps": self.max_steps, "max_cost_usd": self.max_cost}
        return told

    def end(self, status: RunStatus, because: str) -> None:
        self.status, self.because = status, because

    def reopened(self) -> "TaskRun":
        """The run ready to resume, without its earlier end."""
        self.stops = ""
        self._repeats.clear()
        return self

    # -- what happens

    def begin_turn(self, message: str) -> None:
        """Begin a turn: a new message lets an abandoned run continue."""
        self.messages.append(message)
        self.plan = replace(self.plan, outcome="", because="")

    def take(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
        """Take a round of calls with their results, as the model reads them, in the same order. A round stopped before
        anything ran does not count as a step."""
        if all(result.text == CANCELLED for result in results):
            return tuple(results)
        self.steps += 1
        is_new = []
        for call, result in zip(calls, results, strict=True):  # true if a call's result is new
            key, gave = call_key(call), _result_key(call, result)
            is_new.append(self._results.get(key) != gave)
            self._results[key] = gave
        if any(is_new):
            self._repeats.clear()
        told = []
        for call, result, is_first in zip(calls, results, is_new, strict=True):
            self._note(call, result)
            told.append(result if is_first else self._repeated(call, result))
        if told and 0 < self.steps_left <= FEW:
            told[-1] = _with_remark(told[-1], self.rounds_left(0))
        return tuple(told)

    def _repeated(self, call: ToolCall, result: ToolResult) -> ToolResult:
        key = call_key(call)
        self._repeats[key] = self._repeats.get(key, 0) + 1
        if self._repeats[key] >= REPEATS and not self.stops:
            self.stops = f"{call.name} was called with the same arguments again and again, and gave the same result"
        return _with_remark(
            result,
            "you made this very call before, and its result is the same. Do something else, or say with update_plan "
            "what blocks you: if it repeats with nothing new between, the run is stopped.",
        )

    def _note(self, call: ToolCall, result: ToolResult) -> None:
        if result.approval in ("denied", "unanswered", "changed", "forbidden") and call.name not in self.refused:
            self.refused.append(call.name)
        if call.name == UPDATE_PLAN and not result.is_error:
            with suppress(RectoError):  # the result of the call says so
                self.plan = plan_from(_arguments(call))

    # -- as the model reads it

    def text_within(self, room: int) -> str:
        """The plan, for a window of this many tokens that no longer holds its calls."""
        plan = self.plan.text_within(int(room * OF_ROOM_FOR_PLAN * CHARACTERS_PER_TOKEN))
        return f"The plan so far ({self.plan.in_words}):\n{plan}" if plan else ""

    @property
    def short_goal(self) -> str:
        return self.goal if len(self.goal) <= LONGEST_GOAL else f"{self.goal[:LONGEST_GOAL]}…"


def call_key(call: ToolCall) -> str:
    """A key for tool and arguments, independent of their order."""
    given = _arguments(call)
    arguments = json.dumps(given, sort_keys=True) if given else call.arguments.strip()
    return _hash(f"{call.name}\0{arguments}")


def _result_key(call: ToolCall, result: ToolResult) -> str:
    # the result of update_plan has the number of rounds left, and a cancelled call has no result
    if call.name == UPDATE_PLAN and not result.is_error:
        return "kept"
    text = result.text.partition(_REMARK)[0]
    return _hash(f"{text}\0{result.call_id if text == CANCELLED else ''}\0{' '.join(result.media)}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _with_remark(result: ToolResult, text: str) -> ToolResult:
    return replace(result, text=f"{result.text}{_REMARK}{text}]")


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


# -- runs of stored messages

# Messages read per step on the way back to the start of a run.
PAGE = 256


class StoredRun(Struct, frozen=True):
    run: TaskRun
    messages: tuple[Message, ...]


def read_run(read: Callable[..., Sequence[Message]], head: str | None) -> StoredRun | None:
    """The last run on the path to `head`; other messages may follow it. `read(head, most=…)` gives messages up to a
    head, newest first."""
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
    """The run's entry in a message; None if it belongs to no run."""
    return next((each for each in reversed(message.task_runs) if isinstance(each.get("run"), str)), None)


def begins_run(message: Message) -> bool:
    entry = run_entry(message)
    return entry is not None and isinstance(entry.get("goal"), str)


def rebuilt_run(messages: Sequence[Message]) -> TaskRun:
    """The run of these messages, oldest first, starting with the one that begins it."""
    first = run_entry(messages[0]) or {}
    run = TaskRun(str(first["run"]), str(first["goal"]))
    calls: Sequence[ToolCall] = ()
    for message in messages:
        entry = run_entry(message) or {}
        if entry.get("status") in get_args(RunStatus):
            run.end(cast(RunStatus, entry["status"]), str(entry.get("because") or ""))
        if message.role == "user":
            run.begin_turn(message.id)
            steps, cost = entry.get("max_steps"), entry.get("max_cost_usd")
            run.max_steps = steps if isinstance(steps, int) and steps > 0 else DEFAULT_STEPS
            run.max_cost = cost if isinstance(cost, int | float) and cost > 0 else None
        elif message.role == "assistant":
            calls = message.calls
        elif message.role == "tool":
            results = {result.call_id: result for result in message.results}
            # a process that was killed may have left calls without a result
            if made := [call for call in calls if call.id in results]:
                run.take(made, [results[call.id] for call in made])
    return run.reopened()


# -- the report


class RunReport(Struct, frozen=True):
    """The result of a run: outcome, plan, notes used, and its cost."""

    run: str
    conversation: str
    goal: str
    outcome: RunStatus
    because: str
    plan: TaskPlan
    steps: int
    max_steps: int
    text: str = ""
    references: tuple[DocumentReference, ...] = ()
    refused: tuple[str, ...] = ()
    input: int = 0
    """Tokens of all replies, including those before a `--continue`."""
    output: int = 0
    cache_read: int = 0
    cost_usd: float | None = None
    """Including summaries; None if a price is unknown."""
    duration_s: float = 0.0

    @property
    def is_done(self) -> bool:
        return self.outcome == "done"

    def to_json(self) -> dict[str, Any]:
        said: dict[str, Any] = to_builtins(self)
        usage = {name: said.pop(name) for name in ("input", "output", "cache_read")}
        return said | {"because": self.because or None, "plan": self.plan.to_json(), "usage": usage}
