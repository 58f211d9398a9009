"""Spec: the type and limits of one setting, and reading its value. Knows no settings, but their other names: second
names, which are accepted everywhere and shown under ours; and names in other programs, which only lead to ours.

Ambiguous names are left out: `top_k` is mostly about sampling, `max_retries` does not count the first attempt.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from recto.errors import Invalid

LONGEST_SHOWN = 200
SWITCHES = dict.fromkeys(("true", "1", "on", "yes"), True) | dict.fromkeys(("false", "0", "off", "no"), False)


def setting(
    default: Any, help: str, *, low: float | None = None, high: float | None = None, among: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high, "among": among})


@dataclass(frozen=True, slots=True)
class Spec:
    key: str
    default: Any
    help: str
    low: float | None
    high: float | None
    among: tuple[str, ...]
    also: str = ""
    """Its second name."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.key, self.also) if self.also else (self.key,)

    @property
    def allowed(self) -> str:
        if self.among:
            return " or ".join(self.among)
        if isinstance(self.default, bool):
            return "true or false"
        kind = {int: "a whole number", float: "a number"}.get(type(self.default), "a text")
        return kind if self.low is None else f"{kind} from {self.low:,} to {self.high:,}"

    def read(self, value: Any, where: str) -> Any:
        """Convert a value or text to this setting's type. Raises Invalid with the allowed values."""
        try:
            typed = self._typed(value)
        except (KeyError, TypeError, ValueError):
            raise self.wrong(value, where) from None
        if self.among and typed not in self.among:
            raise self.wrong(value, where)
        if self.low is not None and self.high is not None and not self.low <= typed <= self.high:
            raise self.wrong(value, where)
        return typed

    def _typed(self, value: Any) -> Any:
        kind = type(self.default)
        if kind is bool:
            return value if isinstance(value, bool) else SWITCHES[str(value).lower()]
        if kind is str:
            return value if isinstance(value, str) else _refuse()
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return _refuse()
        if kind is int and isinstance(value, float):
            return _refuse()
        return kind(value)

    def wrong(self, value: Any, where: str) -> Invalid:
        text = repr(value)
        told = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
        why = f"{where}: {self.key} = {told} is not allowed; it takes {self.allowed}"
        return Invalid(why, key=self.key, allowed=self.allowed)


def _refuse() -> Any:
    raise TypeError


# -- names

ACCEPTED = {
    "context.recent_messages_to_keep": "recent_messages_to_keep",
    "context.min_recent_messages_to_keep": "min_recent_messages_to_keep",
    "context.memory_integration": "memory_integration",
    "context.use_project_memory": "use_project_memory",
    "context.use_agent_memory": "use_agent_memory",
    "context.use_user_memory": "use_user_memory",
    "context.max_prompt_tokens": "max_prompt_tokens",
    "context.reserved_response_tokens": "reserved_response_tokens",
    "context.budgets.system": "system_budget_ratio",
    "context.budgets.tools": "tool_budget_ratio",
    "context.budgets.messages": "message_budget_ratio",
}
"""Our key -> the second name."""
_ELSEWHERE = {
    "model": ("model_name", "default_model"),
    "vault": ("vault_path",),
    "system_prompt": ("system_message", "instructions"),
    "context.enabled": ("context_management_enabled", "auto_compact"),
    "context.threshold": ("compaction_threshold", "trigger"),
    "context.recent_messages_to_keep": ("messages_to_keep", "keep", "keep_last"),
    "context.min_recent_messages_to_keep": ("min_keep",),
    "context.summary_model": ("summarizer_model",),
    "context.summary_tokens": ("max_summary_tokens",),
    "context.min_score": ("score_threshold", "similarity_threshold"),
    "context.max_prompt_tokens": (
        "context.max_tokens",
        "max_context_tokens",
        "context_limit",
        "context_window",
        "context_length",
        "max_input_tokens",
        "num_ctx",
    ),
    "context.reserved_response_tokens": ("reserve", "reserved_tokens", "response_reserve"),
    "reply.max_tokens": ("max_output_tokens", "max_completion_tokens", "max_new_tokens", "num_predict"),
    "reply.thinking_budget": ("budget_tokens", "max_thinking_tokens"),
    "tools.step_limit": ("max_iterations", "max_steps"),
    "search.embedder": ("embedding_model",),
    "spend.conversation": ("max_cost",),
}
HINTS = {name: key for key, names in _ELSEWHERE.items() for name in names}
"""Name of a setting in other programs, in any group -> our key."""


def hint(name: str) -> str:
    """Our key for another program's name, or empty."""
    return HINTS.get(name) or HINTS.get(name.rpartition(".")[2], "")


def under_own_keys(
    values: Iterable[tuple[str, Any]], spec_of: Callable[[str, str], Spec], where: str
) -> dict[str, Any]:
    """The checked values by our keys; of two names of a setting, ours counts."""
    found: dict[str, Any] = {}
    for name, value in values:
        spec = spec_of(name, where)
        typed = spec.read(value, where)
        if name == spec.key or spec.key not in found:
            found[spec.key] = typed
    return found


def variable_of(key: str) -> str:
    return "RECTO_" + key.upper().replace(".", "_")
