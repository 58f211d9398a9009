"""docs/settings.md: every setting, from its specification and from what projects and conversations may set."""

from collections.abc import Iterator
from itertools import groupby

from docs.generate.setting_advice import ADVICE

from recto.errors import Invalid
from recto.settings import settings
from recto.settings.project_access import CAPS, FREE, NEEDS_TRUST, ONLY_STRICTER
from recto.settings.spec import Spec

BEGINNING = """\
# Settings

This page lists every setting. `make docs` writes it from the code. `recto config show` prints the same list with the
values that are in force now, and where each of them comes from.

## How to set one
```sh
recto config set context.threshold 0.7
recto config get context.threshold
recto context show --set context.threshold=0.6
```
The first command writes into `config.toml` in `RECTO_HOME` (default `~/.recto`). `--project` writes into
`.recto/config.toml` of the project instead. The last command changes a setting for one call only.

A setting can be set in six places. Each place overrides those before it:

| place | how | for |
|---|---|---|
| your file | `recto config set KEY VALUE` | everything you do |
| the project's file | `recto config set --project KEY VALUE` | everybody who works in this folder |
| the environment | `RECTO_` and the key, such as `RECTO_CONTEXT_THRESHOLD=0.7` | a shell, a container |
| the agent | `recto agent config NAME KEY VALUE` | conversations of this agent |
| the conversation | `recto context set KEY VALUE`, or `/set` in the chat | one conversation |
| the call | `--set KEY=VALUE` | one command |

In a file the groups are tables:
```toml
model = "anthropic:claude-sonnet-4-5"

[context]
threshold = 0.7

[context.budgets]
tools = 0.2
```

Each entry below says what a project may do with a setting. A project is a folder that somebody else may have written:
- **yes**: the project may set it.
- **with trust**: the value counts once you have run `recto config trust`.
- **only …**: the project may set it to this value, which is the careful one, and to no other.
- **lower only**: the project may set a limit and lower yours, but not raise it.
"""
GROUPS = {
    "": ("General", ""),
    "context": (
        "Context",
        "What goes into the window, and what happens when it is full; [compaction.md](compaction.md).",
    ),
    "context.budgets": ("Budgets", "Shares of the room; [tokens.md](tokens.md) has a worked example."),
    "reply": ("Replies", "What is asked of the model that answers; [models.md](models.md)."),
    "tools": ("Tools", "Tools of the vault and of MCP servers; [sources.md](sources.md)."),
    "references": ("Documents", "Notes and files that messages name; [vault.md](vault.md)."),
    "search": ("Search", "How messages, notes and sources are found; [search.md](search.md)."),
    "embedded": ("The built-in model", ""),
    "store": ("The store", "Where everything is kept; [troubleshooting.md](troubleshooting.md)."),
    "spend": ("Spending", "Limits in US dollars; [models.md](models.md)."),
}


def settings_page() -> str:
    return BEGINNING + "".join(_groups())


def _groups() -> Iterator[str]:
    for prefix, specs in groupby(settings.specs(), key=lambda spec: spec.key.rpartition(".")[0]):
        title, text = GROUPS.get(prefix, (prefix.capitalize(), ""))
        yield f"\n## {title}\n" + (f"{text}\n" if text else "")
        yield from map(_entry, specs)


def _entry(spec: Spec) -> str:
    advice = ADVICE[spec.key]
    value = f'"{advice.example}"' if " " in advice.example else advice.example
    also = f"- also accepted as `{spec.also}`\n" if spec.also else ""
    return (
        f"\n### `{spec.key}`\n{sentence(spec.help)} {advice.when}\n"
        f"- default: {_default(spec)}; takes {spec.allowed}\n"
        f"- in a project: {project_may(spec.key)}; in a conversation: {'yes' if conversation_may(spec.key) else 'no'}\n"
        f"- example: `recto config set {spec.key} {value}`\n{also}"
    )


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


def _default(spec: Spec) -> str:
    if isinstance(spec.default, bool):
        return f"`{str(spec.default).lower()}`"
    if isinstance(spec.default, float):
        return f"`{spec.default:g}`"
    text = str(spec.default)
    return f"“{text}”" if " " in text else f"`{text}`" if text else "empty"


def project_may(key: str) -> str:
    if key in FREE:
        return "yes"
    if key in NEEDS_TRUST:
        return f"with trust, because it decides {NEEDS_TRUST[key]}"
    if key in ONLY_STRICTER:
        return f"only `{str(ONLY_STRICTER[key]).lower()}`"
    assert key in CAPS, key
    return "lower only"


def conversation_may(key: str) -> bool:
    try:
        return settings.conversation_key(key, "") == key
    except Invalid:
        return False
