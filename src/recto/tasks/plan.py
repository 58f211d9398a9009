"""TaskPlan: a model's steps toward a goal, read from the arguments of the tool `update_plan`. Firmly bounded, because
the plan is in every window of its run. The tool itself changes nothing: `TaskRun.take` does, once the call has its
result.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast, get_args

from msgspec import Struct, to_builtins

from recto.base.text import clean
from recto.errors import RectoError
from recto.sources.source import Rule, Tool
from recto.sources.tools import LocalTool

StepStatus = Literal["pending", "active", "done", "blocked", "dropped"]
PlanOutcome = Literal["", "done", "blocked"]
STATUSES: tuple[str, ...] = get_args(StepStatus)
CLOSED = ("done", "dropped")
# A plan of 4,000 characters takes about a thousand tokens: an eighth of an 8k window.
MOST_STEPS, LONGEST_STEP, LONGEST_PLAN = 100, 300, 4_000
LONGEST_REASON = 600
_MARKS = {"pending": "[ ]", "active": "[>]", "done": "[x]", "blocked": "[!]", "dropped": "[-]"}


class PlanStep(Struct, frozen=True):
    text: str
    status: StepStatus = "pending"


class TaskPlan(Struct, frozen=True):
    steps: tuple[PlanStep, ...] = ()
    outcome: PlanOutcome = ""
    """The model's outcome for the whole goal; empty while it works."""
    because: str = ""

    @property
    def open_steps(self) -> tuple[PlanStep, ...]:
        return tuple(step for step in self.steps if step.status not in CLOSED)

    @property
    def done(self) -> int:
        return sum(step.status == "done" for step in self.steps)

    @property
    def is_reached(self) -> bool:
        return self.outcome == "done" or (not self.outcome and self.done > 0 and not self.open_steps)

    @property
    def text(self) -> str:
        return "\n".join(_line_of(number, step) for number, step in enumerate(self.steps, 1))

    def text_within(self, characters: int) -> str:
        """The plan if it fits, else as many open steps as fit."""
        if len(self.text) <= characters:
            return self.text
        lines = [f"(the window is small: of {len(self.steps)} steps it has the first open ones)"]
        for number, step in enumerate(self.steps, 1):
            line = _line_of(number, step)
            if step.status not in CLOSED and sum(map(len, lines)) + len(line) <= characters:
                lines.append(line)
        return "\n".join(lines)

    @property
    def in_words(self) -> str:
        counts = {status: sum(step.status == status for step in self.steps) for status in STATUSES}
        told = [f"{count} {status}" for status, count in counts.items() if count and status != "done"]
        return ", ".join([f"{self.done} of {len(self.steps)} steps done", *told])

    def to_json(self) -> dict[str, Any]:
        steps: list[dict[str, Any]] = to_builtins(self.steps)
        return {"steps": steps, "outcome": self.outcome or None, "because": self.because or None}


def _line_of(number: int, step: PlanStep) -> str:
    return f"{_MARKS[step.status]} {number}. {step.text}"


def plan_from(arguments: Mapping[str, Any]) -> TaskPlan:
    """The plan of a call. Raises RectoError for an unusable one."""
    given = arguments.get("steps")
    if not isinstance(given, list):
        raise RectoError('steps must be a list of objects such as {"text": "read the notes", "status": "active"}')
    if len(given) > MOST_STEPS:
        why = f"a plan has at most {MOST_STEPS} steps, and this one has {len(given):,}"
        raise RectoError(f"{why}: put several into one; nothing was changed")
    steps = tuple(_step(number, each) for number, each in enumerate(given, 1))
    outcome, because = arguments.get("outcome"), arguments.get("because")
    if outcome not in (None, "", "active", "running", "done", "blocked"):
        raise RectoError("outcome must be done or blocked, or be left out while you work; nothing was changed")
    why = _line(because)[:LONGEST_REASON] if isinstance(because, str) else ""
    plan = TaskPlan(steps, cast(PlanOutcome, outcome if outcome in ("done", "blocked") else ""), why)
    if len(plan.text) > LONGEST_PLAN:
        why = f"a plan has at most {LONGEST_PLAN:,} characters, and this one has {len(plan.text):,}"
        raise RectoError(f"{why}: shorten its steps; nothing was changed")
    return plan


def _step(number: int, given: object) -> PlanStep:
    given = {"text": given} if isinstance(given, str) else given
    if not isinstance(given, dict):
        raise RectoError(f"step {number} must be an object with text and status; nothing was changed")
    text, status = given.get("text"), given.get("status") or "pending"
    if not isinstance(text, str) or not 0 < len(text.strip()) <= LONGEST_STEP:
        raise RectoError(f"step {number} needs a text of at most {LONGEST_STEP} characters; nothing was changed")
    if status not in STATUSES:
        raise RectoError(f"the status of step {number} must be one of {', '.join(STATUSES)}; nothing was changed")
    return PlanStep(_line(text), cast(StepStatus, status))


def _line(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in clean(text)[0]).split())


# -- the tool, and how to work in agent mode

# Why the tool and the rule below are in a window.
FOR_A_RUN = "a run toward a goal"
HOW_TO_WORK = Rule(
    "agent-mode",
    """You work on the user's goal by yourself, over many rounds of tool calls. The user sees your plan.
- First write a short plan with update_plan, then work on it: act through tools, look at what they give, check it.
- Mark one step active, and call update_plan again as soon as a step is done or the plan changes.
- If a call fails, find out why; do not repeat it unchanged.
- When the goal is reached and checked, call update_plan with outcome done; if you cannot go on, with outcome blocked \
and the reason in because. Then end with a short answer to the user, without calling a tool.""",
    include="always",
)
UPDATE_PLAN = "update_plan"
PLAN_TOOL = Tool(
    UPDATE_PLAN,
    "Write or change your plan toward the goal. Always give all of its steps. It stays in view however long you work.",
    {
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "status": {"type": "string", "enum": list(STATUSES)},
                    },
                    "required": ["text", "status"],
                },
            },
            "outcome": {
                "type": "string",
                "enum": ["done", "blocked"],
                "description": "of the whole goal; leave it out while you work",
            },
            "because": {"type": "string", "description": "what shows that it is done, or what blocks it"},
        },
        "required": ["steps"],
    },
)


def plan_tool(rounds_left: Callable[[], str]) -> LocalTool:
    """`rounds_left` goes into the result, for the model."""

    def run(arguments: Mapping[str, Any]) -> str:
        return f"The plan is kept: {plan_from(arguments).in_words}. {rounds_left()}"

    return LocalTool(PLAN_TOOL, run)
