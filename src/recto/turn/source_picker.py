"""SourcePicker: the sources of the session, and those that are chosen for a message."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.message import Message
from recto.errors import RectoError
from recto.sources.chooser import ChoiceLimits, PastTurn, ScoredSource, SourceChoice
from recto.sources.documents import without_mentions
from recto.sources.selection import FITTING, OfferedTool, Selection, StablePicks, session_selection, sources_text
from recto.sources.source import BUILT_IN_SERVER, Pick, Source, SourceId, TextSource, Tool
from recto.sources.tools import RunnableTool
from recto.sources.vault_tools import FIND_EXCERPTS, READ_DOCUMENT, RESOLVE_WIKILINK
from recto.turn.context import ResolvedModel, TurnContext
from recto.turn.preamble import build_preamble
from recto.turn.session import NO_ROOM, LastTools, last_tools
from recto.turn.session_sources import SessionSources, can_call
from recto.turn.turn import Picker, Room, Turn, VolatilePicks, selections_inserted

log = logging.getLogger(__name__)

CORE = (READ_DOCUMENT, FIND_EXCERPTS, RESOLVE_WIKILINK)
"""Never left out in favour of other tools."""
# The share of the room that remains beside tools, even tools already sent, and beside all tools if none is relevant.
LEAST_LEFT = 0.5
# Providers refuse more; OpenAI documents this number.
MOST_TOOLS = 128
# The least overhead of a tool in a wire format, in bytes.
FRAME = 120
# How many tools a note names.
NAMED = 8
LEFT_OUT = f"{NO_ROOM}, and it bears less on the message than the others"


class ToolFilter(Struct, frozen=True):
    """Leaves out the least useful tools if all of them exceed their share."""

    resolved: ResolvedModel
    sizes: Mapping[SourceId, int]
    scores: Mapping[SourceId, float]
    """How well `always` tools fit the message."""
    recent: Collection[str]
    """Names of tools that were called recently."""
    last: LastTools

    def fit(self, offered: Sequence[OfferedTool]) -> tuple[list[OfferedTool], list[OfferedTool]]:
        """The tools that are offered, and the others, in order. Those of the last request stay for the sake of the
        prefix, and may take half of the room."""
        room, settings = self.resolved.room, self.resolved.settings
        share, most, sizes = int(room * settings.budgets.tools), int(room * (1 - LEAST_LEFT)), self.sizes
        kept = {id for each in offered if self.last.sent.get(id := each.selection.id) == each.selection.source.sha256}
        if (used := sum(map(sizes.__getitem__, kept))) > most:  # a model with a smaller window has a new prefix anyway
            kept, used = set(), 0
        fresh = [each for each in offered if each.selection.id not in kept]
        needed = {each.selection.id for each in fresh if self._is_needed(each, is_later=bool(kept))}
        if not kept and not needed and not any(self.score(each) >= settings.min_score for each in fresh):
            needed = set(sizes)  # if none is relevant, all have the same worth
        for each in sorted(fresh, key=lambda each: (_is_required(each), self.score(each)), reverse=True):
            id = each.selection.id
            fits = used + sizes[id] <= (most if id in needed else share) and len(kept) < MOST_TOOLS
            if fits or _is_required(each):
                kept.add(id)
                used += sizes[id]
        left_out = [each for each in offered if each.selection.id not in kept]
        return [each for each in offered if each.selection.id in kept], left_out

    def _is_needed(self, each: OfferedTool, *, is_later: bool) -> bool:
        """A relevant tool must not be lost because others came first."""
        is_relevant = self.score(each) >= self.resolved.settings.min_score
        return each.selection.mode == "agent" or (is_later and is_relevant)

    def score(self, each: OfferedTool) -> float:
        is_recent = each.runnable.tool.name in self.recent
        return 1.0 if is_recent else each.selection.score or self.scores.get(each.selection.id, 0.0)


def _is_required(each: OfferedTool) -> bool:
    """True if it is never left out."""
    is_core = each.selection.id.server == BUILT_IN_SERVER and each.selection.id.name in CORE
    return is_core or each.selection.mode == "manual"


# How many messages back a tool counts as recently used, and how many earlier turns are learned from.
RECENT_MESSAGES, LEARNED_TURNS = 40, 200
# Shares of the unused room, with and without documents that also need it.
SHARED_SHARE, WHOLE_SHARE = 0.25, 0.60
STAYS = "chosen for an earlier message; it stays until the next compaction"


class SourcePicker(Picker):
    def __init__(self, sources: SessionSources, turn: Turn) -> None:
        super().__init__()
        self._sources, self._turn, self._store = sources, turn, sources.store
        self._chosen: tuple[Selection, ...] = ()

    # -- in the preamble

    async def stable(self) -> StablePicks:
        agent, overrides, asked = self._turn.resolved.agent, self._turn.overrides, self._turn.asked
        tools, missing = await self._callable_tools()
        forbidden = tuple(each for each in tools if each.approval == "deny")
        tools = [each for each in tools if each not in forbidden]
        text = without_mentions(asked.text) if asked else ""
        # only sources that the user has neither added to nor removed from the session may be chosen
        sources: list[Source] = [*agent.rules, *agent.references, *(each.tool for each in tools)]
        candidates = [
            each
            for each in sources
            if each.enabled and each.include == "agent" and overrides.mode(each) is None and not overrides.removes(each)
        ]
        choice = await self._choose(text, candidates)
        self._chosen = tuple(_selection(each) for each in choice.chosen if isinstance(each.source, TextSource))
        listed = ((each, overrides.listed(each.tool)) for each in tools)
        offered = [OfferedTool(each, session_selection(status)) for each, status in listed if status.mode]
        offered += await self._chosen_tools(choice, tools, candidates)
        offered, left_out = await self._filtered(text, offered)
        sent = {each.selection.id for each in offered}
        rejected = (each for each in choice.rejected if each.source.id not in sent)
        session = [session_selection(each) for each in map(overrides.listed, agent.enabled_texts) if each.mode]
        gone = overrides.missing(agent.enabled_texts)
        notes = (*agent.notes, *self._turn.source_notes, *missing, *gone, choice.note)
        return StablePicks(
            rules=tuple(each for each in session if each.source.kind == "rule"),
            references=tuple(each for each in session if each.source.kind == "reference"),
            tools=tuple(offered),
            forbidden=forbidden,
            passed=(*(replace(_selection(each).pick, because=each.because) for each in rejected), *left_out),
            notes=tuple(filter(None, notes)),
        )

    async def _callable_tools(self) -> tuple[list[RunnableTool], list[str]]:
        """The tools that can be offered to this model."""
        resolved, settings = self._turn.resolved, self._sources.settings
        if can_call(resolved, settings):
            return await self._sources.tools(self._turn.session, resolved.agent, pins=not self._turn.is_draft)
        servers = [each.name for each in resolved.agent.servers if each.name != BUILT_IN_SERVER and each.enabled]
        if servers and settings.enabled:
            return [], [f"{resolved.model.name} cannot call tools: those of {', '.join(servers)} are not offered"]
        return [], []

    async def _choose(self, text: str, candidates: Sequence[Source]) -> SourceChoice:
        """Chooses sources; on failure none, with a note."""
        if not candidates or not text.strip():
            return SourceChoice((), (), "")
        settings, agent = self._turn.resolved.settings, self._turn.resolved.agent
        limits = ChoiceLimits(settings.top_k, settings.top_n, settings.include_score, settings.min_score)
        try:
            past = await self._store.do(self._past, agent.name) if settings.learn else []
            return await asyncio.to_thread(self._sources.chooser.choose, text, candidates, limits, past)
        except RectoError as why:
            return SourceChoice((), (), f"no source was chosen for this message: {why.message}")
        except Exception as why:  # a chat must not fail because of its sources
            log.exception("choosing sources failed")
            return SourceChoice((), (), f"no source was chosen for this message ({type(why).__name__}: {why})")

    def _past(self, agent: str) -> Sequence[PastTurn]:
        return [PastTurn(question, used) for question, used in self._store.source_uses.past(agent, LEARNED_TURNS)]

    # -- tools

    async def _chosen_tools(
        self, choice: SourceChoice, tools: Sequence[RunnableTool], candidates: Sequence[Source]
    ) -> list[OfferedTool]:
        """Tools chosen since the last compaction, then those for this message, so that the prefix stays."""
        fresh = {each.source.id: _selection(each) for each in choice.chosen if isinstance(each.source, Tool)}
        wanted = {each.id for each in candidates}
        by_id = {each.tool.id: each for each in tools if each.tool.id in wanted}
        earlier = (await self._last_tools()).chosen if by_id else ()
        stays = {id: Selection(by_id[id].tool, "agent", STAYS) for id in earlier if id in by_id}
        return [OfferedTool(by_id[id], each, lasts=id in fresh) for id, each in (stays | fresh).items()]

    async def _last_tools(self) -> LastTools:
        """The tools of the conversation's last request; without the chosen ones if there was a compaction since."""
        session, number = self._turn.session, self._turn.compaction
        known = await self._store.do(self._recorded_tools) or session.last_tools or LastTools(number)
        session.apply(last_tools=known)
        return known if known.compaction == number else LastTools(number, left_out=known.left_out)

    def _recorded_tools(self) -> LastTools | None:
        """The tools from the record; None if the session made the last request itself."""
        session, records = self._turn.session, self._store.records
        last = records.latest(session.conversation) if session.conversation else None
        if last is None or (session.last_tools and session.request in (last, None)):
            return None
        account = records.record(last).account
        return last_tools(account.compaction, account.picks(), account.not_picked)

    async def _filtered(self, text: str, offered: list[OfferedTool]) -> tuple[list[OfferedTool], Sequence[Pick]]:
        """Tools are counted and scored only if they may exceed their share of the room, or if some were left out."""
        resolved = self._turn.resolved
        share = resolved.room * resolved.settings.budgets.tools
        last = await self._last_tools() if offered else LastTools()
        # a token is at least one byte: if the bytes are few enough, no counting is needed
        size = sum(len(each.runnable.tool.text.encode()) + FRAME for each in offered)
        if not last.left_out and len(offered) <= MOST_TOOLS and size <= share:
            return offered, ()
        tools = [each.selection for each in offered]
        counted = await build_preamble(resolved.token_cache, resolved.parameters, tools=tools)
        sizes = {each.id: count.tokens for each, (_, count) in zip(tools, counted.tools, strict=True)}
        if not last.left_out and len(offered) <= MOST_TOOLS and sum(sizes.values()) <= share:
            return offered, ()
        always = [each.runnable.tool for each in offered if each.selection.mode == "always"]
        recent = await self._store.do(self._recently_called)
        tool_filter = ToolFilter(resolved, sizes, await self._scores(text, always), recent, last)
        kept, gone = tool_filter.fit(offered)
        if {each.selection.id for each in gone} != last.left_out:
            names = [each.runnable.tool.name for each in gone]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            told = f"not offered: {', '.join(names[:NAMED])}{more}" if names else "all of them are offered again"
            self.notes.append(f"{NO_ROOM} (context.budgets.tools): {told}")
        return kept, [replace(each.selection.pick, because=LEFT_OUT, score=tool_filter.score(each)) for each in gone]

    async def _scores(self, text: str, tools: Sequence[Source]) -> dict[SourceId, float]:
        """Scores by tool; none on failure, and then all tools are offered."""
        try:
            return (await asyncio.to_thread(self._sources.chooser.scores, text, tools))[0] if text.strip() else {}
        except Exception:  # a chat must not fail because of a tool
            log.exception("scoring tools failed")
            return {}

    def _recently_called(self) -> frozenset[str]:
        head = self._turn.session.head
        latest = self._store.tree.page(head, most=RECENT_MESSAGES) if head else []
        return frozenset(call.name for message in latest for call in message.calls)

    # -- in front of the message

    @property
    def wants_room(self) -> bool:
        return bool(self._chosen)

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        """The chosen rules and references, whole or by their best section."""
        left = int(room.unused * (SHARED_SHARE if room.is_shared else WHOLE_SHARE))
        included, sizes, passed = list[Selection](), list[int](), list[Pick]()
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
        return selections_inserted("sources", FITTING, included, sizes, passed)


def _selection(each: ScoredSource) -> Selection:
    return Selection(each.source, "agent", each.because, round(each.score, 2), best=each.part)
