"""SessionSources: the rules, references and tools of a conversation: those of its agent and what the user changed.

Lists them for the doors, keeps the user's changes, and knows which tools can run.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from recto.agents.agent import Agent
from recto.chat.message import Message, now
from recto.concurrency import StoreThread
from recto.errors import RectoError
from recto.mcp.servers import McpServers, ToolOffer
from recto.settings import ToolSettings
from recto.sources.chooser import Chooser
from recto.sources.mentions import mentioned_sources
from recto.sources.overrides import SourceList, SourceOverrides, overrides_from_json
from recto.sources.source import BUILT_IN_SERVER, SOURCE_KINDS, Source, SourceKind
from recto.sources.tools import RECALL, RECALL_TOOL, LocalTool, RunnableTool
from recto.store.store import Store
from recto.turn.context import ResolvedModel
from recto.turn.options import CallOptions
from recto.turn.pickers import TurnInput
from recto.turn.session import ChatSession
from recto.turn.tool_filter import built_in_tools, configured_tool
from recto.vault.open_vaults import OpenVaults

log = logging.getLogger(__name__)
KEY = "sources"
"""Where a conversation's details hold the overrides."""


@dataclass(slots=True)
class SessionSources:
    store: Store
    store_thread: StoreThread
    settings: ToolSettings
    servers: McpServers
    chooser: Chooser
    vaults: OpenVaults
    project: Path | None

    async def turn_input(
        self,
        session: ChatSession,
        resolved: ResolvedModel,
        message: Message | None,
        options: CallOptions,
        *,
        is_draft: bool,
    ) -> TurnInput:
        """What the pickers of a turn start from. Sources that the message mentions are added to the conversation."""
        overrides, compaction = await self.store_thread.do(self._state, session)
        agent, notes = resolved.agent, list[str]()
        if message is not None:
            mentioned, notes = mentioned_sources(message.text, (*agent.rules, *agent.references))
            fresh = [each for each in mentioned if overrides.mode(each) is None]
            if fresh and session.conversation and not is_draft:
                overrides = await self.store_thread.do(
                    self.amend, session.conversation, lambda known: _with_sources(known, fresh)
                )
            elif fresh:
                overrides = _with_sources(overrides, fresh)
        return TurnInput(session, resolved, message, overrides, compaction, options, is_draft, tuple(notes))

    def _state(self, session: ChatSession) -> tuple[SourceOverrides, int | None]:
        """The overrides, and the number of the Compaction in force."""
        newest = self.store.tree.compaction(session.head) if session.head else None
        block = newest.compaction if newest else None
        return self.overrides(session.conversation), block.compaction_number if block else None

    # -- what the user changed

    def overrides(self, conversation: str) -> SourceOverrides:
        if not conversation:
            return SourceOverrides()
        return overrides_from_json(self.store.tree.conversation(conversation).details.get(KEY))

    def amend(self, conversation: str, change: Callable[[SourceOverrides], SourceOverrides]) -> SourceOverrides:
        """Changes the overrides in one transaction: another process may change them too."""
        with self.store.database.write():
            changed = change(self.overrides(conversation))
            self.store.tree.change(conversation, details={KEY: changed.to_json()})
        return changed

    # -- what there is

    async def listing(
        self, session: ChatSession, agent: Agent, kinds: Collection[SourceKind] = SOURCE_KINDS, *, fresh: bool = False
    ) -> SourceList:
        """The sources of an agent as this conversation has them, whether or not its model can call tools.

        MCP servers are asked only where tools are wanted; `fresh` asks them again.
        """
        overrides = await self.store_thread.do(self.overrides, session.conversation)
        tools, notes = await self.tools(session, agent, fresh=fresh) if "tool" in kinds else ([], [])
        sources: list[Source] = [*agent.rules, *agent.references]
        texts = [overrides.listed(each) for each in sources if each.kind in kinds]
        recall = await self.store_thread.do(self._listed_recall, session, agent) if "tool" in kinds else []
        listed = [overrides.listed(each.tool, each.approval) for each in (*tools, *recall)]
        return SourceList((*texts, *listed), (*agent.notes, *notes))

    def _listed_recall(self, session: ChatSession, agent: Agent) -> list[LocalTool]:
        """The recall tool is listed once something is archived, or when the agent configures it."""
        config = agent.server(BUILT_IN_SERVER)
        is_configured = config is not None and RECALL in config.tools
        if not is_configured and self._state(session)[1] is None:
            return []
        recall = configured_tool(LocalTool(RECALL_TOOL, lambda given: ""), config)
        return [recall] if recall.tool.enabled else []

    async def tools(
        self, session: ChatSession, agent: Agent, *, fresh: bool = False
    ) -> tuple[list[RunnableTool], list[str]]:
        """All tools that can run, and what the user should know about missing ones."""
        ours = built_in_tools(self.settings, session.vault, self.vaults, agent.server(BUILT_IN_SERVER))
        configs = [each for each in agent.servers if each.name != BUILT_IN_SERVER and each.enabled]
        if not configs:
            return list(ours), []
        try:
            offer = await self.servers.offer(configs, self.project, fresh=fresh)
        except RectoError as why:
            offer = ToolOffer((), (f"the tools of MCP servers are missing: {why.message}",))
        except Exception as why:  # a chat never ends because of a tool that it might have called
            log.exception("the tools of MCP servers could not be listed")
            offer = ToolOffer((), (f"the tools of MCP servers are missing ({type(why).__name__}: {why})",))
        return [*ours, *(each for each in offer.tools if each.tool.enabled)], list(offer.notes)


def _with_sources(overrides: SourceOverrides, sources: Sequence[Source]) -> SourceOverrides:
    for each in sources:
        if overrides.mode(each) is None:
            overrides = overrides.add(each, now())
    return overrides
