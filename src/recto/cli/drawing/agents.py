"""Agents in lines and as JSON: what they have, how that comes in, which file says so. Secrets are hidden."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import click

from recto.agents.agent import Agent
from recto.agents.agents import Agents
from recto.cli.show import counted, literal, shortened, visible
from recto.sources.server_config import HIDDEN, ServerConfig, ToolConfig, without_secret_address, without_secrets
from recto.sources.source import BUILT_IN_SERVER, DEFAULT_AGENT, Include, TextSource

BADGES = {"always": "green", "manual": "cyan", "agent": "magenta"}


# -- all of them


def agent_summary(agents: Agents, agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "where": _where(agents, agent),
        "rules": len(agent.rules),
        "references": len(agent.references),
        "servers": len(_servers(agent)),
        "notes": list(agent.notes),
    }


def agent_table(agents: Agents, found: Sequence[Agent]) -> Iterator[str]:
    """A line for each: name, whose it is, what it has, what it is for."""
    cells = [
        (agent.name, ", ".join(_where(agents, agent)) or "built in", _counts(agent), agent.description)
        for agent in found
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    for row in cells:
        parts = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*parts, shortened(row[3], 60)]).rstrip()


def _where(agents: Agents, agent: Agent) -> list[str]:
    return [agents.scope_of(folder) for _, folder in agents.agent_folders(agent.name)]


def _servers(agent: Agent) -> list[ServerConfig]:
    return [server for server in agent.servers if server.name != BUILT_IN_SERVER]


def _counts(agent: Agent) -> str:
    have = ((agent.rules, "rule"), (agent.references, "reference"), (_servers(agent), "server"))
    return ", ".join(counted(len(some), noun) for some, noun in have if some) or "no sources"


# -- one of them


def agent_to_json(agents: Agents, agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "system_prompt": agent.system_prompt,
        "context": dict(agent.context),
        "from": dict(agent.origins),
        "rules": [_written_to_json(agents, each) for each in agent.rules],
        "references": [_written_to_json(agents, each) for each in agent.references],
        "servers": [_server_to_json(each) for each in agent.servers],
        "notes": list(agent.notes),
    }


def _written_to_json(agents: Agents, source: TextSource) -> dict[str, Any]:
    return {
        "id": str(source.id),
        "name": source.name,
        "include": source.include,
        "priority": source.priority,
        "enabled": source.enabled,
        "description": source.description,
        "characters": len(source.text),
        "where": agents.scope_of(source.path),
        "path": source.path,
    }


def _server_to_json(server: ServerConfig) -> dict[str, Any]:
    said = server.to_json()
    for key in ("env", "headers"):
        if key in said:
            said[key] = dict.fromkeys(said[key], HIDDEN)
    if "args" in said:
        said["args"] = without_secrets(said["args"])
    if "url" in said:
        said["url"] = without_secret_address(said["url"])
    # built-in tools decide for themselves where no file does
    modes = {"include": server.include or "always", "approval": server.approval or "ask"}
    modes = {} if server.name == BUILT_IN_SERVER else modes
    told = {"enabled": server.enabled, "is_yours": server.is_yours, "from": server.origin}
    return {"name": server.name} | said | modes | told


def agent_lines(agents: Agents, agent: Agent) -> Iterator[str]:
    """Everything in force, under a heading for each kind."""
    yield _bold(agent.name) + (f"  {visible(agent.description)}" if agent.description else "")
    facts = [(agents.scope_of(folder), str(folder), "") for _, folder in agents.agent_folders(agent.name)]
    facts += [*_settings(agents, agent)]
    width = max((len(name) for name, _, _ in facts), default=0) + 2
    for name, value, whose in facts:
        yield f"{name.ljust(width)}{visible(value)}" + (f"  {_dim(f'[{whose}]')}" if whose else "")
    for heading, sources in (("Rules", agent.rules), ("References", agent.references)):
        yield from _headed(heading, [line for each in sources for line in _source(agents, each)])
    yield from _headed("Servers", [line for each in _servers(agent) for line in _server(each)])
    if own := agent.server(BUILT_IN_SERVER):
        yield from _headed("Tools that are built in", [*_own(own)])
    if agent.name == DEFAULT_AGENT and not agents.agent_folders(DEFAULT_AGENT):
        yield ""
        yield f"it is built in; `recto agent new {DEFAULT_AGENT}` gives it a folder"


def _settings(agents: Agents, agent: Agent) -> Iterator[tuple[str, str, str]]:
    """The settings that it makes itself: name, value, whose file it is in."""
    said: dict[str, Any] = {"model": agent.model} if agent.model else {}
    said |= {"system_prompt": agent.system_prompt} if agent.system_prompt is not None else {}
    said |= agent.context
    for key, value in said.items():
        yield key, shortened(literal(value), 60), agents.scope_of(agent.origins[key])


def _headed(heading: str, found: Sequence[str]) -> Iterator[str]:
    if found:
        yield ""
        yield _bold(heading)
        yield from found


def _source(agents: Agents, source: TextSource) -> Iterator[str]:
    off = "" if source.enabled else "  not enabled"
    priority = f"priority {source.priority}, {agents.scope_of(source.path)}"
    yield f"  {_badge(source.include)} {visible(source.name)}  {_dim(f'{priority}{off}')}"
    if source.description:
        yield _dim(f"           {shortened(source.description, 68)}")


def _server(server: ServerConfig) -> Iterator[str]:
    facts = [server.approval or "ask", "user" if server.is_yours else "project"]
    facts += [f"at most {server.timeout_s:g} s"] if server.timeout_s else []
    facts += [] if server.enabled else ["not enabled"]
    yield f"  {_badge(server.include or 'always')} {visible(server.name)}  {_dim(', '.join(facts))}"
    yield _dim(f"           {_reached(server)}")
    yield _dim(f"           {visible(server.origin)}")
    for name, tool in server.tools.items():
        yield _tool(name, tool, server.include_of(name), server.approval_of(name))


def _reached(server: ServerConfig) -> str:
    handed = [*(f"{name}={HIDDEN}" for name in server.env), *(f"{name}: {HIDDEN}" for name in server.headers)]
    # not quoted: a shell's quotes around a hidden value would only be in the way
    line = without_secret_address(server.url) or " ".join([shlex.quote(server.command), *without_secrets(server.args)])
    return visible("  ".join([line, *handed, *([f"in {server.cwd}"] if server.cwd else [])]))


def _own(server: ServerConfig) -> Iterator[str]:
    if server.include or server.approval or not server.enabled:
        facts = [*([server.approval] if server.approval else []), *([] if server.enabled else ["not enabled"])]
        yield f"  {_badge(server.include or 'always')} all of them  {_dim(', '.join(facts))}".rstrip()
    for name, tool in server.tools.items():
        yield _tool(name, tool, server.include_of(name), tool.approval or server.approval or "")


def _tool(name: str, tool: ToolConfig, include: Include, approval: str) -> str:
    facts = [*([approval] if approval else []), *([] if tool.enabled else ["not enabled"])]
    return f"    {_badge(include)} {visible(name)}  {_dim(', '.join(facts))}".rstrip()


def _badge(include: Include) -> str:
    return click.style(f"[{include.capitalize()}]".ljust(8), fg=BADGES[include])


def _bold(text: str) -> str:
    return click.style(visible(text), bold=True)


def _dim(text: str) -> str:
    return click.style(text, dim=True) if text else ""
