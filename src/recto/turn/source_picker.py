"""SourcePicker: the rules, references and tools of a turn, those of the session and those that this message needs.

Session sources and tools go into the preamble; rules and references chosen for the message go in front of it. A failure
is a note, and the turn goes on.

SessionSources: the rules, references and tools of a conversation: those of its agent and what the user changed.

Lists them for the doors, keeps the user's changes, and knows which tools can run.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from recto.agents.agent import Agent
from recto.base.concurrency import StoreThread
from recto.chat.blocks import ToolCall
from recto.chat.message import Message, now
from recto.errors import RectoError
from recto.mcp.servers import McpServers, ToolOffer
from recto.settings.settings import FIXED, ContextSettings, ToolSettings
from recto.sources.chooser import ChoiceLimits, Chooser, PastTurn, ScoredSource, SourceChoice
from recto.sources.documents import mentioned_sources, without_mentions
from recto.sources.overrides import SourceList, SourceOverrides, SourceState, SourceStatus, overrides_from_json
from recto.sources.selection import FITTING, OfferedTool, Selection, StablePicks, session_selection, sources_text
from recto.sources.source import (
    BUILT_IN_SERVER,
    SOURCE_KINDS,
    Approval,
    Insert,
    Pick,
    Source,
    SourceId,
    SourceKind,
    TextSource,
    Tool,
)
from recto.sources.tool_definition import ToolChange, ToolDefinition
from recto.sources.tools import RECALL, RECALL_TOOL, LocalTool, RemoteTool, RunnableTool
from recto.store.store import Store
from recto.turn.beginning import as_it_began
from recto.turn.context import CallOptions, ResolvedModel, TurnContext
from recto.turn.pickers import SERVER, Picker, Room, TurnInput, VolatilePicks
from recto.turn.plugin_tools import plugin_tools
from recto.turn.session import ChatSession, LastTools, last_tools
from recto.turn.tool_filter import (
    MOST_TOOLS,
    ToolFilter,
    built_in_tools,
    can_call,
    configured_tool,
    size_of,
    sized_tools,
)
from recto.vault.open_vaults import OpenVaults

log = logging.getLogger(__name__)

KEY = "sources"
"""Where a conversation's details hold the overrides."""


