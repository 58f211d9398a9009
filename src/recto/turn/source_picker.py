"""SourcePicker: the sources of the session, and those that are chosen for a message."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.text import counted
from recto.chat.blocks import ToolCall
from recto.chat.message import Message
from recto.errors import RectoError
from recto.sources.chooser import ChoiceLimits, PastTurn, ScoredSource, SourceChoice
from recto.sources.documents import without_mentions
from recto.sources.selection import FITTING, OfferedTool, Selection, StablePicks, session_selection, sources_text
from recto.sources.source import (
    BUILT_IN_SERVER,
    Insert,
    Pick,
    Source,
    SourceId,
    TextSource,
    Tool,
)
from recto.sources.tools import RunnableTool, short_form
from recto.sources.vault_tools import FIND_EXCERPTS, READ_DOCUMENT, RESOLVE_WIKILINK
from recto.turn.context import ResolvedModel, TurnContext
from recto.turn.preamble import build_preamble
from recto.turn.session import NO_ROOM, LastTools, last_tools
from recto.turn.session_sources import SessionSources, can_call
from recto.turn.turn import Picker, Room, Turn, VolatilePicks

log = logging.getLogger(__name__)

CORE = (READ_DOCUMENT, FIND_EXCERPTS, RESOLVE_WIKILINK)
"""Never left out in favour of other tools."""
# What tools leave of the room, also those that were sent before, and all of them where none bears on the message.
LEAST_LEFT = 0.5
# Providers refuse more; OpenAI documents this number.
MOST_TOOLS = 128
# At least what a wire format puts around a tool, in bytes.
FRAME = 120
# How many tools a note names.
NAMED = 8
LEFT_OUT = f"{NO_ROOM}, and it bears less on the message than the others"
SHORT = f"in its short form, since {NO_ROOM}"


class SizedTool(Struct):
    """A tool on offer, in both of its forms."""

    whole: OfferedTool
    short: OfferedTool
    tokens: int
    short_tokens: int
    is_short: bool = False
    was_sent: bool = False
    """It was sent with the last request, in this form: it stays so until the next compaction."""

    @property
    def offered(self) -> OfferedTool:
        return self.short if self.is_short else self.whole

    @property
    def size(self) -> int:
        return self.short_tokens if self.is_short else self.tokens


class ToolFilter(Struct):
    """Fits tools that take more than their share: shortens them, then leaves out those that matter least."""

    resolved: ResolvedModel
    scores: Mapping[SourceId, float]
    """How well `always` tools fit the message."""
    recent: Collection[str]
    """Names of tools that were called recently."""
    last: LastTools
    tools: list[SizedTool] = field(default_factory=list)
    """What is offered."""
    left_out: list[SizedTool] = field(default_factory=list)

    def fit(self, tools: Sequence[SizedTool]) -> list[OfferedTool]:
        """The tools that are offered, in their order. What the last request had stays as it was, so that the prefix
        stays; it may take half of the room."""
        share, most = self._limits()
        if sum(each.size for each in tools if each.was_sent) > most:
            for each in tools:  # another model, with a smaller window: nothing of the prefix is left
                each.was_sent = each.is_short = False
        fresh = sorted((each for each in tools if not each.was_sent), key=self._worth, reverse=True)
        total, number = sum(each.size for each in tools), len(tools)
        for each in reversed(fresh):
            if total > share and each.short_tokens < each.tokens:
                each.is_short, total = True, total - each.tokens + each.short_tokens
        limit, gone = self._limit(tools), list[SizedTool]()
        for each in reversed(fresh):
            if (total > limit(each) or number > MOST_TOOLS) and not _is_required(each.whole):
                gone.append(each)
                total, number = total - each.size, number - 1
        for each in reversed(gone):  # there may be room again, now that a large one is gone
            if total + each.size > limit(each) or number >= MOST_TOOLS:
                self.left_out.append(each)
            else:
                total, number = total + each.size, number + 1
        missing = {each.whole.selection.id for each in self.left_out}
        self.tools = [each for each in tools if each.whole.selection.id not in missing]
        return [each.offered for each in self.tools]

    def _limits(self) -> tuple[int, int]:
        room = self.resolved.room
        return int(room * self.resolved.settings.budgets.tools), int(room * (1 - LEAST_LEFT))

    def _limit(self, tools: Sequence[SizedTool]) -> Callable[[SizedTool], int]:
        """What all tools may take with a given one among them. One that bears on the message must not miss its turn
        because others came first; and where none bears on it, none is worth less than another."""
        share, most = self._limits()
        is_later = any(each.was_sent for each in tools)
        is_quiet = all(each.whole.selection.mode == "always" and not self._bears(each) for each in tools)

        def limit(each: SizedTool) -> int:
            is_needed = each.whole.selection.mode == "agent" or (is_later and self._bears(each))
            return most if is_needed or (is_quiet and not is_later) else share

        return limit

    def _bears(self, each: SizedTool) -> bool:
        return self._score(each) >= self.resolved.settings.min_score

    def _worth(self, each: SizedTool) -> tuple[bool, float]:
        return _is_required(each.whole), self._score(each)

    def _score(self, each: SizedTool) -> float:
        selection = each.whole.selection
        is_recent = each.whole.runnable.tool.name in self.recent
        return 1.0 if is_recent else selection.score or self.scores.get(selection.id, 0.0)

    @property
    def passed(self) -> tuple[Pick, ...]:
        return tuple(
            replace(each.whole.selection.pick, because=LEFT_OUT, score=self._score(each)) for each in self.left_out
        )

    @property
    def note(self) -> str:
        """What has changed about the tools since the last request: those that are shorter, those that are missing."""
        short = {each.whole.selection.id for each in self.tools if each.is_short}
        if short == self.last.short and {each.whole.selection.id for each in self.left_out} == self.last.left_out:
            return ""
        names = [each.whole.runnable.tool.name for each in self.left_out]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        told = (
            f"{counted(len(short), 'tool')} offered in a shorter form" if short else "",
            f"not offered: {', '.join(names[:NAMED])}{more}" if names else "",
        )
        return f"{NO_ROOM} (context.budgets.tools): {'; '.join(filter(None, told)) or 'all of them are offered again'}"


def _is_required(each: OfferedTool) -> bool:
    """Never left out."""
    is_core = each.selection.id.server == BUILT_IN_SERVER and each.selection.id.name in CORE
    return is_core or each.selection.mode == "manual"


def short_offer(each: OfferedTool) -> OfferedTool:
    tool = short_form(each.runnable.tool)
    return replace(each, selection=replace(each.selection, source=tool, because=f"{each.selection.because}; {SHORT}"))


async def sized_tools(
    resolved: ResolvedModel, offered: Sequence[OfferedTool], sent: Mapping[SourceId, str]
) -> list[SizedTool]:
    """Both forms of each, counted; in the form in which it was `sent`, by the hash of its text."""
    short = [short_offer(each) for each in offered]
    tokens, short_tokens = await tool_tokens(resolved, offered), await tool_tokens(resolved, short)
    found = []
    for each, other in zip(offered, short, strict=True):
        id, hash = each.selection.id, sent.get(each.selection.id)
        sized = SizedTool(each, other, tokens[id], short_tokens[id])
        sized.is_short = hash == other.selection.source.sha256 != each.selection.source.sha256
        sized.was_sent = sized.is_short or hash == each.selection.source.sha256
        found.append(sized)
    return found


def size_of(offered: Sequence[OfferedTool]) -> int:
    """An upper bound of the bytes they are sent as."""
    return sum(len(each.runnable.tool.text.encode()) + FRAME for each in offered)


async def tool_tokens(resolved: ResolvedModel, offered: Sequence[OfferedTool]) -> dict[SourceId, int]:
    """Tokens of each tool as it is sent."""
    preamble = await build_preamble(
        resolved.token_cache, resolved.parameters, tools=[each.selection for each in offered]
    )
    return {each.selection.id: count.tokens for each, (_, count) in zip(offered, preamble.tools, strict=True)}


# How many messages back a tool counts as recently used; how many earlier turns are learned from.
RECENT_MESSAGES, LEARNED_TURNS = 40, 200
# Of the unused room, with and without documents that want some of it.
SHARED_SHARE, WHOLE_SHARE = 0.25, 0.60
STAYS = "chosen for an earlier message; it stays until the next compaction"


class SourcePicker(Picker):
    def __init__(self, sources: SessionSources, turn: Turn) -> None:
        super().__init__()
        self._sources, self._turn = sources, turn
        self._store = sources.store
        self._chosen: tuple[Selection, ...] = ()

    # -- in the preamble

    async def stable(self) -> StablePicks:
        agent, overrides = self._turn.resolved.agent, self._turn.overrides
        tools, missing = await self._callable_tools()
        forbidden = tuple(each for each in tools if each.approval == "deny")
        tools = [each for each in tools if each not in forbidden]
        text, candidates = (
            without_mentions(self._turn.asked.text) if self._turn.asked else "",
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
        notes = (*agent.notes, *self._turn.source_notes, *missing, *gone, choice.note)
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
            past = await self._store.do(self._past, agent.name) if settings.learn else []
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
        known = await self._store.do(self._recorded_tools) or session.last_tools or LastTools(number)
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
        recent = await self._store.do(self._recently_called)
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
