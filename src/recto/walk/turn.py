"""Turn: one window in the making: the plan, the sections, the pieces. Decides; sends nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.sources.pick import Pick
from recto.walk.loading import Loaded
from recto.walk.opening import Opening, listed
from recto.walk.scale import Scale, Weighed
from recto.walk.setup import Ready
from recto.window.budget import Budget
from recto.window.compact import PASSING
from recto.window.count import Count
from recto.window.plan import Plan
from recto.window.recalled import shared_out
from recto.window.request import Piece, marked
from recto.window.strategies import STRATEGIES
from recto.window.window import NO_EXCERPTS, Tally, Window, current_entry, excerpted

# Shorter beginnings are not kept by a provider's cache, whatever is marked.
LEAST_CACHED = 1024
TOLD_ALWAYS = ("strategy", "kept", "left_out", "because")


@dataclass(frozen=True, slots=True)
class Picked:
    """A text picked for this message: what it is, why, and in which section it goes."""

    section: str
    text: str
    picks: tuple[Pick, ...]
    """What it is made of; where that is several things, their tokens say in what proportion."""
    texts: tuple[str, ...] = ()
    """Of sources: what each pick brought, to be kept by its hash."""


@dataclass(frozen=True, slots=True)
class Current:
    """The user's message with what was picked for it, weighed alone and step by step."""

    message: Message
    weighed: Weighed
    own: Count
    picked: tuple[tuple[Picked, int], ...]

    @property
    def for_picks(self) -> int:
        return self.weighed.count.tokens - self.own.tokens


