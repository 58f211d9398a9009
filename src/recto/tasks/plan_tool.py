"""The tool `update_plan`, by which a model tells its plan. It changes nothing itself: `TaskRun.take` does, once the
call has its result.

How to work in agent mode, as a rule.
"""

from collections.abc import Callable, Mapping
from typing import Any

from recto.sources.source import Rule, Tool
from recto.sources.tools import LocalTool
from recto.tasks.plan import STATUSES, plan_from

FOR_A_RUN = "a run toward a goal"
"""Why the tool and the rule below are in a window."""
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
                        "files": {"type": "array", "items": {"type": "string"}},
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
    """`rounds_left` says how much work is left, for the model."""

    def run(arguments: Mapping[str, Any]) -> str:
        change = plan_from(arguments)
        told = f"The plan is kept: {change.plan.in_words}. {rounds_left()}"
        if not change.notes:
            return told
        return f"{told}\nNote: {'; '.join(change.notes)}. It is kept as:\n{change.plan.text}"

    return LocalTool(PLAN_TOOL, run)
