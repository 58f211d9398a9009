"""Recalling: archived messages that bear on the current one come back, in what room the plan has left.

Chosen once for a message, after all compacting, and the same for all rounds of its tool calls. The plan never counts
on it: where room gets short, what was recalled is the first to go.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from recto.chat.blocks import Compaction
from recto.chat.conversation import View
from recto.chat.message import Message
from recto.errors import RectoError
from recto.sources.pick import Pick
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.walk.archive import OF_A_TURN, Archive, Patience, Recalled, Scope
from recto.walk.setup import Ready
from recto.walk.shelving import said, speaker
from recto.walk.standing import Standing
from recto.walk.turn import Picked, Turn, with_picks
from recto.walk.wanting import Want, want_of
from recto.window.compact import cleared_at, reaches
from recto.window.recalled import LEAST, Snippet, about, pack, told

# How many passages are looked at: by the room, as if all were short; and how many that did not fit are told.
LOOKED_AT, SHORT, TOLD = (40, 400), 16, 5
# Without a setting no more than so many tokens, however large the window: every turn pays for them. A message that asks
# for nothing is reminded of what it speaks of, no more.
MOST, REMINDER = {"summarize": 1024, "hybrid": 8192}, 256
# Of the room, where the model can call tools: what they give out must fit without another compaction.
FOR_TOOLS = 0.1
Floor = tuple[float, float]
# What must be reached, by words or by meaning. Of a thousand right ones nine in ten reach the modest one.
FAINT: Floor = (0.005, 0.06)
MODEST: Floor = (0.08, 0.15)
CLEAR: Floor = (0.25, 0.3)
# If even the best score less than this, the message is about something else; of real questions one in a hundred.
WORDS, MEANING = 0.15, 0.18
BEST = 5
# What is packed by estimates is counted and packed again, until it fills so much of its room.
PACKINGS, ENOUGH, CLOSE = 5, 0.985, 0.995
# So many of the best bring along the message that makes them understandable.
IN_COMPANY = 8
FEW_WORDS = 6
LONGEST_COMPANY = 600


@dataclass(slots=True)
class Recalling:
    archive: Archive
    store: Store
    clerk: Clerk
    standing: Standing
    message: Message
    patience: Patience = OF_A_TURN
    note: str = ""
    """What was not as it should be."""
    _chosen: list[Snippet] | None = None
    _passed: list[Snippet] = field(default_factory=list)

    async def into(self, ready: Ready, turn: Turn) -> Turn:
        """The turn with what is recalled; as it is where nothing is, or nothing fits."""
        if self._chosen is not None:
            return await self._again(turn)
        self._chosen = []
        want = _want(ready, turn, self.message) if reaches(turn.loaded.view.compaction) else None
        room = _room(ready, turn, want) if want else 0
        if want is None or room < LEAST:
            return turn
        ranked = await self._found(ready, turn, want, looked_at(room))
        best: tuple[Turn, list[Snippet], list[Snippet]] = (turn, [], [])
        aim = float(room)
        for _ in range(PACKINGS):
            chosen, passed = pack(ranked, int(aim))
            if not chosen:
                break
            more = await _attached(turn, chosen, passed)
            taken = more.window.total - turn.window.total
            # a packing is kept with what it was made of: later rounds send the very same
            if best[0].window.total - turn.window.total < taken <= room:
                best = (more, chosen, passed)
            if room * ENOUGH <= taken <= room or (taken <= room and not passed):
                break
            aim *= room * CLOSE / taken
        with_it, self._chosen, self._passed = best
        return with_it

    def give_up(self) -> None:
        """The provider says that the window is too long: what was recalled goes first."""
        self._chosen = []

    async def _again(self, turn: Turn) -> Turn:
        """In a later round the same, since what was sent before must stay as it was; nothing where it does not fit."""
        if not self._chosen:
            return turn
        more = await _attached(turn, self._chosen, self._passed)
        return more if more.window.free >= 0 else turn

    async def _found(self, ready: Ready, turn: Turn, want: Want, most: int) -> list[Snippet]:
        """What bears on the message, the best first; a search that fails is noted, and the turn goes on."""
        there = _in_window(turn.loaded.view, self.message)
        try:
            scope = await self.clerk.do(scope_of, self.store, self.standing, turn.loaded.view.compaction)
            if scope is None:
                return []
            hits, self.note = await asyncio.to_thread(
                self.archive.recall, want.text, scope, most=most, patience=self.patience
            )
            hits = [each for each in _telling(hits, _floor(ready, want)) if not there.holds(each)]
            found = await self.clerk.do(in_company, self.store, self.standing, hits, scope)
        except RectoError as why:
            self.note = f"nothing was recalled: {why.message}"
            return []
        except Exception as why:  # a chat never ends because of what it might have remembered
            self.note = f"nothing was recalled: the search failed ({type(why).__name__}: {why})"
            return []
        return _once([snippet_of(each) for each in found if not there.holds(each)])


async def _attached(turn: Turn, chosen: Sequence[Snippet], passed: Sequence[Snippet]) -> Turn:
    """Counted as it is sent."""
    picked = Picked("recalled", told(chosen), tuple(map(_pick, chosen)))
    return await with_picks(turn, picked, [_pick(each) for each in passed[:TOLD]])


def looked_at(room: int) -> int:
    """How many passages are worth reading for so much room."""
    return min(max(LOOKED_AT[0], room // SHORT), LOOKED_AT[1])


def scope_of(store: Store, standing: Standing, block: Compaction | None = None) -> Scope | None:
    """What the Compaction in force covers, behind the last clear; None where that is nothing."""
    tree, head = store.tree, standing.head
    if head is None:
        return None
    if block is None:
        newest = tree.compaction(head)
        block = newest.compaction if newest else None
    if block is None or block.last is None:
        return None
    cleared = cleared_at(block)
    first = tree.message(cleared).depth + 1 if cleared else 1
    last = tree.message(block.last).depth
    return Scope(standing.conversation, tree.trail(head), first, last) if first <= last else None


def in_company(store: Store, standing: Standing, found: Sequence[Recalled], scope: Scope) -> list[Recalled]:
    """Behind the best, the message that makes them understandable: what a few words answer, what answers a question."""
    out: list[Recalled] = []
    for place, each in enumerate(found):
        out.append(each)
        passage = each.hit.passage
        if place < IN_COMPANY and each.message.role in ("user", "assistant"):
            step = -1 if passage.words < FEW_WORDS else 1 if passage.asks else 0
            out += _neighbour(store, standing, each, step, scope) if step else []
    return list({(each.message.id, each.hit.passage.start): each for each in reversed(out)}.values())[::-1]


def _neighbour(store: Store, standing: Standing, each: Recalled, step: int, scope: Scope) -> list[Recalled]:
    depth = each.message.depth + step
    if standing.head is None or not scope.first <= depth <= scope.last:
        return []
    near = store.tree.stretch(standing.head, depth, depth)
    if not near or near[0].role not in ("user", "assistant") or len(said(near[0])) > LONGEST_COMPANY:
        return []
    whole = replace(each.hit.passage, start=0, end=len(said(near[0])))
    because = f"{'follows' if step > 0 else 'precedes'} #{each.message.said}, which says little alone"
    return [Recalled(replace(each.hit, passage=whole, because=because), near[0], each.home)]


def _room(ready: Ready, turn: Turn, want: Want) -> int:
    """What recalled messages may take: their share, in `hybrid` also what its bands leave; never more than is free."""
    context, budget = ready.context, turn.budget
    if context.strategy == "discard" or context.recall_ratio == 0:
        return 0
    free = turn.window.free - budget.drift - (int(budget.room * FOR_TOOLS) if turn.opening.tools else 0)
    if context.recall_tokens:
        return min(free, context.recall_tokens)
    share = budget.room if context.strategy == "hybrid" else int(budget.room * context.recall_ratio)
    most = REMINDER if context.strategy == "summarize" and not want.asks else MOST[context.strategy]
    return min(free, share, most)


def _want(ready: Ready, turn: Turn, message: Message) -> Want | None:
    """Where recall is what a strategy is for, or somebody said how much of it is wanted, nothing is spared."""
    always = ready.context.strategy == "hybrid" or ready.context.recall_tokens > 0
    return want_of(message, turn.loaded.view.history, always=always)


def _telling(found: Sequence[Recalled], floor: Floor) -> list[Recalled]:
    """Without what bears too little on it; nothing at all when even the best hardly does, unless all is wanted."""
    best = found[:BEST]
    if floor != FAINT and not any(each.hit.words >= WORDS or (each.hit.meaning or 0.0) >= MEANING for each in best):
        return []
    words, meaning = floor
    return [each for each in found if each.hit.words >= words or (each.hit.meaning or 0.0) >= meaning]


def _floor(ready: Ready, want: Want) -> Floor:
    """A weak model gets only what clearly bears on it: it reads slowly, and is easily led astray. So does a message
    that asks for nothing. Who sets how many tokens recall may take wants them used."""
    if not ready.model.summarizes:
        return CLEAR
    if ready.context.recall_tokens:
        return FAINT
    return MODEST if want.asks else CLEAR


def snippet_of(each: Recalled | Message) -> Snippet:
    """What was found as it is told; a message as a whole."""
    message = each if isinstance(each, Message) else each.message
    whole = said(message)
    start, end = (0, len(whole)) if isinstance(each, Message) else (each.hit.passage.start, each.hit.passage.end)
    role = "" if start == 0 and speaker(whole) else message.role
    at, recent = _when(message.created)
    text = whole[start:end]
    snippet = Snippet(message.id, message.said, role, at, text, start, end, len(whole), about(text), is_recent=recent)
    if isinstance(each, Message):
        return snippet
    return replace(snippet, score=each.hit.score, because=each.hit.because)


def _when(created: str) -> tuple[str, bool]:
    """The day and time on the user's clock, and whether that was today or yesterday."""
    try:
        at = datetime.fromisoformat(created).astimezone()
    except ValueError:
        return created, False
    return at.strftime("%Y-%m-%d %H:%M"), (datetime.now(at.tzinfo).date() - at.date()).days <= 1


@dataclass(frozen=True, slots=True)
class InWindow:
    """What is sent already, as itself or word for word, be it in the summary."""

    ids: frozenset[str]
    texts: frozenset[str]
    told: str
    """The summary, and the message itself, which may give again what was given before."""

    def holds(self, each: Recalled) -> bool:
        text = each.text.strip()
        return each.message.id in self.ids or text in self.texts or text in self.told


def _in_window(view: View, message: Message) -> InWindow:
    sent = (*view.lifted, *view.tail)
    texts = frozenset(each.text.strip() for each in sent)
    summary = view.compaction.summary if view.compaction else ""
    return InWindow(frozenset(each.id for each in sent), texts, f"{summary}\n{message.text}")


def _once(snippets: Sequence[Snippet]) -> list[Snippet]:
    """The same words once, as they rank first."""
    return list({each.text: each for each in reversed(snippets)}.values())[::-1]


def _pick(each: Snippet) -> Pick:
    part = "" if each.end - each.start == each.size else ", a part of it"
    because = f"#{each.number}{part}, {each.at}: {each.because}"
    return Pick("message", each.id, because, each.tokens, "agent", round(each.score, 2))
