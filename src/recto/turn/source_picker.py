"""SourcePicker: the sources of the session, and those that are chosen for a message."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.text import counted
from recto.chat.message import Message
from recto.errors import RectoError
from recto.sources.chooser import ChoiceLimits, PastTurn, ScoredSource, SourceChoice
from recto.sources.documents import without_mentions
from recto.sources.selection import FITTING, OfferedTool, Selection, StablePicks, session_selection, sources_text
from recto.sources.source import BUILT_IN_SERVER, Pick, Source, SourceId, TextSource, Tool
from recto.sources.tools import RunnableTool, short_form
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
SHORT = f"in its short form, since {NO_ROOM}"


class SizedTool(Struct):
    """A tool on offer, in both of its forms."""

    whole: OfferedTool
    short: OfferedTool
    tokens: int
    short_tokens: int
    is_short: bool = False
    was_sent: bool = False
    """It was sent with the last request in this form, and keeps it until the next compaction."""

    @property
    def size(self) -> int:
        return self.short_tokens if self.is_short else self.tokens

    @property
    def id(self) -> SourceId:
        return self.whole.selection.id

    @property
    def name(self) -> str:
        return self.whole.runnable.tool.name

    @property
    def is_required(self) -> bool:
        """True if it is never left out."""
        is_core = self.id.server == BUILT_IN_SERVER and self.id.name in CORE
        return is_core or self.whole.selection.mode == "manual"


class ToolFilter(Struct):
    """Fits tools into their share: shortens them, then leaves out the least useful."""

    resolved: ResolvedModel
    scores: Mapping[SourceId, float]
    """How well `always` tools fit the message."""
    recent: Collection[str]
    """Names of tools that were called recently."""
    last: LastTools
    tools: list[SizedTool] = field(default_factory=list)
    """The tools offered."""
    left_out: list[SizedTool] = field(default_factory=list)

    def fit(self, tools: Sequence[SizedTool]) -> list[OfferedTool]:
        """The tools that are offered, in order. Those of the last request stay unchanged for the sake of the prefix,
        and may take half of the room."""
        room = self.resolved.room
        share, most = int(room * self.resolved.settings.budgets.tools), int(room * (1 - LEAST_LEFT))
        if sum(each.size for each in tools if each.was_sent) > most:
            for each in tools:  # a model with a smaller window has a new prefix anyway
                each.was_sent = each.is_short = False
        # the least useful come first; among equals the last
        fresh = sorted((each for each in tools if not each.was_sent), key=self._worth, reverse=True)[::-1]
        total, number = sum(each.size for each in tools), len(tools)
        for each in fresh:
            if total > share and each.short_tokens < each.tokens:
                each.is_short, total = True, total - each.tokens + each.short_tokens
        is_later = any(each.was_sent for each in tools)
        is_quiet = all(each.whole.selection.mode == "always" and not self._bears(each) for each in tools)

        def limit(each: SizedTool) -> int:
            """The most that all tools may take when this one is included. A relevant tool must not be lost because
            others came first; if none is relevant, all have the same worth."""
            is_needed = each.whole.selection.mode == "agent" or (is_later and self._bears(each))
            return most if is_needed or (is_quiet and not is_later) else share

        gone = list[SizedTool]()
        for each in fresh:
            if (total > limit(each) or number > MOST_TOOLS) and not each.is_required:
                gone.append(each)
                total, number = total - each.size, number - 1
        for each in reversed(gone):  # there may be room again after a large one was removed
            if total + each.size > limit(each) or number >= MOST_TOOLS:
                self.left_out.append(each)
            else:
                total, number = total + each.size, number + 1
        missing = {each.id for each in self.left_out}
        self.tools = [each for each in tools if each.id not in missing]
        return [each.short if each.is_short else each.whole for each in self.tools]

    def _bears(self, each: SizedTool) -> bool:
        return self._score(each) >= self.resolved.settings.min_score

    def _worth(self, each: SizedTool) -> tuple[bool, float]:
        return each.is_required, self._score(each)

    def _score(self, each: SizedTool) -> float:
        return 1.0 if each.name in self.recent else each.whole.selection.score or self.scores.get(each.id, 0.0)

    @property
    def passed(self) -> tuple[Pick, ...]:
        left_out = ((each.whole.selection.pick, self._score(each)) for each in self.left_out)
        return tuple(replace(pick, because=LEFT_OUT, score=score) for pick, score in left_out)

    @property
    def note(self) -> str:
        """The tools shortened or left out since the last request, as a note."""
        short, names = {each.id for each in self.tools if each.is_short}, [each.name for each in self.left_out]
        if short == self.last.short and {each.id for each in self.left_out} == self.last.left_out:
            return ""
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        told = (
            f"{counted(len(short), 'tool')} offered in a shorter form" if short else "",
            f"not offered: {', '.join(names[:NAMED])}{more}" if names else "",
        )
        return f"{NO_ROOM} (context.budgets.tools): {'; '.join(filter(None, told)) or 'all of them are offered again'}"


async def sized_tools(
    resolved: ResolvedModel, offered: Sequence[OfferedTool], sent: Mapping[SourceId, str]
) -> list[SizedTool]:
    """Both forms of each, counted; the form already `sent` is chosen, by the hash of its text."""
    found = []
    for whole in offered:
        tool, because = short_form(whole.runnable.tool), f"{whole.selection.because}; {SHORT}"
        short = replace(whole, selection=replace(whole.selection, source=tool, because=because))
        hash, own, other = sent.get(whole.selection.id), whole.selection.source.sha256, tool.sha256
        is_short = hash == other != own
        found.append(SizedTool(whole, short, 0, 0, is_short, is_short or hash == own))
    tokens = await _tool_tokens(resolved, [each.whole.selection for each in found])
    short_tokens = await _tool_tokens(resolved, [each.short.selection for each in found])
    for each in found:
        each.tokens, each.short_tokens = tokens[each.id], short_tokens[each.id]
    return found


async def _tool_tokens(resolved: ResolvedModel, tools: Sequence[Selection]) -> dict[SourceId, int]:
    """Tokens of each tool as it is sent."""
    preamble = await build_preamble(resolved.token_cache, resolved.parameters, tools=tools)
    return {each.id: count.tokens for each, (_, count) in zip(tools, preamble.tools, strict=True)}


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
        return known if known.compaction == number else LastTools(number, short=known.short, left_out=known.left_out)

    def _recorded_tools(self) -> LastTools | None:
        """The tools from the record; None if the session made the last request itself."""
        session, records = self._turn.session, self._store.records
        last = records.latest(session.conversation) if session.conversation else None
        if last is None or (session.last_tools and session.request in (last, None)):
            return None
        account = records.record(last).account
        return last_tools(account.compaction, account.picks(), account.not_picked)

    async def _filtered(self, text: str, offered: list[OfferedTool]) -> tuple[list[OfferedTool], Sequence[Pick]]:
        """Tools are counted and scored only if they may exceed their share of the room, or if some were sent in a short
        form."""
        resolved = self._turn.resolved
        share = resolved.room * resolved.settings.budgets.tools
        last = await self._last_tools() if offered else LastTools()
        whole = ((each.selection.id, each.selection.source.sha256) for each in offered) if last.sent else ()
        is_whole = all(last.sent.get(id, hash) == hash for id, hash in whole)
        is_known = is_whole and not last.short and not last.left_out and len(offered) <= MOST_TOOLS
        # a token is at least one byte: if the bytes are few enough, no counting is needed
        if is_known and sum(len(each.runnable.tool.text.encode()) + FRAME for each in offered) <= share:
            return offered, ()
        tools = await sized_tools(resolved, offered, last.sent)
        if is_known and sum(each.size for each in tools) <= share:
            return offered, ()
        always = [each.runnable.tool for each in offered if each.selection.mode == "always"]
        recent = await self._store.do(self._recently_called)
        tool_filter = ToolFilter(resolved, await self._scores(text, always), recent, last)
        found = tool_filter.fit(tools)
        self.notes += filter(None, [tool_filter.note])
        return found, tool_filter.passed

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