class SessionSources(Struct):
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
        state: asyncio.Future[SourceState] | None = None,
    ) -> TurnInput:
        """What the pickers of a turn start from. Sources that the message mentions are added to the conversation."""
        overrides, compaction = await (state or self.store_thread.submit(self.state, session))
        resolved = replace(resolved, agent=await self.agent_of(session, resolved.agent, resolved.settings))
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

    def state(self, session: ChatSession) -> SourceState:
        block = self.store.tree.compaction_block(session.head) if session.head else None
        return self.overrides(session.conversation), block.compaction_number if block else None

    async def agent_of(self, session: ChatSession, agent: Agent, settings: ContextSettings) -> Agent:
        """The agent with the sources that this conversation has of it."""
        if settings.session != FIXED or not session.conversation:
            return agent
        return await self.store_thread.do(as_it_began, self.store, session.conversation, agent)

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

    async def allow(self, conversation: str, tool: ToolDefinition) -> None:
        """From now on this tool runs in this conversation without a question, as long as it stays what it is."""
        await self.store_thread.do(self.amend, conversation, lambda known: known.allow(tool))

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
        remotes = [each for each in tools if isinstance(each, RemoteTool) and each.approval == "allow"]
        changes = await asyncio.to_thread(self.servers.allowed.changes, remotes)
        listed = [_listed(each, overrides, changes) for each in (*tools, *recall)]
        return SourceList((*texts, *listed), (*agent.notes, *notes))

    def _listed_recall(self, session: ChatSession, agent: Agent) -> list[LocalTool]:
        """The recall tool is listed once something is archived, or when the agent configures it."""
        config = agent.server(BUILT_IN_SERVER)
        is_configured = config is not None and RECALL in config.tools
        if not is_configured and self.state(session)[1] is None:
            return []
        recall = configured_tool(LocalTool(RECALL_TOOL, lambda given: ""), config)
        return [recall] if recall.tool.enabled else []

    async def tools(
        self, session: ChatSession, agent: Agent, *, fresh: bool = False, pins: bool = False
    ) -> tuple[list[RunnableTool], list[str]]:
        """All tools that can run, and what the user should know about missing ones. `pins` accepts those that are
        allowed and offered for the first time."""
        ours = built_in_tools(self.settings, session.vault, self.vaults, agent.server(BUILT_IN_SERVER))
        added = await asyncio.to_thread(plugin_tools, {BUILT_IN_SERVER, SERVER, *(each.name for each in agent.servers)})
        own, about = [*ours, *added.tools], list(added.notes)
        configs = [each for each in agent.servers if each.name != BUILT_IN_SERVER and each.enabled]
        if not configs:
            return list[RunnableTool](own), about
        try:
            offer = await self.servers.offer(configs, self.project, fresh=fresh)
        except RectoError as why:
            offer = ToolOffer((), (f"the tools of MCP servers are missing: {why.message}",))
        except Exception as why:  # a chat never ends because of a tool that it might have called
            log.exception("the tools of MCP servers could not be listed")
            offer = ToolOffer((), (f"the tools of MCP servers are missing ({type(why).__name__}: {why})",))
        remotes = [each for each in offer.tools if each.tool.enabled]
        changed = await asyncio.to_thread(self.servers.allowed.pin, remotes, session.allowed) if pins else []
        return [*own, *remotes], [*about, *offer.notes, *changed]


def _listed(each: RunnableTool, overrides: SourceOverrides, changes: Sequence[ToolChange]) -> SourceStatus:
    change = next((change for change in changes if change.after.id == each.definition.id), None)
    approval: Approval = "allow" if each.approval == "ask" and overrides.allows(each.definition) else each.approval
    return replace(overrides.listed(each.tool, "ask" if change else approval), change=change)


def _with_sources(overrides: SourceOverrides, sources: Sequence[Source]) -> SourceOverrides:
    for each in sources:
        if overrides.mode(each) is None:
            overrides = overrides.add(each, now())
    return overrides


# How many messages back a tool counts as recently used; how many earlier turns are learned from.
RECENT_MESSAGES, LEARNED_TURNS = 40, 200
# Of the unused room, with and without documents that want some of it.
SHARED_SHARE, WHOLE_SHARE = 0.25, 0.60
STAYS = "chosen for an earlier message; it stays until the next compaction"


