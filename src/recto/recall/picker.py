"""RecallPicker: archived messages that match the current one return, in the room that the plan has left.

They are chosen once per message, after all compacting, and stay the same for all rounds of its tool calls. The plan
never relies on them: if room gets short, they are dropped first."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice

from msgspec import Struct

from recto.chat.conversation import View
from recto.chat.message import Message
from recto.errors import RectoError
from recto.recall.message_index import WAIT_IN_TURN, MessageHit, MessageIndex, WaitPolicy
from recto.recall.message_search import (
    RecallQuery,
    passages_for,
    recall_query,
    recalled_scope,
    snippet_of,
    with_neighbours,
)
from recto.recall.recall_tool import recall_tool
from recto.recall.snippets import LEAST, MARK, PER_LETTER, Snippet, pack_snippets, snippets_text
from recto.search.finder import Hit
from recto.settings.settings import ContextSettings
from recto.settings.strategy import STRATEGIES
from recto.sources.selection import OfferedTool, Selection, StablePicks
from recto.sources.source import BUILT_IN_SERVER, Insert, Pick
from recto.turn.context import TurnContext
from recto.turn.planned_request import CurrentMessage, PlannedRequest, count_with, with_current
from recto.turn.session_sources import SessionSources, can_call, configured_tool
from recto.turn.turn import Picker, Turn
from recto.window.compaction_block import has_archive

log = logging.getLogger(__name__)
# How many snippets that did not fit are recorded.
MOST_PASSED = 5
# Kept free if the model can call tools: their results must fit without another compaction.
FOR_TOOLS = 0.1
Floor = tuple[float, float]
# Scores a hit must reach, by words or by similarity. Nine in ten of the right ones reach the modest floor.
FAINT: Floor = (0.005, 0.06)
MODEST: Floor = (0.08, 0.15)
CLEAR: Floor = (0.25, 0.3)
# If even the best hits score less, the message is about something else; true of one real question in a hundred.
WORDS, MEANING = 0.15, 0.18
BEST = 5
# The least number of hits to read, and how much more than fits the room: some are already in the window, or too long.
FEWEST, SPARE = 20, 1.25
# Snippets are packed by estimates, counted, and packed again until they fill this much of the room.
PACKINGS, ENOUGH, CLOSE = 5, 0.985, 0.995


class RecallPicker(Picker):
    def __init__(
        self, archive: MessageIndex, sources: SessionSources, turn: Turn, patience: WaitPolicy = WAIT_IN_TURN
    ) -> None:
        super().__init__()
        self._archive, self._settings, self._turn, self._patience = archive, sources.settings, turn, patience
        self._store = sources.store
        self._chosen: list[Snippet] | None = None
        self._passed: list[Snippet] = []

    async def stable(self) -> StablePicks:
        """Once something is archived any message may need the tool, so `agent` means offered."""
        resolved, overrides = self._turn.resolved, self._turn.overrides
        if not can_call(resolved, self._settings) or not resolved.settings.recall_ratio:
            return StablePicks()
        tool = recall_tool(self._archive, self._store, self._turn.session)
        tool = configured_tool(tool, resolved.agent.server(BUILT_IN_SERVER))
        is_chosen = tool.tool.include == "agent" and not overrides.removes(tool.tool)
        if not tool.tool.enabled or not (overrides.mode(tool.tool) or is_chosen):
            return StablePicks()
        selection = Selection(tool.tool, "always", "something is archived")
        return StablePicks(tools=(OfferedTool(tool, selection, needs_archive=True),))

    async def fill(self, planned: PlannedRequest) -> PlannedRequest:
        """Adds recalled messages; returns the request unchanged if nothing matches or fits."""
        if self._chosen is not None:
            return await self._again(planned)
        self._chosen = []
        view, context = planned.loaded.view, planned.context
        query = _query(planned.current.message, view.history, context.settings) if _may_recall(planned) else None
        room = _room(planned, query) if query else 0
        if query is None or room < LEAST:
            return planned
        ranked = await self._found(planned, query, room)
        packed = await _packed(planned, ranked, room)
        if packed is None:
            return planned
        # the packing is kept: later rounds of this turn send the same
        self._chosen, self._passed, current = packed
        return with_current(planned, current, [_pick(each) for each in self._passed[:MOST_PASSED]])

    def give_way(self) -> None:
        """Recalled messages are dropped first."""
        self._chosen = []

    async def _again(self, planned: PlannedRequest) -> PlannedRequest:
        """The same in later rounds, since the prefix must stay; nothing if it no longer fits."""
        if not self._chosen:
            return planned
        more = await count_with(planned, _insert(self._chosen))
        if _taken(planned, more) > planned.window.free:
            return planned
        return with_current(planned, more, [_pick(each) for each in self._passed[:MOST_PASSED]])

    async def _found(self, planned: PlannedRequest, query: RecallQuery, room: int) -> list[Snippet]:
        """Matching messages, best first. A failed search is noted, and the turn goes on."""
        try:
            return await asyncio.to_thread(self._search, planned, query, room)
        except RectoError as why:
            self.fill_note = f"nothing was recalled: {why.message}"
            return []
        except Exception as why:  # a chat must not fail because of recall
            log.exception("recall failed")
            self.fill_note = f"nothing was recalled: the search failed ({type(why).__name__}: {why})"
            return []

    def _search(self, planned: PlannedRequest, query: RecallQuery, room: int) -> list[Snippet]:
        session, view, message = self._turn.session, planned.loaded.view, planned.current.message
        scope = recalled_scope(self._store, session, view.compaction, message.id)
        if scope is None:
            return []
        until = None if self._turn.is_draft else message.depth - 1
        choose = partial(_telling, floor=_floor(planned.context, query), room=room)
        hits, self.fill_note = self._archive.recall(
            query.text, scope, most=passages_for(room), until=until, patience=self._patience, choose=choose
        )
        if not hits:
            return []
        there = _in_window(view, message)
        hits = [each for each in hits if not there.holds(each)]
        found = with_neighbours(self._store, session, hits, scope)
        snippets = [snippet_of(each) for each in found if not there.holds(each)]
        return list({each.text: each for each in reversed(snippets)}.values())[::-1]  # each text at its best rank


Packing = tuple[list[Snippet], list[Snippet], CurrentMessage]
"""Snippets that fit, others, and the message with the former, counted as it is sent."""


async def _packed(planned: PlannedRequest, ranked: Sequence[Snippet], room: int) -> Packing | None:
    """The fullest packing that fits, counted as it is sent."""
    best, most, aim, before = None, 0, float(room), list[Snippet]()
    for _ in range(PACKINGS):
        chosen, passed = pack_snippets(ranked, int(aim))
        if not chosen or chosen == before:
            break
        before = chosen
        counted = await count_with(planned, _insert(chosen))
        taken = _taken(planned, counted)
        if most < taken <= room:
            most, best = taken, (chosen, passed, counted)
        if room * ENOUGH <= taken <= room or (taken <= room and not passed):
            break
        aim *= room * CLOSE / taken
    return best


def _taken(planned: PlannedRequest, more: CurrentMessage) -> int:
    return more.counted.count.tokens - planned.current.counted.count.tokens


def _insert(chosen: Sequence[Snippet]) -> Insert:
    return Insert("recalled", snippets_text(chosen), tuple(map(_pick, chosen)))


def _may_recall(planned: PlannedRequest) -> bool:
    context, block = planned.context, planned.loaded.view.compaction
    if not context.chosen_strategy.recall.max_tokens or context.settings.recall_ratio == 0:
        return False
    return has_archive(block) or (block is not None and bool(block.excerpts))


def _room(planned: PlannedRequest, query: RecallQuery) -> int:
    """The room by settings and strategy; never more than is free."""
    settings, budget, policy = planned.context.settings, planned.budget, planned.context.chosen_strategy.recall
    free = planned.window.free - (int(budget.room * FOR_TOOLS) if planned.preamble.tools else 0)
    if settings.recall_tokens:
        return min(free, settings.recall_tokens)
    share = budget.room if policy.takes_free_room else int(budget.room * settings.recall_ratio)
    return min(free, share, policy.max_tokens if query.asks else policy.reminder_tokens)


def _query(message: Message, history: Sequence[Message], settings: ContextSettings) -> RecallQuery | None:
    """Every message is looked up if the strategy always recalls, or a setting says how much is wanted."""
    always = STRATEGIES[settings.strategy].recall.is_unconditional or settings.recall_tokens > 0
    return recall_query(message, history, always=always)


def _telling(found: Iterator[Hit], floor: Floor, room: int) -> list[Hit]:
    """As many hits as may be needed to fill the room; none if even the best are weak, unless everything is wanted."""
    best = list(islice(found, BEST))
    if floor != FAINT and not any(each.word_score >= WORDS or (each.similarity or 0.0) >= MEANING for each in best):
        return []
    (words, meaning), telling, filled = floor, list[Hit](), 0.0
    for each in chain(best, found):
        if each.word_score >= words or (each.similarity or 0.0) >= meaning:
            filled += MARK + PER_LETTER * (each.passage.end - each.passage.start)
            if filled > room * SPARE and len(telling) >= FEWEST:
                break
            telling.append(each)
    return telling


def _floor(context: TurnContext, query: RecallQuery) -> Floor:
    """A weak model, or a message that asks for nothing, gets only clear matches. A user who sets `recall_tokens` wants
    them used."""
    if not context.model.summarizes:
        return CLEAR
    if context.settings.recall_tokens:
        return FAINT
    return MODEST if query.asks else CLEAR


class InWindow(Struct, frozen=True):
    """Messages and verbatim text in the window."""

    ids: frozenset[str]
    texts: frozenset[str]
    told: str
    """The summary, excerpts, and the current message, which may repeat an earlier one."""

    def holds(self, each: MessageHit) -> bool:
        text = each.text.strip()
        return each.message.id in self.ids or text in self.texts or text in self.told


def _in_window(view: View, message: Message) -> InWindow:
    excerpts = view.compaction.excerpts if view.compaction else {}
    sent = [each for each in (*view.lifted, *view.tail) if not _is_excerpt(each, excerpts)]
    summary = view.compaction.summary if view.compaction else ""
    told = "\n".join((summary, message.text, *excerpts.values()))
    return InWindow(frozenset(each.id for each in sent), frozenset(each.text.strip() for each in sent), told)


def _is_excerpt(message: Message, excerpts: Mapping[str, str]) -> bool:
    """True if the window holds an excerpt of it, or a line for each of its tool results."""
    keys = [f"{message.id}/{result.call_id}" for result in message.results]
    return message.id in excerpts or (bool(keys) and all(key in excerpts for key in keys))


def _pick(each: Snippet) -> Pick:
    part = "" if each.end - each.start == each.size else ", a part of it"
    because = f"#{each.number}{part}{f', {each.at}' if each.at else ''}: {each.because}"
    return Pick("message", each.id, because, each.tokens, "agent", round(each.score, 2))
