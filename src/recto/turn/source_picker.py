"""SourcePicker: the rules, references and tools of a turn, those of the session and those that this message needs.

Session sources and tools go into the preamble; rules and references chosen for the message go in front of it. A failure
is a note, and the turn goes on.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from recto.chat.blocks import Text, ToolCall
from recto.chat.message import Message
from recto.errors import RectoError
from recto.sources.chooser import ChoiceLimits, PastTurn, ScoredSource, SourceChoice
from recto.sources.mentions import without_mentions
from recto.sources.pick import Insert, Pick
from recto.sources.selection import FITTING, OfferedTool, Selection, StablePicks, session_selection, sources_text
from recto.sources.source import BUILT_IN_SERVER, Source, SourceId, TextSource, Tool
from recto.sources.tools import RunnableTool
from recto.turn.context import TurnContext
from recto.turn.pickers import Picker, Room, TurnInput, VolatilePicks
from recto.turn.session import LastTools, last_tools
from recto.turn.session_sources import SessionSources
from recto.turn.token_cache import TokenCache
from recto.turn.tool_filter import MOST_TOOLS, ToolFilter, can_call, size_of, tool_tokens
from recto.window.account import RequestAccount
from recto.window.request import Entry

log = logging.getLogger(__name__)
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
        text = without_mentions(self._turn.message.text) if self._turn.message else ""
        candidates = self._candidates(tools)
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
        notes = (*agent.notes, *self._turn.notes, *missing, *gone, choice.note, tool_filter.note)
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
            return await self._sources.tools(self._turn.session, resolved.agent)
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
        """The tools of the last request, if no compaction has come since."""
        session, number = self._turn.session, self._turn.compaction
        if session.last_tools is None:
            session.apply(last_tools=await self._store_thread.do(self._recorded_tools))
        known = session.last_tools or LastTools(number)
        return known if known.compaction == number else LastTools(number)

    def _recorded_tools(self) -> LastTools:
        session, records = self._turn.session, self._store.records
        last = session.request or (records.latest(session.conversation) if session.conversation else None)
        account = records.record(last).account if last else RequestAccount()
        tools = ((pick.source, pick.mode) for pick in account.picks() if pick.kind == "tool")
        return last_tools(account.compaction, tools)

    async def _filtered(self, text: str, offered: list[OfferedTool]) -> tuple[list[OfferedTool], ToolFilter]:
        """Tools are scored only where they take more than their share of the room."""
        resolved = self._turn.resolved
        share = resolved.room * resolved.settings.budgets.tools
        # a token is at least a byte: where the bytes are few enough, nothing has to be counted
        is_much = size_of(offered) > share or len(offered) > MOST_TOOLS
        tokens = await tool_tokens(resolved, offered) if is_much else {}
        if sum(tokens.values()) <= share and len(offered) <= MOST_TOOLS:
            return offered, ToolFilter(resolved, {}, (), ())
        always = [each.runnable.tool for each in offered if each.selection.mode == "always"]
        scores = await self._scores(text, always)
        recent = await self._store_thread.do(self._recently_called)
        tool_filter = ToolFilter(resolved, scores, recent, (await self._last_tools()).others)
        return tool_filter.stay(offered, tokens), tool_filter

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
                tokens = await _tokens(context.token_cache, sources_text(FITTING, [version]))
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


async def _tokens(token_cache: TokenCache, text: str) -> int:
    counted = await token_cache.count([Entry("user", (Text(text),))])
    return counted[0].count.tokens
