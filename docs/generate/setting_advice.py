"""When one would change a setting, and a value to try: what the settings themselves do not say."""

from typing import NamedTuple


class SettingAdvice(NamedTuple):
    when: str
    example: str
    """A value as `recto config set` takes it."""


ADVICE = {
    "model": SettingAdvice(
        "Set it once to the model that you use most. The built-in model needs no key, and is too small for real work.",
        "anthropic:claude-sonnet-4-5",
    ),
    "vault": SettingAdvice("Set it if you always chat over the same folder of notes.", "~/notes"),
    "system_prompt": SettingAdvice(
        "Set it to give every conversation the same instructions. Use an agent for the instructions of one job.",
        "Answer in British English, in at most three sentences.",
    ),
    "system_prompt_file": SettingAdvice(
        "Use it if the instructions are long or change often: Recto reads the file at every turn.", "prompt.md"
    ),
    "context.strategy": SettingAdvice(
        "Choose `hybrid` if single messages matter more than the flow, `discard` if the past may be forgotten.",
        "hybrid",
    ),
    "context.enabled": SettingAdvice(
        "Switch it off to decide about every compaction yourself. Requests then leave out the oldest messages that do "
        "not fit.",
        "off",
    ),
    "context.session": SettingAdvice(
        "Choose `fixed` if a long conversation must go on under the rules that it began with.", "fixed"
    ),
    "context.confirm": SettingAdvice("Switch it on to read each summary before it replaces messages.", "on"),
    "context.threshold": SettingAdvice(
        "Lower it for cheaper and faster replies. Raise it to keep more messages word for word.", "0.7"
    ),
    "context.prepare_at": SettingAdvice(
        "Set it to 0 if the model is expensive: a summary that is written ahead is sometimes not used.", "0"
    ),
    "context.low_water": SettingAdvice(
        "Lower it to compact less often and lose more at once. Raise it to keep more messages after each compaction.",
        "0.4",
    ),
    "context.recent_messages_to_keep": SettingAdvice(
        "Raise it if the model loses the thread after a compaction.", "12"
    ),
    "context.min_recent_messages_to_keep": SettingAdvice(
        "Raise it if the latest messages are long and must stay whole, as when you discuss one long text.", "4"
    ),
    "context.summary_model": SettingAdvice(
        "Name a cheaper model for summaries, or a better one if the model that answers is small.", "openai:gpt-4o-mini"
    ),
    "context.summary_ratio": SettingAdvice(
        "Raise it if summaries leave out too much. The summary takes that room from messages.", "0.25"
    ),
    "context.summary_tokens": SettingAdvice("Set it if summaries should have the same length for any window.", "1500"),
    "context.summary_style": SettingAdvice(
        "Say what summaries of your conversations should look like.", "Bullet points. Keep every figure and date."
    ),
    "context.summary_timeout_s": SettingAdvice(
        "Raise it for a slow local model. After that time Recto selects sentences instead.", "600"
    ),
    "context.recall_ratio": SettingAdvice(
        "Lower it if old messages distract the model, or to spend less. 0 also takes the recall tool away.", "0.2"
    ),
    "context.recall_tokens": SettingAdvice("Set it if recall should bring the same amount for any window.", "2000"),
    "context.top_k": SettingAdvice("Raise it if you have hundreds of sources and the right one is not found.", "50"),
    "context.top_n": SettingAdvice("Lower it to keep windows small. Set it to 0 to include only clear matches.", "3"),
    "context.include_score": SettingAdvice("Raise it if irrelevant sources are included.", "0.8"),
    "context.min_score": SettingAdvice(
        "Lower it if sources that you miss are listed as considered by `recto request show`.", "0.3"
    ),
    "context.memory_integration": SettingAdvice(
        "Switch it off for a chat that should know nothing from elsewhere.", "off"
    ),
    "context.use_project_memory": SettingAdvice("Switch it off where these files are meant for other programs.", "off"),
    "context.use_agent_memory": SettingAdvice("Switch it off in the agent's agent.toml to ignore its memory.", "off"),
    "context.use_user_memory": SettingAdvice("Switch it off for agents that need not know about you.", "off"),
    "context.use_facts": SettingAdvice("Switch it off if nothing should be remembered or recalled.", "off"),
    "context.learn_facts": SettingAdvice("Set `ask` to be asked about each fact, `on` to learn without asking.", "ask"),
    "context.learn": SettingAdvice("Switch it off if what was used before should not count.", "off"),
    "context.max_prompt_tokens": SettingAdvice(
        "Set it to spend less with a model that has a very large window: every token is paid for at every turn.",
        "32000",
    ),
    "context.reserved_response_tokens": SettingAdvice(
        "Raise it if long replies break off because the window is full.", "4096"
    ),
    "context.budgets.system": SettingAdvice(
        "Raise it if your rules and references are long. The three shares together are at most 1.", "0.1"
    ),
    "context.budgets.tools": SettingAdvice(
        "Lower it to offer fewer tools. Raise it, and lower the share of messages, if tools are left out.", "0.2"
    ),
    "context.budgets.messages": SettingAdvice(
        "Lower it to compact earlier than the threshold says. Messages also get what the other two leave.", "0.5"
    ),
    "reply.max_tokens": SettingAdvice(
        "Set it to limit the length of replies and so the cost of one call. The reserve is at least as large.", "2000"
    ),
    "reply.max_characters": SettingAdvice(
        "Lower it for a server that may never stop. With `reply.max_tokens` it limits only the thinking.",
        "500000",
    ),
    "reply.temperature": SettingAdvice("Set it to 0 for replies that differ as little as possible.", "0"),
    "reply.thinking_budget": SettingAdvice(
        "Set it to turn thinking on for models that support it. Thinking is paid for like a reply.", "4000"
    ),
    "reply.timeout_s": SettingAdvice("Raise it for a slow server.", "600"),
    "reply.tries": SettingAdvice("Set it to 1 in scripts that try again themselves.", "1"),
    "tools.enabled": SettingAdvice("Switch it off to save the tokens of all tools, which are sent every time.", "off"),
    "tools.step_limit": SettingAdvice("Raise it for agents that work on long tasks by themselves.", "60"),
    "tools.call_limit": SettingAdvice("Lower it if a small model keeps calling tools.", "32"),
    "tools.timeout_s": SettingAdvice("Raise it for tools that build, test or fetch much.", "300"),
    "tools.start_s": SettingAdvice("Raise it for MCP servers that are installed when they first start.", "120"),
    "tools.result_characters": SettingAdvice(
        "Lower it if tool results fill the window. `recto conversations result` always prints the whole.", "20000"
    ),
    "tools.allow_write": SettingAdvice(
        "Switch it on to let the model edit notes. It does so without asking, unless an agent sets `approval` to `ask` "
        "for the server `recto`.",
        "on",
    ),
    "references.enabled": SettingAdvice("Switch it off if you do not want the 📚 list after replies.", "off"),
    "references.gists": SettingAdvice("Switch it on for better lines; each costs a small call.", "on"),
    "references.auto": SettingAdvice(
        "Choose `always` to find passages for every message, `never` to send only what you link.", "always"
    ),
    "references.quotes": SettingAdvice("Choose `never` if you want only the model's words.", "never"),
    "references.outside": SettingAdvice(
        "Switch it on if you often write `@path` for files elsewhere on your machine.", "on"
    ),
    "search.embedder": SettingAdvice(
        "Choose `multilingual` to save memory, `none` to save more, or the model of a provider for other languages.",
        "none",
    ),
    "search.timeout_s": SettingAdvice("Raise it if the embedder is a slow server and search finds too little.", "5"),
    "embedded.window": SettingAdvice(
        "Raise it to send more to the built-in model. It answers more slowly then.", "8192"
    ),
    "store.backup": SettingAdvice("Switch it off if the home is backed up otherwise.", "off"),
    "spend.conversation": SettingAdvice("Set it before you let an agent work alone.", "2"),
    "spend.day": SettingAdvice("Set it to cap what a day can cost.", "5"),
    "serve.body_mb": SettingAdvice("Raise it where clients send many images in one request.", "64"),
}