@dataclass(frozen=True, slots=True)
class Told:
    """What a window says besides what is in it."""

    conversation: str
    notes: tuple[str, ...] = ()
    promised: int = 0
    """The room of a summary that is still to be written: for showing what would come."""
    not_picked: tuple[Pick, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """Everything decided for one request."""

    ready: Ready
    budget: Budget
    loaded: Loaded
    current: Current
    plan: Plan
    window: Window
    pieces: tuple[Piece, ...]
    stable: int
    """How many pieces precede what changes with every message."""
    told: Told

    @property
    def scale(self) -> Scale:
        return self.ready.scale

    @property
    def opening(self) -> Opening:
        return self.ready.opening


async def weigh_current(
    scale: Scale, message: Message, picked: Sequence[Picked], block: Compaction | None = None
) -> Current:
    """The message alone, then with one pick more at a time: each pick costs the difference."""
    sent = excerpted(message, block.excerpts if block else NO_EXCERPTS)
    steps = [current_entry(sent, [item.text for item in picked[:take]]) for take in range(len(picked) + 1)]
    weighed = await scale.weigh(steps)
    costs = [after.count.tokens - before.count.tokens for before, after in pairwise(weighed)]
    return Current(message, weighed[-1], weighed[0].count, tuple(zip(picked, costs, strict=True)))


def make_turn(ready: Ready, loaded: Loaded, current: Current, told: Told) -> Turn:
    """Plan and window for one request. Where the plan has a cut, compact and make it again."""
    budget = budget_of(ready.budget, loaded, current)
    plan = STRATEGIES[ready.strategy](loaded.view, budget, loaded.counts)
    return _assembled(ready, loaded, current, budget, plan, told)


async def with_picks(turn: Turn, picked: Picked, not_picked: Sequence[Pick] = ()) -> Turn:
    """The same turn with one pick more, in front of the others; its plan stays."""
    current = turn.current
    others = [item for item, _ in current.picked]
    block = turn.loaded.view.compaction
    more = await weigh_current(turn.scale, current.message, [picked, *others], block)
    told = replace(turn.told, not_picked=(*turn.told.not_picked, *not_picked))
    return _assembled(turn.ready, turn.loaded, more, turn.budget, turn.plan, told)


def _assembled(ready: Ready, loaded: Loaded, current: Current, budget: Budget, plan: Plan, told: Told) -> Turn:
    before, rounds = loaded.before, loaded.entries(loaded.view.rounds)
    counts = (ready.opening.count, current.weighed.count, *(entry.count for entry in (*before, *rounds)))
    window = Window(
        conversation=told.conversation,
        model=ready.model.name,
        strategy=plan.strategy,
        limit=budget.limit,
        reserve=budget.reserve,
        exact=all(count.exact for count in counts),
        sections=_tally(ready.opening, loaded, current, told.promised).sections(budget),
        plan=plan,
        notes=told.notes,
        not_picked=told.not_picked,
    )
    body = [entry.wire for entry in (*before, current.weighed, *rounds)]
    opening = ready.opening.pieces
    pieces = (*opening, *listed(body, ready.opening.is_open), ready.scale.format.closing(ready.parameters))
    stable = len(opening) + sum(len(entry.wire) for entry in before)
    marks = _marks(pieces, len(opening), stable, ready, current, window)
    pieces = marked(pieces, marks, ready.scale.format)
    return Turn(ready, budget, loaded, current, plan, window, pieces, stable, told)


def budget_of(budget: Budget, loaded: Loaded, current: Current) -> Budget:
    return replace(budget, picked=current.for_picks, current=current.own.tokens, drift=loaded.drift)


def _marks(
    pieces: Sequence[Piece], opening: int, stable: int, ready: Ready, current: Current, window: Window
) -> list[int]:
    """Where a cache mark pays: behind the instructions, behind the history, and behind the last message where the next
    request will begin with the same bytes, which it does not when something was picked for this message alone."""
    places = []
    if ready.opening.count.tokens >= LEAST_CACHED:
        places += [place for place in range(opening) if pieces[place].kind in ("tool", "system")][-1:]
    if window.total >= LEAST_CACHED:
        last = len(pieces) - 2
        places += [stable - 1] if stable > opening else []
        places += [last] if last >= stable and (last > stable or not current.picked) else []
    return places


def _tally(opening: Opening, loaded: Loaded, current: Current, promised: int) -> Tally:
    tally, view = Tally(), loaded.view
    opening.tally(tally)
    _add_summary(tally, loaded, promised)
    for message in view.still_sent:
        if entries := loaded.weights.get(message.id):
            tokens = sum(entry.count.tokens for entry in entries)
            tally.add("history", Pick("message", message.id, _lifted_because(message, view.compaction)), tokens)
    if history := loaded.entries(view.history):
        tokens = sum(entry.count.tokens for entry in history)
        tally.add("history", _history_pick(loaded, len(history)), tokens)
    for item, tokens in current.picked:
        shares = shared_out(tokens, [pick.tokens for pick in item.picks])
        for pick, share in zip(item.picks, shares, strict=True):
            tally.add(item.section, pick, share)
    tally.add(
        "message", Pick("message", current.message.id, _current_because(current, view.compaction)), current.own.tokens
    )
    if rounds := loaded.entries(view.rounds):
        because = "tool calls and results of this turn"
        tally.add("message", Pick("rounds", f"{len(rounds)} messages", because), sum(e.count.tokens for e in rounds))
    return tally


def _add_summary(tally: Tally, loaded: Loaded, promised: int) -> None:
    block = loaded.view.compaction
    if promised:
        tally.add("summary", Pick("summary", "to be written", f"at most {promised} tokens"), promised)
    elif loaded.summary and block:
        because = f"stands for {block.messages_archived} archived messages; {block.made_by}"
        name = f"compaction {block.compaction_number}"
        tally.add("summary", Pick("summary", name, because), loaded.summary.count.tokens)


def _lifted_because(message: Message, block: Compaction | None) -> str:
    if block and message.id in block.pinned:
        return "pinned"
    return f"archived, but still sent: priority {message.priority}"


def _current_because(current: Current, block: Compaction | None) -> str:
    if block and current.message.id in block.excerpts:
        return "the message that is answered, as an excerpt: whole it does not fit"
    return "the message that is answered"


def _history_pick(loaded: Loaded, count: int) -> Pick:
    view = loaded.view
    ends = f"{view.history[0].id}…{view.history[-1].id}"
    because = "said since compaction " + str(view.compaction.compaction_number) if view.compaction else "the whole chat"
    shortened = {key.partition("/")[0] for key in (view.compaction.excerpts if view.compaction else ())}
    some = sum(message.id in shortened for message in view.history)
    excerpts = f", {some} of them as an excerpt" if some else ""
    return Pick("messages", ends, f"{count} message{'s' * (count != 1)}, {because}{excerpts}")


def account_of(turn: Turn) -> Mapping[str, object]:
    """What of the turn goes into the record besides its bytes; what says nothing is left out."""
    view = turn.loaded.view
    stays = view.still_sent + view.history
    excerpts = sorted(view.compaction.excerpts) if view.compaction else []
    told = {key: value for key, value in turn.window.to_json().items() if key not in ("conversation", "model", "plan")}
    is_passing = bool(view.compaction and view.compaction.action == PASSING)
    return {
        **told,
        "plan": {key: value for key, value in turn.plan.to_json().items() if key in TOLD_ALWAYS or _says(value)},
        "messages": {
            "first": stays[0].id if stays else None,
            "last": stays[-1].id if stays else None,
            "count": len(stays),
            "lifted": [message.id for message in view.lifted],
            **({"excerpts": excerpts} if excerpts else {}),
            "current": turn.current.weighed.entry.message,
            "rounds": [message.id for message in view.rounds],
        },
        "compaction": view.compaction.compaction_number if view.compaction else None,
        **({"passing": True} if is_passing else {}),
        "meter": turn.scale.meter.key,
        "window_from": turn.scale.model.window_from,
    }


def _says(value: object) -> bool:
    return bool(value) and not (isinstance(value, dict) and value.get("count") == 0)