class SourcePicker(Picker):
    def __init__(self, sources: SessionSources, turn: TurnInput) -> None:
        super().__init__()
        self._sources, self._turn = sources, turn
        self._store, self._store_thread = sources.store, sources.store_thread
        self._chosen: tuple[Selection, ...] = ()

    # -- in the preamble

    async def stable(self) -> StablePicks:
        agent, overrides = self._turn.resolved.agent, self._turn.overrides
        tools, missing = await self._callable_tools()
        forbidden = tuple(each for each in tools if each.approval == "deny")
        tools = [each for each in tools if each not in forbidden]
        text, candidates = (
            without_mentions(self._turn.message.text) if self._turn.message else "",
            self._candidates(tools),
        )
        choice = await self._choose(text, candidates)
        self._chosen = tuple(_selection(each) for each in choice.chosen if isinstance(each.source, TextSource))
        offered = [
            OfferedTool(each, session_selection(overrides.listed(each.tool)))
            for each in tools
            if overrides.mode(each.tool)
        ]
        offered += await self._chosen_tools(choice, tools, candidates)
        offered, tool_filter = await self._filtered(text, offered)
        sent = {each.selection.id for each in offered}
        session = [session_selection(each) for each in map(overrides.listed, agent.enabled_texts) if each.mode]
        gone = overrides.missing(agent.enabled_texts)
        notes = (*agent.notes, *self._turn.notes, *missing, *gone, choice.note)
        return StablePicks(
            rules=tuple(each for each in session if each.source.kind == "rule"),
            references=tuple(each for each in session if each.source.kind == "reference"),
            tools=tuple(offered),
            forbidden=forbidden,
            passed=(*(_passed(each) for each in choice.rejected if each.source.id not in sent), *tool_filter.passed),
            notes=tuple(filter(None, notes)),
        )

    async def _callable_tools(self) -> tuple[list[RunnableTool], list[str]]:
        """What this model can be offered."""
        resolved, settings = self._turn.resolved, self._sources.settings
        if can_call(resolved, settings):
            return await self._sources.tools(self._turn.session, resolved.agent, pins=not self._turn.is_draft)
        servers = [each.name for each in resolved.agent.servers if each.name != BUILT_IN_SERVER and each.enabled]
        if servers and settings.enabled:
            return [], [f"{resolved.model.name} cannot call tools: those of {', '.join(servers)} are not offered"]
        return [], []

    def _candidates(self, tools: Sequence[RunnableTool]) -> list[Source]:
        """What may be chosen: of include mode `agent`, neither in the session nor removed from it by hand."""
        agent, overrides = self._turn.resolved.agent, self._turn.overrides
        sources: list[Source] = [*agent.rules, *agent.references, *(each.tool for each in tools)]
        return [
            each
            for each in sources
            if each.enabled and each.include == "agent" and overrides.mode(each) is None and not overrides.removes(each)
        ]

    # -- the choice

    async def _choose(self, text: str, candidates: Sequence[Source]) -> SourceChoice:
        """A choice that fails chooses nothing, and says so."""
        if not candidates or not text.strip():
            return SourceChoice((), (), "")
        settings, agent = self._turn.resolved.settings, self._turn.resolved.agent
        limits = ChoiceLimits(settings.top_k, settings.top_n, settings.include_score, settings.min_score)
        try:
            past = await self._store_thread.do(self._past, agent.name) if settings.learn else []
            return await asyncio.to_thread(self._sources.chooser.choose, text, candidates, limits, past)
        except RectoError as why:
            return SourceChoice((), (), f"no source was chosen for this message: {why.message}")
        except Exception as why:  # a chat never ends because of what it might have been told
            log.exception("choosing sources failed")
            return SourceChoice((), (), f"no source was chosen for this message ({type(why).__name__}: {why})")

    def _past(self, agent: str) -> Sequence[PastTurn]:
        return [PastTurn(question, used) for question, used in self._store.source_uses.past(agent, LEARNED_TURNS)]

    # -- tools

    async def _chosen_tools(
        self, choice: SourceChoice, tools: Sequence[RunnableTool], candidates: Sequence[Source]
    ) -> list[OfferedTool]:
        """Those chosen before, as long as no compaction came, then those for this message: the prefix stays."""
        fresh = {each.source.id: _selection(each) for each in choice.chosen if isinstance(each.source, Tool)}
        wanted = {each.id for each in candidates}
        by_id = {each.tool.id: each for each in tools if each.tool.id in wanted}
        earlier = (await self._last_tools()).chosen if by_id else ()
        stays = {id: Selection(by_id[id].tool, "agent", STAYS) for id in earlier if id in by_id}
        return [OfferedTool(by_id[id], each, lasts=id in fresh) for id, each in (stays | fresh).items()]

    async def _last_tools(self) -> LastTools:
        """The tools of the conversation's last request; without what is sent again if a compaction has come since."""
        session, number = self._turn.session, self._turn.compaction
        known = await self._store_thread.do(self._recorded_tools) or session.last_tools or LastTools(number)
        session.apply(last_tools=known)
        return known if known.compaction == number else LastTools(number, short=known.short, left_out=known.left_out)

    def _recorded_tools(self) -> LastTools | None:
        """None where the session has made the last request itself, and knows."""
        session, records = self._turn.session, self._store.records
        last = records.latest(session.conversation) if session.conversation else None
        if last is None or (session.last_tools and session.request in (last, None)):
            return None
        account = records.record(last).account
        return last_tools(account.compaction, account.picks(), account.not_picked)

    async def _filtered(self, text: str, offered: list[OfferedTool]) -> tuple[list[OfferedTool], ToolFilter]:
        """Tools are counted and scored only where they may take more than their share of the room, or some of them were
        sent in a short form before."""
        resolved = self._turn.resolved
        share = resolved.room * resolved.settings.budgets.tools
        last = await self._last_tools() if offered else LastTools()
        whole = ((each.selection.id, each.selection.source.sha256) for each in offered) if last.sent else ()
        is_whole = all(last.sent.get(id, hash) == hash for id, hash in whole)
        is_known = is_whole and not last.short and not last.left_out
        # a token is at least a byte: where the bytes are few enough, nothing has to be counted
        if is_known and size_of(offered) <= share and len(offered) <= MOST_TOOLS:
            return offered, ToolFilter(resolved, {}, (), last)
        tools = await sized_tools(resolved, offered, last.sent)
        if is_known and sum(each.size for each in tools) <= share and len(offered) <= MOST_TOOLS:
            return offered, ToolFilter(resolved, {}, (), last)
        always = [each.runnable.tool for each in offered if each.selection.mode == "always"]
        scores = await self._scores(text, always)
        recent = await self._store_thread.do(self._recently_called)
        tool_filter = ToolFilter(resolved, scores, recent, last)
        found = tool_filter.fit(tools)
        self.notes += filter(None, [tool_filter.note])
        return found, tool_filter

    async def _scores(self, text: str, tools: Sequence[Source]) -> dict[SourceId, float]:
        """Without scores no tool fits the message better than another, and all are offered."""
        if not text.strip():
            return {}
        try:
            return (await asyncio.to_thread(self._sources.chooser.scores, text, tools))[0]
        except Exception:  # a chat never ends because of a tool that it might have called
            log.exception("scoring tools failed")
            return {}

    def _recently_called(self) -> frozenset[str]:
        head = self._turn.session.head
        latest = self._store.tree.page(head, most=RECENT_MESSAGES) if head else []
        return frozenset(block.name for message in latest for block in message.blocks if isinstance(block, ToolCall))

    # -- in front of the message

    @property
    def wants_room(self) -> bool:
        return bool(self._chosen)

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        """The chosen rules and references, whole or by their best section."""
        if not self._chosen:
            return VolatilePicks()
        left = int(room.unused * (SHARED_SHARE if room.is_shared else WHOLE_SHARE))
        included: list[Selection] = []
        passed: list[Pick] = []
        sizes: list[int] = []
        for each in self._chosen:
            for version in (each, *([replace(each, part=each.best)] if each.best else ())):
                tokens = await context.token_cache.tokens_of(sources_text(FITTING, [version]))
                if tokens <= left:
                    included.append(version)
                    sizes.append(tokens)
                    left -= tokens
                    break
            else:
                why = f"takes {tokens} tokens, and {left} are left for what is chosen"
                passed.append(replace(each.pick, because=f"{why}; {each.because}"))
        if not included:
            return VolatilePicks(passed=tuple(passed))
        picks = tuple(replace(each.pick, tokens=size) for each, size in zip(included, sizes, strict=True))
        insert = Insert("sources", sources_text(FITTING, included), picks, tuple(each.text for each in included))
        return VolatilePicks((insert,), tuple(passed))


def _selection(each: ScoredSource) -> Selection:
    return Selection(each.source, "agent", each.because, round(each.score, 2), best=each.part)


def _passed(each: ScoredSource) -> Pick:
    return replace(_selection(each).pick, because=each.because)
