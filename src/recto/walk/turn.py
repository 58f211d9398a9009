"""Turn: one window in the making: the view weighed, the plan, the sections, the pieces. Decides; sends nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise

from recto.chat.blocks import Compaction
from recto.chat.conversation import View, units
from recto.chat.message import Message
from recto.errors import DoesNotFit
from recto.providers.model import ASSUMED_WINDOW, Model
from recto.settings import Settings
from recto.sources.pick import Pick
from recto.sources.source import Tool
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.walk.scale import Scale, Weighed
from recto.window.budget import Budget, limit_of, reserve_of
from recto.window.compact import discarded
from recto.window.count import Count
from recto.window.plan import Plan
from recto.window.request import Parameters, Piece
from recto.window.strategies import discard
from recto.window.window import Tally, Window, current_entry, entries_of

# The first look at a path; each further one is twice as deep.
FIRST_PAGE = 256

Unit = tuple[Message, ...]
Weights = dict[str, list[Weighed]]
"""The entries of each unit, by the id of its first message; a call's results weigh with the call."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A text picked for this message: what it is, why, and in which section it goes."""

    section: str
    text: str
    pick: Pick


@dataclass(frozen=True, slots=True)
class Opening:
    """What every window of this turn starts with, weighed."""

    pieces: tuple[Piece, ...]
    system: Count
    tools: tuple[tuple[Tool, Count], ...]
    is_open: bool

    @property
    def count(self) -> Count:
        return sum((count for _, count in self.tools), self.system)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A view with the weight of all its units."""

    view: View
    weights: Weights
    drift: int = 0
    """How much more than we the provider counted for the last reply's request; 0 where our counts are exact."""

    @property
    def counts(self) -> dict[str, int]:
        """Tokens by message; a call's results weigh with the call."""
        weights = self.weights
        return {
            message.id: sum([entry.count.tokens for entry in weights.get(message.id, ())])
            for message in (*self.view.lifted, *self.view.tail)
        }

    def archived(self, plan: Plan) -> int:
        """How many messages the plan's cut takes out of the window, those before what was loaded included."""
        assert plan.cut is not None
        known = {message.id: message.said for message in self.view.tail}
        first = self.view.tail[0].said if self.view.tail else 0
        return known.get(plan.cut.last, first - 1) - len(plan.cut.lifted)

    def entries(self, messages: Sequence[Message]) -> list[Weighed]:
        return [entry for message in messages for entry in self.weights.get(message.id, ())]


