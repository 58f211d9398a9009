"""Agents as text and JSON: their sources, how each is included, and which file says so. Secrets are hidden."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import click

from recto.agents.agent import Agent
from recto.agents.agents import Agents
from recto.cli.show import counted, literal, shortened, visible
from recto.sources.server_config import HIDDEN, ServerConfig, without_secret_address, without_secrets
from recto.sources.source import BUILT_IN_SERVER, DEFAULT_AGENT, Include, TextSource

BADGES = {"always": "green", "manual": "cyan", "agent": "magenta"}


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
    """One line per agent: name, owner, contents, description."""
    cells = []
    for agent in found:
        have = ((agent.rules, "rule"), (agent.references, "reference"), (_servers(agent), "server"))
        counts = ", ".join(counted(len(some), noun) for some, noun in have if some) or "no sources"
        cells.append((agent.name, ", ".join(_where(agents, agent)) or "built in", counts, agent.description))
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    for row in cells:
        parts = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*parts, shortened(row[3], 60)]).rstrip()


def _where(agents: Agents, agent: Agent) -> list[str]:
    return [agents.scope_of(folder) for _, folder in agents.agent_folders(agent.name)]


def _servers(agent: Agent) -> list[ServerConfig]:
    return [server for server in agent.servers if server.name != BUILT_IN_SERVER]


# -- one of them


def agent_to_json(agents: Agents, agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "description": agent.description,
        "model": agent.model,
        "system_prompt": agent.system_prompt,
        "context": dict(agent.context),
        "from": dict(agent.origins),
        "rules": [_text_to_json(agents, each) for each in agent.rules],
        "references": [_text_to_json(agents, each) for each in agent.references],
        "servers": [_server_to_json(each) for each in agent.servers],
        "notes": list(agent.notes),
    }


def _text_to_json(agents: Agents, source: TextSource) -> dict[str, Any]:
    names = ("name", "include", "priority", "enabled", "description")
    told = {"id": str(source.id)} | {name: getattr(source, name) for name in names}
    return told | {"characters": len(source.text), "where": agents.scope_of(source.path), "path": source.path}


def _server_to_json(server: ServerConfig) -> dict[str, Any]:
    said = server.to_json()
    hidden: dict[str, Any] = {key: dict.fromkeys(said[key], HIDDEN) for key in ("env", "headers") if key in said}
    hidden |= {"args": without_secrets(said["args"])} if "args" in said else {}
    hidden |= {"url": without_secret_address(said["url"])} if "url" in said else {}
    # without a file, built-in tools decide
    modes = {"include": server.include or "always", "approval": server.approval or "ask"}
    told = {"enabled": server.enabled, "is_yours": server.is_yours, "from": server.origin}
    return {"name": server.name} | said | hidden | ({} if server.name == BUILT_IN_SERVER else modes) | told


def agent_lines(agents: Agents, agent: Agent) -> Iterator[str]:
    """Everything in force, grouped by kind."""
    yield _bold(agent.name) + (f"  {visible(agent.description)}" if agent.description else "")
    facts = [(agents.scope_of(folder), str(folder), "") for _, folder in agents.agent_folders(agent.name)]
    own: dict[str, Any] = {"model": agent.model} if agent.model else {}
    own |= {"system_prompt": agent.system_prompt} if agent.system_prompt is not None else {}
    for key, value in {**own, **agent.context}.items():
        facts.append((key, shortened(literal(value), 60), f"  {_dim(f'[{agents.scope_of(agent.origins[key])}]')}"))
    width = max((len(name) for name, _, _ in facts), default=0) + 2
    yield from (f"{name.ljust(width)}{visible(value)}{whose}" for name, value, whose in facts)
    built_in = agent.server(BUILT_IN_SERVER)
    parts = {
        "Rules": [line for each in agent.rules for line in _source(agents, each)],
        "References": [line for each in agent.references for line in _source(agents, each)],
        "Servers": [line for each in _servers(agent) for line in _server(each)],
        "Tools that are built in": [*_built_in(built_in)] if built_in else [],
    }
    for heading, lines in parts.items():
        if lines:
            yield from ("", _bold(heading), *lines)
    if agent.name == DEFAULT_AGENT and not agents.agent_folders(DEFAULT_AGENT):
        yield ""
        yield f"it is built in; `recto agent new {DEFAULT_AGENT}` gives it a folder"


def _source(agents: Agents, source: TextSource) -> Iterator[str]:
    off = "" if source.enabled else "  not enabled"
    yield _row(source.include, source.name, f"priority {source.priority}, {agents.scope_of(source.path)}{off}")
    if source.description:
        yield _dim(f"           {shortened(source.description, 68)}")


def _server(server: ServerConfig) -> Iterator[str]:
    timeout = f"at most {server.timeout_s:g} s" if server.timeout_s else ""
    off = "" if server.enabled else "not enabled"
    owner = "user" if server.is_yours else "project"
    yield _row(server.include or "always", server.name, server.approval or "ask", owner, timeout, off)
    handed = [*(f"{name}={HIDDEN}" for name in server.env), *(f"{name}: {HIDDEN}" for name in server.headers)]
    # not shell-quoted: a hidden value needs no quotes
    line = without_secret_address(server.url) or " ".join([shlex.quote(server.command), *without_secrets(server.args)])
    yield _dim(f"           {visible('  '.join([line, *handed, *([f'in {server.cwd}'] if server.cwd else [])]))}")
    yield _dim(f"           {visible(server.origin)}")
    yield from _tools(server, {name: server.approval_of(name) for name in server.tools})


def _built_in(server: ServerConfig) -> Iterator[str]:
    if server.include or server.approval or not server.enabled:
        off = "" if server.enabled else "not enabled"
        yield _row(server.include or "always", "all of them", server.approval or "", off)
    yield from _tools(server, {name: tool.approval or server.approval or "" for name, tool in server.tools.items()})


def _tools(server: ServerConfig, approvals: dict[str, str]) -> Iterator[str]:
    for name, tool in server.tools.items():
        yield f"  {_row(server.include_of(name), name, approvals[name], '' if tool.enabled else 'not enabled')}"


def _row(include: Include, name: str, *facts: str) -> str:
    badge = click.style(f"[{include.capitalize()}]".ljust(8), fg=BADGES[include])
    return f"  {badge} {visible(name)}  {_dim(', '.join(filter(None, facts)))}".rstrip()


def _bold(text: str) -> str:
    return click.style(visible(text), bold=True)


def _dim(text: str) -> str:
    return click.style(text, dim=True) if text else ""
