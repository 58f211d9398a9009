"""SessionSources: the rules, references and tools of a conversation, and the user's changes to them."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from recto.agents.agent import Agent
from recto.chat.message import now
from recto.errors import NotFound, RectoError, StoreError
from recto.mcp.servers import McpServers, ToolOffer
from recto.mcp.tool_list import tool_call_name
from recto.plugins import Plugin, plugins_of
from recto.settings.settings import FIXED, ContextSettings, ToolSettings
from recto.sources.chooser import Chooser
from recto.sources.overrides import SourceList, SourceOverrides, SourceState, overrides_from_json
from recto.sources.server_config import ServerConfig
from recto.sources.source import (
    BUILT_IN_SERVER,
    SOURCE_KINDS,
    Reference,
    Rule,
    Source,
    SourceId,
    SourceKind,
)
from recto.sources.tool_definition import ToolDefinition
from recto.sources.tools import RECALL, RECALL_TOOL, LocalTool, RemoteTool, RunnableTool
from recto.sources.vault_tools import reading_tools, writing_tools
from recto.store.store import Store
from recto.tasks.plan import FOR_A_RUN
from recto.turn.context import ResolvedModel
from recto.turn.session import ChatSession
from recto.turn.turn import SERVER
from recto.vault.vault_search import OpenVaults

log = logging.getLogger(__name__)

KEY = "sources"
"""The key of the overrides in a conversation's details."""


class SessionSources(Struct):
    store: Store
    settings: ToolSettings
    servers: McpServers
    chooser: Chooser
    vaults: OpenVaults
    project: Path | None

    def state(self, session: ChatSession) -> SourceState:
        block = self.store.tree.compaction_block(session.head) if session.head else None
        return self.overrides(session.conversation), block.compaction_number if block else None

    async def agent_of(self, session: ChatSession, agent: Agent, settings: ContextSettings) -> Agent:
        """The agent with the sources that this conversation has of it."""
        if settings.session != FIXED or not session.conversation:
            return agent
        return await self.store.do(as_it_began, self.store, session.conversation, agent)

    # -- what the user changed

    def overrides(self, conversation: str) -> SourceOverrides:
        if not conversation:
            return SourceOverrides()
        return overrides_from_json(self.store.tree.conversation(conversation).details.get(KEY))

    def amend(self, conversation: str, change: Callable[[SourceOverrides], SourceOverrides]) -> SourceOverrides:
        """Changes the overrides in one transaction, because other processes may change them too."""
        with self.store.database.write():
            changed = change(self.overrides(conversation))
            self.store.tree.change(conversation, details={KEY: changed.to_json()})
        return changed

    async def allow(self, conversation: str, tool: ToolDefinition) -> None:
        """Lets this tool run in this conversation without asking, until its definition changes."""
        await self.store.do(self.amend, conversation, lambda known: known.allow(tool))

    # -- what there is

    async def listing(
        self, session: ChatSession, agent: Agent, kinds: Collection[SourceKind] = SOURCE_KINDS, *, fresh: bool = False
    ) -> SourceList:
        """The sources of an agent in this conversation, even if its model cannot call tools.

        MCP servers are asked only if tools are wanted; `fresh` asks them again."""
        overrides = await self.store.do(self.overrides, session.conversation)
        sources: list[Source] = [*agent.rules, *agent.references]
        listed, notes = [overrides.listed(each) for each in sources if each.kind in kinds], list[str]()
        if "tool" in kinds:
            tools, notes = await self.tools(session, agent, fresh=fresh)
            tools += await self.store.do(self._listed_recall, session, agent)
            remotes = [each for each in tools if isinstance(each, RemoteTool) and each.approval == "allow"]
            found = await asyncio.to_thread(self.servers.allowed.changes, remotes)
            changes = {change.after.id: change for change in found}
            for each in tools:
                definition, approval = each.definition, each.approval
                if definition.id in changes:
                    approval = "ask"
                elif approval == "ask" and overrides.allows(definition):
                    approval = "allow"
                status = overrides.listed(each.tool, approval)
                listed.append(replace(status, change=changes.get(definition.id)))
        return SourceList(tuple(listed), (*agent.notes, *notes))

    def _listed_recall(self, session: ChatSession, agent: Agent) -> list[LocalTool]:
        """The recall tool is listed once something is archived, or if the agent configures it."""
        config = agent.server(BUILT_IN_SERVER)
        is_configured = config is not None and RECALL in config.tools
        if not is_configured and self.state(session)[1] is None:
            return []
        recall = configured_tool(LocalTool(RECALL_TOOL, lambda given: ""), config)
        return [recall] if recall.tool.enabled else []

    async def tools(
        self, session: ChatSession, agent: Agent, *, fresh: bool = False, pins: bool = False
    ) -> tuple[list[RunnableTool], list[str]]:
        """All tools that can run, and notes about missing ones. `pins` accepts those that are allowed and offered for
        the first time."""
        ours = list[RunnableTool]()
        if vault := session.vault:  # those that write only where the user has allowed them
            writing = writing_tools(vault) if self.settings.allow_write else []
            config, found = agent.server(BUILT_IN_SERVER), (*reading_tools(vault, self.vaults.search(vault)), *writing)
            ours += [tool for each in found if (tool := configured_tool(each, config)).tool.enabled]
        names = {BUILT_IN_SERVER, SERVER, *(each.name for each in agent.servers)}
        added, about = await asyncio.to_thread(plugin_tools, names)
        ours += added
        configs = [each for each in agent.servers if each.name != BUILT_IN_SERVER and each.enabled]
        if not configs:
            return ours, about
        try:
            offer = await self.servers.offer(configs, self.project, fresh=fresh)
        except RectoError as why:
            offer = ToolOffer((), (f"the tools of MCP servers are missing: {why.message}",))
        except Exception as why:  # a chat must not fail because of a tool
            log.exception("the tools of MCP servers could not be listed")
            offer = ToolOffer((), (f"the tools of MCP servers are missing ({type(why).__name__}: {why})",))
        remotes = [each for each in offer.tools if each.tool.enabled]
        changed = await asyncio.to_thread(self.servers.allowed.pin, remotes, session.allowed) if pins else []
        return [*ours, *remotes], [*about, *offer.notes, *changed]


