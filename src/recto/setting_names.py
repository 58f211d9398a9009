"""Other names of settings: what other programs call them. Accepted wherever a setting is, and shown under ours.

A name that means different things to different programs is none: `top_k` is mostly about sampling, `max_retries` does
not count the first attempt.
"""

from collections.abc import Callable, Iterable
from typing import Any

from recto.setting_spec import Spec

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "model": (
        "model_name",
        "default_model",
    ),
    "vault": ("vault_path",),
    "system_prompt": (
        "system_message",
        "instructions",
    ),
    "context.enabled": (
        "context_management_enabled",
        "context.auto_compact",
        "auto_compact",
        "compaction.enabled",
    ),
    "context.threshold": (
        "context_threshold",
        "compaction_threshold",
        "context.compaction_threshold",
        "compaction.threshold",
        "context.trigger",
        "compaction.trigger",
    ),
    "context.recent_messages_to_keep": (
        "recent_messages_to_keep",
        "messages_to_keep",
        "context.messages_to_keep",
        "context.keep",
        "compaction.keep",
        "context.keep_last",
    ),
    "context.min_recent_messages_to_keep": (
        "min_recent_messages_to_keep",
        "context.min_keep",
    ),
    "context.summary_model": (
        "summary_model",
        "summarizer_model",
        "context.summarizer_model",
        "compaction.model",
    ),
    "context.summary_tokens": (
        "max_summary_tokens",
        "context.max_summary_tokens",
    ),
    "context.memory_integration": ("memory_integration",),
    "context.use_project_memory": ("use_project_memory",),
    "context.use_agent_memory": ("use_agent_memory", "memory.files"),
    "context.use_user_memory": ("use_user_memory",),
    "context.use_facts": ("use_facts", "memory.facts"),
    "context.learn_facts": ("learn_facts", "memory.learn"),
    "context.min_score": (
        "context.score_threshold",
        "context.similarity_threshold",
    ),
    "context.max_prompt_tokens": (
        "context.max_tokens",
        "max_prompt_tokens",
        "max_context_tokens",
        "context.max_context_tokens",
        "context_limit",
        "context.limit",
        "context_window",
        "context.window",
        "context_length",
        "max_input_tokens",
        "context.max_input_tokens",
        "num_ctx",
    ),
    "context.reserved_response_tokens": (
        "reserved_response_tokens",
        "context.reserve",
        "context.reserved_tokens",
        "context.response_reserve",
    ),
    "context.budgets.system": (
        "system_budget_ratio",
        "context.system_budget_ratio",
        "context.budgets.system_ratio",
    ),
    "context.budgets.tools": (
        "tool_budget_ratio",
        "context.tool_budget_ratio",
        "context.budgets.tools_ratio",
    ),
    "context.budgets.messages": (
        "message_budget_ratio",
        "context.message_budget_ratio",
        "context.budgets.messages_ratio",
    ),
    "reply.max_tokens": (
        "max_tokens",
        "max_output_tokens",
        "max_completion_tokens",
        "max_new_tokens",
        "num_predict",
        "reply.max_output_tokens",
    ),
    "reply.temperature": ("temperature",),
    "reply.thinking_budget": (
        "thinking_budget",
        "budget_tokens",
        "thinking.budget_tokens",
        "max_thinking_tokens",
    ),
    "tools.step_limit": (
        "max_iterations",
        "max_steps",
        "tools.max_iterations",
        "tools.max_steps",
    ),
    "search.embedder": (
        "embedder",
        "embedding_model",
        "search.embedding_model",
    ),
    "spend.conversation": ("max_cost",),
}
"""Our key -> the others."""


def under_own_keys(
    values: Iterable[tuple[str, Any]], spec_of: Callable[[str, str], Spec], where: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values by our keys, checked, and what is not used of those that are given under two names."""
    found: dict[str, Any] = {}
    names: dict[str, str] = {}
    notes: dict[str, str] = {}
    for name, value in values:
        spec = spec_of(name, where)
        typed, known = spec.read(value, where), names.get(spec.key)
        wins = known is None or name == spec.key
        if wins:
            found[spec.key], names[spec.key] = typed, name
        if known is not None:
            unused = known if wins else name
            notes[spec.key] = f"{where}: {unused} is ignored: {names[spec.key]} is the same setting, and given too"
    return found, notes


def variable_of(key: str) -> str:
    """The environment variable of a setting."""
    return "RECTO_" + key.upper().replace(".", "_")