@dataclass(frozen=True, slots=True)
class Current:
    """The user's message with what was picked for it, weighed alone and step by step."""

    weighed: Weighed
    own: Count
    picked: tuple[tuple[Picked, int], ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """Everything decided for one request."""

    scale: Scale
    parameters: Parameters
    loaded: Loaded
    current: Current
    plan: Plan
    window: Window
    pieces: tuple[Piece, ...]
    stable: int
    """How many pieces precede what changes with every message."""


def budget_for(model: Model, settings: Settings, parameters: Parameters) -> Budget:
    limit = limit_of(model.window, settings.context.max_prompt_tokens, ASSUMED_WINDOW)
    reserve = reserve_of(limit, settings.context.reserved_response_tokens, parameters.max_tokens)
    # of the room, not of the limit: where the reserve is half of a small window, the next turn would cut again
    return Budget(limit, reserve, int((limit - reserve) * settings.context.low_water))


async def open_window(scale: Scale, parameters: Parameters, system: str, tools: Sequence[Tool]) -> Opening:
    system = scale.defused(system)
    pieces = scale.format.opening(scale.model.id, parameters, system, tools)
    costly = [piece for piece in pieces if piece.kind in ("system", "tool")]
    counts = list(zip(costly, await scale.weigh_pieces(costly), strict=True))
    for_system = sum((count for piece, count in counts if piece.kind == "system"), scale.meter.priming)
    if not system:
        for_system += scale.meter.without_system
    for_tools = [count for piece, count in counts if piece.kind == "tool"]
    return Opening(tuple(pieces), for_system, tuple(zip(tools, for_tools, strict=True)), scale.format.opened(system))


async def load(store: Store, clerk: Clerk, scale: Scale, head: str | None, current: str | None, room: int) -> Loaded:
    """The view at `head`, newest first, as far back as could fit in `room`; older messages stay in the store."""
    if head is None:
        return Loaded(View(()), {})
    size = FIRST_PAGE
    block, page = await clerk.do(store.tree.active, head, most=size)
    until = block.last if block else None
    path = _said_of(page)
    weights = await _weigh(scale, path, {})
    start = page[-1].parent if len(page) == size else None
    while start and start != until and _total(weights) <= room:
        size *= 2
        page = await clerk.do(store.tree.bare_page, start, most=size, until=until)
        path = _said_of(page) + path
        weights = await _weigh(scale, path, weights)
        start = page[-1].parent if len(page) == size else None
    is_whole = start is None or start == until
    return await _view(store, clerk, scale, View(tuple(path), (), block, 0 if is_whole else 1, current), weights)


def _said_of(page: list[Message]) -> list[Message]:
    """A page as it was said: oldest first, without the Compactions in between."""
    return [message for message in reversed(page) if message.compaction is None]


async def follow(
    store: Store, clerk: Clerk, scale: Scale, head: str | None, current: str | None, known: Loaded | None
) -> Loaded | None:
    """The view that was loaded before with what was said since; None when that is not all that has happened."""
    if head is None or known is None or not known.view.tail or known.view.older:
        return None
    last = known.view.tail[-1].id
    page = await clerk.do(store.tree.bare_page, head, most=FIRST_PAGE, until=last)
    if not page or page[-1].parent != last or any(message.compaction for message in page):
        return None
    view = replace(known.view, tail=(*known.view.tail, *reversed(page)), current=current)
    # what another process may still be writing must be read again
    if any(message.status == "unfinished" for message in view.tail):
        return None
    return await _view(store, clerk, scale, view, known.weights)


async def _view(store: Store, clerk: Clerk, scale: Scale, view: View, weights: Weights) -> Loaded:
    """The view with what is lifted; without results whose call was not loaded, which mean nothing alone."""
    tail = list(dropwhile(lambda message: message.role == "tool", view.tail)) if view.older else view.tail
    wanted = view.compaction.lifted if view.compaction else ()
    lifted = await clerk.do(store.tree.messages, wanted) if wanted else []
    view = replace(view, tail=tuple(tail), lifted=tuple(lifted))
    for part in (lifted, view.history, view.rounds):
        weights = await _weigh(scale, part, weights)
    return Loaded(view, weights, await _drift(store, clerk, scale, view, weights))


async def _drift(store: Store, clerk: Clerk, scale: Scale, view: View, weights: Weights) -> int:
    if all(entry.count.exact for entries in weights.values() for entry in entries):
        return 0
    last = next((message.id for message in reversed(view.tail) if message.role == "assistant"), None)
    request = await clerk.do(store.tree.request_of, last) if last else None
    if last is None or request is None:
        return 0
    account = (await clerk.do(store.records.record, request)).account
    usage = (await clerk.do(store.tree.message, last)).usage
    if usage is None or not usage.reported or account["meter"] != scale.meter.key:
        return 0
    return max(0, usage.input - int(account["total"]))


async def _weigh(scale: Scale, messages: Sequence[Message], known: Weights) -> Weights:
    """The weights of these messages' units; what is known of them is not rendered again."""
    fresh = [unit for unit in units(messages) if unit[0].id not in known]
    entries = [entries_of(unit) for unit in fresh]
    weighed = iter(await scale.weigh([entry for group in entries for entry in group]))
    return known | {unit[0].id: [next(weighed) for _ in group] for unit, group in zip(fresh, entries, strict=True)}


def behind_cut(loaded: Loaded, block: Compaction) -> Loaded:
    """What the view becomes once this Compaction stands: nothing is read or counted again, and no more is held."""
    view = loaded.view
    place = next((n for n, message in enumerate(view.tail) if message.id == block.last), -1)
    lifted = tuple(message for message in (*view.lifted, *view.tail[: place + 1]) if message.id in block.lifted)
    view = replace(view, tail=view.tail[place + 1 :], lifted=lifted, compaction=block, older=0)
    weights = {message.id: loaded.weights.get(message.id, []) for message in (*lifted, *view.tail)}
    return replace(loaded, view=view, weights=weights)


def cut_message(turn: Turn, parent: str) -> Message:
    """The message with the Compaction that the plan asks for."""
    return discarded(
        turn.plan,
        before=turn.loaded.view.compaction,
        parent=parent,
        archived=turn.loaded.archived(turn.plan),
        size_before=turn.window.total,
        size_after=turn.window.total - turn.plan.left_out.tokens,
    )


def _total(weights: Weights) -> int:
    return sum(entry.count.tokens for entries in weights.values() for entry in entries)


async def weigh_current(scale: Scale, message: Message, picked: Sequence[Picked]) -> Current:
    """The message alone, then with one pick more at a time: each pick costs the difference."""
    steps = [current_entry(message, [item.text for item in picked[:take]]) for take in range(len(picked) + 1)]
    weighed = await scale.weigh(steps)
    costs = [after.count.tokens - before.count.tokens for before, after in pairwise(weighed)]
    return Current(weighed[-1], weighed[0].count, tuple(zip(picked, costs, strict=True)))


def check_fixed(budget: Budget, opening: Opening, current: Current) -> None:
    """DoesNotFit, naming the largest, when what must be in the window is more than its room."""
    if budget.fixed <= budget.room:
        return
    parts = {
        "the system prompt": opening.system.tokens,
        "the tools": sum(count.tokens for _, count in opening.tools),
        "your message": current.own.tokens,
        "the documents picked for it": current.weighed.count.tokens - current.own.tokens,
    }
    largest = max(parts, key=lambda name: parts[name])
    raise DoesNotFit(
        f"{largest} takes {parts[largest]} tokens; {budget.fixed} are needed in all and the window has room for "
        f"{budget.room} ({budget.limit} less {budget.reserve} for the reply)",
        needed=budget.fixed,
        room=budget.room,
        largest=largest,
    )


def make_turn(
    scale: Scale,
    parameters: Parameters,
    budget: Budget,
    opening: Opening,
    loaded: Loaded,
    current: Current,
    *,
    conversation: str,
    notes: Sequence[str] = (),
) -> Turn:
    """Plan and window for one request. Where the plan has a cut, compact, load again and make it again."""
    fixed = opening.count.tokens + current.weighed.count.tokens
    budget = replace(budget, fixed=fixed, drift=loaded.drift)
    check_fixed(budget, opening, current)
    all_exact = opening.count.exact and current.weighed.count.exact
    history = loaded.entries(loaded.view.still_sent) + loaded.entries(loaded.view.history)
    rounds = loaded.entries(loaded.view.rounds)
    exact = all_exact and all(entry.count.exact for entry in (*history, *rounds))
    plan = discard(loaded.view, budget, loaded.counts)
    window = Window(
        conversation=conversation,
        model=scale.model.name,
        strategy=plan.strategy,
        limit=budget.limit,
        reserve=budget.reserve,
        exact=exact,
        sections=_tally(opening, loaded, current, history, rounds).sections(budget),
        plan=plan,
        notes=tuple(notes),
    )
    body = [entry.wire for entry in (*history, current.weighed, *rounds)]
    pieces = (*opening.pieces, *_listed(body, opening.is_open), scale.format.closing(parameters))
    stable = len(opening.pieces) + sum(len(entry.wire) for entry in history)
    return Turn(scale, parameters, loaded, current, plan, window, pieces, stable)


def _listed(wires: Sequence[tuple[bytes, ...]], is_open: bool) -> list[Piece]:
    """Wire messages as pieces of a JSON list: a comma before each but the first."""
    flat = [data for wire in wires for data in wire]
    return [Piece("message", b"," + data if place or is_open else data) for place, data in enumerate(flat)]


def _tally(
    opening: Opening, loaded: Loaded, current: Current, history: Sequence[Weighed], rounds: Sequence[Weighed]
) -> Tally:
    tally = Tally()
    tally.add("system", Pick("system", "system prompt", "always first"), opening.system.tokens)
    for tool, count in opening.tools:
        tally.add("tools", Pick("tool", tool.name, "offered with every message", mode=tool.include), count.tokens)
    if history:
        tally.add("history", _history_pick(loaded.view, len(history)), sum(entry.count.tokens for entry in history))
    for item, tokens in current.picked:
        tally.add(item.section, item.pick, tokens)
    message = current.weighed.entry.message or "next"
    tally.add("message", Pick("message", message, "the message that is answered"), current.own.tokens)
    if rounds:
        because = "tool calls and results of this turn"
        tally.add("message", Pick("rounds", f"{len(rounds)} messages", because), sum(e.count.tokens for e in rounds))
    return tally


def _history_pick(view: View, count: int) -> Pick:
    messages = view.still_sent + view.history
    ends = f"{messages[0].id}…{messages[-1].id}"
    because = "said since compaction " + str(view.compaction.compaction_number) if view.compaction else "the whole chat"
    return Pick("messages", ends, f"{count} messages, {because}")


def account_of(turn: Turn) -> Mapping[str, object]:
    """What of the turn goes into the record besides its bytes."""
    view = turn.loaded.view
    stays = view.still_sent + view.history
    return {
        **{key: value for key, value in turn.window.to_json().items() if key not in ("conversation", "model")},
        "messages": {
            "first": stays[0].id if stays else None,
            "last": stays[-1].id if stays else None,
            "count": len(stays),
            "lifted": [message.id for message in view.lifted],
            "current": turn.current.weighed.entry.message,
            "rounds": [message.id for message in view.rounds],
        },
        "compaction": view.compaction.compaction_number if view.compaction else None,
        "meter": turn.scale.meter.key,
        "window_from": turn.scale.model.window_from,
    }