def with_sources(overrides: SourceOverrides, sources: Sequence[Source]) -> SourceOverrides:
    for each in sources:
        if overrides.mode(each) is None:
            overrides = overrides.add(each, now())
    return overrides


# -- tools of plugins

ToolsAndNotes = tuple[list[LocalTool], list[str]]
"""Tools, and notes about those that cannot be used."""


def plugin_tools(servers: Collection[str]) -> ToolsAndNotes:
    """The tools of all plugins; like MCP tools, they ask before they run. `servers`: names already taken."""
    tools, notes = list[LocalTool](), list[str]()
    for plugin in plugins_of("tool"):
        if plugin.name in servers:
            notes.append(f"the tools of the plugin {plugin.name} are not offered: an MCP server has this name")
            continue
        found, about = _loaded(plugin)
        tools += found
        notes += about
    return tools, notes


@cache
def _loaded(plugin: Plugin) -> ToolsAndNotes:
    """Loads a plugin's tools once per process, even if that fails."""
    try:
        return [_named(plugin, each) for each in plugin.use(_several)], []
    except RectoError as why:
        return [], [why.message]


def _several(given: Any) -> Sequence[Any]:
    made = given() if callable(given) and not isinstance(given, LocalTool) else given
    return [made] if isinstance(made, LocalTool) else list(made)


def _named(plugin: Plugin, given: Any) -> LocalTool:
    if not isinstance(given, LocalTool):
        raise plugin.broken(f"gives {type(given).__name__} and not a LocalTool")
    own = given.tool.name
    tool = replace(given.tool, name=tool_call_name(plugin.name, own), own_name=own, server=plugin.name)
    return replace(given, tool=tool, approval="ask" if given.approval == "allow" else given.approval)


# -- fixed sessions

TEXTS: dict[str, type[Rule] | type[Reference]] = {"rule": Rule, "reference": Reference}
S = TypeVar("S", Rule, Reference)


def as_it_began(store: Store, conversation: str, agent: Agent) -> Agent:
    """The agent with the `always` rules and references of the conversation's first request, in place of the current
    ones in its files. Before the first request they are the same."""
    if (first := store.records.first(conversation)) is None:
        return agent
    recorded = store.records.record(first).account.picks()
    picks = [pick for pick in recorded if pick.mode == "always" and pick.because != FOR_A_RUN]
    then = list[Rule | Reference]()
    for pick in picks:
        if pick.kind in TEXTS and pick.sha256:
            with suppress(StoreError, NotFound):  # a lost text is read from its file
                then.append(TEXTS[pick.kind](pick.name, store.blobs.get(pick.sha256).decode(), include="always"))
    known, named = {source.id for source in then}, {pick.source for pick in picks}
    rules, references = _since(agent.rules, known, named), _since(agent.references, known, named)
    return replace(
        agent,
        rules=(*(each for each in then if isinstance(each, Rule)), *rules),
        references=(*(each for each in then if isinstance(each, Reference)), *references),
    )


def _since(sources: Sequence[S], known: Collection[SourceId], named: Collection[SourceId]) -> Iterator[S]:
    """The agent's other sources. Those that became `always` later can be added explicitly."""
    for each in sources:
        if each.id not in known:
            is_new = each.include == "always" and each.id not in named
            yield replace(each, include="manual") if is_new else each


# -- our own tools


def can_call(resolved: ResolvedModel, settings: ToolSettings) -> bool:
    """True if our tools can be offered."""
    return bool(resolved.model.tools and settings.enabled and resolved.runs_tools)


def configured_tool(runnable: LocalTool, config: ServerConfig | None) -> LocalTool:
    """The tool as the agent's `recto` server configures it; by default it is included and may run."""
    if config is None:
        return runnable
    said = config.tool(runnable.tool.name)
    tool = replace(
        runnable.tool,
        include=config.include_of(runnable.tool.name),
        enabled=config.enabled and said.enabled,
    )
    return replace(runnable, tool=tool, approval=said.approval or config.approval or runnable.approval)
