"""A new agent: a folder with a commented agent.toml and an example rule."""

from pathlib import Path

from recto.errors import Invalid

# Lines behind a # are defaults or examples: uncommented they make a valid file.
_TOML = """\
# The agent {name}. Lines behind a # are examples; what is in force: `recto agent show {name}`
{description}

# Who answers, as provider:model; without it the settings say.
{model}

# What the model is told first. With system_prompt_file = "prompt.md" in its place it is a file of this folder, which is
# read at every turn.
# system_prompt = "You answer letters, politely and in the language of the letter."

# Any setting of the group `context`; `recto config show` lists them.
# [context]
# strategy = "summarize"
# threshold = 0.85

# [memory]
# facts = true
# files = true

# How sources come in: always, manual (you add them) or agent (when a message needs them).
# This wins over what rules, references and servers say themselves. A server's name alone means all of its tools.
# [include]
# "rule:example" = "always"
# "tool:files" = "agent"
# "tool:files/write_file" = "manual"

# Servers of tools that speak MCP. Whether a tool runs: approval = ask (the default), allow or deny.
# [mcpServers.files]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-filesystem", "."]
# env = {{ LOG_LEVEL = "${{LOG_LEVEL:-info}}" }}
# include = "agent"
# approval = "ask"
# timeout_s = 60
#
# [mcpServers.files.tools.write_file]
# approval = "deny"
#
# [mcpServers.elsewhere]
# url = "https://tools.example.com/mcp"
# headers = {{ Authorization = "Bearer ${{TOOLS_TOKEN:-}}" }}
# enabled = false
"""
_RULE = """\
---
description: How answers are written.
include: manual
priority: 500
enabled: true
---
Answer in plain words and short sentences. Name the source of every number.
"""


def agent_toml(name: str, model: str = "", description: str = "") -> str:
    import tomlkit  # only to write a file

    def line(key: str, value: str, example: str) -> str:
        shown = tomlkit.item(value or example).as_string()
        return f"{key} = {shown}" if value else f"# {key} = {shown}"

    said = line("description", " ".join(description.split()), "What it is for, in a sentence.")
    return _TOML.format(name=name, description=said, model=line("model", model, "openai:gpt-4o"))


def make_agent(folder: Path, name: str, model: str = "", description: str = "") -> None:
    """Invalid when there is such a folder already: nothing is overwritten."""
    try:
        folder.mkdir(parents=True)
        for part in ("rules", "references"):
            (folder / part).mkdir()
        (folder / "agent.toml").write_text(agent_toml(name, model, description), "utf-8")
        (folder / "rules" / "example.md").write_text(_RULE, "utf-8")
    except FileExistsError as why:
        raise Invalid(f"there is an agent {name} already: {folder}", name=name) from why
    except OSError as why:
        raise Invalid(f"cannot write {folder}: {why.strerror}", path=str(folder)) from why
